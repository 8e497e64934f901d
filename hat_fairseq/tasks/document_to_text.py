"""The task `document_to_text`: translation whose source is a document of sentences.

On top of fairseq's translation task: one policy for documents that are too long, a parallel stream of roles, raw
documents in fairseq-interactive, ROUGE during validation, and settings under which a resumed run equals an
uninterrupted one.
"""

import logging
from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask, load_langpair_dataset
from torch import Tensor

from ..data.pipeline import FILE_NAME, TextPipeline
from .document_dataset import (
    SOURCE_POLICIES,
    TARGET_POLICIES,
    DocumentPairDataset,
    PrefixDataset,
    shortened_sizes,
)
from .generation_options import parse_generation_options
from .interactive import encode_documents, parse_line
from .rouge_meter import RougeMeter

logger = logging.getLogger(__name__)


@dataclass
class DocumentToTextConfig(TranslationConfig):
    # fairseq would infer the pair from file names, and take the role stream's files for it.
    source_lang: Optional[str] = field(default="source", metadata={"help": "source stream", "argparse_alias": "-s"})
    target_lang: Optional[str] = field(default="target", metadata={"help": "target stream", "argparse_alias": "-t"})
    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    long_source: ChoiceEnum(list(SOURCE_POLICIES)) = field(  # type: ignore[valid-type]
        default="error", metadata={"help": "what to do with a source longer than --max-source-positions"}
    )
    long_target: ChoiceEnum(list(TARGET_POLICIES)) = field(  # type: ignore[valid-type]
        default="error", metadata={"help": "what to do with a target longer than --max-target-positions"}
    )
    role_stream: Optional[str] = field(
        default=None,
        metadata={"help": "name of the parallel stream of segment ids, e.g. role; adds segment embeddings"},
    )
    input_format: ChoiceEnum(["text", "json"]) = field(  # type: ignore[valid-type]
        default="text",
        metadata={"help": "what a line of fairseq-interactive is: a document's text, or its JSON object"},
    )
    eval_rouge: bool = field(
        default=False, metadata={"help": "generate during validation and report rouge1, rouge2 and rougeL"}
    )
    eval_rouge_args: str = field(
        default="{}", metadata={"help": "generation options for --eval-rouge as JSON, e.g. '{\"beam\": 2}'"}
    )
    # Batches are drawn with (seed, epoch): built anew in every epoch they are the same after a resume.
    rebuild_batches: bool = field(default=True, metadata={"help": "build new batches for each epoch"})
    # Workers that live on keep the dataset of the first epoch, and with it its random choices.
    reuse_dataloader: bool = field(default=False, metadata={"help": "keep data workers from epoch to epoch"})


