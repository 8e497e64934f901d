"""Encodes texts with the arguments and shapes of sentence-transformers, and the chunks of a document in context.

`load(DIR).encoder()` stands where a `SentenceTransformer` stands, as in its evaluators. Beyond that, `encode_document`
takes documents that are lists of chunks. Arguments of sentence-transformers that nothing here computes are refused.

Legend: N texts or chunks, C channels.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..data.records_json import record_from_json
from ..data.text import is_blank
from ..options import options_of
from ..weights.vector_settings import DOCUMENT, QUERY, VectorSettings
from ..workers import progress
from .embed import Embedder, EmbedOptions
from .loading import Loaded
from .rows import check_batches, logged_changes

CONTEXT, BATCH_SIZE = 256, 32  # tokens on either side of a chunk; texts, as in sentence-transformers
REFUSED = {  # arguments of sentence-transformers with the values that change nothing
    "output_value": "sentence_embedding",
    "precision": "float32",
    "device": None,
    "truncate_dim": None,
    "pool": None,
    "chunk_size": None,
}
EncodeResult = np.ndarray | Tensor | list[Tensor] | list[np.ndarray]


def _minus_distance(power: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda one, other: -torch.cdist(one, other, p=power)


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": lambda one, other: F.normalize(one, dim=1) @ F.normalize(other, dim=1).T,
    "dot": lambda one, other: one @ other.T,
    "euclidean": _minus_distance(2.0),
    "manhattan": _minus_distance(1.0),
}


class NoCard:
    """Takes what evaluators of sentence-transformers write into a model card; models of this package have another."""

    def set_evaluation_metrics(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing."""


class TextEncoder:
    """Encodes queries, documents and other texts; ValueError for a model that embeds no texts.

    `context`: as of `EmbedOptions`, for documents that are lists of chunks.
    """

    def __init__(self, loaded: Loaded, context: int = CONTEXT) -> None:
        options_of(EmbedOptions)["context"].check(context)
        self.loaded, self.context = loaded, context
        self.settings = VectorSettings.read(loaded.paths[0])
        self.model_card_data = NoCard()
        self._embedder("")  # an error comes here

    def __repr__(self) -> str:
        return f"TextEncoder({self.loaded.paths[0]!r}, context={self.context})"

    @property
    def prompts(self) -> dict[str, str]:
        """Returns the prompts of the folder by their names."""
        return dict(self.settings.prompts)

    @property
    def default_prompt_name(self) -> str | None:
        return self.settings.default_prompt

    @property
    def similarity_fn_name(self) -> str:
        return self.settings.similarity

    @property
    def max_seq_length(self) -> int:
        """Returns the tokens of a text that are read; chunks of documents are read to their end."""
        return min(self.settings.longest or self.loaded.longest, self.loaded.longest)

    @property
    def device(self) -> torch.device:
        return self.loaded.device

    def get_embedding_dimension(self) -> int:
        """Returns C."""
        return len(self.encode("a", prompt=""))

    get_sentence_embedding_dimension = get_embedding_dimension  # its name before version 6

    def encode(self, inputs: str | Sequence[str], **options: Any) -> EncodeResult:
        """Computes the vectors of texts with the default prompt; see `encode_query` for arguments and result."""
        default = self.settings.default_prompt
        return self._encode("encode", inputs, self.settings.prompt(() if default is None else (default,)), **options)

    def encode_query(self, inputs: str | Sequence[str], **options: Any) -> EncodeResult:
        """Computes the vectors of queries.

        Args:
            inputs: a text or several; a text is truncated to `max_seq_length` tokens, which is logged.
            options: those of `SentenceTransformer.encode`: `prompt_name` (of `prompts`), `prompt`, `batch_size`,
                `show_progress_bar`, `convert_to_numpy`, `convert_to_tensor`, `normalize_embeddings`.
        Returns:
            (N, C), or (C,) for one text: of numpy, or of torch with `convert_to_tensor`; a list of tensors without
            `convert_to_numpy`.
        """
        return self._encode("encode_query", inputs, self.settings.prompt(QUERY), **options)

    def encode_document(self, inputs: str | Sequence[str] | Sequence[Sequence[str]], **options: Any) -> EncodeResult:
        """Computes the vectors of documents, or of the chunks of each document in its context.

        Args:
            inputs: a text or several, or for each document the list of its chunks, in order.
            options: see `encode_query`.
        Returns:
            as of `encode_query`; for lists of chunks a list with (N, C) of each document.
        """
        prompt = self.settings.prompt(DOCUMENT)
        return self._encode("encode_document", inputs, prompt, has_chunks=True, **options)

    def similarity(self, one: Any, other: Any) -> Tensor:
        """Computes the (N, M) similarities of (N, C) and (M, C) vectors, or of single ones."""
        return SIMILARITIES[self.similarity_fn_name](_rows(one), _rows(other))

    def similarity_pairwise(self, one: Any, other: Any) -> Tensor:
        """Computes the (N,) similarities of pairs of vectors."""
        pairs = zip(_rows(one), _rows(other), strict=True)
        return torch.stack([self.similarity(*pair).squeeze() for pair in pairs])

    def _encode(
        self,
        method: str,
        inputs: Any,
        default: str,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        has_chunks: bool = False,
        **others: Any,
    ) -> EncodeResult:
        for name, value in others.items():
            if name not in REFUSED or value != REFUSED[name]:
                raise ValueError(f"{method}: {name}={value!r:.40} is not computed by hat_fairseq: remove it")
        check_batches(batch_size)
        if prompt is None and prompt_name is not None:
            if prompt_name not in self.settings.prompts:
                known = ", ".join(self.settings.prompts) or "none"
                raise ValueError(f"{method}: no prompt is called {prompt_name!r}; the model has: {known}")
            prompt = self.settings.prompts[prompt_name]
        texts, chunked = checked(method, inputs, has_chunks)
        prompt = default if prompt is None else prompt
        compute = self._of_chunks if chunked else self._of_texts
        with logged_changes(self.loaded.pipeline):
            vectors = compute(texts, prompt, batch_size, bool(show_progress_bar))
        if self.settings.scaled or normalize_embeddings:
            vectors = [F.normalize(each, dim=-1) for each in vectors]
        single = isinstance(inputs, str)
        if convert_to_tensor or not convert_to_numpy:
            vectors = [each.to(self.device) for each in vectors]
            return vectors[0] if single else _stacked(vectors) if convert_to_tensor and not chunked else vectors
        arrays = [each.numpy() for each in vectors]
        return (
            arrays[0] if single else arrays if chunked else np.stack(arrays) if arrays else np.zeros((0, 0), np.float32)
        )

    def _embedder(self, prompt: str, context: int | None = None) -> Embedder:
        """Returns what encodes texts, each alone; with `context` the chunks of a document."""
        if context is None:
            options = EmbedOptions("document", prompt=prompt)
        else:
            options = EmbedOptions(context=context, prompt=prompt)
        return Embedder(self.loaded, replace(options, raw=True))

    def _of_texts(self, texts: list[str], prompt: str, batch_size: int, shows: bool) -> list[Tensor]:
        return list(self._embedder(prompt).encode(texts, self.settings.longest, batch_size, shows))

    def _of_chunks(self, documents: list[list[str]], prompt: str, batch_size: int, shows: bool) -> list[Tensor]:
        embedder, kind = self._embedder(prompt, self.context), self.loaded.pipeline.kind
        key = next(name for name in ("segments", "sentences", *kind.record.one_of) if name in kind.record.one_of)
        vectors = []
        for number, chunks in enumerate(progress(documents, "encode", len(documents)) if shows else documents, start=1):
            if not chunks:
                vectors.append(torch.zeros(0, self.get_embedding_dimension()))
                continue
            record = record_from_json({"id": str(number), key: chunks}, f"document {number}", kind.name)
            (embedding,) = embedder.embeddings([record], batch_size)
            vectors.append(torch.from_numpy(embedding.vectors))
        return vectors


