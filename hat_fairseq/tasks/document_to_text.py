"""The task `document_to_text`: fairseq's `translation` with documents as sources, for summaries and translations.

It adds a policy for documents that are too long, a role for each source token, raw documents in fairseq-interactive,
ROUGE and document BLEU during validation, and exact resumption.
"""

import logging
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary, LanguagePairDataset, data_utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from ..data.manifest import check_files
from ..data.rows import Chunk
from ..generation.beam_search import BeamSearchGenerator
from ..generation.options import MINIMUM, check_ranges, parse_generation_options
from ..scoring.bleu import BleuSettings
from .bin_folder import check_data, load_ids, load_pipeline
from .config import DocumentToTextConfig
from .document_dataset import DocumentPairDataset, load_documents
from .raw_documents import encode_documents, parse_line, row_of
from .training import PluginTask
from .validation_meters import DocumentBleuMeter, GenerationMeter, RougeMeter

logger = logging.getLogger(__name__)

__all__ = ["DocumentToTextConfig", "DocumentToTextTask"]


@register_task("document_to_text", dataclass=DocumentToTextConfig)
class DocumentToTextTask(PluginTask, TranslationTask):
    """Generates a text from a document."""

    cfg: DocumentToTextConfig
    default_criterion = "chunked_label_smoothed_cross_entropy"

    @classmethod
    def setup_task(cls, cfg: DocumentToTextConfig, **kwargs: Any) -> "DocumentToTextTask":
        check_data(cfg.data, "text")
        return super().setup_task(cfg, **kwargs)

    def __init__(self, cfg: DocumentToTextConfig, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.left_pad_target:
            raise ValueError("--left-pad-target is not supported: the decoder's causal mask needs padding on the right")
        if cfg.load_alignments:
            raise ValueError("--load-alignments is not supported: a document has no word alignments to learn from")
        if cfg.truncate_source:  # fairseq's name for one of our policies
            cfg.long_source, cfg.truncate_source = "truncate", False
        data = Path(utils.split_paths(cfg.data)[0])
        self.role_dictionary: Dictionary | None = None
        if cfg.role_stream:
            path = data / f"dict.{cfg.role_stream}.txt"
            if not path.is_file():
                raise FileNotFoundError(f"{path} is missing: --role-stream needs data made by `hat preprocess --roles`")
            self.role_dictionary = self.load_dictionary(str(path))
        self.pipeline = load_pipeline(data, "text")
        self.rouge: RougeMeter | None = None
        self.doc_bleu: DocumentBleuMeter | None = None
        self._chunks: dict[str, list[Chunk]] = {}  # of the subsets that doc_bleu is about
        # fairseq-interactive: lines read so far, the roles of the last lines, and the last batch made of them
        self._lines_read, self._roles, self._batch = 0, list[Tensor](), dict[str, Tensor]()

    # Data

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split, truncates what is too long, and logs how much."""
        if self.cfg.skip_samples and combine:  # as only training does
            raise ValueError("--skip-samples is for generation: training uses all samples")
        # Training data may be several directories, one for each epoch in turn; other splits are in the first one.
        folders, training = utils.split_paths(self.cfg.data), split == self.cfg.train_subset
        folder = folders[(epoch - 1) % len(folders)] if training else folders[0]
        check_files(folder, split)
        self.datasets[split] = load_documents(self, folder, split, combine)
        if training and self.datasets[split].tgt is None:
            raise ValueError(f"{folder}: the split {split} has no targets to train on; run hat preprocess again")
        if self.cfg.eval_doc_bleu and not training:
            path = Path(folder) / f"{split}.ids"
            self._chunks[split] = load_ids(path, len(self.datasets[split]), "--eval-doc-bleu needs it")
            if self.doc_bleu is not None:
                self.doc_bleu.choose_tokenizer(split, self.datasets[split].tgt)

    # Validation

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        model = super().build_model(cfg, from_checkpoint)
        decode = self.pipeline.decode if self.pipeline else partial(data_utils.post_process, symbol="@@ ")
        if self.cfg.eval_rouge or self.cfg.eval_doc_bleu:
            decode("")  # a missing package is known before the first epoch
        if self.cfg.eval_rouge:
            options = parse_generation_options(self.cfg.eval_rouge_args, "--eval-rouge-args")
            self.rouge = RougeMeter(self.build_generator([model], Namespace(**options)), self.tgt_dict, decode)
        if self.cfg.eval_doc_bleu:
            options = parse_generation_options(self.cfg.eval_doc_bleu_args, "--eval-doc-bleu-args")
            generator = self.build_generator([model], Namespace(**options))
            language = self.pipeline.settings.target_language if self.pipeline else BleuSettings.language
            settings = BleuSettings(self.cfg.eval_doc_bleu_tokenize, language=language)
            self.doc_bleu = DocumentBleuMeter(generator, self.tgt_dict, decode, self._chunks, settings)
        return model

    def begin_valid_epoch(self, epoch: int, model: Any) -> None:
        super().begin_valid_epoch(epoch, model)
        if self.doc_bleu is not None:
            self.doc_bleu.start()

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Tensor, int, dict[str, Any]]:
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        for meter in (self.rouge, self.doc_bleu):
            if meter is not None:
                hypotheses = self.inference_step(meter.generator, [model], sample)
                logging_output.update(meter.score(hypotheses, sample))
        return loss, sample_size, logging_output

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        RougeMeter.reduce(logging_outputs)
        DocumentBleuMeter.reduce(logging_outputs)
        GenerationMeter.reduce_short(logging_outputs)

    def post_validate(self, model: Any, stats: dict[str, Any], aggregator: Any) -> None:
        """Called by fairseq after each validation subset."""
        GenerationMeter.warn_of_short(aggregator)
        if self.doc_bleu is not None:
            self.doc_bleu.finish()

    # Raw documents

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Any) -> tuple[list[Tensor], list[int]]:
        """fairseq-interactive: every line is a document, encoded exactly as in preprocessing."""
        if self.pipeline is None:
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        first, self._lines_read = self._lines_read + 1, self._lines_read + len(lines)
        numbers = {number: line for number, line in enumerate(lines, first) if line.strip()}
        input_format = str(self.cfg.input_format)
        encoded = encode_documents((parse_line(line, n, input_format) for n, line in numbers.items()), self)
        if len(encoded.tokens) != len(numbers):
            raise ValueError(
                f"{len(numbers)} lines became {len(encoded.tokens)} chunks; fairseq-interactive takes one input a "
                "line: use `hat summarize`, which joins chunks again, or preprocess with another policy for long "
                "sources"
            )
        rows, roles = iter(encoded.tokens), iter(encoded.roles)
        tokens, self._roles = [], []
        for number in range(first, first + len(lines)):
            if number not in numbers:
                logger.warning("line %d is empty: its text has no meaning", number)
            tokens.append(next(rows) if number in numbers else row_of([], self.src_dict))
            if self.role_dictionary is not None:
                self._roles.append(next(roles) if number in numbers else row_of([], self.role_dictionary))
        return tokens, [row.numel() for row in tokens]

    def build_dataset_for_inference(
        self, src_tokens: list[Tensor], src_lengths: list[int], constraints: Any = None
    ) -> LanguagePairDataset:
        """Documents of fairseq-interactive, with their roles."""
        if self.role_dictionary is None:
            return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)
        dataset = DocumentPairDataset(
            *(src_tokens, src_lengths, self.src_dict, None, None, self.tgt_dict),
            constraints=constraints,
            roles=self._roles,
        )
        collater = dataset.collater

        def remember(samples: list[dict[str, Any]], *options: Any) -> dict[str, Any]:
            batch = collater(samples, *options)
            self._batch = batch["net_input"]
            return batch

        dataset.collater = remember  # type: ignore[assignment]
        return dataset

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        check_ranges({name: getattr(args, name, None) for name in MINIMUM})
        if getattr(args, "print_alignment", None):
            raise ValueError("--print-alignment is not supported: generation keeps no attention weights")
        if not rest and all(hasattr(getattr(model, "decoder", None), "reorder_beams") for model in models):
            kwargs.setdefault("seq_gen_cls", BeamSearchGenerator)
        return super().build_generator(models, args, *rest, **kwargs)

    def inference_step(
        self,
        generator: Any,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Any = None,
        constraints: Any = None,
    ) -> Any:
        net_input = sample["net_input"]
        if self.role_dictionary is not None and "roles" not in net_input:
            # fairseq-interactive keeps nothing but the tokens of a batch
            assert torch.equal(self._batch["src_tokens"], net_input["src_tokens"].cpu())
            net_input["roles"] = self._batch["roles"].to(net_input["src_tokens"])
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)
