"""Converts Hugging Face's BART (Lewis et al. 2019) for fairseq's BART and `hat_bart`, and mBART (Liu et al. 2020).

For BartModel and BartForConditionalGeneration. The two libraries name the parameters of the layers alike and use the
same rows of positions (row i + 2 is position i), so the table holds the embedding only. mBART is pre-norm, with scaled
embeddings and a sentencepiece vocabulary, in which language codes are entries. Data of this package has none of them.
"""

from typing import Any

import torch
from torch import Tensor

from ..data.dictionary import SPECIAL_IDS
from ..data.tokenizer_bpe import TokenizerBpe
from .hugging_face import PLAIN
from .rename import Converted, meta_model, nearest_architecture
from .tables import Table, by_table, fit

# What fairseq's BART fixes; older config.json files spell some of these out.
OFF = ("scale_embedding", "normalize_before", "add_final_layer_norm", "static_position_embeddings")
FIXED = {"model_type": "bart", "activation_function": "gelu", "normalize_embedding": True} | SPECIAL_IDS
FIXED |= dict.fromkeys(OFF, False)
MBART = {"model_type": "mbart", "normalize_embedding": True, "static_position_embeddings": False} | SPECIAL_IDS
MBART |= dict.fromkeys(("normalize_before", "add_final_layer_norm"), True)
SIZES = {"encoder_embed_dim": "d_model", "decoder_embed_dim": "d_model"} | {  # own -> of transformers
    f"{side}_{own}": f"{side}_{other}"
    for own, other in (("ffn_embed_dim", "ffn_dim"), ("layers", "layers"), ("attention_heads", "attention_heads"))
    for side in ("encoder", "decoder")
}
REQUIRED = (*SIZES.values(), "vocab_size", "max_position_embeddings")
EMBEDDING = "encoder.embed_tokens.weight"
TABLE = Table(
    {"shared": "encoder.embed_tokens", "lm_head": "decoder.output_projection"}, prefixes=("model.",), strict=False
)
TABLES = ("shared.weight", EMBEDDING, "decoder.embed_tokens.weight", "lm_head.weight")  # of tokens
# Settings with which transformers' BART computes the same.
SAME = PLAIN | {
    "decoder_learned_pos": True,
    "decoder_normalize_before": False,
    "share_all_embeddings": True,
    "layer_norm_eps": 1e-5,
    "decoder_kv_heads": None,
}


def convert(weights: dict[str, Tensor], config: dict[str, Any]) -> Converted:
    """Returns BART under fairseq's names; ValueError names the tensor that does not fit."""
    weights = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    bias = weights.pop("final_logits_bias", None)
    if bias is not None and bool(bias.ne(0).any()):
        raise ValueError("final_logits_bias is not zero, and fairseq's BART has no bias on its output")
    flags, rows = architecture_flags(config), config["vocab_size"]
    state = fit(by_table(weights, TABLE, []), TABLE, meta_model([*flags, "--no-hierarchy"], weights, rows))
    for side in ("encoder", "decoder"):
        state[f"{side}.version"] = torch.tensor([3.0])  # the layout that fairseq writes since 2018; none means 1
    note = f"embedding rows: {rows} (the dictionary of the data must have {rows} entries, or {rows - 1} without <mask>)"
    return Converted(state, [flags], [note])


def mbart(weights: dict[str, Tensor], config: dict[str, Any], tokenizer: TokenizerBpe) -> Converted:
    """Returns mBART under fairseq's names; the rows of tokens are in the order of the dictionary."""
    rows = [row for row in tokenizer.rows if row is not None]
    tables = {name for name in weights if name.removeprefix("model.") in TABLES}
    weights = {name: tensor[rows] if name in tables else tensor for name, tensor in weights.items()}
    if (name := config.get("activation_function")) not in ("gelu", "relu"):
        raise ValueError(f"activation_function is {name!r:.80}, only gelu or relu can be converted")
    return convert(weights, config | {"vocab_size": len(rows)})


def architecture_flags(config: dict[str, Any]) -> list[str]:
    """Returns the named architecture nearest to `config`, the flags in which it differs, and the position limits."""
    sizes = {own: config[other] for own, other in SIZES.items()} | {
        "activation_fn": config.get("activation_function", "gelu")
    }
    positions = str(config["max_position_embeddings"])
    names = ("hat_mbart_large",) if config.get("model_type") == "mbart" else ("hat_bart_large", "hat_bart_base")
    if len(names) == 1 and not config.get("scale_embedding", False):
        sizes["no_scale_embedding"] = True
    flags = nearest_architecture(names, sizes)
    return [*flags, "--max-source-positions", positions, "--max-target-positions", positions]


def written_name(own: str) -> str:
    """Returns the name of a tensor in a BartForConditionalGeneration."""
    return "model.shared.weight" if own == EMBEDDING else f"model.{own}"


def written_config(settings: dict[str, Any], positions: int) -> dict[str, Any]:
    """Returns config.json of a BartForConditionalGeneration, for settings that have `SAME`."""
    return {
        "architectures": ["BartForConditionalGeneration"],
        "model_type": "bart",
        **{other: settings[own] for own, other in SIZES.items()},
        **{name: settings[name] for name in ("dropout", "attention_dropout", "activation_dropout")},
        "activation_function": settings["activation_fn"],
        "scale_embedding": not settings["no_scale_embedding"],
        "max_position_embeddings": positions,
    }
