"""The self-attentions of encoders: `--encoder-attention NAME` chooses an entry of `ATTENTIONS`.

An entry is a frozen dataclass. Its fields are the flags of the attention (`modules/options.py`), and its `build` returns
a module with `forward(x, layout) -> (B, T, C)`. Optional are `other_layers`, the attention of the layers outside
`--encoder-attention-layers` (default: full), and `check_length`. An entry works in every model;
docs/encoder_attention.md says how to add one.
"""

import re
from typing import Any

from torch import nn

from ..modules.attention import Full
from ..modules.block_sparse import BlockSparse
from ..modules.options import options_of
from ..modules.pooling_attention import TwoLevels
from ..modules.segments import Segments
from ..modules.sliding_window import SlidingWindow

ATTENTIONS: dict[str, Any] = {
    "full": Full,
    "segments": Segments,
    "window": SlidingWindow,
    "pooling": TwoLevels,
    "block-sparse": BlockSparse,
}
# Names of the tensors that full attention does not have. Checkpoints may lack them; then they are initialised.
NEW_PARTS = ("self_attn.pooled.",)


def entry(name: str) -> Any:
    """The entry of `ATTENTIONS`; ValueError for another name."""
    if name not in ATTENTIONS:
        raise ValueError(f"--encoder-attention {name}: unknown; choose one of {', '.join(ATTENTIONS)}")
    return ATTENTIONS[name]


def layer_attentions(config: Any, num_layers: int) -> list[nn.Module]:
    """The self-attention of each of `num_layers` layers.

    Args:
        config: an `EncoderConfig`.
    Raises:
        ValueError: an unknown attention, or layers that do not exist.
    """
    chosen = parse_layers(config.encoder_attention_layers, num_layers)
    attention = config.attention()
    other = config.attention(getattr(attention, "other_layers", "full"))
    sizes = config.encoder_embed_dim, config.encoder_attention_heads, config.attention_dropout
    return [(attention if layer in chosen else other).build(*sizes, layer) for layer in range(num_layers)]


def check_options(config: Any, besides: tuple[str, ...] = ()) -> None:
    """Checks the options of attentions.

    Args:
        besides: options that may be set for any attention.
    Raises:
        ValueError: an option that the chosen attention does not read, or an impossible value of one that it reads.
    """
    used = {name for name, _, _ in options_of(entry(config.encoder_attention))}
    known = {name for kind in ATTENTIONS.values() for name, _, _ in options_of(kind)}
    for name in sorted(known - used - {*besides}):
        if getattr(config, name, None) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} has no effect with --encoder-attention {config.encoder_attention}; remove it")
    attention, longest = config.attention(), getattr(config, "max_positions", None)
    if longest is not None and hasattr(attention, "check_length"):
        attention.check_length(longest)


def parse_layers(text: str | None, num_layers: int) -> set[int]:
    """`0,6-8` -> {0, 6, 7, 8}; None -> all layers.

    Raises:
        ValueError: not of this form, or a layer that does not exist.
    """
    if text is None:
        return set(range(num_layers))
    layers: set[int] = set()
    for part in text.split(","):
        if not re.fullmatch(r"[0-9]+(-[0-9]+)?", part):
            raise ValueError(f"--encoder-attention-layers {text}: write layers as 0,6-8, counted from 0")
        first, _, last = part.partition("-")
        layers |= set(range(int(first), int(last or first) + 1))
    if not layers or max(layers) >= num_layers:
        raise ValueError(f"--encoder-attention-layers {text}: the encoder has layers 0 to {num_layers - 1}")
    return layers
