"""Small corrections of options, training, generation and numpy; the package's docstring lists them."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import fairseq.data.bucket_pad_length_dataset
import fairseq.data.language_pair_dataset
import fairseq.data.token_block_dataset
import fairseq.options
import numpy as np
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.trainer import Trainer

from .divergence import explained
from .replace import replace


def apply() -> None:
    """Installs the corrections of this file."""
    if not hasattr(np, "compat"):
        give_numpy_compat(fairseq.data.token_block_dataset)
        give_numpy_compat(fairseq.data.language_pair_dataset)
    replace(fairseq.data.bucket_pad_length_dataset, "get_buckets", get_buckets)
    replace(NGramRepeatBlock, "_no_repeat_ngram", no_repeat_ngram)
    replace(fairseq.options, "parse_args_and_arch", parse_args_and_arch)
    replace(Trainer, "train_step", train_step)


def give_numpy_compat(module: types.ModuleType) -> None:
    """Gives `module` a numpy of its own that has `np.compat.long`; numpy itself stays as it is."""
    numpy = types.ModuleType("numpy")
    vars(numpy).update(vars(np), compat=types.SimpleNamespace(long=int))
    module.np = numpy  # type: ignore[attr-defined]


def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """`--bf16` without `--tpu` runs on a GPU or CPU."""
    parsed = original(parser, input_args=input_args, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if "--tpu" not in (sys.argv if input_args is None else input_args):
        args.tpu = False
    return parsed


def train_step(original: Callable[..., Any], self: Any, samples: list[Any], *args: Any, **kwargs: Any) -> Any:
    """An update without the empty batches that fill up the last update of an epoch, unless there is no other batch."""
    samples = [sample for sample in samples if sample] or samples[:1]
    with explained(self, samples):
        return original(self, samples, *args, **kwargs)


def no_repeat_ngram(original: Callable[..., Any], self: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    """Compares n-grams among the generated tokens, without the padding behind them."""
    step = kwargs["step"] if "step" in kwargs else args[3]  # after lprobs, bsz and beam_size
    return original(self, tokens[:, : step + 1], *args, **kwargs)


def get_buckets(original: Callable[..., Any], sizes: np.ndarray, num_buckets: int) -> np.ndarray:
    """fairseq's lengths of buckets, computed with the arguments of numpy 2."""
    edges = np.percentile(sizes, np.linspace(0, 100, num_buckets + 1), method="lower")
    return np.unique(edges[1:])
