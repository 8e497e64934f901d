"""Cosines of questions with turns or sentences, their chunks, passages and surroundings, by the encoder of a model.

The encoder is that of the network `hat_units` without its layers over units, such as the frozen MiniLM of `meeting`.
A document is encoded once for each of these that a rule needs: for passages that overlap twice.

Legend: Q questions, E channels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..data.record import Record
from ..data.vector_file import VectorFile
from ..kernels import AUTO
from ..model_folder import is_model_folder
from ..modules.in_context import Ids, nearby_means
from ..networks.units import UnitsEncoder
from ..networks.vector_cache import VectorCache
from ..scoring.evidence_baselines import Reference
from ..scoring.evidence_rules import MEANS_WITHIN, chunk_numbers, passages_of
from ..weights.names import local_paths
from .loading import Loaded, load
from .rows import encode_documents

TOGETHER = 32  # documents whose sentences are sorted by length for little padding


def load_encoder(path: str, references: str, kept_in: str | None = None) -> Loaded:
    """Loads the model whose encoder makes the vectors; ValueError for several, or for another network.

    The data of a checkpoint are in the folder `bin` of `hat preprocess` beside the folder of the file `references`.
    `kept_in`: a file of vectors that its training has kept; those in it are not computed, and it stays as it is.
    """
    data = None if is_model_folder(local_paths(path)) else Path(references).resolve().parent.with_name("bin")
    if data is not None and not data.is_dir():
        raise ValueError(
            f"{path} is no folder of hat export, and its data are not in {data}: take text/SPLIT.jsonl of its data as "
            "references, or a folder of hat export"
        )
    loaded = load(path, data, precision=AUTO)
    encoder = encoder_of(loaded)
    if kept_in is not None:
        encoder.keep_vectors(VectorFile(kept_in)).open(encoder)
        if not (cache := encoder.cache) or not cache.vectors:
            raise ValueError(f"{kept_in} has no vectors of this encoder: take the file that its training has kept")
        cache.store = None
    return loaded


def encoder_of(loaded: Loaded) -> UnitsEncoder:
    """Returns the encoder of a model; ValueError for an ensemble, or for another network."""
    encoder = getattr(loaded.models[0], "core", None)
    if len(loaded.models) > 1 or not isinstance(encoder, UnitsEncoder):
        what = "an ensemble" if len(loaded.models) > 1 else loaded.architecture
        raise ValueError(f"{loaded.paths[0]} is {what}; rules of vectors need one model with the network hat_units")
    return encoder


def cosines_of(loaded: Loaded, references: Iterable[Reference]) -> list["UnitCosines"]:
    """Returns the cosines of each document; ValueError for one whose units the model does not read all."""
    encoder = encoder_of(loaded)
    return [UnitCosines(encoder, *_tokens(loaded, encoder, reference)) for reference in references]


def _tokens(loaded: Loaded, encoder: UnitsEncoder, reference: Reference) -> tuple[list[Ids], list[Ids]]:
    """Returns the ids of each question and of each unit."""
    record = replace(reference.record.without_gold(), turns=None, text=None, sentences=tuple(reference.texts))
    [[encoded]] = encode_documents([record], loaded)
    questions, units = encoder.parts(encoded.tokens.tolist())
    if len(units) != len(reference.units):
        raise ValueError(
            f"{reference.record.name}: {loaded.paths[0]} reads {len(units)} of its {len(reference.units)} turns or "
            "sentences, because its data are truncated: take another encoder, such as meeting"
        )
    return questions, units


class UnitCosines:
    """Cosines of the questions of a document, as `evidence_rules.Cosines`; each kind is computed when it is needed.

    Args:
        questions, units: ids of each.
    """

    def __init__(self, encoder: UnitsEncoder, questions: list[Ids], units: list[Ids]) -> None:
        self.encoder, self.questions, self.units = encoder, questions, units
        self.sizes = np.array(list(map(len, units)))

    @cached_property
    def asked(self) -> Tensor:
        return self.vectors(self.questions)

    @cached_property
    def alone(self) -> np.ndarray:
        return self.cosines(self.vectors(self.units))

    @cached_property
    def chunks(self) -> np.ndarray:
        numbers = chunk_numbers(self.sizes).tolist()
        chunks = [list(chain(*own)) for own in self.units_of_chunks(numbers)]
        return self.cosines(self.vectors(chunks))[:, np.unique(numbers, return_inverse=True)[1]]

    @cached_property
    @torch.no_grad()
    def nearby(self) -> dict[int, np.ndarray]:
        (means,) = self.encoder.kept_or_new([self.units], self.encoder.encode_in_context, "context")
        sizes = torch.from_numpy(self.sizes).to(means.device)
        return {width: self.cosines(nearby_means(means, sizes, width)) for width in MEANS_WITHIN}

    @cached_property
    def passages(self) -> np.ndarray:
        tokens = list(chain(*self.units))
        return self.cosines(self.vectors([tokens[begin:end] for begin, end in passages_of(len(tokens))]))

    def units_of_chunks(self, numbers: Sequence[int]) -> Iterator[list[Ids]]:
        """Yields the units of each chunk."""
        for _, own in groupby(zip(numbers, self.units, strict=True), key=lambda pair: pair[0]):
            yield [unit for _, unit in own]

    @torch.no_grad()
    def vectors(self, texts: Sequence[Ids]) -> Tensor:
        """Encodes texts, each by itself: (number, E)."""
        return torch.cat(self.encoder.kept_or_new([[text] for text in texts], self.encoder.encode, "alone"))

    def cosines(self, others: Tensor) -> np.ndarray:
        """Computes the (Q, number) cosines of the questions and other vectors."""
        cosines: Any = F.normalize(self.asked, dim=1) @ F.normalize(others, dim=1).T
        return np.asarray(cosines.double().cpu().numpy())


@torch.no_grad()
def vectors_of_texts(
    path: str, references: str, splits: Mapping[str, Mapping[str, Record]], kept_in: str | None = None
) -> dict[str, list[np.ndarray]]:
    """Returns the vectors (N, E) of the sentences of each record of each split, each sentence encoded alone.

    `kept_in`: a file of vectors that the training of the model has kept; those in it are not computed. ValueError as
    `load_encoder`, and for a file of another encoder.
    """
    loaded = load_encoder(path, references, kept_in)
    encoder, vectors = encoder_of(loaded), dict[str, list[np.ndarray]]()
    stored = encoder.cache or VectorCache()
    for name, records in splits.items():
        rows = [[*encoder.units(own[0].tokens.tolist())] for own in encode_documents(records.values(), loaded)]
        vectors[name] = []
        for begin in range(0, len(rows), TOGETHER):
            some = rows[begin : begin + TOGETHER]
            alone = stored.get([[unit] for row in some for unit in row], encoder, encoder.encode, "alone")
            each = torch.cat(alone).float().cpu().split([*map(len, some)])
            vectors[name] += [own.numpy() for own in each]
    return vectors
