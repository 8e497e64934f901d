"""Encoders that compute what BERT or RoBERTa compute: DistilBERT, ELECTRA, CamemBERT; XLM-RoBERTa by its tokenizer.

DistilBERT (Sanh et al. 2019) has no token types, ELECTRA (Clark et al. 2020) another head. CamemBERT (Martin et al.
2020) is RoBERTa with the rows of a sentencepiece model in another order.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..data.tokenizer_bpe import TokenizerBpe
from . import bert, roberta
from .rename import Converted
from .tables import ENCODER, LM_HEAD, TYPE, Table

LAYER, OURS = "transformer.layer.{}.", f"{ENCODER}layers.{{}}."
WITHOUT_TYPES = {name: own for name, own in roberta.EMBEDDINGS.items() if own != TYPE}
DISTILBERT = roberta.Learned(
    Table(
        WITHOUT_TYPES
        | {f"{LAYER}attention.{part}_lin": f"{OURS}self_attn.{part}_proj" for part in ("q", "k", "v", "out")}
        | {
            f"{LAYER}sa_layer_norm": f"{OURS}self_attn_layer_norm",
            f"{LAYER}ffn.lin1": f"{OURS}fc1",
            f"{LAYER}ffn.lin2": f"{OURS}fc2",
            f"{LAYER}output_layer_norm": f"{OURS}final_layer_norm",
            "vocab_transform": f"{LM_HEAD}.dense",
            "vocab_layer_norm": f"{LM_HEAD}.layer_norm",
            "vocab_projector": LM_HEAD,
        },
        prefixes=("distilbert.",),
        left_out={r"(pre_classifier|classifier|qa_outputs)\.": "heads for other tasks"},
    ),
    bert.start_flags,
    unused=0,
    has_types=False,
)
ELECTRA = roberta.Learned(
    Table(
        roberta.EMBEDDINGS
        | roberta.LAYERS
        | {
            "generator_predictions.dense": f"{LM_HEAD}.dense",
            "generator_predictions.LayerNorm": f"{LM_HEAD}.layer_norm",
            "generator_lm_head": LM_HEAD,
        },
        prefixes=("electra.",),
        left_out={
            r"discriminator_predictions\.": "the discriminator",
            r"(classifier|qa_outputs)\.": "heads for other tasks",
        },
    ),
    bert.start_flags,
    unused=0,
)


def electra(weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe) -> Converted:
    """Returns the encoder of ELECTRA under fairseq's names; ValueError for embeddings of another width."""
    if config.get("embedding_size", config["hidden_size"]) != config["hidden_size"]:
        raise ValueError(
            f"embedding_size is {config['embedding_size']}, and the layers have {config['hidden_size']} channels: only "
            "an ELECTRA without a map between them can be converted, such as base and large"
        )
    return ELECTRA.convert(weights, config, tokenizer)


def names_of_distilbert(record: Mapping[str, Any]) -> dict[str, Any]:
    """Gives settings of DistilBERT the names of BERT's."""
    names = {"dim": "hidden_size", "hidden_dim": "intermediate_size", "n_heads": "num_attention_heads"}
    names |= {"n_layers": "num_hidden_layers", "activation": "hidden_act"}
    return {names.get(name, name): value for name, value in record.items()} | {"layer_norm_eps": 1e-12}
