"""Starting from a pretrained model without hierarchy: BART, RoBERTa, or a baseline of this package.

A checkpoint's state is brought to the shape of the model in three steps, each of them reported: the row of `<mask>` is
dropped where the dictionary has none (as fairseq's BART does), position tables are extended, and tensors that only the
hierarchy has are taken from the model's own initialisation. Any difference that remains is an error that names the
tensors.
"""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor

from ...modules.positions import LearnedPositions, extend_positions
from ..fingerprint import check_fingerprints

logger = logging.getLogger(__name__)

# Tensors of fairseq's models that carry no weights.
BOOKKEEPING = (".version", "._float_tensor", ".embed_positions.weights")


def is_new_part(name: str, model: Any) -> bool:
    """Whether the tensor `name` belongs to a part that a checkpoint of a plain model does not have."""
    return any(f".{part}" in f".{name}" for part in model.new_parts)


def adapt_state(state: dict[str, Tensor], model: Any) -> None:
    """Changes a checkpoint's `state` in place until it fits `model`.

    Args:
        model: has `new_parts`, and in its config `extend_positions` if its position tables can be extended.
    Raises:
        ValueError: tensors are missing, unknown or of another shape (all are named), or the dictionary is another one.
    """
    own = model.state_dict()
    check_fingerprints(state, own)
    for name in [name for name in state if name.endswith(BOOKKEEPING)]:
        del state[name]
    _tie_missing_tables(state, own)
    if "<mask>" not in getattr(model, "decoder", model.encoder).dictionary:
        _drop_mask_row(state, own)
    _extend_position_tables(state, model)
    _add_new_parts(state, own, model)
    _check_fit(state, own)


def _tie_missing_tables(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    """Older checkpoints do not repeat the shared table as output projection."""
    output, table = "decoder.output_projection.weight", "decoder.embed_tokens.weight"
    if output in own and output not in state and table in state:
        state[output] = state[table]


def _drop_mask_row(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"):
        if name in state and name in own and len(state[name]) == len(own[name]) + 1:
            state[name] = state[name][:-1]
            logger.info("%s: dropped its last row, that of <mask>, which the dictionary does not have", name)


def _extend_position_tables(state: dict[str, Tensor], model: Any) -> None:
    for prefix, module in model.named_modules():
        name = f"{prefix}.weight"
        if not isinstance(module, LearnedPositions) or name not in state:
            continue
        pretrained, fresh = state[name], module.weight.detach()
        if len(pretrained) < len(fresh):
            assert module.padding_idx is not None
            strategy, random_from = str(model.config.extend_positions), model.config.extend_positions_from
            state[name] = extend_positions(pretrained, fresh, strategy, module.padding_idx, random_from)
            logger.info("%s: extended from %d to %d rows (%s)", name, len(pretrained), len(fresh), strategy)


def _add_new_parts(state: dict[str, Tensor], own: dict[str, Tensor], model: Any) -> None:
    missing = [name for name in own if name not in state and is_new_part(name, model)]
    for part in model.new_parts:
        of_part = [name for name in missing if f".{part}" in f".{name}"]
        expected = [name for name in own if f".{part}" in f".{name}"]
        if of_part and len(of_part) == len(expected):  # half a part is a damaged checkpoint, reported below
            state.update({name: own[name].clone() for name in of_part})
            logger.info("newly initialised %d tensors:\n  %s", len(of_part), "\n  ".join(of_part))


def _check_fit(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    problems = [f"missing {name} {list(own[name].shape)}" for name in own if name not in state]
    problems += [f"unknown {name} {list(state[name].shape)}" for name in state if name not in own]
    problems += [
        f"{name} is {list(state[name].shape)}, the model has {list(own[name].shape)}"
        for name in own
        if name in state and own[name].shape != state[name].shape
    ]
    if problems:
        raise ValueError(
            "the checkpoint does not fit the model (other architecture, other dictionary, or fewer positions than the "
            "checkpoint has):\n  " + "\n  ".join(problems)
        )
