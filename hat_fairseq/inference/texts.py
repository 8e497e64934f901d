"""Texts for raw documents from a trained model (`hat summarize`, and the Python interface `DocumentToText`)."""

import argparse
import itertools
import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any, Self

import torch
from torch import Tensor

from ..data.outputs import check_folder, check_output
from ..data.parallel import progress
from ..data.record import Record
from ..data.records_json import read_records
from ..generation.join_chunks import document_row
from ..generation.options import (
    DEFAULTS,
    SEARCHED,
    check_generation_options,
    check_ranges,
    packaged_options,
    parse_generation_options,
    search_options,
)
from ..generation.search import beam_search
from .command import add_raw_input, check_batch_size, empty_row, find_empty, write_lines
from .hub import local_paths
from .loading import Data, Loaded, load, split_with
from .rows import Line, encode_documents, padded


class DocumentToText:
    """Trained models; it encodes raw documents like the training data and generates texts.

    `generation`: fairseq's options, e.g. beam=4, lenpen=1.0, max_len_b=400. Our beam search runs without fairseq; other
    options, and models of fairseq, use its generator. ValueError for an option that is unknown or out of range, and for
    models that write no texts.
    """

    def __init__(self, loaded: Loaded, **generation: Any) -> None:
        check_generation_options(generation, "generation")
        check_ranges(generation)
        if not hasattr(loaded.models[0], "decoder"):
            raise ValueError(
                f"{loaded.paths[0]} was trained on the task {loaded.pipeline.kind.task}, not on document_to_text "
                "(labels are predicted by hat predict)"
            )
        self.options, self.generator = generation, None
        others = [name for name, value in generation.items() if name not in SEARCHED and value != DEFAULTS[name]]
        if others or not all(hasattr(model.decoder, "reorder_beams") for model in loaded.models):
            loaded = loaded.with_task(f"the generation option {', '.join(others)}")
            self.generator = loaded.task.build_generator(loaded.models, Namespace(**generation))
        self.loaded, self.models, self.pipeline = loaded, loaded.models, loaded.pipeline

    @classmethod
    def from_pretrained(
        cls, checkpoints: str, data: Data = None, device: str | None = None, precision: str = "fp32", **generation: Any
    ) -> Self:
        """Loads checkpoints; see `loading.load`, and the class for `generation`, before a package's."""
        checkpoints = local_paths(checkpoints)
        return cls(load(checkpoints, data, device, precision), **packaged_options(checkpoints) | generation)

    def __call__(self, documents: Iterable[Record], batch_size: int = 1) -> Iterator[str]:
        """Yields the text of each document; see `rows`."""
        for row in self.rows(documents, batch_size):
            yield row["text"]

    def rows(self, documents: Iterable[Record], batch_size: int = 1) -> Iterator[Line]:
        """Yields `{"id", "text"}` for each document, in order and as soon as it is generated, its chunks joined.

        Where the model puts `<sep>` between segments, also `"segments"`, and `"meta"` where the document has it. All
        documents are encoded first, so a bad one is a ValueError before anything has been generated. Changes and
        truncation of the input are logged.
        """
        check_batch_size(batch_size)
        documents = list(documents)
        encoded = encode_documents(documents, self.loaded)
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
        words = self.loaded.target.symbols
        return [
            self.pipeline.decode(" ".join(words[token] for token in best.tolist()))
            for best in self.hypotheses(tokens, roles)
        ]

    @torch.no_grad()
    def hypotheses(self, tokens: list[Tensor], roles: list[Tensor]) -> list[Tensor]:
        """The best hypothesis of each row, token ids with `</s>`; `roles`: rows of role ids, or none."""
        device = self.loaded.device
        source = padded(tokens).to(device)
        more = {"roles": padded(roles).to(device)} if roles else {}
        if self.generator is not None:
            lengths = torch.tensor([row.numel() for row in tokens], device=device)
            sample = {"net_input": {"src_tokens": source, "src_lengths": lengths, **more}}
            best = self.loaded.task.inference_step(self.generator, self.models, sample)
            return [beams[0]["tokens"] for beams in best]
        positions = min(model.decoder.embedding_sizes.positions for model in self.models)
        options = search_options(self.options, source.size(1), positions, len(self.loaded.target))
        decoders = [model.decoder for model in self.models]
        memories = [model.encoder(source, **more) for model in self.models]
        return [beams[0].tokens for beams in beam_search(decoders, memories, len(tokens), device, options)]


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
    split_with(model, args.splitter)
    _, empty = find_empty(documents, model.pipeline, args.on_empty)
    rows = model.rows([each for each in documents if each.id not in empty], args.batch_size)
    lines = (empty_row(each, text="") if each.id in empty else next(rows) for each in documents)
    write_lines(args.out, progress(lines, "summarize", len(documents)), len(documents))
    print(f"wrote {len(documents)} texts to {args.out}")
    return 0
