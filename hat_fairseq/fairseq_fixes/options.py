"""Options of fairseq's commands, and generation."""

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks import TASK_REGISTRY

from ..data.files import read_json
from ..package_files import CONFIG, is_package
from .checkpoints import check_file
from .settings_of_checkpoint import plain

logger = logging.getLogger(__name__)
# What the data of a task are called and how long they may be; fairseq-generate builds the task from its flags alone.
RECORDED = ("source_lang", "target_lang", "role_stream", "max_source_positions", "max_target_positions")


def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """fairseq's arguments; in generation the checkpoint, in training the task has defaults for some.

    `--bf16` runs on a GPU or CPU; in fairseq it means a TPU. A new model with pooling attention records its cells: a
    checkpoint without this setting is an older one, with the cells of the document.
    """
    words = list(sys.argv[1:] if input_args is None else input_args)
    names = {action.dest for action in parser._actions}  # generation has nbest, training arch
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("path", "task", "criterion"):
        flags.add_argument(f"--{name}")
    chosen, _ = flags.parse_known_args(words)
    criterion = getattr(TASK_REGISTRY.get(chosen.task), "default_criterion", None)
    if "nbest" in names:
        words = [*recorded_flags(str(chosen.path).split(os.pathsep)[0], chosen.task), *words]
    elif "arch" in names and criterion and chosen.criterion is None:  # fairseq's default is cross_entropy
        logger.info("--criterion %s, which is the default of --task %s", criterion, chosen.task)
        words = [f"--criterion={criterion}", *words]
    parsed = original(parser, input_args=words, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    args.tpu = False
    if getattr(args, "encoder_attention", None) == "pooling" and getattr(args, "pooling_cells", None) is None:
        args.pooling_cells = "token"
    return parsed


def recorded_flags(path: str, task_flag: str | None) -> list[str]:
    """Returns flags for the task of a checkpoint or package, if it is one of this plugin and `task_flag` no other.

    What cannot be read has none: loading it says why.
    """
    try:
        if is_package(path):
            task = plain(read_json(Path(path, CONFIG))["cfg"]["task"])
        else:
            check_file(path)
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)  # reads no tensors
            task = plain(state["cfg"]["task"] if state.get("cfg") else state["args"])
        name = str(task.get("_name") or task["task"])
    except Exception:
        return []
    if name != (task_flag or name) or getattr(TASK_REGISTRY.get(name), "__module__", "").split(".")[0] != "hat_fairseq":
        return []
    values = {"task": name, **{key: task[key] for key in RECORDED if task.get(key) is not None}}
    return [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]


def no_repeat_ngram(original: Callable[..., Any], self: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    """Compares n-grams among the generated tokens; in fairseq without its CUDA extension padding is compared."""
    step = kwargs["step"] if "step" in kwargs else args[3]  # after lprobs, bsz and beam_size
    return original(self, tokens[:, : step + 1], *args, **kwargs)


def refuse_text(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuses text in what `from_pretrained` returns: fairseq leaves out the pipeline of the data."""
    if getattr(self.task, "pipeline", None) is not None:
        raise ValueError(
            "fairseq's from_pretrained applies neither the BPE nor the sentence markers of this model: use "
            "hat_fairseq.load(CHECKPOINT, data=BIN), which takes and returns text"
        )
    return original(self, *args, **kwargs)
