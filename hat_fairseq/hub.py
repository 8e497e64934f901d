"""Texts for raw documents from a trained model (`hat summarize`, and the Python interface `DocumentToText`)."""

from __future__ import annotations

import argparse
import itertools
import json
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import data_utils
from torch import Tensor
from tqdm import tqdm

from .data.document import Document, read_documents
from .generation.join_chunks import document_row
from .kernels import CPU_PRECISIONS, check_precision
from .tasks.generation_options import parse_generation_options
from .tasks.interactive import encode_documents


class DocumentToText:
    """A trained model with its task: documents in, text out, by the path that made the training data.

    Args:
        models: an ensemble of at least one model.
        task: their task, with its pipeline.
        generation: fairseq's generation options, e.g. beam=4, lenpen=1.0, max_len_b=400.
    """

    def __init__(self, models: list[Any], task: Any, **generation: Any) -> None:
        if task.pipeline is None:
            raise ValueError(f"{task.cfg.data} has no pipeline.json: make it with `hat preprocess`")
        for model in models:
            model.eval()
        self.models = models
        self.task = task
        self.generator = task.build_generator(models, Namespace(**generation))

    @classmethod
    def from_pretrained(
        cls, checkpoints: str, data: str, device: str | None = None, precision: str = "fp32", **generation: Any
    ) -> DocumentToText:
        """Loads checkpoints (several with colons between them make an ensemble).

        Args:
            checkpoints: paths.
            data: the bin directory of `hat preprocess`, with dictionaries and pipeline.json.
            device: e.g. "cuda"; default: a GPU if there is one.
            precision: of the linear maps on the CPU: fp32, bf16 or int8.

        Raises:
            ValueError: a precision that does not exist, or other than fp32 on a GPU.
        """
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        check_precision(precision, device)
        overrides = {"data": str(data), "eval_rouge": False, "eval_doc_bleu": False, "cpu_precision": precision}
        models, _, task = checkpoint_utils.load_model_ensemble_and_task(utils.split_paths(checkpoints), overrides)
        for model in models:
            model.to(device)
            model.prepare_for_inference_(Namespace(task=task.cfg, generation=Namespace(**generation)))
        return cls(models, task, **generation)

    @property
    def device(self) -> torch.device:
        return next(self.models[0].parameters()).device

    def __call__(self, documents: Iterable[Document], batch_size: int = 1) -> Iterator[str]:
        """Yields a text for each document; see `rows`."""
        for row in self.rows(documents, batch_size):
            yield row["text"]

    def rows(self, documents: Iterable[Document], batch_size: int = 1) -> Iterator[dict[str, Any]]:
        """Yields `{"id", "text"}` for each document, in order and as soon as it is there, its chunks joined.

        Where the model puts `<sep>` between segments, also `"segments"`. All documents are encoded first, so a bad one
        is an error before anything has been generated. What was changed or cut on the way in is logged.
        """
        documents = list(documents)
        encoded = encode_documents(documents, self.task)
        with_segments = self.task.pipeline.settings.target_separator

        def texts_of_rows() -> Iterator[tuple[int, str]]:
            for start in range(0, len(encoded.tokens), batch_size):
                batch = slice(start, start + batch_size)
                texts = self._generate(encoded.tokens[batch], encoded.segments[batch])
                yield from zip(encoded.owners[batch], texts, strict=True)

        for owner, rows in itertools.groupby(texts_of_rows(), key=lambda row: row[0]):
            yield document_row(documents[owner].id, [text for _, text in rows], with_segments)

    def _generate(self, tokens: list[Tensor], segments: list[Tensor]) -> list[str]:
        pad = self.task.source_dictionary.pad()
        net_input = {
            "src_tokens": data_utils.collate_tokens(tokens, pad),
            "src_lengths": torch.tensor([row.numel() for row in tokens]),
        }
        if segments:
            net_input["segments"] = data_utils.collate_tokens(segments, pad)
        sample = {"net_input": {name: tensor.to(self.device) for name, tensor in net_input.items()}}
        dictionary, decode = self.task.target_dictionary, self.task.pipeline.decode
        hypotheses = self.task.inference_step(self.generator, self.models, sample)
        return [decode(dictionary.string(beams[0]["tokens"])) for beams in hypotheses]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--path", required=True, help="checkpoint, or several with colons between them")
    parser.add_argument("--data", required=True, help="bin directory of `hat preprocess`")
    parser.add_argument("--input", required=True, help="documents: .jsonl, .jsonl.gz")
    parser.add_argument("--out", required=True, help="texts to write: .jsonl with id, text (and segments)")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--device", help="default: a GPU if there is one")
    parser.add_argument("--precision", choices=CPU_PRECISIONS, default="fp32", help="of the linear maps on the CPU")
    parser.add_argument("--generation", default="{}", help="fairseq generation options as JSON, e.g. '{\"beam\": 4}'")


def main(args: argparse.Namespace) -> int:
    out = Path(args.out)
    if not out.parent.is_dir():  # known now, not after hours of generation
        raise ValueError(f"{out.parent}: the directory of --out does not exist")
    documents = list(read_documents(args.input))
    options = parse_generation_options(args.generation, "--generation")
    model = DocumentToText.from_pretrained(args.path, args.data, args.device, args.precision, **options)
    partial = out.with_name(f"{out.name}.partial")  # keeps what is done if generation is interrupted
    rows = tqdm(model.rows(documents, args.batch_size), total=len(documents), unit="document", disable=None)
    with partial.open("w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            lines.flush()
    partial.replace(out)
    print(f"wrote {len(documents)} texts to {out}")
    return 0
