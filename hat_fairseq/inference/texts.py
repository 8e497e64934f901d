"""Texts for documents from trained models, in Python."""

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ..data.record import Record
from ..data.records_json import json_line
from ..generation.join_chunks import document_row
from ..generation.options import NOT_SEARCHED, OPTIONS, check_options, search_options
from ..generation.search import beam_search
from ..versions import digest
from .loaded import Loaded
from .loading import check_writes_texts, with_task
from .rows import OTHER_SEGMENTS, Encoded, Line, batches, check_batches, encode_documents, padded


def seed_sampling(seed: int, documents: Sequence[Record]) -> None:
    """Makes what is drawn next depend on the seed and on the documents alone."""
    torch.manual_seed(int(digest(seed, *map(json_line, documents))[:15], 16))


class DocumentToText:
    """Trained models; it encodes raw documents like the training data and generates texts.

    `generation`: fairseq's options, e.g. beam=4, lenpen=1.0, max_len_b=400. Our beam search runs without fairseq; other
    options, and models of fairseq, use its generator. ValueError for an option that is unknown or out of range, and for
    models that write no texts.
    """

    def __init__(self, loaded: Loaded, **generation: Any) -> None:
        check_options(generation)
        check_writes_texts(":".join(loaded.paths), loaded.pipeline.kind)
        self.options, self.generator = generation, None
        others = [name for name in NOT_SEARCHED if OPTIONS[name].is_set(generation.get(name))]
        if others or not all(hasattr(model.decoder, "new_cache") for model in loaded.models):
            loaded = with_task(loaded, f"the generation option {', '.join(others)}")
            self.generator = loaded.task.build_generator(loaded.models, Namespace(**generation))
        self.loaded, self.models, self.pipeline = loaded, loaded.models, loaded.pipeline

    def rows(
        self, documents: Iterable[Record], batch_size: int | None = 1, max_tokens: int | None = None
    ) -> Iterator[Line]:
        """Yields `{"id", "text"}` for each document, in order and as soon as it is generated, its chunks joined.

        Where the model puts `<sep>` between segments, also `"segments"`, and `"meta"` where the document has it. All
        documents are encoded first, so a bad one is a ValueError before anything has been generated.

        Args:
            batch_size, max_tokens: see `batches`.
        """
        check_batches(batch_size)
        documents = list(documents)
        encoded, settings = encode_documents(documents, self.loaded), self.pipeline.settings
        texts = self._texts([each for rows in encoded for each in rows], batch_size, max_tokens)
        for document, rows in zip(documents, encoded, strict=True):
            pieces = list(islice(texts, len(rows)))
            line = document_row(document.id, pieces, settings.target_separator, settings.target_language)
            segments = sum(each.row.segments for each in rows)
            self.pipeline.counts[OTHER_SEGMENTS] += len(line.get("segments", ())) not in (0, segments)
            yield line | ({} if document.meta is None else {"meta": document.meta})

    def _texts(self, rows: list[Encoded], batch_size: int | None, max_tokens: int | None) -> Iterator[str]:
        words = self.loaded.target.symbols
        for batch in batches([len(each.tokens) for each in rows], batch_size, max_tokens, by_size=False):
            for best in self.hypotheses([rows[number] for number in batch]):
                yield self.pipeline.decode(" ".join(words[token] for token in best.tolist()))

    @torch.no_grad()
    def hypotheses(self, rows: list[Encoded]) -> list[Tensor]:
        """Generates the best hypothesis of each row, token ids with `</s>`."""
        device, lengths = self.loaded.device, [len(each.tokens) for each in rows]
        source = padded([each.tokens for each in rows]).to(device)
        roles = [each.roles for each in rows if each.roles is not None]
        more = {"roles": padded(roles).to(device)} if roles else {}
        if self.generator is not None:
            net_input = {"src_tokens": source, "src_lengths": torch.tensor(lengths, device=device), **more}
            best = self.loaded.task.inference_step(self.generator, self.models, {"net_input": net_input})
            return [beams[0]["tokens"] for beams in best]
        positions = min(model.decoder.embedding_sizes.positions for model in self.models)
        options = search_options(self.options, lengths, positions, len(self.loaded.target))
        decoders = [model.decoder for model in self.models]
        memories = [model.encoder(source, **more) for model in self.models]
        names = [each.row.id for each in rows]
        documents = beam_search(decoders, memories, len(rows), device, options, names)
        return [beams[0].tokens for beams in documents]
