"""The fairseq model that weights are converted for, built from the flags that `hat import` prints.

It is built on the meta device, so it has names and shapes and needs no memory. fairseq is imported when it is built:
help texts and most refusals do not wait for it.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def parse_flags(flags: Sequence[str]) -> Namespace:
    """`flags` as fairseq-train reads them, with the defaults of the architecture that they name."""
    from fairseq import options

    from ..register import register

    register()
    return options.parse_args_and_arch(options.get_training_parser(), ["", *flags])


def meta_model(flags: Sequence[str], weights: Mapping[str, Tensor], rows: int) -> nn.Module:
    """The model that fairseq-train builds from `flags`, with an embedding of `rows`.

    Raises:
        ValueError: no model can be built, or it has more layers than `weights` tensors.
    """
    from fairseq.data import Dictionary
    from fairseq.models import ARCH_MODEL_REGISTRY

    args = parse_flags(flags)
    for name in ("encoder_layers", "decoder_layers"):
        if (layers := getattr(args, name, None) or 0) > len(weights):
            raise ValueError(f"config.json says {layers} layers, and the weights are {len(weights)} tensors")
    dictionary = Dictionary()
    for number in range(rows - len(dictionary)):
        dictionary.add_symbol(str(number))
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary, segment_dictionary=None)
    try:
        with torch.device("meta"):
            return ARCH_MODEL_REGISTRY[args.arch].build_model(args, task)
    except (ArithmeticError, AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"config.json: no model can be built with {shlex.join(flags)} ({error})") from error


def vocabulary_rows(weights: Mapping[str, Tensor], names: Iterable[str], config: Mapping[str, Any]) -> int:
    """Rows of the embedding, which is stored under at least one of `names`.

    Raises:
        ValueError: there is none, or `config` says another number.
    """
    name = next((name for name in names if name in weights), None)
    if name is None:
        raise ValueError(f"the weights have no embedding: none of {', '.join(names)}")
    if len(weights[name]) != config["vocab_size"]:
        raise ValueError(f"{name} has {len(weights[name])} rows, config.json says vocab_size {config['vocab_size']}")
    return len(weights[name])


def nearest_architecture(names: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    """The architecture of `names` that needs the fewest flags for `sizes`, and these flags."""
    choices = []
    for name in names:
        flags = ["--arch", name]
        for _ in range(2):  # a default may follow from another flag
            args = parse_flags(flags)
            for size, value in sizes.items():
                if getattr(args, size) != value:
                    flags += [f"--{size.replace('_', '-')}", str(value)]
        choices.append(flags)
    return min(choices, key=len)
