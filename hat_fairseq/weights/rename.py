"""Tensors of a release under the names of a fairseq model: one table for a release, checked against that model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

LAYER_NUMBER = re.compile(r"\.(\d+)\.")


@dataclass
class Converted:
    """Weights of a release, ready to be written as a checkpoint of fairseq.

    Attributes:
        model: state under our names.
        starts: flags of fairseq-train that build a model for it; each list is one way to start.
        report: further lines for the user.
        architecture: our settings, kept in the checkpoint for `hat export`.
    """

    model: dict[str, Tensor]
    starts: list[list[str]]
    report: list[str] = field(default_factory=list)
    architecture: dict[str, Any] | None = None


class RenameTable:
    """Names of modules in a release and in ours.

    Args:
        modules: their module -> ours; `{}` stands for the number of a layer.
        copies: tensors that the release stores a second time -> the tensor of ours.
    """

    def __init__(self, modules: Mapping[str, str], copies: Mapping[str, str] | None = None) -> None:
        self._ours = dict(modules)
        self._theirs = {ours: theirs for theirs, ours in modules.items() if ("{}" in theirs) == ("{}" in ours)}
        self._copies = dict(copies or {})

    def ours(self, name: str) -> str:
        """Our name of a tensor; a name that is not in the table stays as it is."""
        return self._copies.get(name) or _rename(self._ours, name) or name

    def theirs(self, name: str) -> str | None:
        """Their name of a tensor; None if it is not in the table."""
        return _rename(self._theirs, name)


def _rename(modules: Mapping[str, str], name: str) -> str | None:
    module, _, kind = name.rpartition(".")
    number = LAYER_NUMBER.search(module)
    found = modules.get(LAYER_NUMBER.sub(".{}.", module, count=1))
    return None if found is None else f"{found.format(number[1] if number else '')}.{kind}"


def rename_state(
    weights: Mapping[str, Tensor], table: RenameTable, model: nn.Module, optional: str | None = None
) -> dict[str, Tensor]:
    """`weights` under our names, tied parameters under each of theirs.

    Args:
        model: what the weights are for; on the meta device.
        optional: a prefix of our names that may be missing altogether.

    Raises:
        ValueError: a tensor is unknown, missing or of another shape, or copies of one tensor differ.
    """
    expected = dict(model.named_parameters(remove_duplicate=False))
    unknown = [name for name in weights if table.ours(name) not in expected]
    if unknown:
        raise ValueError(f"{_count(unknown)} unknown for this config.json: {_first(unknown)}")
    sources: dict[str, str] = {}
    for theirs, tensor in weights.items():
        ours = table.ours(theirs)
        if tensor.shape != expected[ours].shape:
            shape = tuple(expected[ours].shape)
            raise ValueError(f"{theirs} has shape {tuple(tensor.shape)}, config.json says {shape}")
        first = sources.setdefault(ours, theirs)
        if not torch.equal(weights[first], tensor):
            raise ValueError(f"{theirs} differs from {first}, and the converted model has one tensor for both")
    if optional is not None and not any(name.startswith(optional) for name in sources):
        expected = {name: parameter for name, parameter in expected.items() if not name.startswith(optional)}
    found = {id(expected[ours]): weights[theirs] for ours, theirs in sources.items()}
    missing = [table.theirs(name) or name for name, parameter in expected.items() if id(parameter) not in found]
    if missing:
        raise ValueError(f"{_count(missing)} missing for this config.json: {_first(missing)}")
    return {name: found[id(parameter)] for name, parameter in expected.items()}


def _count(names: list[str]) -> str:
    return f"{len(names)} tensor is" if len(names) == 1 else f"{len(names)} tensors are"


def _first(names: list[str]) -> str:
    return ", ".join(sorted(names)[:8]) + (", ..." if len(names) > 8 else "")
