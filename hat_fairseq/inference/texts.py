"""Texts for documents from trained models, in Python."""

import itertools
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from ..data.record import Record
from ..generation.join_chunks import document_row
from ..generation.options import DEFAULTS, SEARCHED, check_options, packaged_options, search_options
from ..generation.search import beam_search
from .hub import local_paths
from .loading import Data, Loaded, check_writes_texts, load
from .rows import OTHER_SEGMENTS, Line, batches, check_batch_size, encode_documents, padded


class DocumentToText:
    """Trained models; it encodes raw documents like the training data and generates texts.

    `generation`: fairseq's options, e.g. beam=4, lenpen=1.0, max_len_b=400. Our beam search runs without fairseq; other
    options, and models of fairseq, use its generator. ValueError for an option that is unknown or out of range, and for
    models that write no texts.
    """

    def __init__(self, loaded: Loaded, **generation: Any) -> None:
        check_options(generation, "generation")
        check_writes_texts(":".join(loaded.paths), loaded.pipeline.kind)
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

    def rows(
        self, documents: Iterable[Record], batch_size: int | None = 1, max_tokens: int | None = None
    ) -> Iterator[Line]:
        """Yields `{"id", "text"}` for each document, in order and as soon as it is generated, its chunks joined.

        Where the model puts `<sep>` between segments, also `"segments"`, and `"meta"` where the document has it. All
        documents are encoded first, so a bad one is a ValueError before anything has been generated.

        Args:
            batch_size, max_tokens: see `batches`.
        """
        check_batch_size(batch_size)
        documents = list(documents)
        encoded = encode_documents(documents, self.loaded)
        settings = self.pipeline.settings

        def texts_of_rows() -> Iterator[tuple[int, str]]:
            for batch in batches([len(row) for row in encoded.tokens], batch_size, max_tokens, by_size=False):
                part = slice(batch[0], batch[-1] + 1)
                texts = self._generate(encoded.tokens[part], encoded.roles[part])
                yield from zip(encoded.owners[part], texts, strict=True)

        segments: Counter[int] = Counter()
        for owner, row in zip(encoded.owners, encoded.rows, strict=True):
            segments[owner] += row.segments
        for owner, rows in itertools.groupby(texts_of_rows(), key=lambda row: row[0]):
            pieces = [text for _, text in rows]
            line = document_row(documents[owner].id, pieces, settings.target_separator, settings.target_language)
            self.pipeline.counts[OTHER_SEGMENTS] += len(line.get("segments", ())) not in (0, segments[owner])
            yield line | ({} if documents[owner].meta is None else {"meta": documents[owner].meta})

    def _generate(self, tokens: list[Tensor], roles: list[Tensor]) -> list[str]:
        words = self.loaded.target.symbols
        return [
            self.pipeline.decode(" ".join(words[token] for token in best.tolist()))
            for best in self.hypotheses(tokens, roles)
        ]

    @torch.no_grad()
    def hypotheses(self, tokens: list[Tensor], roles: Sequence[Tensor] = ()) -> list[Tensor]:
        """Generates the best hypothesis of each row, token ids with `</s>`; `roles`: rows of role ids, or none."""
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
