"""Copies of models that are not their originals."""

from typing import Any

import torch
from torch import nn


@torch.no_grad()
def change(model: nn.Module) -> None:
    """Changes every parameter."""
    for parameter in model.parameters():
        parameter.mul_(1.1).add_(0.01)


def replica_of(model: nn.Module) -> Any:
    """Makes a replica as `nn.DataParallel` does, with copies of the parameters; its devices need no GPU here."""
    modules = {module: module._replicate_for_data_parallel() for module in model.modules()}
    parameters = {parameter: nn.Parameter(parameter.detach().clone()) for parameter in model.parameters()}
    for module, replica in modules.items():
        replica._modules = {name: None if each is None else modules[each] for name, each in module._modules.items()}
        replica._parameters = {
            name: None if each is None else parameters[each] for name, each in module._parameters.items()
        }
    return modules[model]
