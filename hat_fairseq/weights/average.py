"""Average the weights of checkpoints: the last ones of a training, or those that are named."""

import argparse
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.files import check_lfs
from ..data.outputs import atomic_file, check_folder, check_output
from ..fairseq_fixes.resuming import CHECKPOINT_NAME, checkpoints_in, newest_first
from ..fairseq_fixes.trust import CheckpointError, check_file, named_failures
from ..model_folder import bare_checkpoint
from ..register import register


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="DIR|FILE",
        help="the --save-dir of a training, with --last; or the checkpoints to average",
    )
    parser.add_argument("--last", type=int, metavar="N", help="average the N checkpoints with the most updates")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="write the checkpoint to this file")
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")


def main(args: argparse.Namespace) -> int:
    """Chooses checkpoints, averages them and writes the result."""
    register()
    folder, number = args.paths[0], args.last
    are_named = number is None and len(args.paths) > 1
    if are_named and (others := [str(path) for path in args.paths if not path.is_file()]):
        raise ValueError(f"{', '.join(others)}: no file; name checkpoints, or one folder with --last N")
    if not are_named and (number is None or len(args.paths) > 1):
        raise ValueError("name one folder with --last N, or at least 2 checkpoints without it")
    if not are_named and number < 2:
        raise ValueError(f"an average needs at least 2 checkpoints, not {number}")
    check_folder(args.out)
    if args.out.resolve().parent == folder.resolve() and CHECKPOINT_NAME.fullmatch(args.out.name):
        raise ValueError(f"--out {args.out}: a training names its own checkpoints so; choose a name such as average.pt")
    for path in args.paths if are_named else checkpoints_in(folder):
        check_lfs(path)
    if are_named:
        check_output(args.out, args.overwrite, args.paths)
        chosen = [_read(path) for path in args.paths]
    else:
        chosen = _choose(args, folder, number)
    averaged = average(chosen)
    with atomic_file(args.out) as file:
        torch.save(averaged, file)
    print(f"wrote {args.out}: the mean of {', '.join(averaged['extra_state']['averaged'])}")
    return 0


def _choose(args: argparse.Namespace, folder: Path, number: int) -> list[dict[str, Any]]:
    """The last checkpoints of a folder, the newest first; ValueError if there are fewer than `number`."""
    readable = newest_first(folder)
    if damaged := {*checkpoints_in(folder)} - {path for _, path in readable}:
        print(f"skipped, because they cannot be read: {', '.join(sorted(map(str, damaged)))}", file=sys.stderr)
    check_output(args.out, args.overwrite, [path for _, path in readable])
    paths = [*reversed(dict(reversed(readable)).values())]  # of equal updates, such as checkpoint_best.pt, one
    if len(paths) < number:
        raise ValueError(f"{folder} has {len(paths)} checkpoints, {number} were asked for; keep more of them")
    return list(map(_read, paths[:number]))


def _read(path: Path) -> dict[str, Any]:
    """A checkpoint, with its `path`; its tensors are read when they are needed. ValueError if it is not whole."""
    with named_failures(str(path)):
        try:
            check_file(str(path))
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None
        state = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
    return {**state, "path": path}


def average(states: list[dict[str, Any]]) -> dict[str, Any]:
    """Averages weights; what is no floating-point number, such as fingerprints of dictionaries, stays.

    Raises:
        ValueError: the checkpoints have other tensors, or were trained with other dictionaries.
    """
    first = states[0]
    model: dict[str, Tensor] = {}
    means: dict[tuple[int, torch.Size], Tensor] = {}
    for name, tensor in first["model"].items():
        for state in states[1:]:
            other = state["model"]
            different = other.keys() != first["model"].keys() or other[name].shape != tensor.shape
            if different or not (tensor.is_floating_point() or tensor.equal(other[name])):
                raise ValueError(f"{first['path']} and {state['path']} are of different models: {name} differs")
        place = tensor.data_ptr(), tensor.shape
        if place in means:  # tied weights stay tied
            model[name] = means[place]
        elif tensor.is_floating_point():
            mean = torch.stack([state["model"][name].double() for state in states]).mean(dim=0)
            model[name] = means[place] = mean.to(tensor.dtype)
        else:
            model[name] = tensor.clone()
    checkpoint = bare_checkpoint(model, first.get("cfg"), first["optimizer_history"][-1]["num_updates"])
    checkpoint["extra_state"]["averaged"] = [state["path"].name for state in states]
    return checkpoint | {"args": first.get("args")}
