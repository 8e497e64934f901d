"""Texts for raw documents from a trained model (`hat summarize`, and the Python interface `DocumentToText`)."""

import argparse
import itertools
import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Self

import torch
from fairseq.data import data_utils
from torch import Tensor

from ..data.outputs import check_folder, check_output
from ..data.parallel import progress
from ..data.record import Record
from ..data.records_json import read_records
from ..generation.join_chunks import document_row
from ..generation.options import check_generation_options, packaged_options, parse_generation_options
from ..tasks.document_to_text import DocumentToTextTask
from ..tasks.raw_documents import encode_documents
from .command import Prediction, add_raw_input, check_batch_size, rows_in_order, write_lines
from .hub import local_paths
from .loading import Data, load_models, pipeline_of, split_with


class DocumentToText:
    """A trained ensemble with its task; it encodes raw documents like the training data and generates texts.

    `generation`: fairseq's options, e.g. beam=4, lenpen=1.0, max_len_b=400. ValueError for data without pipeline.json,
    or an option that is unknown or out of range.
    """

    def __init__(self, models: list[Any], task: DocumentToTextTask, **generation: Any) -> None:
        check_generation_options(generation, "generation")
        self.models = [model.eval() for model in models]
        self.task, self.pipeline = task, pipeline_of(task)
        self.generator = task.build_generator(models, Namespace(**generation))

    @classmethod
    def from_pretrained(
        cls, checkpoints: str, data: Data = None, device: str | None = None, precision: str = "fp32", **generation: Any
    ) -> Self:
        """Loads checkpoints; see `loading.load_models`, and the class for `generation`, before a package's."""
        checkpoints = local_paths(checkpoints)
        models, task = load_models(checkpoints, data, DocumentToTextTask, device, precision)
        return cls(models, task, **packaged_options(checkpoints) | generation)

    @property
    def device(self) -> torch.device:
        return next(self.models[0].parameters()).device

    def __call__(self, documents: Iterable[Record], batch_size: int = 1) -> Iterator[str]:
        """Yields the text of each document; see `rows`."""
        for row in self.rows(documents, batch_size):
            yield row["text"]

    def rows(self, documents: Iterable[Record], batch_size: int = 1) -> Iterator[Prediction]:
        """Yields `{"id", "text"}` for each document, in order and as soon as it is generated, its chunks joined.

        Where the model puts `<sep>` between segments, also `"segments"`, and `"meta"` where the document has it. All
        documents are encoded first, so a bad one is a ValueError before anything has been generated. Changes and
        truncation of the input are logged.
        """
        check_batch_size(batch_size)
        documents = list(documents)
        encoded = encode_documents(documents, self.task)
        settings = self.pipeline.settings

        def texts_of_rows() -> Iterator[tuple[int, str]]:
            for start in range(0, len(encoded.tokens), batch_size):
                part = slice(start, start + batch_size)
                texts = self._generate(encoded.tokens[part], encoded.roles[part])
                yield from zip(encoded.owners[part], texts, strict=True)

        for owner, rows in itertools.groupby(texts_of_rows(), key=lambda row: row[0]):
            pieces = [text for _, text in rows]
            row = document_row(documents[owner].id, pieces, settings.target_separator, settings.target_language)
            yield row | ({} if documents[owner].meta is None else {"meta": documents[owner].meta})

    def _generate(self, tokens: list[Tensor], roles: list[Tensor]) -> list[str]:
        dictionary = self.task.target_dictionary
        return [self.pipeline.decode(dictionary.string(best)) for best in self.hypotheses(tokens, roles)]

    def hypotheses(self, tokens: list[Tensor], roles: list[Tensor]) -> list[Tensor]:
        """The best hypothesis of each row, token ids with `</s>`; `roles`: rows of role ids, or none."""
        pad = self.task.source_dictionary.pad()
        net_input = {
            "src_tokens": data_utils.collate_tokens(tokens, pad),
            "src_lengths": torch.tensor([row.numel() for row in tokens]),
        }
        if roles:
            net_input["roles"] = data_utils.collate_tokens(roles, pad)
        sample = {"net_input": {name: tensor.to(self.device) for name, tensor in net_input.items()}}
        return [beams[0]["tokens"] for beams in self.task.inference_step(self.generator, self.models, sample)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    models = "checkpoint or package, or several with colons between them: an ensemble"
    texts = "texts to write: .jsonl with id, text (and segments)"
    add_raw_input(parser, models, "documents: .jsonl, .jsonl.gz", texts)
    parser.add_argument("--generation", default="{}", help="fairseq generation options as JSON, e.g. '{\"beam\": 4}'")


def main(args: argparse.Namespace) -> int:
    """Reads documents, generates and writes their texts."""
    check_folder(args.out)
    check_output(args.out, args.overwrite, [args.input, *args.path.split(os.pathsep)])
    check_batch_size(args.batch_size)
    options = parse_generation_options(args.generation, "--generation")
    documents = list(read_records(args.input))
    if not documents:
        raise ValueError(f"{args.input} is empty: nothing to summarize")
    model = DocumentToText.from_pretrained(args.path, args.data, args.device, args.precision, **options)
    split_with(model.task, args.splitter)
    rows_of = partial(model.rows, batch_size=args.batch_size)
    rows = rows_in_order(documents, rows_of, model.pipeline, args.on_empty, {"text": ""})
    write_lines(args.out, progress(rows, "summarize", len(documents)), len(documents))
    print(f"wrote {len(documents)} texts to {args.out}")
    return 0
