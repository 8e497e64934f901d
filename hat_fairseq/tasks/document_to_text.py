"""The task `document_to_text`: fairseq's `translation` with documents as sources, for summaries and translations.

It adds a role for each source token, ROUGE and detokenized BLEU during validation, and exact resumption. Limits on the
length are those of preprocessing: a longer document is refused.

The scores of a validation are computed from sums over batches and processes. BLEU is fairseq's `--eval-bleu` with the
text of this package's pipeline and the tokenizer of its language. It scores rows, so a document that was cut into
chunks counts as several; `hat score bleu` scores whole documents.
"""

import logging
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.data.encoders import register_bpe
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from ..data.kinds.documents import DocumentKind
from ..data.language import base_language
from ..data.manifest import check_files
from ..data.pipeline import TextPipeline
from ..generation.options import OPTIONS, check_options, parse_generation_options
from ..generation.shared_memory import SharedMemoryGenerator
from ..kernels import CPU_PRECISIONS
from ..options import no_effect, stated, typed
from ..scoring.bleu import BleuSettings, make_bleu, settings_by_script
from ..scoring.rouge import score_documents, split_summary, suitable_words
from .document_dataset import load_documents
from .plugin_task import PluginTask, PluginTaskConfig, load_pipeline

logger = logging.getLogger(__name__)

ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeLsum": "rougeL"}  # names of rouge-score -> in the log
SHORT = "_short_hypotheses"  # in percent; not printed
MAX_SHORT = 50.0  # more are a warning
UNKNOWN_REFERENCE = "\u2047"  # for <unk> in a reference: an unknown word that is generated as <unk> is no match


@dataclass
class DocumentToTextConfig(PluginTaskConfig, TranslationConfig):
    # fairseq would infer the pair from file names, and take the role stream's files for it.
    source_lang: Optional[str] = field(
        default="source", metadata={"help": "the name of the source stream", "argparse_alias": "-s"}
    )
    target_lang: Optional[str] = field(
        default="target", metadata={"help": "the name of the target stream", "argparse_alias": "-t"}
    )
    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    role_stream: Optional[str] = field(
        default=None,
        metadata={"help": "read role ids from the stream of this name, e.g. role, and add an embedding for each role"},
    )
    eval_rouge: bool = field(
        default=False, metadata={"help": "generate during validation and report rouge1, rouge2 and rougeL"}
    )
    eval_rouge_args: str = field(
        default="{}", metadata={"help": "the generation options of --eval-rouge as JSON, e.g. '{\"beam\": 2}'"}
    )
    cpu_precision: ChoiceEnum(list(CPU_PRECISIONS)) = field(  # type: ignore[valid-type]
        default="fp32", metadata={"help": "the precision of linear layers when generating on a CPU; fp32 is exact"}
    )


