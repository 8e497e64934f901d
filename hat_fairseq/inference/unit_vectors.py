"""Cosines of questions with turns or sentences, their chunks, passages and surroundings, by the encoder of a model.

The encoder is that of the network `hat_evidence` without its layers over units, such as the frozen MiniLM of `meeting`.
Each document is encoded three times: its units one by one, in chunks with margins, and in passages that overlap.

Legend: Q questions, N units, P passages, E channels.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..model_folder import is_model_folder
from ..modules.in_context import nearby_means
from ..networks.evidence import EvidenceEncoder, Ids
from ..scoring.evidence_baselines import Reference
from ..scoring.evidence_rules import MEANS_WITHIN, Cosines, chunk_numbers, passages_of
from ..weights.names import local_paths
from .loading import Loaded, load
from .rows import encode_documents


def load_encoder(path: str, references: str) -> Loaded:
    """Loads the model whose encoder makes the vectors; ValueError for several, or for another network.

    The data of a checkpoint are in the folder `bin` of `hat preprocess` beside the folder of the file `references`.
    """
    data = None if is_model_folder(local_paths(path)) else Path(references).resolve().parent.with_name("bin")
    if data is not None and not data.is_dir():
        raise ValueError(
            f"{path} is no folder of hat export, and its data are not in {data}: take text/SPLIT.jsonl of its data as "
            "references, or a folder of hat export"
        )
    loaded = load(path, data)
    encoder_of(loaded)
    return loaded


def encoder_of(loaded: Loaded) -> EvidenceEncoder:
    """Returns the encoder of a model; ValueError for an ensemble, or for another network than hat_evidence."""
    encoder = getattr(loaded.models[0], "core", None)
    if len(loaded.models) > 1 or not isinstance(encoder, EvidenceEncoder):
        what = "an ensemble" if len(loaded.models) > 1 else loaded.architecture
        raise ValueError(f"{loaded.paths[0]} is {what}; rules of vectors need one model with the network hat_evidence")
    return encoder


@torch.no_grad()
def cosines_of(loaded: Loaded, references: Iterable[Reference]) -> Iterator[Cosines]:
    """Yields the cosines of each document; ValueError for one whose units the model does not read all."""
    encoder = encoder_of(loaded)
    for reference in references:
        yield _cosines(encoder, *_tokens(loaded, encoder, reference))


def _tokens(loaded: Loaded, encoder: EvidenceEncoder, reference: Reference) -> tuple[list[Ids], list[Ids]]:
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


def _cosines(encoder: EvidenceEncoder, questions: list[Ids], units: list[Ids]) -> Cosines:
    sizes = np.array(list(map(len, units)))
    tokens = [token for unit in units for token in unit]
    asked, alone = _alone(encoder, questions), _alone(encoder, units)
    numbers = chunk_numbers(sizes)
    chunks = [
        [t for own, unit in zip(numbers, units, strict=True) if own == n for t in unit] for n in np.unique(numbers)
    ]
    passages = [tokens[begin:end] for begin, end in passages_of(len(tokens))]
    (means,) = encoder.encode_in_context([units])
    of_units = torch.from_numpy(sizes).to(means.device)
    return Cosines(
        sizes,
        _between(asked, alone),
        _between(asked, _alone(encoder, chunks))[:, np.unique(numbers, return_inverse=True)[1]],
        {width: _between(asked, nearby_means(means, of_units, width)) for width in MEANS_WITHIN},
        _between(asked, _alone(encoder, passages)),
    )


def _alone(encoder: EvidenceEncoder, texts: Sequence[Ids]) -> Tensor:
    return torch.cat(list(encoder.encode([[text] for text in texts])))


def _between(questions: Tensor, others: Tensor) -> np.ndarray:
    cosines: Any = F.normalize(questions, dim=1) @ F.normalize(others, dim=1).T
    return np.asarray(cosines.double().cpu().numpy())
