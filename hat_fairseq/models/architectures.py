"""The architectures: a table of sizes for each.

An architecture sets what the user has not set. HAT: Rohde et al. 2021, section 4 (471M parameters for `hat_bart_large`
at 3,072 source positions, its baseline without hierarchy 408M; `hat_transformer_wmt_en_de` 260M and 222M,
`hat_transformer_ted_zh_en` 64M and 55M; `hat_roberta_base` 153.1M and 124.7M, `hat_roberta_large` 456.2M and 355.4M).
Chalkidis et al. 2022: `hierarchical_transformer_base_4096` has 153M; `mini_1024` is I3 of their ablation.
Poolingformer: Zhang et al. 2021, section 3.2; we count its "6th to 11th" layers of 12 from 0; positions beyond the
pretrained ones are copies (`tile`), as in Longformer. ERNIE-Sparse: Liu et al. 2022, Tables 8 to 10: 128 global, 192
neighbouring and 192 random tokens. ModernBERT: Warner et al. 2024; EuroBERT: Boizard et al. 2025; nomic-bert: Nussbaum
et al. 2024; GTE: Zhang et al. 2024 (mGTE); Jina v3: Sturua et al. 2024. `_minilm` has the sizes of MiniLM-L6-H384 (Wang
et al. 2020). The `_lra_` architectures are those of Long Range Arena (Tay et al. 2021). `_tiny` is for tests and for
trying things out.
"""

from argparse import Namespace
from typing import Any

from fairseq.models import register_model_architecture

from ..former import VERSION
from ..networks import NETWORKS
from ..networks.config import ATTENTIONS, flags_of
from ..networks.roberta import DEFAULT_POSITIONS
from . import encoder_model, hat_transformer  # noqa: F401 - register the models

ArchFlags = dict[str, Any]


def encoder_flags(width: int, ffn: int, heads: int, layers: int | None = None) -> ArchFlags:
    sizes = {"encoder_embed_dim": width, "encoder_ffn_embed_dim": ffn, "encoder_attention_heads": heads}
    return sizes if layers is None else sizes | {"encoder_layers": layers}


def both(width: int, ffn: int, heads: int, layers: int | None = None) -> ArchFlags:
    """Returns the sizes of encoder and decoder."""
    sizes = encoder_flags(width, ffn, heads, layers)
    return sizes | {name.replace("encoder", "decoder"): value for name, value in sizes.items()}


TRANSFORMER: ArchFlags = {"max_source_positions": 1024, "max_target_positions": 1024}
BART: ArchFlags = TRANSFORMER | {
    "encoder_learned_pos": True,
    "decoder_learned_pos": True,
    "share_all_embeddings": True,
    "layernorm_embedding": True,
    "no_scale_embedding": True,
    "activation_fn": "gelu",
}
ROBERTA: ArchFlags = {
    "encoder_learned_pos": True,
    "layernorm_embedding": True,
    "no_scale_embedding": True,
    "activation_fn": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.1,
}
WMT: ArchFlags = (
    TRANSFORMER | both(1024, 4096, 16) | {"share_all_embeddings": True, "activation_fn": "gelu", "dropout": 0.1}
)
BART_BASE, BART_LARGE = (BART | both(768, 3072, 12, 6), BART | both(1024, 4096, 16, 12))
ROBERTA_BASE, ROBERTA_LARGE = (ROBERTA | encoder_flags(768, 3072, 12, 12), ROBERTA | encoder_flags(1024, 4096, 16, 24))
MINILM = {"layer_norm_eps": 1e-12}
ROBERTA_MINILM = ROBERTA | encoder_flags(384, 1536, 12, 6) | MINILM
ROBERTA_TINY = ROBERTA | encoder_flags(64, 128, 4, 4)

# Encoders with rotary positions, without dropout, as they were trained.
ROTARY: ArchFlags = {"no_scale_embedding": True, "dropout": 0.0, "attention_dropout": 0.0}
POST_NORM: ArchFlags = ROTARY | {"layernorm_embedding": True}
MODERNBERT: ArchFlags = ROTARY | {"encoder_family": "modernbert", "encoder_attention": "window", "attention_window": 64}
MODERNBERT |= {"encoder_normalize_before": True, "layernorm_embedding": True}
MODERNBERT |= {"activation_fn": "geglu", "max_positions": 8192}
EUROBERT: ArchFlags = ROTARY | {"encoder_family": "eurobert", "encoder_normalize_before": True}
EUROBERT |= {"activation_fn": "swiglu", "max_positions": 8192, "untie_weights_roberta": True}


