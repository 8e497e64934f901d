"""Curves of a training: loss, the figures of its validations and the learning rate, from `history.jsonl`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from ..data.files import parse_json, read_lines
from ..data.outputs import HISTORY
from .files import grid, to_png

# what fairseq logs besides the figures of a model
NO_FIGURES = {
    "part", "update", "epoch", "num_updates", "bsz", "wpb", "wps", "ups", "gnorm", "clip", "loss_scale", "train_wall",
    "gb_free", "cuda_gb_allocated", "cuda_gb_reserved", "cuda_gb_free", "wall", "lr", "oom", "nsentences", "ntokens",
}  # fmt: skip
TRAINING = {"train", "train_inner"}
Curve = list[tuple[int, float]]  # update and figure


def read_history(path: Path) -> dict[str, dict[str, Curve]]:
    """The curves of a training by figure and part: `["loss"]["valid"]`.

    Where a training was resumed from an earlier update, the figures after that update count as they came last. A line
    that is cut off, because the process was killed, is left out.

    Raises:
        ValueError: there is no such file, or it has no figures.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing: it is written by fairseq-train with --user-dir hat_fairseq, since 0.4")
    records: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number, line in read_lines(path):
        try:
            record = parse_json(line)
            part = records[record["part"]]
            while part and part[-1]["update"] >= record["update"]:
                part.pop()
            part.append(record)
        except (ValueError, KeyError, TypeError) as error:
            if line.startswith('{"part"') and not line.endswith("}"):
                continue
            raise ValueError(f"{path}:{number}: no figures of a training: {line:.60}") from error
    curves: dict[str, dict[str, Curve]] = defaultdict(dict)
    for name, part in records.items():
        for figure in {figure: None for record in part for figure in record}:
            if figure == "lr" or not (figure in NO_FIGURES or figure.startswith("best_")):
                found = [(record["update"], record[figure]) for record in part if figure in record]
                curves[figure][name] = found
    if not curves:
        raise ValueError(f"{path} is empty: the training has logged nothing yet (--log-interval)")
    return dict(curves)


def panels_of(curves: dict[str, dict[str, Curve]]) -> list[tuple[str, dict[str, Curve]]]:
    """The curves, in order: the loss, each figure of a validation, the learning rate.

    "train_inner" has the figures of `--log-interval` updates, "train" those of an epoch: the finer ones are drawn.
    """
    others = [name for name, parts in curves.items() if name not in ("loss", "lr") and parts.keys() - TRAINING]
    shown = []
    for name in ["loss", *others, "lr"]:
        parts = dict(curves.get(name, {}))
        if "train_inner" in parts:
            parts.pop("train", None)
        if parts:
            shown.append((name, parts))
    return shown


def picture_of_training(folder: Path) -> bytes:
    """A PNG of the curves of the training in a `--save-dir`; see `read_history` for errors."""
    panels = panels_of(read_history(folder / HISTORY))
    figure, axes = grid(len(panels), width=4.5)
    for axis, (name, parts) in zip(axes.flat, panels, strict=False):
        for part, curve in parts.items():
            label = "training" if part in TRAINING else part
            axis.plot(*zip(*curve, strict=True), label=label, marker="o" if len(curve) < 20 else "", markersize=3)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set(title={"lr": "learning rate"}.get(name, name), xlabel="update")
        axis.grid(alpha=0.3)
        if len(parts) > 1 or name != "lr":
            axis.legend()
    figure.suptitle(folder.name)
    return to_png(figure)
