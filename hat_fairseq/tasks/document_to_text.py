"""The task `document_to_text`: translation whose source is a document of sentences.

On top of fairseq's translation task: one policy for documents that are too long, a parallel stream of roles, raw
documents in fairseq-interactive, ROUGE and document BLEU during validation, and settings under which a resumed run
equals an uninterrupted one.
"""

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from ..data.ids import Chunk
from ..generation.beam_search import BeamSearchGenerator
from ..generation.options import MINIMUM, POSITIVE, check_ranges, parse_generation_options
from .bin_folder import check_kind, load_ids, load_pipeline
from .config import DocumentToTextConfig
from .document_dataset import load_documents
from .raw_documents import encode_documents, parse_line
from .training import PluginTask
from .validation_meters import DocumentBleuMeter, RougeMeter

__all__ = ["DocumentToTextConfig", "DocumentToTextTask"]


@register_task("document_to_text", dataclass=DocumentToTextConfig)
class DocumentToTextTask(PluginTask, TranslationTask):
    """Documents in, text out."""

    cfg: DocumentToTextConfig

    @classmethod
    def setup_task(cls, cfg: DocumentToTextConfig, **kwargs: Any) -> "DocumentToTextTask":
        check_kind(utils.split_paths(cfg.data)[0], "text")  # before its dictionaries are missed
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
        self.segment_dictionary: Dictionary | None = None
        if cfg.role_stream:
            path = data / f"dict.{cfg.role_stream}.txt"
            if not path.is_file():
                raise FileNotFoundError(f"{path} is missing: --role-stream needs data made by `hat preprocess --roles`")
            self.segment_dictionary = self.load_dictionary(str(path))
        self.pipeline = load_pipeline(data, "text")
        self.rouge: RougeMeter | None = None
        self.doc_bleu: DocumentBleuMeter | None = None
        self._chunks: dict[str, list[Chunk]] = {}  # of the subsets that doc_bleu is about
        self._interactive_segments: dict[bytes, Tensor] = {}

    # Data

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split, truncates what is too long, and logs how much."""
        if self.cfg.skip_samples and combine:  # as only training does
            raise ValueError("--skip-samples is for generation: training uses all samples")
        # Training data may be several directories, one for each epoch in turn; the rest is in the first.
        folders, training = utils.split_paths(self.cfg.data), split == self.cfg.train_subset
        folder = folders[(epoch - 1) % len(folders)] if training else folders[0]
        self.datasets[split] = load_documents(self, folder, split, combine)
        if self.cfg.eval_doc_bleu and not training:
            path = Path(folder) / f"{split}.ids"
            self._chunks[split] = load_ids(path, len(self.datasets[split]), "--eval-doc-bleu needs it")

    # Validation

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        model = super().build_model(cfg, from_checkpoint)
        decode = self.pipeline.decode if self.pipeline else partial(data_utils.post_process, symbol="@@ ")
        if self.cfg.eval_rouge:
            options = parse_generation_options(self.cfg.eval_rouge_args, "--eval-rouge-args")
            self.rouge = RougeMeter(self.build_generator([model], Namespace(**options)), self.tgt_dict, decode)
        if self.cfg.eval_doc_bleu:
            options = parse_generation_options(self.cfg.eval_doc_bleu_args, "--eval-doc-bleu-args")
            generator = self.build_generator([model], Namespace(**options))
            tokenize = self.cfg.eval_doc_bleu_tokenize
            self.doc_bleu = DocumentBleuMeter(generator, self.tgt_dict, decode, self._chunks, tokenize)
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

    def post_validate(self, model: Any, stats: dict[str, Any], aggregator: Any) -> None:
        """Called by fairseq after each validation subset."""
        if self.doc_bleu is not None:
            self.doc_bleu.finish()

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
        check_ranges({name: getattr(args, name, None) for name in (*MINIMUM, *POSITIVE)})
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
