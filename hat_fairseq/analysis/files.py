"""Writes a `Look` as a picture, a table or JSON."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
from typing import Any

from torch import Tensor

from .look import AttentionMap, Look

TOP = 16  # units for each query in the heat maps (Rohde et al. 2021, section 7)


def heat(one: AttentionMap, top: int = TOP) -> Tensor:
    """(L, Q, S) weights as in Figures 2 and 3 of Rohde et al. 2021.

    The maximum over the heads, the `top` largest of each query, and these scaled to a sum of 1.
    """
    most = one.weights.amax(dim=1)
    values, places = most.topk(min(top, most.size(-1)), dim=-1)
    kept = most.new_zeros(most.shape).scatter(-1, places, values)
    return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-12)


def pyplot() -> Any:
    """matplotlib's pyplot, which draws without a screen."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq shows everything
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def grid(panels: int, width: float) -> tuple[Any, Any]:
    """A figure and its axes: as many as there are panels, three in a row."""
    columns = min(3, panels)
    rows = math.ceil(panels / columns)
    size = (width * columns, 3.2 * rows)
    figure, axes = pyplot().subplots(rows, columns, figsize=size, dpi=100, layout="constrained", squeeze=False)
    for axis in axes.flat[panels:]:
        axis.set_visible(False)
    return figure, axes


def to_png(figure: Any) -> bytes:
    """The content of a PNG file; the figure is closed."""
    written = io.BytesIO()
    figure.savefig(written, format="png", metadata={"Software": None})
    pyplot().close(figure)
    return written.getvalue()


def picture(look: Look) -> bytes:
    """A PNG with heat maps of the first kind of attention, one for each layer; of occlusion if there is none."""
    panels: list[tuple[str, Tensor]]
    if look.maps:
        one = look.maps[0]
        panels = [(f"layer {layer}", each) for layer, each in zip(one.layers, heat(one), strict=True)]
        title, ylabel = f"{one.name}, top {TOP}", f"{look.unit} of the source"
        xlabel = "token of the output" if one.queries == "target tokens" else f"{look.unit} that attends"
    else:
        assert look.occlusion is not None
        panels, title = [("", look.occlusion.change)], "change in log-probability without a part of the source"
        ylabel, xlabel = f"{look.unit} left out", "sentence of the output" if look.target else "label"
    figure, axes = grid(len(panels), width=4)
    limit = max(float(values.abs().max()) for _, values in panels) or 1.0
    for axis, (name, values) in zip(axes.flat, panels, strict=False):
        shown = axis.imshow(
            values.T.numpy(),
            aspect="auto",
            interpolation="nearest",
            cmap="viridis" if look.maps else "RdBu",
            vmin=0 if look.maps else -limit,
            vmax=limit,
        )
        axis.set(title=name, xlabel=xlabel, ylabel=ylabel)
    figure.colorbar(shown, ax=axes, label="share of the weight" if look.maps else "nats")
    figure.suptitle(f"{look.document}: {title}")
    return to_png(figure)


def rows_of(look: Look, one: AttentionMap) -> list[str]:
    """The texts of the queries of a map."""
    if one.queries == "target tokens":
        return list(look.target)
    if one.queries == "target sentences":
        return look.sentences
    return list(look.source) if one.queries == "source" else ["document"]


def to_csv(look: Look) -> str:
    """A line for each query, layer and unit, with mean and maximum over the heads; target tokens as sentences."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["attention", "layer", "query", "query text", look.unit, f"{look.unit} text", "mean", "max"])
    for one in [*look.by_sentence, *(each for each in look.maps if each.queries != "target tokens")]:
        layers, heads, weights = one.with_summaries()
        mean, most = weights[:, heads.index("mean")], weights[:, heads.index("max")]
        for layer, name in enumerate(layers):
            for query, text in enumerate(rows_of(look, one)):
                for unit, source in enumerate(look.source):
                    values = (f"{float(x[layer, query, unit]):.6f}" for x in (mean, most))
                    table.writerow([one.name, name, query + 1, text, unit + 1, source, *values])
    if look.occlusion is not None:
        for query, text in enumerate(look.occlusion.rows):
            for unit, source in enumerate(look.source):
                change = f"{float(look.occlusion.change[query, unit]):.6f}"
                table.writerow(["occlusion", "", query + 1, text, unit + 1, source, change, ""])
    return out.getvalue()


def to_json(look: Look) -> str:
    """Texts, the weights of all heads for target sentences and units, and occlusion."""

    def numbers(values: Tensor) -> Any:
        return [round(x, 6) for x in values.tolist()] if values.dim() == 1 else [numbers(x) for x in values]

    maps = [
        {
            "attention": one.name,
            "queries": one.queries,
            "layers": one.layers,
            "weights": numbers(one.weights),
        }
        for one in [*look.by_sentence, *(each for each in look.maps if each.queries != "target tokens")]
    ]
    record: dict[str, Any] = {
        "document": look.document,
        "model": look.model,
        "unit": look.unit,
        "note": look.note,
        "source": look.source,
        "target": look.sentences,
        "maps": maps,
    }
    if look.occlusion is not None:
        found = look.occlusion
        record["occlusion"] = {
            "rows": found.rows,
            "log_probability": numbers(found.before),
            "change": numbers(found.change),
        }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"
