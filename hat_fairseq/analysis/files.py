"""Writes a `Look` as a picture or JSON, and pictures with several panels."""

import io
import logging
import math
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.files import at, json_text
from ..data.outputs import atomic_file
from .look import AttentionMap, Look

TOP = 16  # units for each query in the heat maps (Rohde et al. 2021, section 7)


def write(path: Path, content: bytes) -> None:
    """Writes a file in one step, and says so."""
    with atomic_file(path) as file:
        file.write(content)
    print(f"wrote {path} ({len(content):,} bytes)")


def pyplot() -> Any:
    """Returns matplotlib's pyplot, which draws without a screen; ValueError if it is not installed."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq shows everything
    try:
        import matplotlib
    except ImportError:
        raise ValueError("pictures need matplotlib: pip install 'hat_fairseq[look]'") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def grid(panels: int, width: float) -> tuple[Any, Any]:
    """Returns a figure and its axes: as many as there are panels, three in a row."""
    columns = min(3, panels)
    rows = math.ceil(panels / columns)
    size = (width * columns, 3.2 * rows)
    figure, axes = pyplot().subplots(rows, columns, figsize=size, dpi=100, layout="constrained", squeeze=False)
    for axis in axes.flat[panels:]:
        axis.set_visible(False)
    return figure, axes.flat[:panels]


def image(figure: Any, form: str = "png") -> bytes:
    """Returns the content of a file of this form; the figure is closed."""
    written = io.BytesIO()
    figure.savefig(written, format=form)
    pyplot().close(figure)
    return written.getvalue()


def heat(one: AttentionMap) -> Tensor:
    """Draws (L, Q, S) weights as in Figures 2 and 3 of Rohde et al. 2021.

    The maximum over the heads, the `TOP` largest of each query, and these scaled to a sum of 1.
    """
    most = one.weights.amax(dim=1)
    values, places = most.topk(min(TOP, most.size(-1)), dim=-1)
    largest = most.new_zeros(most.shape).scatter(-1, places, values)
    return largest / largest.sum(dim=-1, keepdim=True).clamp(min=1e-12)


def picture(look: Look) -> bytes:
    """Returns a PNG with heat maps of the first kind of attention, one for each layer; of occlusion if there is none.

    Of practically uniform attention or occlusion it says so, and draws nothing else: the largest of equal values are
    noise.
    """
    if look.by_sentence and look.is_uniform(look.by_sentence[0]):
        return text_picture(look, look.statement(look.by_sentence[0]))
    if not look.maps and look.occlusion is not None and look.occlusion.with_whole().is_uniform:
        return text_picture(look, look.statements()[-1])
    if look.maps:
        one = look.maps[0]
        panels, title = dict(zip(map("layer {}".format, one.layers), heat(one), strict=True)), f"{one.name}, top {TOP}"
        xlabel = "token of the output" if one.queries == "target tokens" else f"{look.unit} that attends"
    else:
        assert look.occlusion is not None
        panels, title = {"": look.occlusion.change}, "change in log-probability without a part of the source"
        xlabel = "sentence of the output" if look.target else "label"
    figure, axes = grid(len(panels), width=4)
    limit = max(float(values.abs().max()) for values in panels.values()) or 1.0
    colours = {"cmap": "viridis" if look.maps else "RdBu", "vmin": 0 if look.maps else -limit, "vmax": limit}
    for axis, (name, values) in zip(axes, panels.items(), strict=True):
        shown = axis.imshow(values.T.numpy(), aspect="auto", interpolation="nearest", **colours)
        axis.set(title=name, xlabel=xlabel, ylabel=f"{look.unit} of the source")
    figure.colorbar(shown, ax=list(axes), label="share of the weight" if look.maps else "nats")
    figure.suptitle(f"{look.document}: {title}")
    return image(figure)


def text_picture(look: Look, statement: str) -> bytes:
    """Returns a PNG with a statement."""
    figure, (axis,) = grid(1, width=8)
    axis.axis("off")
    axis.text(0.5, 0.5, statement, ha="center", va="center", wrap=True)
    figure.suptitle(look.document)
    return image(figure)


def to_json(look: Look) -> str:
    """Returns the texts, the weights of all heads for target sentences and units, and occlusion."""

    def numbers(values: Tensor) -> Any:
        return [round(x, 6) for x in values.tolist()] if values.dim() == 1 else [numbers(x) for x in values]

    names = {"document": look.document, "model": look.model, "unit": look.unit, "note": look.note}
    record: dict[str, Any] = {**names, "source": look.source, "target": look.sentences}
    record["maps"] = [
        {"attention": one.name, "queries": one.queries, "layers": one.layers, "weights": numbers(one.weights)}
        for one in look.by_sentence
    ]
    if (one := look.occlusion) is not None:
        before, change = numbers(one.before), numbers(one.change)
        record["occlusion"] = {"rows": one.rows, "log_probability": before, "change": change}
    with at(f"document {look.document}"):
        return json_text(record, indent=1) + "\n"
