"""Converts Hugging Face's RoBERTa (Liu et al. 2019) for fairseq's RoBERTa, `hat_roberta`, `hierarchical_transformer`.

XLM-RoBERTa (Conneau et al. 2020) is the same network with another vocabulary.

The two libraries differ in names, and in the token type: Hugging Face adds its one row to every token, fairseq has
none, so the row is added to all positions (in published weights it is zero). The result is what `hat_roberta` and
`hierarchical_transformer` start from, each with its own rules (`models/encoder_model.py`).
"""

from typing import Any

from torch import Tensor

from ..data.dictionary import SPECIAL_IDS
from .hugging_face import PLAIN
from .rename import Converted, RenameTable, meta_model, nearest_architecture, rename_state

BERT: dict[str, Any] = {"hidden_act": "gelu", "type_vocab_size": 1, "position_embedding_type": "absolute"} | SPECIAL_IDS
FIXED = {"model_type": "roberta"} | BERT | {"is_decoder": False, "add_cross_attention": False}
FIXED_XLM = FIXED | {"model_type": "xlm-roberta"}
SIZES = {  # of transformers -> own
    "hidden_size": "encoder_embed_dim",
    "intermediate_size": "encoder_ffn_embed_dim",
    "num_attention_heads": "encoder_attention_heads",
    "layer_norm_eps": "layer_norm_eps",
}
FLAT, SEGMENTS = ("hat_roberta_base", "hat_roberta_large"), ("hierarchical_transformer",)  # architectures
DEFAULTS = {"layer_norm_eps": 1e-12}  # of transformers, where config.json does not state it
REQUIRED = (*SIZES, "vocab_size", "num_hidden_layers", "max_position_embeddings")
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
LM_HEAD = {name: f"encoder.{name}" for name in ("lm_head.dense", "lm_head.layer_norm", "lm_head")}
ENCODER = "encoder.sentence_encoder."
EMBEDDING, POSITIONS = f"{ENCODER}embed_tokens.weight", f"{ENCODER}embed_positions.weight"
NO_WEIGHTS = (".position_ids", ".token_type_ids")  # consecutive numbers
TYPES = "embeddings.token_type_embeddings.weight"
COPIES = dict.fromkeys(("embeddings.word_embeddings.weight", "lm_head.decoder.weight"), EMBEDDING)
COPIES["lm_head.decoder.bias"] = "encoder.lm_head.bias"
TABLE = RenameTable(
    LM_HEAD
    | {
        "embeddings.word_embeddings": f"{ENCODER}embed_tokens",
        "embeddings.position_embeddings": f"{ENCODER}embed_positions",
        "embeddings.LayerNorm": f"{ENCODER}layernorm_embedding",
    }
    | {f"encoder.layer.{{}}.{other}": f"{ENCODER}layers.{{}}.{own}" for other, own in LAYER.items()},
    COPIES,
)
# Settings with which transformers' RoBERTa computes the same.
SAME = PLAIN | {
    "no_scale_embedding": True,
    "activation_fn": "gelu",
    "activation_dropout": 0.0,
    "untie_weights_roberta": False,
    "pooler_activation_fn": "tanh",
}


def convert(weights: dict[str, Tensor], config: dict[str, Any], starts: list[list[str]] | None = None) -> Converted:
    """Returns RoBERTa under fairseq's names, with or without masked-LM head; ValueError names a wrong tensor.

    `starts`: ways to start from it, the first with a `hat_roberta`; None: `start_flags`.
    """
    report = []
    weights = {name.removeprefix("roberta."): tensor for name, tensor in weights.items()}
    if pooler := sorted(name for name in weights if name.startswith("pooler.")):
        report.append(f"skipped, fairseq's RoBERTa has no pooler: {', '.join(pooler)}")
    weights = {name: t for name, t in weights.items() if name not in pooler and not name.endswith(NO_WEIGHTS)}
    types = weights.pop(TYPES, None)
    if types is None or types.shape != (1, config["hidden_size"]):
        raise ValueError(f"{TYPES} is missing or is not one row of {config['hidden_size']}")
    starts = starts or start_flags(config)
    model = meta_model([*starts[0], "--no-hierarchy"], weights, config["vocab_size"])
    state = rename_state(weights, TABLE, model, optional="encoder.lm_head.")
    if types.any():
        state[POSITIONS] = state[POSITIONS] + types
        report.append("the token type's row is not zero: it was added to every position")
    if "encoder.lm_head.weight" not in state:
        report.append("no lm_head in the folder: a masked-LM head will be newly initialised")
    report.append("the parameters of the hierarchy are initialised when a training starts, and its log lists them")
    return Converted(state, starts, report)


def encoder_sizes(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the sizes of the layers, and their number, under our names."""
    return {own: config[other] for other, own in SIZES.items()} | {"encoder_layers": config["num_hidden_layers"]}


def start_flags(
    config: dict[str, Any], flat_names: tuple[str, ...] = FLAT, segment_names: tuple[str, ...] = SEGMENTS
) -> list[list[str]]:
    """Returns the nearest named `hat_roberta`, and `hierarchical_transformer`, with the flags in which they differ.

    The latter has as many layers, every third between segments, as Chalkidis et al. 2022 start.
    """
    layers, positions = config["num_hidden_layers"], config["max_position_embeddings"] - UNUSED_POSITIONS
    sizes = encoder_sizes(config)
    flat = nearest_architecture(flat_names, sizes)
    del sizes["encoder_layers"]  # those of the layout
    layout = "|".join("SD" if number % 3 == 2 or number == layers - 1 else "S" for number in range(layers))
    hierarchical = nearest_architecture(segment_names, sizes) + ["--layout", layout]
    hierarchical += ["--segment-length", str(min(128, positions)), "--max-segments", str(min(32, positions))]
    return [[*flat, "--max-positions", str(positions)], hierarchical]


def written_name(own: str) -> str:
    """Returns the name of a tensor in a RobertaForMaskedLM or RobertaForSequenceClassification."""
    if own.startswith("classification_heads."):
        return "classifier." + own.split(".", 2)[2]
    other = TABLE.other_name(own)
    assert other is not None, own
    return other if other.startswith("lm_head.") else f"roberta.{other}"


def written_config(settings: dict[str, Any], purpose: str) -> dict[str, Any]:
    """Returns config.json of a RoBERTa, for settings that have `SAME`; `purpose`: the end of its class name."""
    return {
        "architectures": [f"Roberta{purpose}"],
        "model_type": "roberta",
        **{other: settings[own] for other, own in SIZES.items()},
        "num_hidden_layers": settings["encoder_layers"],
        "hidden_act": "gelu",
        "hidden_dropout_prob": settings["dropout"],
        "attention_probs_dropout_prob": settings["attention_dropout"],
        "classifier_dropout": settings["pooler_dropout"],
        "max_position_embeddings": settings["max_positions"] + UNUSED_POSITIONS,
        "type_vocab_size": 1,
    }
