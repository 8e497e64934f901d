"""Hugging Face RoBERTa weights under the names of fairseq's RoBERTa.

Liu et al. 2019. The two differ in names only, but for the token type: Hugging Face adds its one row to every token,
fairseq has none, so the row is added to all positions (in published weights it is zero). The result is what
`hat_roberta` and `hierarchical_transformer` start from, each with the rules of its own (`models/loading/common.py`,
`models/loading/roberta.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from .hugging_face import SPECIAL_IDS, check_tensors, linear_shapes, norm_shapes, one_of, read_config

LAYER = {  # of a layer of BERT's family -> fairseq's
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "self_attn_layer_norm",
    "intermediate.dense": "fc1",
    "output.dense": "fc2",
    "output.LayerNorm": "final_layer_norm",
}
FIXED = {
    "model_type": "roberta",
    "hidden_act": "gelu",
    "type_vocab_size": 1,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
} | SPECIAL_IDS
SIZES = {
    "hidden_size": "encoder-embed-dim",
    "intermediate_size": "encoder-ffn-embed-dim",
    "num_attention_heads": "encoder-attention-heads",
}
EPSILON = 1e-5  # fairseq's, and that of RoBERTa's own weights
NUMBERS = (*SIZES, "vocab_size", "num_hidden_layers", "max_position_embeddings", "layer_norm_eps")
PRESETS = {"hat_roberta_base": (768, 3072, 12, 12), "hat_roberta_large": (1024, 4096, 16, 24)}  # as SIZES, and layers
UNUSED_POSITIONS = 2  # both libraries start after the row of the padding, which is 1
TABLE, POSITIONS, TYPES = (f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type"))
OUTPUT, OUTPUT_BIAS = "lm_head.decoder.weight", "lm_head.bias"
OURS = "encoder.sentence_encoder."


def read_roberta_config(path: Path) -> dict[str, Any]:
    """`config.json` of a RoBERTa that fairseq's computes; otherwise ValueError."""
    return read_config(path, FIXED, NUMBERS, "fairseq's RoBERTa")


