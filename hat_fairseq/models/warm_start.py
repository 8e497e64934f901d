"""Starting a hierarchical transformer from another model: from one with other heads, or from RoBERTa.

Heads come and go between pre-training and fine-tuning, and both is reported. From RoBERTa as Chalkidis et al. 2022 do
it: layer i of both kinds takes RoBERTa's layer i; positions are cropped to a segment; the table of segment positions
takes the first rows of the position table. The token type, which fairseq's RoBERTa does not have, is zero.
"""

from __future__ import annotations

import logging
import re

from torch import Tensor

from .fingerprint import check_fingerprints
from .roberta_restore import rename_old_layout

logger = logging.getLogger(__name__)

ROBERTA = re.compile(r"^encoder\.(?:sentence_encoder\.)?")
POSITIONS, SEGMENTS = "encoder.embed_positions.weight", "encoder.segment_positions.weight"

TIED, TABLE = "encoder.lm_head.weight", "encoder.embed_tokens.weight"
HEADS = ("encoder.lm_head.", "classification_heads.")  # may be missing in a checkpoint, or be in it and not be wanted


def adapt_state(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    """Changes a checkpoint's `state` in place towards `own`, the model's; whatever still differs is an error later.

    Raises:
        ValueError: the dictionary is another one, or RoBERTa does not reach.
    """
    if is_roberta(state):
        rename_old_layout(state)
        converted = from_roberta(state, own)
        state.clear()
        state.update(converted)
    check_fingerprints(state, own)
    if TIED in own and TABLE in state:  # a checkpoint without this head still has its table
        state.setdefault(TIED, state[TABLE])
    surplus = [name for name in state if name.startswith(HEADS) and name not in own]
    new = [name for name in own if name.startswith(HEADS) and name not in state]
    for name in surplus:
        del state[name]
    state.update({name: own[name].clone() for name in new})
    for what, names in (("left out, the model has no such head", surplus), ("newly initialised", new)):
        if names:
            logger.info("%s: %d tensors:\n  %s", what, len(names), "\n  ".join(names))


def is_roberta(state: dict[str, Tensor]) -> bool:
    return any(re.match(r"(?:encoder|decoder)\.sentence_encoder\.", name) for name in state)


def from_roberta(state: dict[str, Tensor], own: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state of a fairseq RoBERTa in the shape of ours.

    Args:
        state: its tensors under today's names; heads other than the masked-LM head are left to the caller.
        own: our model's, for the names and the sizes of the tables.
    Raises:
        ValueError: it has fewer layers or fewer positions than are needed.
    """
    roberta = {ROBERTA.sub("", name): tensor for name, tensor in state.items()}
    converted = {name: tensor for name, tensor in state.items() if name.startswith("classification_heads.")}
    for name, tensor in own.items():
        source = re.sub(r"\.(segment_wise|cross_segment)\.", ".", name.removeprefix("encoder."))
        if name in (POSITIONS, SEGMENTS):
            first = 0 if name == POSITIONS else 1
            rows = roberta["embed_positions.weight"][first : first + len(tensor)]
            if len(rows) < len(tensor):
                raise ValueError(
                    f"{name} needs {first + len(tensor)} positions of RoBERTa, which has {first + len(rows)}"
                )
            converted[name] = rows.clone()
        elif name == "encoder.embed_token_type.weight":
            converted[name] = tensor.new_zeros(tensor.shape)
        elif source in roberta:
            converted[name] = roberta[source]
        elif name.startswith("encoder.layers."):
            raise ValueError(f"RoBERTa has no {source}: fewer layers than --layout has, or another layout of tensors")
    logger.info("started from RoBERTa: both kinds of layer i from its layer i, positions cropped")
    return converted