@register_task("document_to_text", dataclass=DocumentToTextConfig)
class DocumentToTextTask(PluginTask, TranslationTask):
    """Generates a text from a document."""

    cfg: DocumentToTextConfig
    default_criterion = "chunked_label_smoothed_cross_entropy"

    @classmethod
    def setup_task(cls, cfg: DocumentToTextConfig, **kwargs: Any) -> "DocumentToTextTask":
        if cfg.left_pad_target:
            raise ValueError("--left-pad-target is not supported: the decoder's causal mask needs padding on the right")
        if cfg.load_alignments:
            raise ValueError("--load-alignments is not supported: a document has no word alignments to learn from")
        pipeline = load_pipeline(cfg.data, DocumentKind.task)
        check_streams(cfg)
        task = super().setup_task(cfg, **kwargs)
        task.pipeline = pipeline
        return task

    def __init__(self, cfg: DocumentToTextConfig, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.role_dictionary: Dictionary | None = None
        if cfg.role_stream:
            path = Path(utils.split_paths(cfg.data)[0], f"dict.{cfg.role_stream}.txt")
            if not path.is_file():
                raise FileNotFoundError(f"{path} is missing: --role-stream needs data made by `hat preprocess --roles`")
            self.role_dictionary = self.load_dictionary(str(path))
        self.bleu: Any = None  # sacrebleu's metric, chosen by the first references

    def decode(self, line: str) -> str:
        """Returns a line of tokens as text."""
        return self.pipeline.decode(line) if self.pipeline else data_utils.post_process(line, "@@ ")

    # Data

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        # Training data may be several directories, one for each epoch in turn; other splits are in the first one.
        folders, training = utils.split_paths(self.cfg.data), split == self.cfg.train_subset
        folder = folders[(epoch - 1) % len(folders)] if training else folders[0]
        check_files(folder, split)
        self.datasets[split] = load_documents(self, folder, split, combine)
        if training and self.datasets[split].tgt is None:
            raise ValueError(f"{folder}: the split {split} has no targets to train on; run hat preprocess again")

    # Validation

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        if not from_checkpoint:  # an earlier version may have taken such options
            check_translation_options(self.cfg)
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_rouge or self.cfg.eval_bleu:
            self.decode("")  # a missing package is known before the first epoch
        if self.cfg.eval_rouge:
            options = parse_generation_options(self.cfg.eval_rouge_args, "--eval-rouge-args")
            self.rouge_generator = self.build_generator([model], Namespace(**options))
        return model

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Tensor, int, dict[str, Any]]:
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_rouge:
            hypotheses = self.inference_step(self.rouge_generator, [model], sample)
            pairs = text_pairs(self, hypotheses, sample["target"])
            logging_output.update(rouge_sums(pairs))
        return loss, sample_size, logging_output

    def _inference_with_bleu(self, generator: Any, sample: dict[str, Any], model: Any) -> Any:
        """fairseq's hook of `--eval-bleu`: the BLEU of a batch, whose sums fairseq adds up."""
        pairs = text_pairs(self, self.inference_step(generator, [model], sample), sample["target"])
        generated, references = map(list, zip(*pairs, strict=True))
        if self.cfg.eval_bleu_print_samples:
            logger.info("example hypothesis: %s", generated[0])
            logger.info("example reference: %s", references[0])
        if self.bleu is None:
            language = base_language(self.pipeline.settings.target_language) if self.pipeline else BleuSettings.language
            settings, reason = settings_by_script(BleuSettings(language=language), references)
            self.bleu = make_bleu(settings)
            if reason:
                logger.info("bleu: %s", reason)
        return self.bleu.corpus_score(generated, [references])

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        reduce_scores(logging_outputs)

    def post_validate(self, model: Any, stats: dict[str, Any], aggregator: Any) -> None:
        """Warns, as fairseq's hook after each subset, if most texts are empty or one word, which no score shows."""
        if SHORT in aggregator and (share := aggregator[SHORT].avg) > MAX_SHORT:
            logger.warning(
                "%.0f%% of the generated texts are empty or one word, so their scores say nothing; if this stays so, "
                "look at min_len, max_len_b and lenpen of the generation, and at the learning rate", share,
            )  # fmt: skip

    # Generation

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Any) -> tuple[list[Tensor], list[int]]:
        raise ValueError("fairseq-interactive cannot read documents; use `hat generate MODEL FILE`")

    def build_generator(self, models: list[Any], args: Any, *more: Any, **kwargs: Any) -> Any:
        check_options(stated(**{name: getattr(args, name, None) for name in OPTIONS}))
        if (words := getattr(args, "sampling_topk", None)) is not None:
            args.sampling_topk = min(words, len(self.tgt_dict))
        if getattr(args, "print_alignment", None):
            raise ValueError("--print-alignment is not supported: generation keeps no attention weights")
        if not more and all(hasattr(getattr(model, "decoder", None), "reorder_beams") for model in models):
            kwargs.setdefault("seq_gen_cls", SharedMemoryGenerator)
        return super().build_generator(models, args, *more, **kwargs)


def check_streams(cfg: DocumentToTextConfig) -> None:
    """Raises FileNotFoundError for a stream without dictionary, with the names of those that there are."""
    folder = Path(utils.split_paths(cfg.data)[0])
    for flag, name in (("-s", cfg.source_lang), ("-t", cfg.target_lang)):
        if not (path := folder / f"dict.{name}.txt").is_file():
            there = ", ".join(sorted(each.name.split(".")[1] for each in folder.glob("dict.*.txt")))
            raise FileNotFoundError(
                f"{path} is missing, the dictionary of {flag} {name}: name the source and the target with -s and -t; "
                f"{folder} has {there}"
            )


