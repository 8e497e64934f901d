"""Settings of the released Hierarchical Attention Transformers (Chalkidis et al. 2022) and ours, both ways.

Theirs are a `config.json` of Hugging Face; ours are the fields of `HierarchicalTransformerConfig`. What their code does
and ours does only on request are the quirks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from .hugging_face import SPECIAL_IDS, read_config

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
QUIRKS = {"pool_padded_segments": True, "attend_segment_padding": True}  # of their code, off in ours
PARTS = {"sentence_encoder": "S", "document_encoder": "D"}


def read_chalkidis_config(path: Path) -> dict[str, Any]:
    """`config.json`; ValueError where it describes something else than ours can compute."""
    config = read_config(path, FIXED, (*FIELDS, "vocab_size"), "a hierarchical_transformer")
    if not isinstance(config.get("encoder_layout"), dict):
        raise ValueError(f"{path}: no encoder_layout, the kinds of the layers")
    return config


def layout(config: Mapping[str, Any]) -> str:
    """`{"0": {"sentence_encoder": true, "document_encoder": false}, ...}` -> `S|...`."""
    layers = sorted(config["encoder_layout"].items(), key=lambda item: int(item[0]))
    return "|".join("".join(letter for part, letter in PARTS.items() if layer[part]) for _, layer in layers)


def settings(config: Mapping[str, Any], position_rows: int, segment_positions: str) -> dict[str, Any]:
    """Our settings for their `config`; the length of a segment is read off the weights."""
    found = {"layout": layout(config), "segment_length": position_rows - PAD - 1}
    found |= {"segment_positions": segment_positions} | {ours: config[theirs] for theirs, ours in FIELDS.items()}
    pooler_dropout = config.get("classifier_dropout")
    return found | {"pooler_dropout": config["hidden_dropout_prob"] if pooler_dropout is None else pooler_dropout}


def head_settings(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Task and pooling of the head that weights under their names have; `masked_lm` without a classification head."""
    if "classifier.weight" not in weights:
        return {"task": "masked_lm"}
    if "sentencizer.dense.weight" in weights:
        return {"task": "segment_classification"}
    pooling = "attentive" if "pooler.attentive_pooling.v.weight" in weights else "max"
    choice = len(weights["classifier.weight"]) == 1
    return {"task": "multiple_choice" if choice else "document_classification", "pooling": pooling}


def flags(values: Mapping[str, Any]) -> list[str]:
    """Settings as flags of fairseq-train, for a shell."""
    words = []
    for name, value in values.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(f"'{value}'" if "|" in str(value) else str(value))
    return words


def check_shapes(model: Mapping[str, Tensor], config: Mapping[str, Any], path: Path) -> None:
    """ValueError where the weights are not what config.json says."""
    found = 1 + max(int(name.split(".")[2]) for name in model if name.startswith("encoder.layers."))
    shape, layers = list(model["encoder.embed_tokens.weight"].shape), len(layout(config).split("|"))
    expected = [config["vocab_size"], config["hidden_size"]]
    if found != layers or shape != expected:
        raise ValueError(f"{path}: {layers} layers, embedding {expected}; the weights have {found} and {shape}")


def their_config(
    values: Mapping[str, Any], vocab_size: int, architecture: str, labels: list[str] | None
) -> dict[str, Any]:
    """`config.json` for our settings `values`.

    Args:
        vocab_size: rows of the embedding.
        architecture: name of their class.
        labels: of a classifier, in the order of its outputs.
    """
    layers = str(values["layout"]).split("|")
    length, segments = values["segment_length"], values["max_segments"]
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
        "classifier_dropout": values["pooler_dropout"],
        "initializer_range": 0.02,
        **{theirs: values[ours] for theirs, ours in FIELDS.items()},
        **FIXED,
    }
    if labels is not None:
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    return config