def poolingformer_flags(layers: str, global_tokens: str) -> ArchFlags:
    """Returns Poolingformer's attention; windows of 128 and 512, kernel 5 and stride 4 are defaults of the options."""
    pattern = {"encoder_attention": "pooling", "encoder_attention_layers": layers, "global_tokens": global_tokens}
    return {"no_hierarchy": True, "extend_positions": "tile"} | pattern


def ernie_sparse_flags(weights: str) -> ArchFlags:
    """Returns ERNIE-Sparse's attention: two global blocks at the beginning."""
    return {"sparse_first": 2, "sparse_last": 0, "representative_weights": weights}


# No representatives; one global block at either end, which is the default of the options.
BIGBIRD: ArchFlags = {"no_hierarchy": True, "encoder_attention": "block-sparse"}


def lra(width: int, ffn: int, heads: int, layers: int, positions: int, dropout: float = 0.1, **more: Any) -> ArchFlags:
    """Returns a row of Table 10; positions include `<s>` and `</s>`."""
    common = {"dropout": dropout, "attention_dropout": 0.1, "activation_dropout": dropout, "activation_fn": "gelu"}
    common |= {"encoder_normalize_before": True, "no_scale_embedding": True, "max_positions": positions}
    head = {"pooler_inner_dim": ffn, "pooler_activation_fn": "relu", "init": "xavier"}
    return encoder_flags(width, ffn, heads, layers) | common | head | more


LRA = {
    "listops": lra(512, 1024, 8, 4, 2002),
    "text": lra(256, 1024, 4, 4, 1002),
    "retrieval": lra(128, 512, 4, 4, 4002),
    "image": lra(32, 64, 1, 1, 1026, 0.3, attention_dropout=0.2, encoder_learned_pos=True),
    "pathfinder": lra(64, 64, 2, 4, 1026, 0.2, encoder_learned_pos=True, encoder_qkv_dim=32),
}
LRA_MODELS = {
    "ernie_sparse": ernie_sparse_flags("separate"),
    "bigbird": BIGBIRD,
    "transformer": {"no_hierarchy": True, "encoder_attention": "full"},
}

