"""Draw the curves of trainings in one picture: loss, figures of validations, learning rate."""

import argparse
import json
import math
from collections import defaultdict
from pathlib import Path

from ..data.outputs import check_folder, check_output
from .files import grid, image, write

LOG = "train.log"  # in the --save-dir, as the recipes' --log-file
# what fairseq logs besides the figures of a model
NO_FIGURES = {
    "update", "epoch", "num_updates", "bsz", "wpb", "wps", "ups", "gnorm", "clip", "loss_scale", "train_wall",
    "gb_free", "cuda_gb_allocated", "cuda_gb_reserved", "cuda_gb_free", "wall", "oom", "nsentences", "ntokens",
    "ppl",  # 2 to the power of the loss (or nll_loss, without label smoothing), which has its panel
}  # fmt: skip
UPDATE = "num_updates"
FORMS = (".png", ".svg", ".pdf")
TRAINING = ("train", "train_inner")
STYLES = ("-", "--", ":", "-.")  # of the parts; a training has one colour
Curves = dict[str, dict[str, dict[int, float]]]  # by figure and part: update to value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "the log of a training with --log-format json --log-file LOG, or the --save-dir that holds its train.log"
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG", help=text)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="write the picture to this file: .png, .svg or .pdf"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")


def main(args: argparse.Namespace) -> int:
    """Draws a panel for each figure; each training has a colour, each part a style of line."""
    if args.out.suffix not in FORMS:
        raise ValueError(f"--out {args.out} must end in {', '.join(FORMS)}")
    check_folder(args.out)
    check_output(args.out, args.overwrite, args.logs)
    names = [(log.resolve().parent if log.name == LOG else log.resolve()).name for log in args.logs]
    labels = names if len(set(names)) == len(names) else list(map(str, args.logs))
    runs = dict(zip(labels, map(read_log, args.logs), strict=True))
    # The loss, each figure of a validation, the learning rate.
    parts = {name: set(curves) - set(TRAINING) for run in runs.values() for name, curves in run.items()}
    shown = [name for name, validations in parts.items() if validations or name in ("loss", "lr")]
    shown.sort(key=lambda name: (name == "lr", name != "loss"))
    figure, axes = grid(len(shown), width=4.5)
    for axis, name in zip(axes, shown, strict=True):
        for number, (label, run) in enumerate(runs.items()):
            curves = run.get(name, {})
            drawn = [part for part in curves if part != "train" or "train_inner" not in curves]  # the finer ones
            for part, style in zip(drawn, STYLES * len(drawn), strict=False):
                title = f"{label}: {'training' if part in TRAINING else part}"
                marker = "o" if len(curves[part]) < 20 else ""
                line = {"color": f"C{number}", "linestyle": style, "marker": marker, "markersize": 3, "label": title}
                axis.plot(*zip(*curves[part].items(), strict=True), **line)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set(title={"lr": "learning rate"}.get(name, name), xlabel="update")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    write(args.out, image(figure, args.out.suffix[1:]))
    return 0


def read_log(path: Path) -> Curves:
    """Returns the curves of a training by figure and part: `["loss"]["valid"]`; `path`: the log, or the folder of it.

    Where a training was resumed from an earlier update, the figures after that update count as they came last. Lines
    without figures, or cut off because the process was killed, are left out. ValueError if there are no figures.
    """
    log = path / LOG if path.is_dir() else path
    flags = f"train with --log-format json --log-file {log}"
    if not log.is_file():
        raise ValueError(f"{log} is missing: {flags}")
    curves: Curves = defaultdict(dict)
    latest = 0
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        part, update, figures = _figures(line)
        if figures and update < latest:  # resumed
            for curve in (curve for parts in curves.values() for curve in parts.values()):
                _cut(curve, update + 1)
        latest = update if figures else latest
        for name, value in figures.items():
            _cut(curve := curves[name].setdefault(part, {}), update)
            curve[update] = value
    if not curves:
        raise ValueError(f"{log} has no figures: {flags}, or wait for --log-interval updates")
    return dict(curves)


def _cut(curve: dict[int, float], update: int) -> None:
    """Removes the figures from this update on."""
    while curve and next(reversed(curve)) >= update:
        curve.popitem()


def _figures(line: str) -> tuple[str, int, dict[str, float]]:
    """Part, update and finite figures of a line; an epoch and a validation log "train_loss" and "valid_loss"."""
    try:
        record = json.loads(line)
        prefix = next(key for key in record if key.endswith(UPDATE)).removesuffix(UPDATE)
        figures = {name.removeprefix(prefix): float(record[name]) for name in record if name.startswith(prefix)}
        update = int(figures[UPDATE])
    except (ValueError, TypeError, AttributeError, StopIteration, RecursionError, OverflowError):
        return "", 0, {}
    names = [name for name in figures if not (name in NO_FIGURES or name.startswith("best_"))]
    return prefix[:-1] or TRAINING[1], update, {name: figures[name] for name in names if math.isfinite(figures[name])}
