"""Small corrections of options, generation and numpy."""

import argparse
import logging
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import fairseq.data.bucket_pad_length_dataset
import fairseq.data.language_pair_dataset
import fairseq.data.token_block_dataset
import fairseq.options
import numpy as np
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.models.bart.hub_interface import BARTHubInterface
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.tasks import TASK_REGISTRY

from .replace import replaces
from .save_dir import STRICT
from .settings_of_checkpoint import recorded_flags

logger = logging.getLogger(__name__)


def give_numpy_compat() -> None:
    """Gives two modules of fairseq a numpy with `np.compat.long`, which numpy 2 does not have; numpy itself stays."""
    if hasattr(np, "compat"):
        return
    for module in (fairseq.data.token_block_dataset, fairseq.data.language_pair_dataset):
        module.np = types.ModuleType("numpy")  # type: ignore[attr-defined]
        vars(module.np).update(vars(np), compat=types.SimpleNamespace(long=int))


@replaces(fairseq.options, "add_checkpoint_args")
def add_checkpoint_args(original: Callable[..., Any], parser: Any) -> Any:
    """fairseq's flags of checkpoints, and `--strict-restore`."""
    group = original(parser)
    help_text = "restore no older checkpoint of --save-dir where checkpoint_last.pt is missing or broken"
    group.add_argument(STRICT, action="store_true", help=help_text)
    return group


@replaces(fairseq.options, "parse_args_and_arch")
def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """fairseq's arguments; `--bf16` without `--tpu` runs on a GPU or CPU; in fairseq it means a TPU.

    In generation what the checkpoint knows of its task needs no flags; given ones count. A new model with pooling
    attention records its cells: a checkpoint without this setting is an older one, with the cells of the document.
    """
    input_args = list(sys.argv[1:] if input_args is None else input_args)
    if any(action.dest == "beam" for action in parser._actions):
        asked = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        asked.add_argument("--path")
        asked.add_argument("--task")
        found, _ = asked.parse_known_args(input_args)
        input_args = [*recorded_flags(str(found.path).split(os.pathsep)[0], found.task), *input_args]
    _choose_criterion(parser, input_args)
    parsed = original(parser, input_args=input_args, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if "--tpu" not in input_args:
        args.tpu = False
    if getattr(args, "encoder_attention", None) == "pooling" and getattr(args, "pooling_cells", None) is None:
        args.pooling_cells = "token"
    return parsed


def _choose_criterion(parser: Any, input_args: Any) -> None:
    """Makes the task's `default_criterion` the default of `--criterion` in training; in fairseq it is cross_entropy."""
    usual = parser.get_default("criterion")
    parser.set_defaults(criterion=None)
    args, _ = parser.parse_known_args(input_args)
    chosen = getattr(TASK_REGISTRY.get(args.task), "default_criterion", None) if hasattr(args, "arch") else None
    parser.set_defaults(criterion=chosen or usual)
    if chosen and args.criterion is None:
        logger.info("--criterion %s, which is the default of --task %s", chosen, args.task)


@replaces(NGramRepeatBlock, "_no_repeat_ngram")
def no_repeat_ngram(original: Callable[..., Any], self: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    """Compares n-grams among the generated tokens; without its CUDA extension fairseq compares the padding."""
    step = kwargs["step"] if "step" in kwargs else args[3]  # after lprobs, bsz and beam_size
    return original(self, tokens[:, : step + 1], *args, **kwargs)


@replaces(fairseq.data.bucket_pad_length_dataset, "get_buckets")
def get_buckets(original: Callable[..., Any], sizes: np.ndarray, num_buckets: int) -> np.ndarray:
    """fairseq's lengths of buckets for `--num-batch-buckets`, computed with the arguments of numpy 2."""
    edges = np.percentile(sizes, np.linspace(0, 100, num_buckets + 1), method="lower")
    return np.unique(edges[1:])


def refuse_text(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Text to tokens and back in what `from_pretrained` returns; fairseq leaves out the pipeline of our data."""
    if getattr(self.task, "pipeline", None) is not None:
        raise ValueError(
            "fairseq's from_pretrained applies neither the BPE nor the sentence markers of this model: use "
            "hat_fairseq.load(CHECKPOINT, data=BIN), which takes and returns text"
        )
    return original(self, *args, **kwargs)


for _interface in (GeneratorHubInterface, BARTHubInterface, RobertaHubInterface):
    for _name in ("encode", "decode"):
        replaces(_interface, _name)(refuse_text)
