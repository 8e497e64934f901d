"""Settings of every encoder attention, by its name in the table and what is particular."""

from typing import Any

ATTENTION_CASES: dict[str, dict[str, Any]] = {
    "full": {},
    "segments": {"segment_length": 5},
    "segments with windows": {"segment_length": 40, "segment_window": 3},
    "window": {"attention_window": 3},
    "window global": {"attention_window": 33, "global_tokens": "first"},
    "pooling": {"attention_window": 2, "pooling_window": 9},
    "pooling global": {"attention_window": 40, "pooling_window": 100, "global_tokens": "first"},
    "pooling mean": {"attention_window": 3, "pooling_window": 6, "key_pooling": "mean", "pooling_kernel": 7},
    "pooling max": {"pooling_window": 8, "attention_window": 5, "key_pooling": "max", "pooling_stride": 8},
    "pooling share-weights": {"attention_window": 4, "pooling_window": 300, "pooling_variant": "share-weights"},
    "pooling mean-ldconv mix": {
        "attention_window": 3,
        "pooling_window": 12,
        "key_pooling": "mean-ldconv",
        "pooling_kernel": 3,
        "pooling_stride": 2,
        "pooling_variant": "mix",
    },
    "block-sparse": {"sparse_block": 4, "sparse_random": 1},
    "block-sparse front": {"sparse_block": 3, "sparse_first": 2, "sparse_last": 0, "sparse_random": 2},
    "block-sparse without random blocks": {"sparse_block": 8, "sparse_random": 0, "sparse_window": 1},
}
