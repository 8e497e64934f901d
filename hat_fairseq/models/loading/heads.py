"""Which heads of a checkpoint a model takes.

A head that both have, with the same shape and the same labels, is loaded. The checkpoint's other heads are left out and
the model's other heads keep their initial weights; both are logged. For a model that is loaded for inference
(`heads_must_load`) a missing head is an error.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor, nn

from ..fingerprint import BUFFER

logger = logging.getLogger(__name__)

MASKED_LM, CLASSIFICATION = "encoder.lm_head.", "classification_heads."
LABELS = "labels" + BUFFER  # the buffer of a classification head that says what its classes are
OUTPUT = MASKED_LM + "weight"


def adapt_heads(state: dict[str, Tensor], model: Any) -> None:
    """Changes the heads in a checkpoint's `state` in place to those of `model`.

    Raises:
        ValueError: the model is loaded for inference, and one of its classification heads is missing in the checkpoint
            or has other labels there.
    """
    own = {name: tensor for name, tensor in model.state_dict().items() if head_of(name)}
    for head in sorted({head_of(name) for name in (*own, *state)} - {""}):
        built = {name: tensor for name, tensor in own.items() if head_of(name) == head}
        loaded = {name: tensor for name, tensor in state.items() if head_of(name) == head}
        problem = _difference(loaded, built)
        if problem and head == MASKED_LM and built and loaded:
            continue  # another dictionary, or damage: an error when it is loaded
        for name in loaded:
            del state[name]
        if not problem:
            state.update({name: loaded.get(name, tensor) for name, tensor in built.items()})
            continue
        if built and head != MASKED_LM and model.heads_must_load:
            raise ValueError(
                f"{head[:-1]}: {problem}; use the task and the data directory that the checkpoint was trained with"
            )
        state.update({name: tensor.clone() for name, tensor in built.items()})
        if loaded:
            level = logging.INFO if head == MASKED_LM else logging.WARNING
            logger.log(level, "%s: %s; left out %d tensors of the checkpoint", head[:-1], problem, len(loaded))
        if built:
            logger.info("%s: newly initialised %d tensors:\n  %s", head[:-1], len(built), "\n  ".join(built))
    _tie_output(state, model)


def head_of(name: str) -> str:
    """`classification_heads.NAME.`, `encoder.lm_head.`, or nothing for a tensor of no head."""
    if name.startswith(CLASSIFICATION):
        return CLASSIFICATION + name.removeprefix(CLASSIFICATION).split(".")[0] + "."
    return MASKED_LM if name.startswith(MASKED_LM) else ""


def _difference(loaded: dict[str, Tensor], built: dict[str, Tensor]) -> str:
    """What keeps a head from being loaded; nothing if it can be. A head without labels of its own fits any."""
    if not loaded:
        return "not in the checkpoint"
    if not built:
        return "not in the model"
    shapes, expected = (
        {name: tuple(tensor.shape) for name, tensor in head.items() if not name.endswith(LABELS)}
        for head in (loaded, built)
    )
    if shapes != expected:
        return f"{_classes(loaded)} in the checkpoint, {_classes(built)} in the model"
    for name in built:
        if name.endswith(LABELS) and name in loaded and not torch.equal(loaded[name].cpu(), built[name].cpu()):
            return "other labels in the checkpoint, or in another order"
    return ""


def _classes(head: dict[str, Tensor]) -> str:
    output = next((tensor for name, tensor in head.items() if name.endswith(".out_proj.weight")), None)
    tensors = ", ".join(f"{name.rpartition('.')[0].rpartition('.')[2]} {list(t.shape)}" for name, t in head.items())
    return tensors if output is None else f"{len(output)} classes ({tensors})"


def _tie_output(state: dict[str, Tensor], model: nn.Module) -> None:
    """A shared output table is the checkpoint's token table, also where the checkpoint does not repeat it."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, parameter in parameters.items():
        if OUTPUT in parameters and name != OUTPUT and parameter is parameters[OUTPUT] and name in state:
            state[OUTPUT] = state[name]
