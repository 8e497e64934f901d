"""RoBERTa's checkpoints beyond `restore.py`: the names of its first release, and classification heads."""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor

logger = logging.getLogger(__name__)

HEADS = "classification_heads."


def rename_old_layout(state: dict[str, Tensor]) -> None:
    """Gives the tensors of a released RoBERTa today's names, in place.

    `decoder.` was the encoder, `emb_layer_norm` the layer norm on embeddings, and query, key and value projections were
    one (3C, C) matrix.
    """
    for name in list(state):
        new = name.replace(".emb_layer_norm.", ".layernorm_embedding.")
        if new.startswith("decoder."):
            new = "encoder." + new.removeprefix("decoder.")
        tensor = state.pop(name)
        stem, joined, kind = new.partition("in_proj_")
        if not joined:
            state[new] = tensor
            continue
        for part, rows in zip("qkv", tensor.chunk(3), strict=True):
            state[f"{stem}{part}_proj.{kind}"] = rows


def adapt_heads(state: dict[str, Tensor], model: Any) -> None:
    """Brings the classification heads of a checkpoint's `state` and of `model` together, as fairseq's RoBERTa does.

    With `--load-checkpoint-heads` the model gets all heads of the checkpoint; otherwise those that it does not have, or
    has in another shape, are left out. Heads that only the model has keep their initialisation. All is logged.
    """
    for head in sorted({name.removeprefix(HEADS).split(".")[0] for name in state if name.startswith(HEADS)}):
        prefix = f"{HEADS}{head}."
        num_classes, inner_dim = state[prefix + "out_proj.weight"].shape
        if model.config.load_checkpoint_heads and head not in model.classification_heads:
            model.register_classification_head(head, num_classes, inner_dim)
            logger.info("classification head %s: taken from the checkpoint, %d classes", head, num_classes)
        own = {n: t for n, t in model.state_dict().items() if n.startswith(prefix)}
        theirs = {n: t for n, t in state.items() if n.startswith(prefix)}
        if {n: t.shape for n, t in own.items()} != {n: t.shape for n, t in theirs.items()}:
            logger.warning("classification head %s (%d classes): left out, not in this model", head, num_classes)
            for name in theirs:
                del state[name]
    for name, tensor in model.state_dict().items():
        if name.startswith(HEADS) and name not in state:
            state[name] = tensor.clone()
            logger.info("newly initialised %s", name)
