"""Encoders that compute what BERT or RoBERTa compute: DistilBERT, ELECTRA, CamemBERT; XLM-RoBERTa by its tokenizer.

DistilBERT (Sanh et al. 2019) has no token types, ELECTRA (Clark et al. 2020) another head. CamemBERT (Martin et al.
2020) is RoBERTa with the rows of a sentencepiece model in another order.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..data.dictionary import SPECIAL, fingerprint
from ..data.tokenizer_bpe import MASK, TokenizerBpe
from . import bert, roberta
from .bert import SOURCE, TYPES, WORDS
from .rename import Converted
from .tables import Table, by_table

MLM, LAYER = "cls.predictions", "encoder.layer.{}."
TRANSFORM = f"{MLM}.transform"
EMBEDDINGS = ("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.LayerNorm")
DISTILBERT = Table(
    {name: name for name in EMBEDDINGS}
    | {
        f"transformer.layer.{{}}.attention.{part[0]}_lin": f"{LAYER}attention.self.{part}"
        for part in ("query", "key", "value")
    }
    | {
        "transformer.layer.{}.attention.out_lin": f"{LAYER}attention.output.dense",
        "transformer.layer.{}.sa_layer_norm": f"{LAYER}attention.output.LayerNorm",
        "transformer.layer.{}.ffn.lin1": f"{LAYER}intermediate.dense",
        "transformer.layer.{}.ffn.lin2": f"{LAYER}output.dense",
        "transformer.layer.{}.output_layer_norm": f"{LAYER}output.LayerNorm",
        "vocab_transform": f"{TRANSFORM}.dense",
        "vocab_layer_norm": f"{TRANSFORM}.LayerNorm",
        "vocab_projector": f"{MLM}.decoder",
    },
    prefixes=("distilbert.",),
    left_out={r"(pre_classifier|classifier|qa_outputs)\.": "heads for other tasks"},
)
ELECTRA = Table(
    {name: name for name in (*EMBEDDINGS, "embeddings.token_type_embeddings")}
    | {f"{LAYER}{name}": f"{LAYER}{name}" for name in roberta.LAYER}
    | {
        "generator_predictions.dense": f"{TRANSFORM}.dense",
        "generator_predictions.LayerNorm": f"{TRANSFORM}.LayerNorm",
        "generator_lm_head": f"{MLM}.decoder",
    },
    prefixes=("electra.",),
    left_out={
        r"discriminator_predictions\.": "the discriminator",
        r"(classifier|qa_outputs)\.": "heads for other tasks",
    },
)


def distilbert(weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe) -> Converted:
    """Returns DistilBERT under fairseq's names; see `bert.convert`."""
    none = torch.zeros(1, config["hidden_size"])
    return _as_bert(weights, config | {"type_vocab_size": 1}, tokenizer, DISTILBERT, {TYPES: none})


def electra(weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe) -> Converted:
    """Returns the encoder of ELECTRA under fairseq's names; ValueError for embeddings of another width."""
    if config.get("embedding_size", config["hidden_size"]) != config["hidden_size"]:
        raise ValueError(
            f"embedding_size is {config['embedding_size']}, and the layers have {config['hidden_size']} channels: only "
            "an ELECTRA without a map between them can be converted, such as base and large"
        )
    return _as_bert(weights, config, tokenizer, ELECTRA, {})


def _as_bert(
    weights: dict[str, Tensor],
    config: dict[str, Any],
    tokenizer: TokenizerBpe,
    table: Table,
    more: Mapping[str, Tensor],
) -> Converted:
    report: list[str] = []
    named = by_table(weights, table, report)
    converted = bert.convert({name: tensor for name, (_, tensor) in named.items()} | dict(more), config, tokenizer)
    return Converted(converted.model, converted.starts, [*report, *converted.report])


def names_of_distilbert(record: Mapping[str, Any]) -> dict[str, Any]:
    """Gives settings of DistilBERT the names of BERT's."""
    names = {"dim": "hidden_size", "hidden_dim": "intermediate_size", "n_heads": "num_attention_heads"}
    names |= {"n_layers": "num_hidden_layers", "activation": "hidden_act"}
    return {names.get(name, name): value for name, value in record.items()} | {"layer_norm_eps": 1e-12}


def with_tokenizer(weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe) -> Converted:
    """Returns a RoBERTa under fairseq's names, whose rows are in the order of the dictionary of its tokenizer."""
    weights = {name.removeprefix("roberta."): tensor for name, tensor in weights.items()}
    if WORDS not in weights or len(weights[WORDS]) != config["vocab_size"]:
        raise ValueError(f"{WORDS} is missing or has not the {config['vocab_size']} rows that config.json says")
    weights, report = bert.in_order(weights, config["vocab_size"], tokenizer)
    converted = roberta.convert(weights, config | {"vocab_size": len(tokenizer.rows)})
    model = converted.model | {SOURCE: torch.tensor(fingerprint([*SPECIAL, *tokenizer.symbols, MASK]))}
    return Converted(model, converted.starts, [*report, *converted.report])
