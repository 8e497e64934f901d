"""The self-attentions of encoders: `--encoder-attention NAME` chooses an entry of `ATTENTIONS`.

An attention is a subclass of `HeadProjections` with `forward(x, layout) -> (B, T, C)` and `allowed(query, key,
layout)`. An entry works in every model; docs/encoder_attention.md says how to add one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..modules.attention import FullAttention
from ..modules.block_sparse import BlockPattern, BlockSparseAttention
from ..modules.pooling_attention import PoolingAttention, SecondLevel
from ..modules.segment_attention import SegmentAttention
from ..modules.sliding_window import SlidingWindowAttention
from ..modules.transformer_layer import AttentionBuilder


@dataclass(frozen=True)
class EncoderAttention:
    """An encoder attention, its options and its defaults.

    Attributes:
        build: a function of the model's config that returns an `AttentionBuilder`.
        options: config fields that this attention reads; giving one to an attention that does not read it is an error.
        elsewhere: name of the attention of the layers outside `--encoder-attention-layers`.
        seeded: the builder gets the number of the layer as `seed`.
        check: a function of the model's config that raises ValueError for impossible values of the options.
    """

    build: Callable[[Any], AttentionBuilder]
    options: tuple[str, ...] = ()
    elsewhere: str = "full"
    seeded: bool = False
    check: Callable[[Any], None] = lambda config: None


SEGMENT_LENGTH = 128  # as in Chalkidis et al.


def _segments(config: Any) -> AttentionBuilder:
    length = SEGMENT_LENGTH if config.segment_length is None else config.segment_length
    return partial(SegmentAttention, segment_length=length)


# Names of the tensors that full attention does not have. Checkpoints may lack them; then they are initialised.
NEW_PARTS = ("self_attn.pooled.",)
WIDTH = {"encoder_qkv_dim": "inner_dim"}
WINDOW = {"attention_window": "window"}
LEVEL = {f"pooling_{name}": name for name in ("window", "kernel", "stride", "variant", "cells")}
LEVEL["key_pooling"] = "pooling"


def _given(config: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The given options, under the names of the module's arguments; `names` maps option to argument."""
    values = {argument: getattr(config, option, None) for option, argument in names.items()}
    return {argument: value for argument, value in values.items() if value is not None}


BLOCKS = {"sparse_block": "block"} | {f"sparse_{name}": name for name in ("window", "random", "first", "last")}


def block_pattern(config: Any) -> BlockPattern:
    """The pattern of block-sparse attention; with representative tokens random blocks come from the whole document."""
    representatives = hasattr(config, "representative_weights") and not config.no_hierarchy
    return BlockPattern(**_given(config, BLOCKS), whole_document=representatives)


def _block_sparse(config: Any) -> AttentionBuilder:
    return partial(BlockSparseAttention, pattern=block_pattern(config), **_given(config, WIDTH))


def _check_blocks(config: Any) -> None:
    longest = getattr(config, "max_positions", None)
    if longest is None:
        return
    block = block_pattern(config).block
    for name in ("window", "random"):
        if (given := getattr(config, f"sparse_{name}") or 0) > (most := -(-longest // block)):
            raise ValueError(
                f"--sparse-{name} {given}: --max-positions {longest} is only {most} blocks of {block} tokens; "
                "give fewer, or --encoder-attention full"
            )


def _window(config: Any) -> AttentionBuilder:
    return partial(SlidingWindowAttention, **_given(config, WINDOW))


def _pooling(config: Any) -> AttentionBuilder:
    level = SecondLevel(**{"cells": "document"} | _given(config, LEVEL))  # older checkpoints do not name the cells
    return partial(PoolingAttention, level=level, **_given(config, WINDOW))


ATTENTIONS: dict[str, EncoderAttention] = {
    "full": EncoderAttention(lambda config: partial(FullAttention, **_given(config, WIDTH)), options=tuple(WIDTH)),
    "segments": EncoderAttention(_segments, options=("segment_length",)),
    "window": EncoderAttention(_window, options=(*WINDOW, "global_tokens")),
    "pooling": EncoderAttention(_pooling, options=(*WINDOW, *LEVEL, "global_tokens"), elsewhere="window"),
    "block-sparse": EncoderAttention(_block_sparse, options=(*BLOCKS, *WIDTH), seeded=True, check=_check_blocks),
}


def layer_attentions(config: Any, num_layers: int) -> list[AttentionBuilder]:
    """The builders of the self-attention of each of `num_layers` layers.

    Args:
        config: has the fields of `EncoderConfig`.
    Raises:
        ValueError: an unknown attention, or layers that do not exist.
    """
    entry = _entry(config.encoder_attention)
    chosen = parse_layers(config.encoder_attention_layers, num_layers)
    build, elsewhere = entry.build(config), _entry(entry.elsewhere).build(config)
    builders = [build if layer in chosen else elsewhere for layer in range(num_layers)]
    if entry.seeded:
        return [partial(b, seed=layer) if b is build else b for layer, b in enumerate(builders)]  # type: ignore[call-arg]
    return builders


def check_options(config: Any, besides: tuple[str, ...] = ()) -> None:
    """Checks the options of attentions.

    Args:
        besides: options that may be set for any attention.
    Raises:
        ValueError: an option that the chosen attention does not read, or an impossible value of one that it reads.
    """
    used = _entry(config.encoder_attention).options
    for name in sorted({name for entry in ATTENTIONS.values() for name in entry.options} - {*used, *besides}):
        if getattr(config, name, None) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} has no effect with --encoder-attention {config.encoder_attention}; remove it")
    _entry(config.encoder_attention).check(config)


def _entry(name: str) -> EncoderAttention:
    if name not in ATTENTIONS:
        raise ValueError(f"--encoder-attention {name}: unknown; choose one of {', '.join(ATTENTIONS)}")
    return ATTENTIONS[name]


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