@register_task("document_to_text", dataclass=DocumentToTextConfig)
class DocumentToTextTask(TranslationTask):
    """Documents in, text out."""

    cfg: DocumentToTextConfig

    def __init__(self, cfg: DocumentToTextConfig, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.left_pad_target:
            raise ValueError("--left-pad-target is not supported: the decoder's causal mask needs padding on the right")
        if cfg.load_alignments:
            raise ValueError("--load-alignments is not supported: a document has no word alignments to learn from")
        if cfg.truncate_source:  # fairseq's name for one of our policies
            cfg.long_source, cfg.truncate_source = "truncate", False
        data = Path(utils.split_paths(cfg.data)[0])
        self.segment_dictionary: Dictionary | None = None
        if cfg.role_stream:
            path = data / f"dict.{cfg.role_stream}.txt"
            if not path.is_file():
                raise FileNotFoundError(f"{path} is missing: --role-stream needs data made by `hat preprocess --roles`")
            self.segment_dictionary = self.load_dictionary(str(path))
        self.pipeline = TextPipeline.load(data) if (data / FILE_NAME).exists() else None
        self.rouge: RougeMeter | None = None
        self._interactive_segments: dict[bytes, Tensor] = {}

    # Data

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split, cuts what is too long, and reports what that cost."""
        cfg, eos = self.cfg, self.src_dict.eos()
        folder = self._folder(split, epoch)
        pair = load_langpair_dataset(
            folder,
            split,
            cfg.source_lang,
            self.src_dict,
            cfg.target_lang,
            self.tgt_dict,
            combine=combine,
            dataset_impl=cfg.dataset_impl,
            upsample_primary=cfg.upsample_primary,
            left_pad_source=cfg.left_pad_source,
            left_pad_target=False,
            max_source_positions=cfg.max_source_positions,
            max_target_positions=cfg.max_target_positions,
        )
        source_sizes, cost = shortened_sizes(
            pair.src, cfg.max_source_positions, str(cfg.long_source), self.src_dict.bos(), f"{split} source document"
        )
        self._report(split, "source", str(cfg.long_source), cost)
        source = PrefixDataset(pair.src, source_sizes, eos)
        target, target_sizes = None, None
        if pair.tgt is not None:
            target_sizes, cost = shortened_sizes(
                pair.tgt, cfg.max_target_positions, str(cfg.long_target), self.tgt_dict.bos(), f"{split} target"
            )
            self._report(split, "target", str(cfg.long_target), cost)
            target = PrefixDataset(pair.tgt, target_sizes, self.tgt_dict.eos())
        segments = None
        if cfg.role_stream:
            stream = self._load_stream(f"{folder}/{split}", cfg.role_stream, pair.src.sizes, combine)
            segments = PrefixDataset(stream, source_sizes, eos)
        self.datasets[split] = DocumentPairDataset(
            source,
            source_sizes,
            self.src_dict,
            target,
            target_sizes,
            self.tgt_dict,
            left_pad_source=cfg.left_pad_source,
            left_pad_target=False,
            num_buckets=cfg.num_batch_buckets,
            shuffle=split != "test",
            pad_to_multiple=cfg.required_seq_len_multiple,
            segments=segments,
        )

    def _folder(self, split: str, epoch: int) -> str:
        """Training data may be several directories, one for each epoch in turn; the rest is in the first."""
        folders = utils.split_paths(self.cfg.data)
        return folders[(epoch - 1) % len(folders)] if split == self.cfg.train_subset else folders[0]

    def _load_stream(self, split_prefix: str, name: str, sizes: np.ndarray, combine: bool) -> Any:
        prefix = f"{split_prefix}.{name}-None.{name}"
        stream = data_utils.load_indexed_dataset(prefix, self.segment_dictionary, self.cfg.dataset_impl, combine)
        if stream is None:
            raise FileNotFoundError(f"{prefix}.idx: the stream of --role-stream {name} is missing; binarise it as well")
        if not np.array_equal(stream.sizes, sizes):
            detail = f"{len(stream.sizes)} documents, not {len(sizes)}"
            if len(stream.sizes) == len(sizes):
                first = int(np.flatnonzero(stream.sizes != sizes)[0])
                detail = f"{stream.sizes[first]} ids for {sizes[first]} tokens in document {first + 1}"
            raise ValueError(f"{prefix}: the stream does not match the source: {detail}; preprocess the data again")
        return stream

    def get_batch_iterator(self, *args: Any, **kwargs: Any) -> Any:
        # With a multiple (fairseq's default is 8) fairseq drops the last batch whenever it does not fill up.
        return super().get_batch_iterator(*args, **{**kwargs, "required_batch_size_multiple": 1})

    @staticmethod
    def _report(split: str, side: str, policy: str, cost: Counter[str]) -> None:
        if cost:
            details = ", ".join(f"{name} {count}" for name, count in sorted(cost.items()))
            logger.warning("%s %s: longer than the limit, policy %s: %s", split, side, policy, details)

    # Validation

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_rouge:
            options = parse_generation_options(self.cfg.eval_rouge_args, "--eval-rouge-args")
            generator = self.build_generator([model], Namespace(**options))
            decode = self.pipeline.decode if self.pipeline else _undo_bpe
            self.rouge = RougeMeter(generator, self.tgt_dict, decode)
        return model

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Tensor, int, dict[str, Any]]:
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.rouge is not None:
            hypotheses = self.inference_step(self.rouge.generator, [model], sample)
            logging_output.update(self.rouge.score(hypotheses, sample["target"]))
        return loss, sample_size, logging_output

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        for name, value, documents in RougeMeter.reduce(logging_outputs):
            metrics.log_scalar(name, value, documents, round=2)

    # Raw documents

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Any) -> tuple[list[Tensor], list[int]]:
        """fairseq-interactive: every line is a document, encoded exactly as in preprocessing."""
        if self.pipeline is None:
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        numbered = enumerate(lines, start=1)
        encoded = encode_documents((parse_line(line, n, str(self.cfg.input_format)) for n, line in numbered), self)
        if len(encoded.tokens) != len(lines):
            raise ValueError(
                f"{len(lines)} lines became {len(encoded.tokens)} chunks; fairseq-interactive takes one input a line: "
                "use `hat summarize`, which joins chunks again, or preprocess with another policy for long sources"
            )
        pairs = zip(encoded.tokens, encoded.segments, strict=False)  # no segments without --role-stream
        self._interactive_segments = {_key(row): segments for row, segments in pairs}
        return encoded.tokens, [row.numel() for row in encoded.tokens]

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        if getattr(args, "print_alignment", None):
            raise ValueError("--print-alignment is not supported: generation keeps no attention weights")
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
        if self.segment_dictionary is not None and "segments" not in net_input:
            # fairseq-interactive keeps nothing but the tokens of a batch; their segments are found by them.
            net_input["segments"] = self._find_segments(net_input["src_tokens"])
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    def _find_segments(self, src_tokens: Tensor) -> Tensor:
        pad = self.src_dict.pad()
        rows = [self._interactive_segments[_key(utils.strip_pad(row, pad))] for row in src_tokens.cpu()]
        # src_tokens come from fairseq's plain dataset, which pads them on the left.
        left_pad = bool(src_tokens[:, 0].eq(pad).any())
        return data_utils.collate_tokens(rows, pad, left_pad=left_pad, pad_to_length=src_tokens.size(1)).to(src_tokens)


def _key(tokens: Tensor) -> bytes:
    return np.asarray(torch.as_tensor(tokens).long()).tobytes()


def _undo_bpe(text: str) -> str:
    return (text + " ").replace("@@ ", "").rstrip()
