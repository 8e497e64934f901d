"""Average the weights of the last, or of the best, checkpoints of a training."""

import argparse
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.outputs import atomic_file, check_folder, check_output
from ..fairseq_fixes.checkpoints import check_file
from ..fairseq_fixes.restoring import newest_first
from ..package_files import bare_checkpoint
from ..register import register


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="--save-dir of the training")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--last", type=int, metavar="N", help="the N checkpoints with the most updates")
    which.add_argument("--best", type=int, metavar="N", help="the N best by --best-checkpoint-metric of the training")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="checkpoint to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")


def main(args: argparse.Namespace) -> int:
    """Chooses checkpoints, averages them and writes the result."""
    register()
    number = args.last if args.best is None else args.best
    if number < 2:
        raise ValueError(f"an average needs at least 2 checkpoints, not {number}")
    if not args.folder.is_dir():
        raise ValueError(f"{args.folder} is no directory; give the --save-dir of a training")
    check_folder(args.out)
    paths = dict(reversed(newest_first(args.folder)))  # of equal updates, such as checkpoint_best.pt, one
    check_output(args.out, args.overwrite, [*paths.values()])
    chosen = [read(path) for path in list(paths.values())[::-1]]
    if args.best is not None:
        chosen = by_metric(chosen)
    if len(chosen) < number:
        kind = "checkpoints" if args.best is None else "checkpoints that were validated when they were saved"
        raise ValueError(f"{args.folder} has {len(chosen)} {kind}, {number} were asked for; keep more of them")
    averaged = average(chosen[:number])
    with atomic_file(args.out) as file:
        torch.save(averaged, file)
    print(f"wrote {args.out}: the mean of {', '.join(averaged['extra_state']['averaged'])}")
    return 0


def read(path: Path) -> dict[str, Any]:
    """Reads a checkpoint, its tensors when they are needed, with its `path`; ValueError if it is not whole."""
    check_file(str(path))
    state = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
    return {**state, "path": path}


def by_metric(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the checkpoints that have a figure of validation, the best first."""
    validated = [state for state in states if state["extra_state"].get("val_loss") is not None]
    larger_is_better = any(state["cfg"]["checkpoint"]["maximize_best_checkpoint_metric"] for state in validated)
    return sorted(validated, key=lambda state: state["extra_state"]["val_loss"], reverse=larger_is_better)


def average(states: list[dict[str, Any]]) -> dict[str, Any]:
    """Averages weights; what is no floating-point number, such as fingerprints of dictionaries, stays.

    Raises:
        ValueError: the checkpoints have other tensors, or were trained with other dictionaries.
    """
    first, *others = (state["model"] for state in states)
    model: dict[str, Tensor] = {}
    means: dict[tuple[int, torch.Size], Tensor] = {}
    for name, tensor in first.items():
        for state, other in zip(states[1:], others, strict=True):
            different = other.keys() != first.keys() or other[name].shape != tensor.shape
            if different or not (tensor.is_floating_point() or tensor.equal(other[name])):
                raise ValueError(f"{states[0]['path']} and {state['path']} are of different models: {name} differs")
        place = tensor.data_ptr(), tensor.shape
        if place in means:  # tied weights stay tied
            model[name] = means[place]
        elif tensor.is_floating_point():
            mean = torch.stack([state["model"][name].double() for state in states]).mean(dim=0)
            model[name] = means[place] = mean.to(tensor.dtype)
        else:
            model[name] = tensor.clone()
    checkpoint = bare_checkpoint(model, states[0].get("cfg"), states[0]["optimizer_history"][-1]["num_updates"])
    checkpoint["extra_state"]["averaged"] = [state["path"].name for state in states]
    return checkpoint | {"args": states[0].get("args")}