def expected_shapes(config: dict[str, Any], with_head: bool) -> dict[str, tuple[int, ...]]:
    """Name, without `roberta.`, and shape of every tensor that is converted."""
    width, inner, rows = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes: dict[str, tuple[int, ...]] = {TABLE: (rows, width), TYPES: (1, width)}
    shapes[POSITIONS] = (config["max_position_embeddings"], width)
    shapes |= norm_shapes("embeddings.LayerNorm", width)
    for number in range(config["num_hidden_layers"]):
        for theirs in LAYER:
            name = f"encoder.layer.{number}.{theirs}"
            if theirs.endswith("LayerNorm"):
                shapes |= norm_shapes(name, width)
            else:
                sizes = {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
                shapes |= linear_shapes(name, *sizes.get(theirs, (width, width)))
    if with_head:
        shapes |= linear_shapes("lm_head.dense", width, width) | norm_shapes("lm_head.layer_norm", width)
        shapes[OUTPUT_BIAS] = (rows,)
    return shapes


def convert_weights(weights: dict[str, Tensor], config: dict[str, Any]) -> tuple[dict[str, Tensor], list[str]]:
    """The state of fairseq's RoBERTa, and what was left out or changed on the way, in words.

    Raises:
        ValueError: a head of a fine-tuned model, an output table of its own, or tensors that are missing, unknown or of
            another shape.
    """
    weights, report = {name.removeprefix("roberta."): tensor for name, tensor in weights.items()}, []
    for name in [name for name in weights if name.endswith((".position_ids", ".token_type_ids"))]:
        del weights[name]  # numbers in order, no weights
    if pooler := [name for name in weights if name.startswith("pooler.")]:
        report.append(f"left out, fairseq's RoBERTa has no pooler: {', '.join(sorted(pooler))}")
        weights = {name: tensor for name, tensor in weights.items() if name not in pooler}
    heads = sorted(name for name in weights if not name.startswith(("embeddings.", "encoder.", "lm_head.")))
    if heads:
        raise ValueError(
            f"{len(heads)} tensors are of no pre-trained RoBERTa: {', '.join(heads[:8])}; a head for another task is "
            "not converted: save the model without it (model.roberta.save_pretrained)"
        )
    with_head = any(name.startswith("lm_head.") for name in weights)
    if with_head:
        _tie_output(weights)
    else:
        report.append("no lm_head in the folder: a masked-LM head will be newly initialised")
    check_tensors(weights, expected_shapes(config, with_head))
    if weights[TYPES].any():
        weights[POSITIONS] = weights[POSITIONS] + weights[TYPES]
        report.append("the token type's row is not zero: it was added to every position")
    return rename(weights, with_head), report


def _tie_output(weights: dict[str, Tensor]) -> None:
    """Takes the copies that belong to the masked-LM head out of `weights`, in place."""
    table = {name: weights[name] for name in (TABLE, OUTPUT) if name in weights}
    bias = {name: weights[name] for name in (OUTPUT_BIAS, "lm_head.decoder.bias") if name in weights}
    for copies in (table, bias):
        if copies:
            one_of(copies, "the output of ours shares it")
    weights.pop(OUTPUT, None)
    copy = weights.pop("lm_head.decoder.bias", None)
    if copy is not None:  # stored under this name alone by some versions
        weights.setdefault(OUTPUT_BIAS, copy)


def rename(weights: dict[str, Tensor], with_head: bool) -> dict[str, Tensor]:
    """fairseq's names for tensors that have passed `check_tensors`."""
    embeddings = {TABLE: "embed_tokens.weight", POSITIONS: "embed_positions.weight"}
    state: dict[str, Tensor] = {}
    for theirs, tensor in weights.items():
        stem, _, kind = theirs.rpartition(".")
        if theirs in embeddings:
            state[OURS + embeddings[theirs]] = tensor
        elif stem == "embeddings.LayerNorm":
            state[f"{OURS}layernorm_embedding.{kind}"] = tensor
        elif theirs.startswith("encoder.layer."):
            number, part = stem.removeprefix("encoder.layer.").split(".", 1)
            state[f"{OURS}layers.{number}.{LAYER[part]}.{kind}"] = tensor
        elif theirs.startswith("lm_head."):
            state[f"encoder.{theirs}"] = tensor
    if with_head:
        state["encoder.lm_head.weight"] = state[f"{OURS}embed_tokens.weight"]
    return state


def size_flags(config: dict[str, Any]) -> list[str]:
    """`hat_roberta`: the named architecture nearest to `config` and the flags in which it differs."""
    flags = {**SIZES, "num_hidden_layers": "encoder-layers"}
    choices = []
    for name, preset in PRESETS.items():
        differ = [
            word
            for (key, flag), default in zip(flags.items(), preset, strict=True)
            if config[key] != default
            for word in (f"--{flag}", str(config[key]))
        ]
        choices.append(["--arch", name, *differ])
    positions = ["--max-positions", str(config["max_position_embeddings"] - UNUSED_POSITIONS)]
    return min(choices, key=len) + positions + epsilon_flag(config)


def epsilon_flag(config: dict[str, Any]) -> list[str]:
    same = config["layer_norm_eps"] == EPSILON
    return [] if same else ["--layer-norm-eps", str(config["layer_norm_eps"])]


def hierarchical_flags(config: dict[str, Any]) -> list[str]:
    """`hierarchical_transformer` with as many layers, every third between segments, as Chalkidis et al. 2022 start."""
    layers = config["num_hidden_layers"]
    positions = config["max_position_embeddings"] - UNUSED_POSITIONS
    layout = "|".join("SD" if number % 3 == 2 or number == layers - 1 else "S" for number in range(layers))
    flags = ["--arch", "hierarchical_transformer", "--layout", f"'{layout}'"]
    flags += ["--segment-length", str(min(128, positions)), "--max-segments", str(min(32, positions))]
    return (
        flags + [word for key, flag in SIZES.items() for word in (f"--{flag}", str(config[key]))] + epsilon_flag(config)
    )
