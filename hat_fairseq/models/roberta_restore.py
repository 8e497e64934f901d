"""The names of RoBERTa's first release, beyond what `restore.py` knows."""

from __future__ import annotations

from torch import Tensor


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
