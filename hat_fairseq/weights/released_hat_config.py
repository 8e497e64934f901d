"""Settings of the released Hierarchical Attention Transformers (Chalkidis et al. 2022) and ours, both ways.

Theirs are a `config.json` of Hugging Face; ours are the fields of `HierarchicalTransformerConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from .hugging_face import SPECIAL_IDS, read_config

ARCHITECTURE = "hierarchical_transformer"
PAD = SPECIAL_IDS["pad_token_id"]
FIXED: dict[str, Any] = {
    "hidden_act": "gelu",
    "type_vocab_size": 1,
    "position_embedding_type": "absolute",
} | SPECIAL_IDS
FIELDS = {
    "max_sentences": "max_segments",
    "hidden_size": "encoder_embed_dim",
    "intermediate_size": "encoder_ffn_embed_dim",
    "num_attention_heads": "encoder_attention_heads",
    "layer_norm_eps": "layer_norm_eps",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
# What the authors' code computes, and ours only on request.
QUIRKS = {"attend_segment_padding": True, "pool_padded_segments": True}
PARTS = {"sentence_encoder": "S", "document_encoder": "D"}
POSITIONS = "embeddings.position_embeddings.weight"


def read_released_config(path: Path) -> dict[str, Any]:
    """`config.json`; ValueError where it describes something that ours cannot compute."""
    config = read_config(path, FIXED, (*FIELDS, "vocab_size"), f"a {ARCHITECTURE}")
    layers = config.get("encoder_layout")
    if not isinstance(layers, dict) or sorted(layers, key=len) != [str(number) for number in range(len(layers))]:
        raise ValueError(f"{path}: no encoder_layout with the kinds of layers 0, 1, ...")
    for number, layer in layers.items():
        if not isinstance(layer, dict) or not all(isinstance(layer.get(part), bool) for part in PARTS):
            raise ValueError(f"{path}: layer {number} of encoder_layout does not say true or false for {list(PARTS)}")
    if not isinstance(config.get("classifier_dropout"), int | float | None):
        raise ValueError(f"{path}: classifier_dropout is {config['classifier_dropout']!r}, no number")
    return config


def read_settings(config: Mapping[str, Any], weights: Mapping[str, Tensor], segment_positions: str) -> dict[str, Any]:
    """Our settings for their `config`; the length of a segment is that of the table of positions."""
    if POSITIONS not in weights:
        raise ValueError(f"1 tensor is missing for this config.json: {POSITIONS}")
    layers = config["encoder_layout"]
    kinds = [
        "".join(letter for part, letter in PARTS.items() if layers[str(number)][part]) for number in range(len(layers))
    ]
    settings = {"layout": "|".join(kinds), "segment_length": len(weights[POSITIONS]) - PAD - 1}
    settings |= {"segment_positions": segment_positions} | {ours: config[theirs] for theirs, ours in FIELDS.items()}
    dropout = config.get("classifier_dropout")
    return settings | {"pooler_dropout": config["hidden_dropout_prob"] if dropout is None else dropout} | QUIRKS


def head_settings(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Task and pooling of the head that weights under their names have; `masked_lm` without a classification head."""
    if "classifier.weight" not in weights:
        return {"task": "masked_lm"}
    if "sentencizer.dense.weight" in weights:
        return {"task": "segment_classification"}
    pooling = "attentive" if "pooler.attentive_pooling.v.weight" in weights else "max"
    choice = len(weights["classifier.weight"]) == 1
    return {"task": "multiple_choice" if choice else "document_classification", "pooling": pooling}


def as_flags(settings: Mapping[str, Any]) -> list[str]:
    """Settings as flags of fairseq-train."""
    words = []
    for name, value in settings.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return words


def released_config(
    settings: Mapping[str, Any], vocab_size: int, architecture: str, labels: list[str] | None
) -> dict[str, Any]:
    """`config.json` for our settings.

    Args:
        vocab_size: rows of the embedding.
        architecture: name of their class.
        labels: of a classifier, in the order of its outputs.
    """
    layers = str(settings["layout"]).split("|")
    length, segments = settings["segment_length"], settings["max_segments"]
    config: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": "hierarchical-transformer",
        "vocab_size": vocab_size,
        "num_hidden_layers": len(layers),
        "encoder_layout": {
            str(number): {part: letter in kind for part, letter in PARTS.items()} for number, kind in enumerate(layers)
        },
        "max_sentence_length": length,
        "max_sentence_size": length,
        "model_max_length": length * segments,
        "max_position_embeddings": length + PAD + 1,
        "classifier_dropout": settings["pooler_dropout"],
        "initializer_range": 0.02,
        **{theirs: settings[ours] for theirs, ours in FIELDS.items()},
        **FIXED,
    }
    if labels is not None:
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    return config
