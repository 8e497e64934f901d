"""The head of `hat_evidence` by its definition: loops over questions, units and tokens, in the type of its inputs.

It shares nothing with the code but the numbers at the top of `units.features`, and reads parameters by name.
"""

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Parameters = Mapping[str, Tensor]


def linear(p: Parameters, name: str, x: Tensor) -> Tensor:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def norm(p: Parameters, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * p[f"{name}.weight"] + p[f"{name}.bias"]


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return a @ b / b.norm() if b.norm() > 0 else a @ b


def middles(units: Sequence[Sequence[int]]) -> list[float]:
    places, before = [], 0
    for unit in units:
        places.append(before + len(unit) / 2)
        before += len(unit)
    return places


def window_mean(contexts: Tensor, units: Sequence[Sequence[int]], number: int, width: float) -> Tensor:
    """The mean of the states of all tokens that overlap the window; within a unit each token has the unit's mean."""
    place, total = middles(units)[number], sum(map(len, units))
    own = sum(map(len, units[:number]))
    first, last = max(0.0, min(own, place - width)), min(total, max(own + len(units[number]), place + width))
    result, weight, before = torch.zeros_like(contexts[0]), 0.0, 0
    for unit, mean in zip(units, contexts, strict=True):
        inside = max(0.0, min(last, before + len(unit)) - max(first, before))
        result, weight, before = result + inside * mean, weight + inside, before + len(unit)
    return result / max(weight, 1)


def smooth(values: Sequence[Tensor], places: Sequence[float], width: float) -> list[Tensor]:
    results = []
    for place in places:
        weights = [math.exp(-0.5 * ((place - other) / width) ** 2) for other in places]
        results.append(sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights))
    return results


def best(values: Sequence[Tensor], places: Sequence[float], width: float) -> list[Tensor]:
    return [
        max((v for v, other in zip(values, places, strict=True) if abs(place - other) <= width), key=Tensor.item)
        for place in places
    ]


def z(values: Sequence[Tensor]) -> list[Tensor]:
    stacked = torch.stack(list(values))
    deviation = ((stacked - stacked.mean()).square().mean() + 1e-12).sqrt()
    return list((stacked - stacked.mean()) / (deviation + 1e-3))


def features(
    p: Parameters,
    question: Sequence[int],
    units: Sequence[Sequence[int]],
    table: Tensor,
    asked: Tensor,
    alone: Tensor,
    contexts: Tensor,
) -> Tensor:
    """(N, F) of one question."""
    places, mean_length = middles(units), max(1.0, sum(map(len, units)) / len(units))
    words, greatest = [torch.zeros((), dtype=table.dtype) for _ in units], torch.zeros((), dtype=table.dtype)
    for term in sorted(set(question)):
        with_term = sum(term in unit for unit in units)
        rarity = math.log(1 + (len(units) - with_term + 0.5) / (with_term + 0.5))
        embedding = table[term]
        scaled = (embedding - embedding.mean()) / (embedding.var(correction=0) + 1e-5).sqrt()
        weight = p["rarity"][term] * F.softplus(linear(p, "term_proj", scaled))[0]
        greatest = greatest + weight * rarity * 2.2
        for number, unit in enumerate(units):
            count = sum(token == term for token in unit)
            length = 1.2 * (1 - 0.75 + 0.75 * len(unit) / mean_length)
            words[number] = words[number] + weight * rarity * count * 2.2 / (count + length)
    share = [word / (greatest + 1e-6) for word in words]
    columns = [z(words), *(z(smooth(words, places, width)) for width in (48, 128, 256, 512))]
    columns += [[4 * each for each in share], [4 * each for each in smooth(share, places, 48)]]
    own, inside = ([cosine(asked, vector) for vector in vectors] for vectors in (alone, contexts))
    around = {
        width: [cosine(asked, window_mean(contexts, units, number, width)) for number in range(len(units))]
        for width in (64, 128, 256)
    }
    bests = {width: best(own, places, width) for width in (128, 256)}
    columns += [z(own), z(inside), *map(z, around.values()), *map(z, bests.values())]
    columns += [z(smooth(own, places, width)) for width in (48, 128, 256)]
    columns += [z(smooth(values, places, width)) for width, values in bests.items()]
    columns += [[4 * each for each in values] for values in (own, inside, around[256])]
    return torch.stack([torch.stack(list(column)) for column in columns], dim=1)


def layer(p: Parameters, name: str, x: Tensor, heads: int, reach: int | None) -> Tensor:
    """A pre-norm encoder layer; a unit attends to those at most `reach` units away, None: to all."""
    hidden = norm(p, f"{name}.self_attn_layer_norm", x)
    width, results = x.size(1) // heads, []
    query, key, value = (linear(p, f"{name}.self_attn.{part}_proj", hidden) for part in "qkv")
    for number in range(len(x)):
        near = [other for other in range(len(x)) if reach is None or abs(other - number) <= reach]
        parts = []
        for head in range(heads):
            own = slice(head * width, (head + 1) * width)
            scores = torch.stack([query[number, own] @ key[other, own] / width**0.5 for other in near])
            parts.append(sum(w * value[other, own] for w, other in zip(scores.softmax(0), near, strict=True)))
        results.append(torch.cat(parts))
    x = x + linear(p, f"{name}.self_attn.out_proj", torch.stack(results))
    hidden = norm(p, f"{name}.final_layer_norm", x)
    return x + linear(p, f"{name}.fc2", F.gelu(linear(p, f"{name}.fc1", hidden)))


def place(number: int, count: int, channels: int, p: Parameters, like: Tensor) -> Tensor:
    """The embedding of the place of a unit: sines and cosines of its number, and three figures."""
    half = channels // 2
    angles = [number * math.exp(-i * math.log(10000) / max(half - 1, 1)) for i in range(half)]
    waves = like.new_tensor([*map(math.sin, angles), *map(math.cos, angles), *[0.0] * (channels % 2)])
    share = number / max(1, count - 1)
    return waves + linear(p, "place_proj", like.new_tensor([share, share**2, count / 500]))


def scores(
    p: Parameters,
    layout: str,
    heads: int,
    neighbours: int,
    questions: Sequence[Sequence[int]],
    units: Sequence[Sequence[int]],
    table: Tensor,
    asked: Tensor,
    alone: Tensor,
    contexts: Tensor,
) -> Tensor:
    """(Q, 1 + N, 2) logits."""
    results = []
    for question, vector in zip(questions, asked, strict=True):
        found = features(p, question, units, table, vector, alone, contexts)
        rows = []
        for number, (own, inside) in enumerate(zip(alone, contexts, strict=True)):
            length = inside.norm()
            x = linear(p, "unit_proj", 8 * own) + linear(p, "context_proj", 8 * inside / max(length, 1e-12))
            row = x * linear(p, "question_proj", 8 * vector) + x + linear(p, "feature_proj", found[number])
            rows.append(row + place(number, len(units), len(x), p, x))
        states = torch.stack(rows)
        for index, letter in enumerate(layout.split("|")):
            states = layer(p, f"layers.{index}", states, heads, neighbours if letter == "N" else None)
        states = norm(p, "layer_norm", states)
        logits = linear(p, "linear", found) + linear(p, "out_proj", states)
        everything = torch.cat([logits, found, states], dim=1).max(dim=0).values
        results.append(torch.cat([linear(p, "document_proj", everything).unsqueeze(0), logits]))
    return torch.stack(results)
