"""Renames the weights of a release for a fairseq model, by a table of names, and checks them against the model.

The model is built from the flags that `hat import` prints, on the meta device: it has names and shapes and needs no
memory. fairseq is imported when it is built: help texts and most refusals do not wait for it.
"""

import re
import shlex
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

LAYER_NUMBER = re.compile(r"\.(\d+)\.")


@dataclass
class Converted:
    """Weights of a release, ready to be written as a checkpoint of fairseq."""

    model: dict[str, Tensor]  # state under our names
    starts: list[list[str]]  # flags of fairseq-train that build a model for it; each list is one way to start
    report: list[str] = field(default_factory=list)  # further lines for the user


@dataclass(frozen=True)
class RenameTable:
    """Names of modules in a release and here."""

    modules: Mapping[str, str]  # of the release -> here; `{}` stands for the number of a layer
    copies: Mapping[str, str]  # tensors that the release stores a second time -> the tensor here

    def own_name(self, name: str) -> str:
        """Returns our name of a tensor; a name that is not in the table stays as it is."""
        return self.copies.get(name) or _rename(self.modules, name) or name

    def other_name(self, name: str) -> str | None:
        """Returns the release's name of a tensor; None if it is not in the table."""
        modules = {own: other for other, own in self.modules.items() if ("{}" in other) == ("{}" in own)}
        return _rename(modules, name)


def _rename(modules: Mapping[str, str], name: str) -> str | None:
    module, _, kind = name.rpartition(".")
    number = LAYER_NUMBER.search(module)
    template = modules.get(LAYER_NUMBER.sub(".{}.", module, count=1))
    return None if template is None else f"{template.format(number[1] if number else '')}.{kind}"


def rename_state(
    weights: Mapping[str, Tensor], table: RenameTable, model: nn.Module, optional: str | None = None
) -> dict[str, Tensor]:
    """Renames `weights` for a `model` on the meta device; a tied parameter is there under each of its names.

    `optional`: a prefix of our names that may be missing altogether. ValueError for a tensor that is unknown, missing
    or of another shape, or copies of one tensor that differ.
    """
    expected = dict(model.named_parameters(remove_duplicate=False))
    if unknown := [name for name in weights if table.own_name(name) not in expected]:
        raise ValueError(f"{listed(unknown, 'unknown')}; a head for another task is not converted, save without it")
    sources: dict[str, str] = {}
    for other, tensor in weights.items():
        own = table.own_name(other)
        if tensor.shape != (shape := expected[own].shape):
            raise ValueError(f"{other} has shape {tuple(tensor.shape)}, config.json says {tuple(shape)}")
        first = sources.setdefault(own, other)
        if not torch.equal(weights[first], tensor):
            raise ValueError(f"{other} differs from {first}, and the converted model has one tensor for both")
    if optional is not None and not any(name.startswith(optional) for name in sources):
        expected = {name: parameter for name, parameter in expected.items() if not name.startswith(optional)}
    by_parameter = {id(expected[own]): weights[other] for own, other in sources.items()}
    if missing := [
        table.other_name(name) or name for name, parameter in expected.items() if id(parameter) not in by_parameter
    ]:
        raise ValueError(listed(missing, "missing"))
    return {name: by_parameter[id(parameter)] for name, parameter in expected.items()}


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


def meta_model(flags: Sequence[str], weights: Mapping[str, Tensor], rows: int) -> nn.Module:
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
        with torch.device("meta"):
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
