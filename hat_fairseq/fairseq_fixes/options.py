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
from ..data.package import CONFIG, is_package
from .checkpoints import check_file
from .restoring import STRICT
from .settings_of_checkpoint import plain

logger = logging.getLogger(__name__)
# What the data of a task are called and how long they may be; fairseq-generate builds the task from its flags alone.
RECORDED = ("source_lang", "target_lang", "role_stream", "max_source_positions", "max_target_positions", "long_source")


def add_checkpoint_args(original: Callable[..., Any], parser: Any) -> Any:
    """fairseq's flags of checkpoints, and `--strict-restore`."""
    group = original(parser)
    help_text = "restore no older checkpoint of --save-dir where checkpoint_last.pt is missing or broken"
    group.add_argument(STRICT, action="store_true", help=help_text)
    return group


def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """fairseq's arguments, in generation after those that the checkpoint knows; flags that are given count.

    `--bf16` runs on a GPU or CPU; in fairseq it means a TPU. A new model with pooling attention records its cells: a
    checkpoint without this setting is an older one, with the cells of the document.
    """
    words = list(sys.argv[1:] if input_args is None else input_args)
    known = {action.dest for action in parser._actions}
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("path", "task", "criterion"):
        flags.add_argument(f"--{name}")
    chosen, _ = flags.parse_known_args(words)
    if "nbest" in known:
        words = [*recorded_flags(str(chosen.path).split(os.pathsep)[0], chosen.task), *words]
    elif "arch" in known and chosen.criterion is None:
        words = [*_criterion_of(chosen.task), *words]
    parsed = original(parser, input_args=words, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if "--tpu" not in words:
        args.tpu = False
    if getattr(args, "encoder_attention", None) == "pooling" and getattr(args, "pooling_cells", None) is None:
        args.pooling_cells = "token"
    if "nbest" in known:
        _drop_no_document(args)
    return parsed


def recorded_flags(path: str, given: str | None) -> list[str]:
    """Flags for the task of a checkpoint, or package, if it is one of this plugin; `given`: the value of `--task`.

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
    if name != (given or name) or getattr(TASK_REGISTRY.get(name), "__module__", "").split(".")[0] != "hat_fairseq":
        return []
    values = {"task": name, **{key: task[key] for key in RECORDED if task.get(key) is not None}}
    return [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]


def _criterion_of(task: str | None) -> list[str]:
    """The flag for the task's `default_criterion` in training; in fairseq the default is cross_entropy."""
    criterion = getattr(TASK_REGISTRY.get(task), "default_criterion", None)
    if criterion is None:
        return []
    logger.info("--criterion %s, which is the default of --task %s", criterion, task)
    return [f"--criterion={criterion}"]


def _drop_no_document(args: Any) -> None:
    """fairseq-generate drops incomplete batches and over-long inputs; both are disabled."""
    args.required_batch_size_multiple = 1
    if args.skip_invalid_size_inputs_valid_test:
        raise ValueError(
            "--skip-invalid-size-inputs-valid-test would drop documents: remove it; what is too long is truncated "
            "with --task document_to_text --long-source truncate"
        )


def no_repeat_ngram(original: Callable[..., Any], self: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    """Compares n-grams among the generated tokens; in fairseq without its CUDA extension padding is compared."""
    step = kwargs["step"] if "step" in kwargs else args[3]  # after lprobs, bsz and beam_size
    return original(self, tokens[:, : step + 1], *args, **kwargs)


def refuse_text(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Text to tokens and back in what `from_pretrained` returns; fairseq leaves out the pipeline of our data."""
    if getattr(self.task, "pipeline", None) is not None:
        raise ValueError(
            "fairseq's from_pretrained applies neither the BPE nor the sentence markers of this model: use "
            "hat_fairseq.load(CHECKPOINT, data=BIN), which takes and returns text"
        )
    return original(self, *args, **kwargs)
