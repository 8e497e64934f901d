"""Curves of a training: loss, the figures of its validations and the learning rate, from fairseq's JSON log."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from .files import grid, to_png

LOG = "train.log"  # in the --save-dir, as the recipes' --log-file
# what fairseq logs besides the figures of a model
NO_FIGURES = {
    "update", "epoch", "num_updates", "bsz", "wpb", "wps", "ups", "gnorm", "clip", "loss_scale", "train_wall",
    "gb_free", "cuda_gb_allocated", "cuda_gb_reserved", "cuda_gb_free", "wall", "oom", "nsentences", "ntokens",
    "ppl",  # 2 to the power of the loss (or nll_loss, without label smoothing), which has its panel
}  # fmt: skip
UPDATE = "num_updates"
TRAINING = {"train", "train_inner"}
STYLES = ("-", "--", ":", "-.")  # of the parts, where a training has one colour
Curve = list[tuple[int, float]]  # update and figure


def read_log(path: Path) -> dict[str, dict[str, Curve]]:
    """The curves of a training by figure and part: `["loss"]["valid"]`; `path` is the log, or the folder that has it.

    Where a training was resumed from an earlier update, the figures after that update count as they came last. Lines
    without figures, or cut off because the process was killed, are left out.

    Raises:
        ValueError: there is no such file, or it has no figures.
    """
    log = path / LOG if path.is_dir() else path
    flags = f"train with --log-format json --log-file {log}"
    if not log.is_file():
        raise ValueError(f"{log} is missing: {flags}")
    updates: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        part, figures = _figures(line)
        if UPDATE in figures:
            update, earlier = int(figures[UPDATE]), updates[part]
            while earlier and earlier[-1][0] >= update:
                earlier.pop()
            earlier.append((update, figures))
    curves: dict[str, dict[str, Curve]] = defaultdict(dict)
    for part, rows in updates.items():
        for name in {name: None for _, figures in rows for name in figures}:
            if not (name in NO_FIGURES or name.startswith("best_")):
                curves[name][part] = [(update, figures[name]) for update, figures in rows if name in figures]
    if not curves:
        raise ValueError(f"{log} has no figures: {flags}, or wait for --log-interval updates")
    return dict(curves)


def _figures(line: str) -> tuple[str, dict[str, float]]:
    """Part and finite figures of a line; an epoch and a validation log theirs as "train_loss" and "valid_loss"."""
    try:
        record = json.loads(line)
        prefix = next(key for key in record if key.endswith(UPDATE)).removesuffix(UPDATE)
        numbers = {name.removeprefix(prefix): float(record[name]) for name in record if name.startswith(prefix)}
    except (ValueError, TypeError, AttributeError, StopIteration, RecursionError):
        return "", {}
    return prefix[:-1] or "train_inner", {name: number for name, number in numbers.items() if math.isfinite(number)}


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


def picture_of_trainings(folders: Sequence[Path]) -> bytes:
    """A PNG of the curves of the trainings in these `--save-dir`s or logs, a panel for each figure.

    Of several trainings each has a colour, and each part a style of line. See `read_log` for errors.
    """
    runs = [dict(panels_of(read_log(folder))) for folder in folders]
    names = sorted({name: None for run in runs for name in run}, key="lr".__eq__)
    figure, axes = grid(len(names), width=4.5)
    for axis, name in zip(axes.flat, names, strict=False):
        if len(runs) == 1:
            _draw(axis, runs[0][name])
        else:
            for number, (run, label) in enumerate(zip(runs, _labels(folders), strict=True)):
                _draw(axis, run.get(name, {}), f"{label}: ", f"C{number}")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set(title={"lr": "learning rate"}.get(name, name), xlabel="update")
        axis.grid(alpha=0.3)
        if len(axis.lines) > 1 or name != "lr":
            axis.legend()
    if len(runs) == 1:
        figure.suptitle(folders[0].name)
    return to_png(figure)


def _labels(folders: Sequence[Path]) -> list[str]:
    """The folders' names; the whole paths if two names are the same."""
    names = [folder.name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _draw(axis: Any, parts: dict[str, Curve], prefix: str = "", color: str | None = None) -> None:
    for (part, curve), style in zip(parts.items(), cycle(STYLES if color else "-"), strict=False):
        label = prefix + ("training" if part in TRAINING else part)
        marker = "o" if len(curve) < 20 else ""
        axis.plot(*zip(*curve, strict=True), label=label, color=color, linestyle=style, marker=marker, markersize=3)
