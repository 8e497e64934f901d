"""Baselines for evidence from the vectors of a model alone, without its layers over turns or sentences.

The probability of a unit is (1 + cosine) / 2 of its vector and the question's. These are what truncation, and chunks
that are encoded apart, can see: the unit alone, the first 512 tokens of the document, and the best unit of a chunk of
about 512 tokens. Each has the threshold with the best mean F1 on validation documents. Predictions are those of the
kind, which `hat score evidence` reads.

Legend: Q questions, N units.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..data.kinds.evidence import (
    EvidenceKind,
    EvidenceOptions,
    EvidencePrediction,
    count_questions_and_units,
    evidence_of,
    units_of_row,
)
from ..data.record import Record
from ..data.rows import Row
from ..networks.evidence import EvidenceEncoder
from ..networks.kept_vectors import KeptVectors
from ..scoring.baselines import CHUNK, best_of_chunk, first_chunk
from ..scoring.evidence_score import best_threshold, rounded
from .loading import Loaded
from .rows import encode_documents

RULES: dict[str, Callable[[np.ndarray, Sequence[int]], np.ndarray]] = {  # of (Q, N) cosines and tokens of units
    "cosine": lambda scores, sizes: scores,
    f"cosine, first {CHUNK} tokens": first_chunk,
    f"cosine, best of its {CHUNK} tokens": best_of_chunk,
}


@dataclass(frozen=True)
class Cosines:
    """A document with (Q, N) probabilities from cosines, and the tokens of each unit, its marker included."""

    record: Record
    row: Row
    scores: np.ndarray
    sizes: list[int]

    @property
    def gold(self) -> np.ndarray:
        """Returns (Q, N): is a unit evidence; ValueError where that is not known."""
        record: Any = self.record
        if record.gold_value is None:
            raise ValueError(f"{record.name} has neither evidence nor spans, so no threshold can be chosen on it")
        units = units_of_row(self.row)
        return np.array([[unit.number in of for unit in units] for of in evidence_of(record, units, Counter())])


def cosine_baselines(
    loaded: Loaded, records: Iterable[Record], valid: Iterable[Record], vectors: str | None = None
) -> dict[str, list[EvidencePrediction]]:
    """Predicts documents by each of the `RULES`.

    Args:
        loaded: one model with the network `hat_evidence`.
        valid: documents with evidence, on which the thresholds are chosen.
        vectors: file (.npz) that keeps the vectors, such as that of `--vectors` of its training.
    Raises:
        ValueError: another network, an ensemble, or a document that the model cannot read.
    """
    encoder = _encoder(loaded)
    cache = None if vectors is None else KeptVectors(vectors)
    cosines = [_cosines(loaded, encoder, cache, each) for each in (records, valid)]
    if cache is not None:
        cache.save()
    return {name: _predictions(rule, *cosines) for name, rule in RULES.items()}


def _encoder(loaded: Loaded) -> EvidenceEncoder:
    encoder = getattr(loaded.models[0], "core", None)
    if len(loaded.models) > 1 or not isinstance(encoder, EvidenceEncoder):
        what = "an ensemble" if len(loaded.models) > 1 else loaded.architecture
        raise ValueError(f"{loaded.paths[0]} is {what}; the baselines need one model with the network hat_evidence")
    return encoder


@torch.no_grad()
def _cosines(
    loaded: Loaded, encoder: EvidenceEncoder, cache: KeptVectors | None, records: Iterable[Record]
) -> list[Cosines]:
    documents, known = [], list(records)
    for record, ((row, tokens, _),) in zip(known, encode_documents(known, loaded), strict=True):
        units = list(encoder.units(tokens.tolist()))
        vectors = encoder.encode(units) if cache is None else cache.get(units, encoder)
        questions = count_questions_and_units(tokens)[0]
        cosines = (vectors[:questions] @ vectors[questions:].T).float().cpu().numpy()
        sizes = [1 + len(unit) for unit in units[questions:]]
        documents.append(Cosines(record, row, np.clip((1 + cosines.astype(float)) / 2, 0, 1), sizes))
    return documents


def _predictions(
    rule: Callable[[np.ndarray, Sequence[int]], np.ndarray], documents: list[Cosines], valid: list[Cosines]
) -> list[EvidencePrediction]:
    of_valid = [rounded(rule(each.scores, each.sizes)) for each in valid]
    options = EvidenceOptions(best_threshold(of_valid, [each.gold for each in valid]))
    return [
        EvidenceKind().predict(each.record, [each.row], [rounded(rule(each.scores, each.sizes)).ravel()], [], options)
        for each in documents
    ]
