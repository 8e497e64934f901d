"""The sizes of Long Range Arena (Tay et al. 2021) for ERNIE-Sparse, BigBird and a plain Transformer.

Each task has three architectures, for example `ernie_sparse_lra_listops`, `bigbird_lra_listops` and
`transformer_lra_listops`. The sizes are those of ERNIE-Sparse's Table 10.
"""

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from fairseq.models import register_model_architecture

from .ernie_sparse import bigbird, representatives
from .hat_transformer import set_defaults


def lra_sizes(width: int, ffn: int, heads: int, layers: int, positions: int, **more: Any) -> dict[str, Any]:
    """The settings of a row of Table 10: pre-norm, sinusoidal positions, Xavier, a head as wide as the feed-forward."""
    sizes = {"embed_dim": width, "ffn_embed_dim": ffn, "attention_heads": heads, "layers": layers}
    common = {"dropout": 0.1, "attention_dropout": 0.1, "activation_fn": "gelu", "encoder_normalize_before": True}
    head = {"pooler_inner_dim": ffn, "pooler_activation_fn": "relu", "init": "xavier", "max_positions": positions}
    return {f"encoder_{name}": value for name, value in sizes.items()} | common | head | more


# Width, feed-forward width, heads, layers and positions; positions include `<s>` and `</s>`.
LRA: dict[str, dict[str, Any]] = {
    "listops": lra_sizes(512, 1024, 8, 4, 2002),
    "text": lra_sizes(256, 1024, 4, 4, 1002),
    "retrieval": lra_sizes(128, 512, 4, 4, 4002),
    "image": lra_sizes(32, 64, 1, 1, 1026, dropout=0.3, attention_dropout=0.2, encoder_learned_pos=True),
    "pathfinder": lra_sizes(64, 64, 2, 4, 1026, dropout=0.2, encoder_learned_pos=True, encoder_qkv_dim=32),
}


def _register(prefix: str, name: str, extra: Callable[[Namespace], None]) -> None:
    def architecture(args: Namespace) -> None:
        extra(args)
        set_defaults(args, no_scale_embedding=True, activation_dropout=LRA[name]["dropout"], **LRA[name])

    register_model_architecture("ernie_sparse", f"{prefix}_lra_{name}")(architecture)


for _name in LRA:
    _register("ernie_sparse", _name, lambda args: representatives(args, "separate"))
    _register("bigbird", _name, bigbird)
    _register("transformer", _name, lambda args: set_defaults(args, no_hierarchy=True, encoder_attention="full"))
