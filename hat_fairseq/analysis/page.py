"""Writes a `Look` as one HTML file, with data, style and script inside, so that it needs no network.

A weight w is stored as the byte round(255 sqrt(w)); (byte / 255)^2 differs from w by at most 0.004. The page keeps the
k largest weights of each row. Each map is one gzip stream, which `look.js` reads in the same order, for N = L * H * Q
rows:

    units    (k, N), by descending weight. With more than 256 units, all low bytes and then all high bytes
    weights  (k, N), the first of a row as it is, the others as the difference from the one before
    numbers  three times (2, N), low and high bytes of round(64 ln x) + 32768, or 0 for x = 0. x is the effective number
             of units, the same without the first unit, and the weight outside the first unit; each of the whole row

The head "max" is not stored, because the other heads give it exactly.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .look import AttentionMap, Look

LIMIT = 5_000_000  # bytes of a page
KEPT = (1, 4, 8, 16, 32, 1 << 16)  # weights of a row that are tried
POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Rows:
    """The sorted rows of one map."""

    header: dict[str, Any]
    weights: np.ndarray  # (N, S) bytes in descending order, without the head "max"
    units: np.ndarray  # (N, S) theirs
    kept: list[float]  # (S,) share of the weight in the k largest, at k - 1; the mean of these rows
    planes: bytes  # the numbers of whole rows

    def packed(self, k: int) -> dict[str, Any]:
        """The map with k weights a row, or all if there are fewer, as the page reads it."""
        k = min(k, len(self.kept))
        units, weights = self.units[:, :k].T, self.weights[:, :k].T.astype("i2")
        steps = -np.diff(weights, axis=0, prepend=2 * weights[:1])  # the first difference is the weight itself
        listed = _planes(units) if len(self.kept) > 256 else units.astype("u1").tobytes()
        deflate = zlib.compressobj(6, zlib.DEFLATED, 31, 9, zlib.Z_FILTERED)  # 31: as gzip; few bytes repeat
        stream = deflate.compress(listed + steps.astype("u1").tobytes() + self.planes) + deflate.flush()
        return {**self.header, "k": k, "kept": self.kept[k - 1], "rows": base64.b64encode(stream).decode()}


def page(look: Look) -> str:
    """The page of one document, below `LIMIT` bytes unless one weight of each row is too much already.

    Raises:
        ValueError: there is nothing to show, numbers are not finite, or shapes disagree with the texts.
    """
    if not look.maps and look.occlusion is None:
        raise ValueError(f"document {look.document}: neither attention nor occlusion to show")
    rows = [_sorted(look, one) for one in (*look.maps, *look.by_sentence)]
    packed = [one.packed(KEPT[0]) for one in rows]
    room = LIMIT - len(_filled(look, [])) - 10_000  # for names of maps, layers and heads
    counts = {one.header["queries"]: one.header["count"] for one in rows}
    growing = sorted(counts, key=counts.__getitem__)  # target sentences, fewer than tokens, may keep more weights
    for k in KEPT[1:]:
        for queries in list(growing):
            larger = [one.packed(k) if one.header["queries"] == queries else packed[i] for i, one in enumerate(rows)]
            if sum(len(one["rows"]) for one in larger) < room:
                packed = larger
            else:
                growing.remove(queries)
    return _filled(look, packed)


def _sorted(look: Look, one: AttentionMap) -> Rows:
    sizes = {"target tokens": look.target, "target sentences": look.target_sentences, "source": look.source}
    count = len(sizes.get(one.queries, "1"))
    shape = (len(one.layers), one.weights.size(1), count, len(look.source))
    if one.weights.shape != shape or not bool(one.weights.isfinite().all()):
        raise ValueError(f"document {look.document}: {one.name} is not {shape} finite weights: {one.weights.shape}")
    layers, heads, weights = one.with_summaries()
    whole = weights.flatten(0, 2)
    numbers = (_effective(whole), _effective(whole[:, 1:]), whole[:, 1:].sum(dim=1))
    planes = b"".join(_planes((64 * x.log()).round().add(32768).where(x > 0, 0).numpy()) for x in numbers)
    # a layer at a time: the order takes eight bytes a weight
    parts = [layer[:-1].flatten(0, 1).sort(dim=1, descending=True, stable=True) for layer in weights]
    values = torch.cat([part.values for part in parts])
    kept = (values.cumsum(dim=1) / values.sum(dim=1, keepdim=True).clamp(min=1e-30)).mean(dim=0).tolist()
    rounded = values.sqrt().mul(255).round().clamp(max=255).byte().numpy()
    header = {"name": one.name, "queries": one.queries, "layers": layers, "heads": heads, "count": count}
    return Rows(header, rounded, np.concatenate([part.indices.numpy().astype("u2") for part in parts]), kept, planes)


def _effective(rows: Tensor) -> Tensor:
    """(N,) exp(entropy) of rows divided by their sums; 0 for a row of zeros."""
    sums = rows.sum(dim=1, keepdim=True)
    return torch.special.entr(rows / sums.clamp(min=1e-30)).sum(dim=1).exp().where(sums[:, 0] > 0, 0.0)


def _planes(numbers: np.ndarray) -> bytes:
    """All low bytes, then all high bytes: like bytes together compress better."""
    return np.ascontiguousarray(numbers, "<u2").reshape(-1, 1).view("u1").T.tobytes()


def _filled(look: Look, maps: list[dict[str, Any]]) -> str:
    parts = (files(__package__).joinpath(f"look.{end}").read_text("utf-8") for end in ("html", "css", "js"))
    template, style, script = parts
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    data = {"bytes": "000000000", "kinds": len(look.maps), "maps": maps, "occlusion": None}  # bytes: set at the end
    data |= {name: getattr(look, name) for name in ("document", "model", "unit", "note", "source", "target")}
    data["sentences"] = look.target_sentences
    if look.occlusion is not None:
        before, change = look.occlusion.before, look.occlusion.change
        if not bool(before.isfinite().all() and change.isfinite().all()):
            raise ValueError(f"document {look.document}: occlusion has log-probabilities that are not finite")
        data["occlusion"] = {"rows": look.occlusion.rows, "before": before.tolist(), "change": change.tolist()}
    # "<" never appears, so that no text ends the element; json escapes everything beyond ASCII
    values = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    text = template.replace("{policy}", POLICY.format(*(f"sha256-{value}" for value in hashes)))
    text = text.replace("{style}", style).replace("{script}", script).replace("{data}", values)
    return text.replace("000000000", f"{len(text.encode()):09d}", 1)
