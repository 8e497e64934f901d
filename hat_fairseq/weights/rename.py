"""The model that flags of fairseq-train build, on the meta device: it has names and shapes and needs no memory.

fairseq is imported when it is built: help texts and most refusals do not wait for it.
"""

import shlex
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass
class Converted:
    """Weights of a release, ready to be written as a checkpoint of fairseq."""

    model: dict[str, Tensor]  # state under our names
    starts: list[list[str]]  # flags of fairseq-train that build a model for it; each list is one way to start
    report: list[str] = field(default_factory=list)  # further lines for the user


def listed(names: list[str], state: str) -> str:
    """Returns a sentence about tensors that are unknown or missing."""
    first = ", ".join(sorted(names)[:8]) + (", ..." if len(names) > 8 else "")
    return f"{len(names)} tensor{' is' if len(names) == 1 else 's are'} {state} for this config.json: {first}"


def parse_flags(flags: Sequence[str]) -> Namespace:
    """Parses `flags` as fairseq-train does, with the defaults of the architecture that they name."""
    from fairseq import options

    from ..register import register

    register()
    return options.parse_args_and_arch(options.get_training_parser(), ["", *flags])


def meta_model(flags: Sequence[str], weights: Mapping[str, Tensor], rows: int, device: str = "meta") -> nn.Module:
    """Builds the model of fairseq-train's `flags`, with `rows` of embedding; ValueError if it cannot be built."""
    from fairseq.data import Dictionary
    from fairseq.models import ARCH_MODEL_REGISTRY

    args = parse_flags(flags)
    for name in ("encoder_layers", "decoder_layers"):
        if (layers := getattr(args, name, None) or 0) > len(weights):
            raise ValueError(f"config.json says {layers} layers, and the weights are {len(weights)} tensors")
    if rows > (longest := max((tensor.numel() for tensor in weights.values()), default=0)):
        raise ValueError(f"config.json says vocab_size {rows}, and the largest tensor has {longest} numbers")
    dictionary = Dictionary()
    for number in range(rows - len(dictionary)):
        dictionary.add_symbol(str(number))
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary, role_dictionary=None)
    try:
        with torch.device(device):
            return ARCH_MODEL_REGISTRY[args.arch].build_model(args, task)
    except (ArithmeticError, AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"config.json: no model can be built with {shlex.join(flags)} ({error})") from error


def nearest_architecture(names: Iterable[str], sizes: Mapping[str, float | str]) -> list[str]:
    """Returns the architecture of `names` that needs the fewest flags for `sizes`, and these flags."""
    choices = []
    for name in names:
        flags = ["--arch", name]
        for _ in range(2):  # a default may follow from another flag
            args = parse_flags(flags)
            for size, value in sizes.items():
                if getattr(args, size, None) != value and value is not False:
                    flags += [f"--{size.replace('_', '-')}", *([] if value is True else [str(value)])]
        if not any(value is False and getattr(args, size, None) for size, value in sizes.items()):
            choices.append(flags)
    return min(choices, key=len)
