"""Small corrections of options, generation and numpy."""

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

from .replace import replaces


def give_numpy_compat() -> None:
    """Gives two modules of fairseq a numpy with `np.compat.long`, which numpy 2 does not have; numpy itself stays."""
    if hasattr(np, "compat"):
        return
    for module in (fairseq.data.token_block_dataset, fairseq.data.language_pair_dataset):
        module.np = types.ModuleType("numpy")  # type: ignore[attr-defined]
        vars(module.np).update(vars(np), compat=types.SimpleNamespace(long=int))


@replaces(fairseq.options, "parse_args_and_arch")
def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """`--bf16` without `--tpu` runs on a GPU or CPU; in fairseq it means a TPU."""
    parsed = original(parser, input_args=input_args, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if "--tpu" not in (sys.argv if input_args is None else input_args):
        args.tpu = False
    return parsed


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
