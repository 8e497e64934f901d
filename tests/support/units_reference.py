"""The heads of `hat_units` for labels by their definitions: loops over documents, units, neighbours and terms."""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from evidence_reference import Parameters, layer, linear, norm, place
from torch import Tensor


def states(p: Parameters, vectors: Tensor, layout: str, heads: int, neighbours: int) -> Tensor:
    """(N, C) states of the (N, E) units of one document after the layers."""
    own = {name.removeprefix("units."): x for name, x in p.items() if name.startswith("units.")}
    rows = [linear(own, "unit_proj", 8 * vector) for vector in vectors]
    rows = [row + place(number, len(rows), len(row), own, row) for number, row in enumerate(rows)]
    x = torch.stack(rows)
    for index, letter in enumerate(layout.split("|")):
        x = layer(own, f"layers.{index}", x, heads, neighbours if letter == "N" else None)
    return norm(own, "layer_norm", x)


def weights(p: Parameters, units: Tensor) -> Tensor:
    """Ilse et al. 2018, equation 9."""
    scores = []
    for unit in units:
        gate = linear(p, "attention.tanh_proj", unit).tanh() * linear(p, "attention.sigmoid_proj", unit).sigmoid()
        scores.append(linear(p, "attention.score", gate)[0])
    exponentials = [score.exp() for score in scores]
    return torch.stack([each / sum(exponentials) for each in exponentials])


def label(p: Parameters, vectors: Tensor, layout: str, heads: int, neighbours: int) -> Tensor:
    """(K,) logits of a document by the network."""
    units = 8 * vectors if layout == "none" else states(p, vectors, layout, heads, neighbours)
    gated = sum(weight * unit for weight, unit in zip(weights(p, units), units, strict=True))
    mean = sum(units) / len(units)
    return linear(p, "out_proj", linear(p, "dense", torch.cat([gated, mean])).clamp(min=0))


def labels_of_units(p: Parameters, vectors: Tensor, layout: str, heads: int, neighbours: int) -> Tensor:
    """(N, K) logits of the units of a document."""
    logits = torch.stack([linear(p, "linear", 8 * vector) for vector in vectors])
    if layout == "none":
        return logits
    return logits + linear(p, "out_proj", states(p, vectors, layout, heads, neighbours))


def terms(ids: Sequence[int]) -> list[str]:
    """Tokens and pairs of tokens, without markers and unknown ones."""
    known = [str(each) for each in ids if each >= 4]
    return known + [f"{first} {second}" for first, second in zip(known, known[1:], strict=False)]


def tf_idf(documents: Sequence[Sequence[int]], document: Sequence[int]) -> dict[str, float]:
    """The weights of the terms of a document that at least two of `documents` have."""
    frequency = Counter(term for each in documents for term in {*terms(each)})
    counts = Counter(term for term in terms(document) if frequency[term] >= 2)
    values = {
        term: (1 + math.log(count)) * (1 + math.log((1 + len(documents)) / (1 + frequency[term])))
        for term, count in counts.items()
    }
    length = math.sqrt(sum(value**2 for value in values.values()))
    return {term: value / length for term, value in values.items()}