ARCHITECTURES: dict[str, dict[str, ArchFlags]] = {
    "hat_transformer": {
        "hat_transformer": TRANSFORMER,
        "hat_transformer_wmt_en_de": WMT,
        "hat_transformer_wmt_en_cs": WMT | {"dropout": 0.2},
        "hat_transformer_ted_zh_en": WMT | both(512, 1024, 4) | {"dropout": 0.3},
        "hat_transformer_tiny": TRANSFORMER | both(64, 128, 4, 2) | {"share_all_embeddings": True, "dropout": 0.1},
    },
    "hat_bart": {
        "hat_bart_large": BART_LARGE,
        "hat_bart_base": BART_BASE,
        "hat_mbart_large": {name: value for name, value in BART_LARGE.items() if name != "no_scale_embedding"}
        | {"encoder_normalize_before": True, "decoder_normalize_before": True},
        "hat_bart_minilm": BART | both(384, 1536, 12, 6) | MINILM,
        "poolingformer_bart_large": BART_LARGE | poolingformer_flags("6-11", "first"),
        "poolingformer_bart_base": BART_BASE | poolingformer_flags("3-5", "first"),
    },
    "hat_roberta": {
        "hat_roberta_base": ROBERTA_BASE,
        "hat_roberta_large": ROBERTA_LARGE,
        "hat_roberta_minilm": ROBERTA_MINILM,
        "hat_roberta_tiny": ROBERTA_TINY,
        "hat_modernbert_base": MODERNBERT
        | encoder_flags(768, 1152, 12, 22)
        | {"encoder_attention_layers": "1-2,4-5,7-8,10-11,13-14,16-17,19-20"},
        "hat_modernbert_large": MODERNBERT
        | encoder_flags(1024, 2624, 16, 28)
        | {"encoder_attention_layers": "1-2,4-5,7-8,10-11,13-14,16-17,19-20,22-23,25-26"},
        "hat_eurobert_210m": EUROBERT | encoder_flags(768, 3072, 12, 12),
        "hat_nomic_bert": POST_NORM
        | encoder_flags(768, 3072, 12, 12)
        | {"activation_fn": "swiglu", "encoder_family": "nomic_bert", "max_positions": 2048, "layer_norm_eps": 1e-12},
        "hat_gte_base": POST_NORM
        | encoder_flags(768, 3072, 12, 12)
        | {"activation_fn": "geglu", "encoder_family": "gte", "max_positions": 8192, "layer_norm_eps": 1e-12},
        "hat_jina_v3": POST_NORM
        | encoder_flags(1024, 4096, 16, 24)
        | {"activation_fn": "gelu", "encoder_family": "jina_v3", "max_positions": 8194},
        "poolingformer_base": ROBERTA_BASE | poolingformer_flags("6-8", "question") | {"max_positions": 4096},
        "poolingformer_large": ROBERTA_LARGE | poolingformer_flags("15-20", "question") | {"max_positions": 4096},
        "poolingformer_tiny": ROBERTA_TINY
        | poolingformer_flags("2-3", "question")
        | {"attention_window": 8, "pooling_window": 32},
    },
    "hat_units": {
        "hat_units": {},  # flags say everything
        "hat_units_minilm": ROBERTA_MINILM,
        "hat_units_tiny": ROBERTA_TINY | {"segment_length": 32},
    },
    "ernie_sparse": {
        "ernie_sparse_base": ROBERTA_BASE
        | ernie_sparse_flags("shared")
        | {"max_positions": 4096, "extend_positions": "tile"},
        "ernie_sparse_tiny": ROBERTA_TINY | ernie_sparse_flags("shared") | {"sparse_block": 8, "sparse_random": 1},
        **{f"{model}_lra_{name}": LRA[name] | LRA_MODELS[model] for model in LRA_MODELS for name in LRA},
    },
    "hierarchical_transformer": {
        "hierarchical_transformer": {},
        "hierarchical_transformer_base_4096": {},
        "hierarchical_transformer_mini_1024": encoder_flags(256, 1024, 4)
        | {"layout": "S|SD|S|SD|S|SD|S|SD", "max_segments": 8},
        "hierarchical_transformer_minilm": encoder_flags(384, 1536, 12) | MINILM | {"layout": "S|S|SD|S|S|SD"},
        "hierarchical_transformer_tiny": encoder_flags(64, 128, 4) | {"layout": "S|SD|S|SD", "segment_length": 16},
    },
}


def _sizes_for(sizes: ArchFlags, model: str, chosen: str | None) -> ArchFlags:
    """Returns the sizes; if another attention than the architecture's is chosen, without those of the latter."""
    config = NETWORKS[model]
    own = sizes.get("encoder_attention", config.__dataclass_fields__["encoder_attention"].default)
    if chosen in (None, own) or chosen not in ATTENTIONS:
        return dict(sizes)
    read = flags_of([ATTENTIONS[chosen]]) | {*config.own_options}
    others = {"encoder_attention_layers", *(flags_of(ATTENTIONS.values()) - read)}
    return {flag: value for flag, value in sizes.items() if flag not in others}


def _register(model: str, name: str, sizes: ArchFlags) -> None:
    def architecture(args: Namespace) -> None:
        defaults = _sizes_for(sizes, model, getattr(args, "encoder_attention", None))
        if model in ("hat_roberta", "hat_units", "ernie_sparse"):
            defaults.setdefault("max_positions", getattr(args, "tokens_per_sample", None) or DEFAULT_POSITIONS)
        for flag, value in defaults.items():
            if getattr(args, flag, None) is None:
                setattr(args, flag, value)
        if not hasattr(args, "_name"):  # not the flags of a checkpoint, of which fairseq also calls this
            setattr(args, VERSION, 1)

    register_model_architecture(model, name)(architecture)


for _model, _architectures in ARCHITECTURES.items():
    for _name, _sizes in _architectures.items():
        _register(_model, _name, _sizes)
