"""Hugging Face RoBERTa for fairseq's RoBERTa, `hat_roberta` and `hierarchical_transformer` (Liu et al. 2019).

The two libraries differ in names, and in the token type: Hugging Face adds its one row to every token, fairseq has
none, so the row is added to all positions (in published weights it is zero). The result is what `hat_roberta` and
`hierarchical_transformer` start from, each with its own rules (`models/loading/`).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .hugging_face import SPECIAL_IDS
from .rename import Converted, RenameTable, rename_state
from .target import meta_model, nearest_architecture, vocabulary_rows

FIXED = {
    "model_type": "roberta",
    "hidden_act": "gelu",
    "type_vocab_size": 1,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
} | SPECIAL_IDS
SIZES = {  # theirs -> ours
    "hidden_size": "encoder_embed_dim",
    "intermediate_size": "encoder_ffn_embed_dim",
    "num_attention_heads": "encoder_attention_heads",
}
NUMBERS = (*SIZES, "vocab_size", "num_hidden_layers", "max_position_embeddings", "layer_norm_eps")
UNUSED_POSITIONS = 2  # both libraries start after the row of the padding, which is 1
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
LM_HEAD = {
    "lm_head.dense": "encoder.lm_head.dense",
    "lm_head.layer_norm": "encoder.lm_head.layer_norm",
    "lm_head": "encoder.lm_head",
}
OURS = "encoder.sentence_encoder."
EMBEDDING, POSITIONS = f"{OURS}embed_tokens.weight", f"{OURS}embed_positions.weight"
TYPES = "embeddings.token_type_embeddings.weight"
COPIES = {
    "embeddings.word_embeddings.weight": EMBEDDING,
    "lm_head.decoder.weight": EMBEDDING,
    "lm_head.decoder.bias": "encoder.lm_head.bias",
}
TABLE = RenameTable(
    LM_HEAD
    | {
        "embeddings.word_embeddings": f"{OURS}embed_tokens",
        "embeddings.position_embeddings": f"{OURS}embed_positions",
        "embeddings.LayerNorm": f"{OURS}layernorm_embedding",
    }
    | {f"encoder.layer.{{}}.{theirs}": f"{OURS}layers.{{}}.{ours}" for theirs, ours in LAYER.items()},
    COPIES,
)


def convert(weights: dict[str, Tensor], config: dict[str, Any]) -> Converted:
    """RoBERTa under fairseq's names, with or without its masked-LM head.

    Raises:
        ValueError: a head of a fine-tuned model, an output table of its own, or another tensor that does not fit.
    """
    weights, report = {name.removeprefix("roberta."): tensor for name, tensor in weights.items()}, []
    for name in [name for name in weights if name.endswith((".position_ids", ".token_type_ids"))]:
        del weights[name]  # consecutive numbers, no weights
    if pooler := sorted(name for name in weights if name.startswith("pooler.")):
        report.append(f"left out, fairseq's RoBERTa has no pooler: {', '.join(pooler)}")
        weights = {name: tensor for name, tensor in weights.items() if name not in pooler}
    refuse_heads(weights)
    types = weights.pop(TYPES, None)
    if types is None or types.shape != (1, config["hidden_size"]):
        raise ValueError(f"{TYPES} is missing or is not one row of {config['hidden_size']}")
    rows = vocabulary_rows(weights, COPIES, config)
    flags = size_flags(config)
    model = meta_model([*flags, "--no-hierarchy"], weights, rows)
    state = rename_state(weights, TABLE, model, optional="encoder.lm_head.")
    if types.any():
        state[POSITIONS] = state[POSITIONS] + types
        report.append("the token type's row is not zero: it was added to every position")
    if "encoder.lm_head.weight" not in state:
        report.append("no lm_head in the folder: a masked-LM head will be newly initialised")
    report.append("newly initialised when training starts, and listed in its log: what only the hierarchy has")
    return Converted(state, [flags, hierarchical_flags(config)], report)


def refuse_heads(weights: dict[str, Tensor]) -> None:
    heads = sorted(name for name in weights if not name.startswith(("embeddings.", "encoder.", "lm_head.")))
    if heads:
        raise ValueError(
            f"{len(heads)} tensors are of no pre-trained RoBERTa: {', '.join(heads[:8])}; a head for another task is "
            "not converted: save the model without it (model.roberta.save_pretrained)"
        )


def size_flags(config: dict[str, Any]) -> list[str]:
    """`hat_roberta`: the named architecture nearest to `config`, and the flags in which it differs."""
    sizes = {ours: config[theirs] for theirs, ours in SIZES.items()} | {"encoder_layers": config["num_hidden_layers"]}
    flags = nearest_architecture(("hat_roberta_base", "hat_roberta_large"), sizes)
    return [*flags, "--max-positions", str(config["max_position_embeddings"] - UNUSED_POSITIONS), *epsilon(config)]


def hierarchical_flags(config: dict[str, Any]) -> list[str]:
    """`hierarchical_transformer` with as many layers, every third between segments, as Chalkidis et al. 2022 start."""
    layers, positions = config["num_hidden_layers"], config["max_position_embeddings"] - UNUSED_POSITIONS
    layout = "|".join("SD" if number % 3 == 2 or number == layers - 1 else "S" for number in range(layers))
    flags = ["--arch", "hierarchical_transformer", "--layout", layout]
    flags += ["--segment-length", str(min(128, positions)), "--max-segments", str(min(32, positions))]
    for theirs, ours in SIZES.items():
        flags += [f"--{ours.replace('_', '-')}", str(config[theirs])]
    return [*flags, *epsilon(config)]


def epsilon(config: dict[str, Any]) -> list[str]:
    """The flag for the epsilon of layer norms; fairseq's default is that of RoBERTa's own weights."""
    return [] if config["layer_norm_eps"] == 1e-5 else ["--layer-norm-eps", str(config["layer_norm_eps"])]