def check_translation_options(cfg: DocumentToTextConfig) -> None:
    """Raises ValueError for an option of fairseq's `translation` that has no effect on this task, or on its own."""
    defaults = DocumentToTextConfig()
    chosen = {name for name, value in vars(defaults).items() if getattr(cfg, name) not in (value, None)}
    if cfg.truncate_source:
        raise ValueError(
            "--truncate-source has no effect: use `hat preprocess --max-source-tokens N --long-source truncate`"
        )
    for name in ("eval_bleu_detok", "eval_bleu_detok_args", "eval_bleu_remove_bpe", "eval_tokenized_bleu"):
        if name in chosen:
            raise ValueError(
                f"{typed(name)} has no effect: --eval-bleu scores the text that the pipeline of the data "
                "makes of tokens; remove it"
            )
    for name in ("eval_rouge_args", "eval_bleu_args", "eval_bleu_print_samples"):
        what = "_".join(name.split("_")[:2])
        if name in chosen and not getattr(cfg, what):
            raise no_effect(name, "without", what)
    if cfg.eval_bleu:
        parse_generation_options(cfg.eval_bleu_args or "{}", "--eval-bleu-args")


def text_pairs(task: Any, hypotheses: list[list[dict[str, Any]]], targets: Iterable[Any]) -> list[tuple[str, str]]:
    """Returns the best hypothesis and the reference of each row of a batch, as text on one line."""
    dictionary = task.tgt_dict

    def text(tokens: Any, **options: str) -> str:
        tokens = utils.strip_pad(tokens, dictionary.pad()).int().cpu()
        return " ".join(task.decode(dictionary.string(tokens, **options)).split())

    pairs = zip(hypotheses, targets, strict=True)
    return [(text(beams[0]["tokens"]), text(target, unk_string=UNKNOWN_REFERENCE)) for beams, target in pairs]


def rouge_sums(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Returns sums over the rows of a batch: F x 100 (stemmed, both sides split at punctuation), texts, short texts.

    Words are those of the references' script. A short text has at most one word, or one character where words are not
    separated, and its reference has more.
    """
    generated, references = ([split_summary(pair[side], "punctuation") for pair in pairs] for side in (0, 1))
    words = suitable_words(reference for _, reference in pairs)
    scores = score_documents(generated, references, stem=True, words=words)
    sums = {log: float(scores[name].sum()) for name, log in ROUGE.items()}
    sums[SHORT] = sum(len(a.split()) <= 1 < len(b.split()) or len(a) <= 1 < len(b) for a, b in pairs)
    return {f"_{name}_sum": 100 * value for name, value in sums.items()} | {"_hypotheses": len(pairs)}


def reduce_scores(logging_outputs: list[dict[str, Any]]) -> None:
    """Logs the mean of each of the sums in percent; nothing when nothing was generated."""
    number = sum(log.get("_hypotheses", 0) for log in logging_outputs)
    for name in (*ROUGE.values(), SHORT) if number else ():
        if any(f"_{name}_sum" in log for log in logging_outputs):
            mean = float(sum(log.get(f"_{name}_sum", 0) for log in logging_outputs)) / number
            metrics.log_scalar(name, mean, number, round=2)


@dataclass
class DocumentBpeConfig(FairseqDataclass):
    document_pipeline: str = field(
        default="", metadata={"help": "the bin directory of `hat preprocess`, which holds pipeline.json"}
    )


@register_bpe("document", dataclass=DocumentBpeConfig)
class DocumentBpe:
    """Turns generated tokens into text with the pipeline of the training data, on the D- lines of fairseq-generate."""

    def __init__(self, config: DocumentBpeConfig) -> None:
        if not config.document_pipeline:
            raise ValueError("--bpe document needs --document-pipeline DIR, the bin directory of `hat preprocess`")
        self.decode = TextPipeline.load(config.document_pipeline).decode

    def encode(self, text: str) -> str:
        return text
