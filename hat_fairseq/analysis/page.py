"""Writes a `Look` as one HTML file, with JSON, style and script inside, so that it needs no network.

Of each row of weights it has the `TOP` largest weights, and the `TOP` largest for a token of the unit.
"""

import html
from typing import Any

import torch
from torch import Tensor

from ..data.files import at
from .look import UNIFORM, VISIBLE, AttentionMap, Look
from .template import fill

TOP = 16
MOST_ROWS = 200  # of a map with all its heads; of longer ones the page has the mean and the maximum


class LookWithPage(Look):
    """A look that notebooks show as its page."""

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 45rem; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page(self))}"></iframe>'


def page(look: Look) -> str:
    """Returns the page of one document; ValueError if there is nothing to show, or for numbers that are not finite."""
    if look.is_empty:
        raise ValueError(f"document {look.document}: neither attention nor occlusion to show")
    names = ("document", "model", "unit", "note", "lengths", "roles", "target")
    data: dict[str, Any] = {name: getattr(look, name) for name in names}
    roles = look.roles or ("",) * len(look.source)
    data["source"] = [text.removeprefix(f"{role} : ") for role, text in zip(roles, look.source, strict=True)]
    data |= {"spans": look.target_sentences, "statements": look.statements(), "uniform": UNIFORM, "least": VISIBLE}
    data["maps"] = [_map(look, *pair) for pair in zip(look.maps, look.by_sentence, strict=True)]
    if look.occlusion is not None:
        whole = look.occlusion.with_whole()
        change = [[_short(value) for value in row] for row in whole.change.tolist()]
        data["occlusion"] = {"rows": whole.rows, "before": whole.before.tolist(), "change": change}
    with at(f"document {look.document}"):
        return fill("look", data)


def _map(look: Look, one: AttentionMap, sentences: AttentionMap) -> dict[str, Any]:
    """A map by target sentence, and the mean of its heads by target token."""
    layers, heads, weights = sentences.with_summaries()
    if weights.size(2) > MOST_ROWS:
        heads, weights = heads[-2:], weights[:, -2:]
    header = {"name": one.name, "queries": sentences.queries, "layers": layers, "heads": heads}
    lists = {"used": look.used(one, weights).tolist(), "rows": _largest(weights, look)}
    if one is not sentences:
        mean = one.weights.mean(dim=1)
        lists["tokens"] = _largest(torch.cat([mean, mean.mean(dim=0, keepdim=True)]), look)
    return {**header, "toTokens": one.to_tokens, **lists}


def _largest(weights: Tensor, look: Look) -> Any:
    """(..., S) weights -> nested lists of [unit, weight, unit, weight, ...], by unit."""
    count, lengths = min(TOP, weights.size(-1)), torch.tensor(look.lengths)
    places = torch.cat([weights.topk(count).indices, (weights / lengths).topk(count).indices], dim=-1)
    return _pairs(places.tolist(), weights.gather(-1, places).tolist())


def _pairs(units: list[Any], weights: list[Any]) -> list[Any]:
    if isinstance(units[0], list):
        return [_pairs(*row) for row in zip(units, weights, strict=True)]
    return [x for unit, weight in sorted({*zip(units, weights, strict=True)}) for x in (unit, _short(weight))]


def _short(value: float) -> float:
    return float(f"{value:.3g}")
