"""Converts Hugging Face's RoBERTa (Liu et al. 2019) for fairseq's RoBERTa, `hat_roberta`, `hierarchical_transformer`.

XLM-RoBERTa (Conneau et al. 2020) is the same network with another vocabulary.

The two libraries differ in names, and in the token type: Hugging Face adds its one row to every token, fairseq has
none, so the row is added to all positions (in published weights it is zero). The result is what `hat_roberta` and
`hierarchical_transformer` start from, each with its own rules (`models/encoder_model.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.dictionary import SPECIAL_IDS
from ..data.tokenizer_bpe import TokenizerBpe
from .hugging_face import PLAIN
from .rename import Converted, meta_model, nearest_architecture
from .tables import (
    EMBEDDING,
    ENCODER,
    LM_HEAD,
    TYPE,
    Named,
    Table,
    by_table,
    fingerprint_of,
    fit,
    other_name,
    rows_of_tokenizer,
)

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
POSITIONS = f"{ENCODER}embed_positions.weight"
OF_LM_HEAD = {name: f"encoder.{name}" for name in ("lm_head", "lm_head.dense", "lm_head.layer_norm")}
OF_LM_HEAD |= {"lm_head.decoder": LM_HEAD}
EMBEDDINGS = {
    "embeddings.word_embeddings": EMBEDDING,
    "embeddings.position_embeddings": f"{ENCODER}embed_positions",
    "embeddings.token_type_embeddings": TYPE,
    "embeddings.LayerNorm": f"{ENCODER}layernorm_embedding",
}
LAYERS = {f"encoder.layer.{{}}.{other}": f"{ENCODER}layers.{{}}.{own}" for other, own in LAYER.items()}
TABLE = Table(
    EMBEDDINGS | LAYERS | OF_LM_HEAD,
    prefixes=("roberta.",),
    left_out={
        r"pooler\.": "the pooler, which fairseq's RoBERTa does not have",
        r"(classifier|qa_outputs)\.": "heads for other tasks",
    },
)
# Settings with which transformers' RoBERTa computes the same.
SAME = PLAIN | {
    "no_scale_embedding": True,
    "activation_fn": "gelu",
    "activation_dropout": 0.0,
    "untie_weights_roberta": False,
    "pooler_activation_fn": "tanh",
}


@dataclass(frozen=True)
class Learned:
    """A family with learned positions: its table, and how its settings become flags.

    Attributes:
        starts: makes of the settings ways to start, the first with a `hat_roberta`.
        unused: rows of its table of positions before that of the first token.
        has_types: it has token types, of which every token has the first one here.
    """

    table: Table
    starts: Callable[[dict[str, Any]], list[list[str]]]
    unused: int = UNUSED_POSITIONS
    has_types: bool = True

    def convert(
        self, weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe | None = None
    ) -> Converted:
        """Returns the encoder under fairseq's names, with or without masked-LM head; ValueError names a wrong tensor.

        `tokenizer`: whose order its rows have; None: they are in the order of the dictionary.
        """
        report: list[str] = []
        named = self.named(weights, config, tokenizer, report)
        starts = self.starts(config | {"max_position_embeddings": len(named[POSITIONS][1])})
        rows = config["vocab_size"] if tokenizer is None else len(tokenizer.rows)
        state = fit(named, self.table, meta_model([*starts[0], "--no-hierarchy"], weights, rows), f"{LM_HEAD}.")
        if f"{LM_HEAD}.weight" not in state:
            report.append("no lm_head in the folder: a masked-LM head will be newly initialised")
        report.append("the parameters of the hierarchy are initialised when a training starts, and its log lists them")
        return Converted(state if tokenizer is None else state | fingerprint_of(tokenizer), starts, report)

    def named(
        self, weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe | None, report: list[str]
    ) -> Named:
        """Returns the tensors by our names; the row of the first token type is added to all positions."""
        named, width, types = by_table(weights, self.table, report), config["hidden_size"], f"{TYPE}.weight"
        sizes = {f"{EMBEDDING}.weight": config["vocab_size"], POSITIONS: config["max_position_embeddings"]}
        sizes |= {types: config.get("type_vocab_size", 1)} if self.has_types else {}
        for own, rows in sizes.items():
            if own not in named or named[own][1].shape != (rows, width):
                name = other_name(own, self.table.rules)
                raise ValueError(f"{name} is missing or is not {rows} rows of {width}, as config.json says")
        if sizes.get(types, 1) > 1:
            report.append("skipped, the token types beyond the first: a pair of texts is told apart by </s> </s> alone")
        if tokenizer is not None:
            rows_of_tokenizer(named, config["vocab_size"], tokenizer, report)
        origin, table = named[POSITIONS]
        if self.has_types and (first := named.pop(types)[1][0]).any():
            table = table.float() + first.float()  # as transformers adds weights of 16 bits in fp32
            report.append("the row of the first token type was added to every position")
        named[POSITIONS] = origin, torch.cat([table.new_zeros(UNUSED_POSITIONS - self.unused, width), table])
        return named


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
    other = other_name(own, TABLE.rules)
    assert other != own, own
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


ROBERTA = Learned(TABLE, start_flags)
