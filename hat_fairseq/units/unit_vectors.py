"""Vectors of sentences by the encoder of a model of the network `hat_units`, without its layers over units.

Legend: N sentences, E channels.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from ..data.record import Record
from ..inference.loading import Loaded, load
from ..inference.rows import encode_documents
from ..kernels import AUTO
from ..model_folder import is_model_folder
from ..weights.names import local_paths
from .network import UnitsEncoder
from .vector_cache import VectorCache
from .vector_file import VectorFile

TOGETHER = 32  # documents whose sentences are sorted by length for little padding


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
    loaded = load(path, data, precision=AUTO)
    encoder_of(loaded)
    return loaded


def encoder_of(loaded: Loaded) -> UnitsEncoder:
    """Returns the encoder of a model; ValueError for an ensemble, or for another network."""
    encoder = getattr(loaded.models[0], "core", None)
    if len(loaded.models) > 1 or not isinstance(encoder, UnitsEncoder):
        what = "an ensemble" if len(loaded.models) > 1 else loaded.architecture
        raise ValueError(f"{loaded.paths[0]} is {what}; vectors need one model with the network hat_units")
    return encoder


@torch.no_grad()
def vectors_of_texts(
    path: str, references: str, splits: Mapping[str, Mapping[str, Record]], kept_in: str | None = None
) -> dict[str, list[np.ndarray]]:
    """Returns the vectors (N, E) of the sentences of each record of each split, each sentence encoded alone.

    `kept_in`: a file of vectors that the training of the model has kept; those in it are not computed. ValueError as
    `load_encoder`, and for a file of another encoder.
    """
    loaded = load_encoder(path, references)
    encoder, vectors = encoder_of(loaded), dict[str, list[np.ndarray]]()
    stored = cache_of(encoder, kept_in)
    for name, records in splits.items():
        rows = [[*encoder.units(own[0].tokens.tolist())] for own in encode_documents(records.values(), loaded)]
        vectors[name] = []
        for begin in range(0, len(rows), TOGETHER):
            some = rows[begin : begin + TOGETHER]
            alone = stored.get([[unit] for row in some for unit in row], encoder, encoder.encode, "alone")
            each = torch.cat(alone).float().cpu().split([*map(len, some)])
            vectors[name] += [own.numpy() for own in each]
    return vectors


def cache_of(encoder: UnitsEncoder, kept_in: str | None) -> VectorCache:
    """Returns the vectors of an encoder in a file, to which others are added in memory alone.

    ValueError for a file that is missing or of another encoder.
    """
    if kept_in is None:
        return VectorCache()
    cache = VectorCache(VectorFile(kept_in))
    cache.open(encoder)
    if not cache.vectors:
        raise ValueError(f"{kept_in} has no vectors of this encoder: take the file that its training has kept")
    cache.store = None
    return cache
