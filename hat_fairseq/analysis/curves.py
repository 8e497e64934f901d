"""Curves of a training: loss, the figures of its validations and the learning rate, from `history.jsonl`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from ..data.files import parse_json, read_lines
from ..data.outputs import HISTORY
from .files import grid, to_png

# what fairseq logs besides the figures of a model
NO_FIGURES = {
    "part", "update", "epoch", "num_updates", "bsz", "wpb", "wps", "ups", "gnorm", "clip", "loss_scale", "train_wall",
    "gb_free", "cuda_gb_allocated", "cuda_gb_reserved", "cuda_gb_free", "wall", "lr", "oom", "nsentences", "ntokens",
    "minutes_left",
    "ppl",  # 2 to the power of the loss (or nll_loss, without label smoothing), which has its panel
}  # fmt: skip
TRAINING = {"train", "train_inner"}
STYLES = ("-", "--", ":", "-.")  # of the parts, where a training has one colour
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


def picture_of_trainings(folders: Sequence[Path]) -> bytes:
    """A PNG of the curves of the trainings in these `--save-dir`s, a panel for each figure.

    Of several trainings each has a colour, and each part a style of line. See `read_history` for errors.
    """
    runs = [dict(panels_of(read_history(folder / HISTORY))) for folder in folders]
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
