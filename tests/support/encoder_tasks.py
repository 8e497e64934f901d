"""The tasks with labels as objects, with a tiny model or with a split that is loaded."""

from pathlib import Path
from typing import Any

from fairseq import options, tasks

from hat_fairseq.data.kinds import kind_of

TINY = "--dropout 0 --attention-dropout 0 "


def task_of(kind: str, data: Path, flags: str = "", arch: str = "hat_roberta_tiny") -> tuple[Any, Any]:
    """The task, and its model built the way fairseq-train builds it."""
    parser = options.get_training_parser()
    arguments = [str(data), "--task", kind_of(kind).task, "--arch", arch, "--cpu", *TINY.split(), *flags.split()]
    args = options.parse_args_and_arch(parser, input_args=arguments)
    task = tasks.setup_task(args)
    return task, task.build_model(args).eval()


def dataset_of(kind: str, data: Path, split: str = "train", flags: str = "") -> tuple[Any, Any]:
    task, _ = task_of(kind, data, flags)
    task.load_dataset(split)
    return task, task.datasets[split]
