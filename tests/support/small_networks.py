"""Every network with every kind of input and loss: small models, which many tests go through."""

from typing import Any

import torch
from building import SMALL_HIERARCHICAL, TINY, TINY_ENCODER, Vocabulary, build, documents, targets
from torch import Tensor

PLAIN, SHORT = " --no-hierarchy", " --attention-window 4 --pooling-window 9"
POOLING = f"{SHORT} --encoder-attention-layers 1"
SPARSE = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 1 --max-positions 140"
SEGMENTS = f"{SMALL_HIERARCHICAL}S|SD|D|SD --segment-positions"
# By the name of the golden file: architecture, flags, lengths of the documents, what the loss is of.
NETWORKS = {
    "hat_bart": ("hat_bart_large", TINY, [17, 9, 2], "targets"),
    "hat_bart_plain": ("hat_bart_large", TINY + PLAIN, [17, 9, 2], "targets"),
    "hat_transformer": ("hat_transformer", TINY, [17, 9, 2], "targets"),
    "hat_transformer_plain": ("hat_transformer", TINY + PLAIN, [17, 9, 2], "targets"),
    "hat_transformer_shared_gelu": ("hat_transformer_ted_zh_en", TINY, [17, 9, 2], "targets"),
    "hat_transformer_shared_gelu_plain": ("hat_transformer_ted_zh_en", TINY + PLAIN, [17, 9, 2], "targets"),
    "hat_transformer_shared": ("hat_transformer_tiny", TINY, [17, 9, 2], "targets"),
    "hat_transformer_shared_plain": ("hat_transformer_tiny", TINY + PLAIN, [17, 9, 2], "targets"),
    "poolingformer_bart": ("poolingformer_bart_base", TINY + POOLING, [33, 18], "targets"),
    "hat_bart_pooling": (
        "hat_bart_base",
        f"{TINY} --encoder-attention pooling{SHORT} --global-tokens first",
        [33, 18],
        "targets",
    ),
    "hat_roberta": ("hat_roberta_base", f"{TINY_ENCODER} --max-positions 64", [17, 13, 5, 2], "masked"),
    "hat_roberta_bos": (
        "hat_roberta_base",
        f"{TINY_ENCODER} --max-positions 64 --sentence-queries bos",
        [17, 13, 5, 2],
        "masked",
    ),
    "hat_transformer_mean": ("hat_transformer", f"{TINY} --span-pooling mean", [17, 9, 2], "targets"),
    "hat_roberta_mean": (
        "hat_roberta_base",
        f"{TINY_ENCODER} --max-positions 64 --span-pooling mean",
        [17, 13, 5, 2],
        "masked",
    ),
    "hierarchical_transformer_mean": (
        "hierarchical_transformer",
        f"{SEGMENTS} add --span-pooling mean",
        [23, 17],
        "all",
    ),
    "hat_roberta_plain": ("hat_roberta_base", f"{TINY_ENCODER} --max-positions 64{PLAIN}", [17, 13, 5, 2], "masked"),
    "poolingformer": ("poolingformer_base", f"{TINY_ENCODER}{POOLING} --max-positions 40", [33, 18], "next"),
    "ernie_sparse": ("ernie_sparse_base", SPARSE, [53, 18], "next"),
    "bigbird": ("ernie_sparse_base", f"{SPARSE}{PLAIN} --sparse-first 1 --sparse-last 1", [53, 18], "next"),
    "hierarchical_transformer_positions_add": ("hierarchical_transformer", f"{SEGMENTS} add", [23, 17], "all"),
    "hierarchical_transformer_positions_none": ("hierarchical_transformer", f"{SEGMENTS} none", [23, 17], "all"),
}
# The parts of today's encoders: rotary positions of two bases, gated units, RMS norms, shared keys, no biases.
ROTARY = "--encoder-family plain:rotary=10000:kv_heads=2"
WITHOUT = "first_norm=false:norm_bias=false:attention_bias=false:ffn_bias=false"
PRE_NORM = f"{ROTARY}:rotary_local=100:local_layers=1:{WITHOUT} --encoder-normalize-before --activation-fn geglu"
NETWORKS |= {
    "modernbert": (
        "hat_modernbert_base",
        f"{TINY_ENCODER} --encoder-attention-layers 1 --attention-window 4 --max-positions 64",
        [33, 18],
        "masked",
    ),
    "eurobert": (
        "hat_eurobert_210m",
        f"{TINY_ENCODER} --encoder-family eurobert:kv_heads=2{PLAIN}",
        [17, 13, 5, 2],
        "masked",
    ),
    "modern_bart": ("hat_bart_base", f"{TINY} {PRE_NORM}", [17, 9, 2], "targets"),
    "modern_poolingformer": (
        "poolingformer_base",
        f"{TINY_ENCODER}{POOLING} --max-positions 40 {ROTARY}:rms_norm=true --activation-fn swiglu",
        [33, 18],
        "next",
    ),
    "modern_ernie_sparse": ("ernie_sparse_base", f"{SPARSE} {ROTARY} --activation-fn geglu", [53, 18], "next"),
    "modern_hierarchical_transformer": (
        "hierarchical_transformer",
        f"{SEGMENTS} add {PRE_NORM} --segment-window 2",
        [23, 17],
        "all",
    ),
}


def model_of(name: str, seed: int = 0, extra: str = "") -> Any:
    arch, flags, _, kind = NETWORKS[name]
    return build(arch, flags + extra, Vocabulary(mask=kind in ("masked", "next")), seed=seed)


def source_of(name: str) -> Tensor:
    return documents(NETWORKS[name][2])


def run(model: Any, source: Tensor, rows: slice = slice(None)) -> Tensor:
    """(B, ., V) logits; the targets of a sequence-to-sequence model are those of `rows` of the batch."""
    if hasattr(model, "decoder"):
        return model(source, None, targets(9, 8)[rows][: len(source)])[0]
    return model(source)[0]


def masked(tokens: Tensor) -> Tensor:
    """(B, T) True = a masked word, which is every third one."""
    return (tokens > 3) & (torch.arange(tokens.size(1)) % 3 == 1)