def checked(method: str, inputs: Any, has_chunks: bool) -> tuple[list[Any], bool]:
    """Returns the texts as a list, and whether they are lists of chunks; ValueError for what is neither."""
    if isinstance(inputs, str):
        return [inputs], False
    if not isinstance(inputs, Iterable) or isinstance(inputs, dict):
        raise ValueError(f"{method}: give a text or a list of texts, not {type(inputs).__name__}")
    texts = list(inputs)
    if not has_chunks or not any(isinstance(each, list | tuple) for each in texts):
        for number, text in enumerate(texts, start=1):
            if not isinstance(text, str):
                raise ValueError(f"{method}: text {number} is no string: {text!r:.40}")
        return texts, False
    for number, chunks in enumerate(texts, start=1):
        if not isinstance(chunks, list | tuple):
            raise ValueError(f"{method}: document {number} is no list of chunks as others are: {chunks!r:.40}")
        for place, chunk in enumerate(chunks, start=1):
            if not isinstance(chunk, str) or is_blank(chunk):
                raise ValueError(f"{method}: chunk {place} of document {number} has no text: {chunk!r:.40}")
    return [list(chunks) for chunks in texts], True


def _stacked(vectors: list[Tensor]) -> Tensor:
    return torch.stack(vectors) if vectors else torch.zeros(0, 0)


def _rows(vectors: Any) -> Tensor:
    """Returns vectors of numpy or torch, or a list of them, as (N, C)."""
    if isinstance(vectors, list | tuple):
        vectors = torch.stack([torch.as_tensor(each) for each in vectors])
    return torch.atleast_2d(torch.as_tensor(vectors))
