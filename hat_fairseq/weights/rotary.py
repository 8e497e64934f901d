"""Encoders with rotary positions for `hat_roberta` and `hierarchical_transformer`: a table and a reader for each.

ModernBERT (Warner et al. 2024), EuroBERT (Boizard et al. 2025), UltraBERT, nomic-bert (Nussbaum et al. 2024), GTE
(Zhang et al. 2024, mGTE; its published files say `new`) and Jina v3 (Sturua et al. 2024). Names on the left of a table
are those of transformers' class; `published` and `renamed` lead from those of the published files to them.

A reader turns the settings of config.json into ours. What a release may state and our networks do not have is refused.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from ..data.tokenizer_bpe import TokenizerBpe
from ..networks.families import FAMILIES, text_of, usual_text
from .rename import Converted, meta_model, nearest_architecture
from .tables import (
    EMBEDDING,
    ENCODER,
    LM_HEAD,
    TYPE,
    Modules,
    Named,
    Table,
    by_table,
    fingerprint_of,
    fit,
    rows_of_tokenizer,
)

Settings = dict[str, Any]
LAYER, ATTENTION = f"{ENCODER}layers.{{}}.", f"{ENCODER}layers.{{}}.self_attn."
QKV = tuple(f"{ATTENTION}{part}_proj" for part in "qkv")
# Biases that a masked-LM head of a family without biases lacks; ModernBERT has the last one.
HEAD_ZEROS = ("lm_head.dense.bias", "lm_head.layer_norm.bias", "lm_head.bias")
SEPARATE: dict[Modules, Modules] = {f"layers.{{}}.self_attn.{part}_proj": f"{ATTENTION}{part}_proj" for part in "qkv"}
SEPARATE |= {"layers.{}.self_attn.o_proj": f"{ATTENTION}out_proj"}
GATED: dict[Modules, Modules] = {
    ("layers.{}.mlp.gate_proj", "layers.{}.mlp.up_proj"): f"{LAYER}fc1",
    "layers.{}.mlp.down_proj": f"{LAYER}fc2",
}
HEADS = {
    r"(pooler|classifier|score|dense|drop)\.": "heads for other tasks and the pooler",
    r"cls\.seq_relationship\.": "next-sentence prediction",
}

MODERNBERT = Table(
    {
        "embeddings.tok_embeddings": EMBEDDING,
        "embeddings.norm": f"{ENCODER}layernorm_embedding",
        "layers.{}.attn_norm": f"{LAYER}self_attn_layer_norm",
        "layers.{}.attn.Wqkv": QKV,
        "layers.{}.attn.Wo": f"{ATTENTION}out_proj",
        "layers.{}.mlp_norm": f"{LAYER}final_layer_norm",
        "layers.{}.mlp.Wi": f"{LAYER}fc1",
        "layers.{}.mlp.Wo": f"{LAYER}fc2",
        "final_norm": f"{ENCODER}layer_norm",
        "head.dense": f"{LM_HEAD}.dense",
        "head.norm": f"{LM_HEAD}.layer_norm",
        "decoder": LM_HEAD,
    },
    prefixes=("model.",),
    left_out=HEADS,
    zeros=HEAD_ZEROS[:2],
)
OF_LLAMA: dict[Modules, Modules] = {
    "embed_tokens": EMBEDDING,
    "layers.{}.input_layernorm": f"{LAYER}self_attn_layer_norm",
    "layers.{}.post_attention_layernorm": f"{LAYER}final_layer_norm",
    "norm": f"{ENCODER}layer_norm",
}
EUROBERT = Table(OF_LLAMA | SEPARATE | GATED | {"lm_head": LM_HEAD}, prefixes=("model.",), left_out=HEADS)
ULTRABERT = Table(
    OF_LLAMA | SEPARATE | GATED,
    prefixes=("model.", "ultrabert."),
    left_out=HEADS | {r"(head|cls|decoder|lm_head)\b": "the masked-LM head, which has two hidden layers"},
)
POST_NORM: dict[Modules, Modules] = SEPARATE | {
    "embeddings.word_embeddings": EMBEDDING,
    "embeddings.token_type_embeddings": TYPE,
    "embeddings.LayerNorm": f"{ENCODER}layernorm_embedding",
    "layers.{}.post_attention_layernorm": f"{LAYER}self_attn_layer_norm",
    "layers.{}.post_mlp_layernorm": f"{LAYER}final_layer_norm",
    "lm_head.dense": f"{LM_HEAD}.dense",
    "lm_head.layer_norm": f"{LM_HEAD}.layer_norm",
    "lm_head.decoder": LM_HEAD,
    "lm_head": LM_HEAD,
}
SPLIT = tuple(f"layers.{{}}.self_attn.{part}_proj" for part in "qkv")
NOMIC = Table(
    POST_NORM
    | GATED
    | {
        "cls.predictions.transform.dense": f"{LM_HEAD}.dense",
        "cls.predictions.transform.layer_norm": f"{LM_HEAD}.layer_norm",
        "cls.predictions.decoder": LM_HEAD,
        "cls.predictions": LM_HEAD,
    },
    prefixes=("nomic_bert.", "bert."),
    published={
        "layers.{}.attn.Wqkv": SPLIT,
        "layers.{}.attn.out_proj": "layers.{}.self_attn.o_proj",
        "layers.{}.mlp.fc11": "layers.{}.mlp.up_proj",
        "layers.{}.mlp.fc12": "layers.{}.mlp.gate_proj",
        "layers.{}.mlp.fc2": "layers.{}.mlp.down_proj",
        "layers.{}.norm1": "layers.{}.post_attention_layernorm",
        "layers.{}.norm2": "layers.{}.post_mlp_layernorm",
    },
    renamed={
        r"^encoder\.layers\.": "layers.",
        r"^emb_ln\.": "embeddings.LayerNorm.",
        r"transform\.LayerNorm\.": "transform.layer_norm.",
    },
    left_out=HEADS,
    zeros=HEAD_ZEROS,
)
GTE = Table(
    POST_NORM | GATED,
    prefixes=("gte.", "new."),
    published={
        "layers.{}.attention.qkv_proj": SPLIT,
        "layers.{}.attention.o_proj": "layers.{}.self_attn.o_proj",
        "layers.{}.attn_ln": "layers.{}.post_attention_layernorm",
        "layers.{}.mlp_ln": "layers.{}.post_mlp_layernorm",
        "layers.{}.mlp.up_gate_proj": ("layers.{}.mlp.up_proj", "layers.{}.mlp.gate_proj"),
    },
    renamed={r"^encoder\.layer\.": "layers.", r"^lm_head\.norm\.": "lm_head.layer_norm."},
    left_out=HEADS,
    zeros=(".fc1.bias", "embed_token_type.weight"),
)
JINA_V3 = Table(
    POST_NORM | {"layers.{}.mlp.fc1": f"{LAYER}fc1", "layers.{}.mlp.fc2": f"{LAYER}fc2"},
    prefixes=("roberta.", "jina_embeddings_v3."),
    published={
        "layers.{}.mixer.Wqkv": SPLIT,
        "layers.{}.mixer.out_proj": "layers.{}.self_attn.o_proj",
        "layers.{}.norm1": "layers.{}.post_attention_layernorm",
        "layers.{}.norm2": "layers.{}.post_mlp_layernorm",
    },
    renamed={
        r"\.parametrizations\.weight\.original$": ".weight",
        r"^encoder\.layers\.": "layers.",
        r"^emb_ln\.": "embeddings.LayerNorm.",
    },
    left_out=HEADS | {r".*\.lora_[AB]": "adapters for tasks (LoRA)"},
)


@dataclass(frozen=True)
class Rotary:
    """A family: its table, its architectures, and how its settings become ours.

    `activations`: settings that must be equal, because the masked-LM head has the activation of the layers.
    """

    table: Table
    architectures: tuple[str, ...]
    read: Callable[[Settings], Settings]
    activations: tuple[str, ...] = ()

    def convert(self, weights: dict[str, Tensor], config: Settings, tokenizer: TokenizerBpe) -> Converted:
        """Returns the encoder under fairseq's names; ValueError names a wrong tensor or setting."""
        report: list[str] = []
        starts = self.starts(config)
        named = by_table(weights, self.table, report)
        self.fit_head(named, config, report)
        one_type(named, config.get("type_vocab_size"), report)
        rows_of_tokenizer(named, config["vocab_size"], tokenizer, report)
        model = meta_model([*starts[0], "--no-hierarchy"], weights, len(tokenizer.rows))
        state = fit(named, self.table, model, f"{LM_HEAD}.")
        if f"{LM_HEAD}.weight" not in state:
            report.append("no masked-LM head: one will be newly initialised")
        report.append("the parameters of the hierarchy are initialised when a training starts, and its log lists them")
        return Converted(state | fingerprint_of(tokenizer), starts, report)

    def fit_head(self, named: Named, config: Settings, report: list[str]) -> None:
        """Leaves out a head that is no masked-LM head of ours; a projection that is tied there gets a table here."""
        table, head = f"{EMBEDDING}.weight", f"{LM_HEAD}.weight"
        if config.get("tie_word_embeddings") and table in named and self.read(config).get("untie_weights_roberta"):
            named[head] = named[table]  # a copy, which a training may change
        if len({config.get(key, "gelu") for key in self.activations}) > 1:
            without_head(named, "the masked-LM head, whose activation is another one than that of the layers", report)
        elif not {f"{LM_HEAD}.bias", head} & named.keys():
            without_head(named, "the hidden layer of a head for another task", report)

    def starts(self, config: Settings) -> list[list[str]]:
        """Returns the flags of a `hat_roberta`, and of a `hierarchical_transformer`.

        The latter has as many layers, every third between segments, and windows of local layers inside a segment.
        """
        settings = self.read(config)
        flat = nearest_architecture(self.architectures, settings)
        return [flat, segment_flags(settings)]


def segment_flags(settings: Settings) -> list[str]:
    """Returns the flags of a `hierarchical_transformer` for these settings of a `hat_roberta`."""
    layers, positions = settings["encoder_layers"], settings["max_positions"]
    other = {name: value for name, value in settings.items() if name not in OF_FLAT and value not in (None, False)}
    if not settings["layernorm_embedding"]:
        other["plain_embedding"] = True
    layout = "|".join("SD" if number % 3 == 2 or number == layers - 1 else "S" for number in range(layers))
    length = min(128, positions)
    if "attention_window" in settings:
        other["segment_window"] = settings["attention_window"]
    flags = nearest_architecture(("hierarchical_transformer",), other)
    sizes = ["--segment-length", str(length), "--max-segments", str(max(1, positions // length))]
    return [*flags, "--layout", layout, *sizes]


# Settings of `hat_roberta` that the other network does not have, or has otherwise.
OF_FLAT = {"encoder_layers", "max_positions", "layernorm_embedding", "no_scale_embedding"}
OF_FLAT |= {"encoder_attention", "encoder_attention_layers", "attention_window"}


def without_head(named: Named, what: str, report: list[str]) -> None:
    """Leaves out the masked-LM head, if there is one."""
    if names := [name for name in named if name.startswith(f"{LM_HEAD}.")]:
        report.append(f"skipped, {what}: {', '.join(sorted(named[name][0] for name in names))}")
        for name in names:
            del named[name]


def one_type(named: Named, types: Any, report: list[str]) -> None:
    """Keeps the first token type, which every token has here."""
    name = f"{TYPE}.weight"
    if name in named and len(named[name][1]) > 1:
        origin, table = named[name]
        if types not in (None, len(table)):
            raise ValueError(f"{origin} has {len(table)} rows, config.json says {types!r:.80}")
        named[name] = origin, table[:1]
        report.append("skipped, the token types beyond the first: a pair of texts is told apart by </s> </s> alone")


def sizes_of(config: Settings, epsilon: str = "layer_norm_eps") -> Settings:
    """Returns the sizes of the layers; ValueError for heads of another width."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    if config.get("head_dim") not in (None, width // heads):
        raise ValueError(f"head_dim is {config['head_dim']}, only {width // heads} can be converted, width by heads")
    return {
        "encoder_embed_dim": width,
        "encoder_ffn_embed_dim": config["intermediate_size"],
        "encoder_attention_heads": heads,
        "encoder_layers": config["num_hidden_layers"],
        "layer_norm_eps": float(config[epsilon]),
        "max_positions": config["max_position_embeddings"],
        "no_scale_embedding": True,
    }


def rope(config: Settings, default: float, kind: str | None = None) -> tuple[float, float]:
    """Returns base and factor of rotary positions; ValueError for any other way to stretch them than a factor.

    Either `rope_parameters` has them, for each `kind` of layers where there are several, or older keys.
    """
    parameters = config.get("rope_parameters") or {}
    if not isinstance(parameters, Mapping):
        raise ValueError(f"rope_parameters is {parameters!r:.80}: it must be an object")
    if kind is not None and any(isinstance(each, Mapping) for each in parameters.values()):
        parameters = parameters.get(kind) or {}
    scaling = config.get("rope_scaling") or parameters
    for stated in (parameters, scaling):
        if unknown := [key for key in stated if key not in OF_ROPE and stated[key] != UNSCALED.get(key)]:
            raise ValueError(f"rotary positions with {unknown[0]!r:.80}: only {', '.join(OF_ROPE)} can be converted")
    how = scaling.get("rope_type", scaling.get("type", "default"))
    base = parameters.get("rope_theta") or config.get("rope_theta") or default
    if type(base) not in (int, float):
        raise ValueError(f"rope_theta is {base!r:.80}: it must be a number")
    factor = float(scaling.get("factor") or 1.0)
    if how == "default":
        return float(base), 1.0
    if how == "linear" and factor >= 1:
        return float(base), factor
    if how == "ntk" and scaling.get("mixed_b") is None:  # of GTE's own code: base and positions are both stretched
        size = config["hidden_size"] // config["num_attention_heads"]
        return float(base) * factor, factor ** (2 / size)
    raise ValueError(
        f"rotary positions of type {how!r:.80}, factor {factor}: only default, linear from 1 on, and ntk can be read"
    )


OF_ROPE = ("rope_type", "type", "rope_theta", "factor")
UNSCALED = {"partial_rotary_factor": 1.0}


def whole(config: Settings, key: str, default: int) -> int:
    """Returns a number that a config may lack; ValueError for what is none."""
    value = default if config.get(key) is None else config[key]
    if type(value) is not int or value < 1:
        raise ValueError(f"{key} is {value!r:.80}: it must be a whole number of at least 1")
    return value


def family(name: str, layers: int, **parts: Any) -> Settings:
    """Returns the setting of a family with parts of its own."""
    return {"encoder_family": usual_text(text_of(replace(FAMILIES[name], **parts), [name]), layers)}


def activation(config: Settings, key: str, known: Mapping[str, str]) -> str:
    """Returns our name of an activation; ValueError for another one."""
    if (name := str(config.get(key))) not in known:
        raise ValueError(f"{key} is {name!r:.80}, only {' or '.join(known)} can be converted")
    return known[name]


def ranges(layers: Iterable[int]) -> str:
    """Writes layers as `1-2,4-5`."""
    parts: list[list[int]] = []
    for layer in layers:
        if parts and parts[-1][-1] == layer - 1:
            parts[-1] = [parts[-1][0], layer]
        else:
            parts.append([layer])
    return ",".join("-".join(map(str, part)) for part in parts)


def local(
    name: str, config: Settings, kinds: list[str], window: int, bases: Mapping[str, tuple[float, float]], **parts: Any
) -> Settings:
    """Returns the settings of layers with windows and of those without; `name`, `parts`: of the family."""
    full, near = "full_attention", "sliding_attention"
    if not isinstance(kinds, list) or len(kinds) != config["num_hidden_layers"] or not {*kinds} <= {full, near}:
        raise ValueError(f"layer_types: give {full} or {near} for each of {config['num_hidden_layers']} layers")
    if bases[full][1] != 1 or bases[near][1] != 1:
        raise ValueError("rotary positions with a factor cannot be converted where layers have windows")
    layers = ranges(number for number, kind in enumerate(kinds) if kind == near)
    of_family = partial(family, name, len(kinds), **parts, rotary=bases[full][0])
    if not layers:
        return {"encoder_attention": "full"} | of_family(rotary_local=None, local_layers=None)
    settings = {"encoder_attention": "window", "attention_window": window, "encoder_attention_layers": layers}
    return settings | of_family(rotary_local=bases[near][0], local_layers=layers)


def modernbert(config: Settings) -> Settings:
    """Reads ModernBERT's settings: `local_attention` counts the tokens on both sides."""
    number, every = config["num_hidden_layers"], whole(config, "global_attn_every_n_layers", 3)
    kinds = config.get("layer_types")
    kinds = kinds or ["sliding_attention" if layer % every else "full_attention" for layer in range(number)]
    full = rope(config, config.get("global_rope_theta") or 160000.0, "full_attention")
    near = rope(config, config.get("local_rope_theta", 10000.0) or full[0], "sliding_attention")
    bases = {"full_attention": full, "sliding_attention": near}
    return sizes_of(config, "norm_eps") | {
        "activation_fn": activation(config, "hidden_activation", {"gelu": "geglu", "silu": "swiglu"}),
        "encoder_normalize_before": True,
        "layernorm_embedding": True,
        **local("modernbert", config, kinds, whole(config, "local_attention", 128) // 2, bases),
    }


def eurobert(config: Settings) -> Settings:
    """Reads EuroBERT's settings."""
    base, factor = rope(config, 10000.0)
    return sizes_of(config, "rms_norm_eps") | {
        "activation_fn": activation(config, "hidden_act", {"silu": "swiglu"}),
        "encoder_normalize_before": True,
        "layernorm_embedding": False,
        "untie_weights_roberta": True,
        **family(
            "eurobert", config["num_hidden_layers"], rotary=base, rotary_factor=factor, kv_heads=shared_heads(config)
        ),
    }


def shared_heads(config: Settings) -> int | None:
    """Returns the number of heads of keys; None if it is that of heads of queries."""
    heads = config["num_attention_heads"]
    return None if (shared := whole(config, "num_key_value_heads", heads)) == heads else shared


def ultrabert(config: Settings) -> Settings:
    """Reads UltraBERT's settings; published files have a window and a base for each layer."""
    windows, bases = config.get("attention_windows"), config.get("rope_theta")
    kinds, window = config.get("layer_types"), whole(config, "sliding_window", 128)
    if windows is not None:
        kinds = kinds or ["sliding_attention" if each else "full_attention" for each in windows]
        window = next(filter(None, windows), window)
    number = config["num_hidden_layers"]
    kinds = kinds or ["sliding_attention" if (layer + 1) % 3 else "full_attention" for layer in range(number)]
    default = {"full_attention": 2560000.0, "sliding_attention": 10000.0}
    if len({*filter(None, windows or ())}) > 1:
        raise ValueError(f"attention_windows: {windows}, and layers with windows of different sizes cannot be read")
    if isinstance(bases, list):
        for kind, base in zip(kinds, bases, strict=True):
            if {base} < {own for name, own in zip(kinds, bases, strict=True) if name == kind}:
                raise ValueError(f"rope_theta: {bases}, and layers of one kind with different bases cannot be read")
            default[kind] = base
    config = {name: value for name, value in config.items() if name != "rope_theta"}
    each = {kind: rope(config, base, kind) for kind, base in default.items()}
    settings = eurobert(config | {"rope_parameters": None})
    return settings | local("eurobert", config, kinds, window, each, kv_heads=shared_heads(config))


def post_norm(name: str, config: Settings, activations: Mapping[str, str]) -> Settings:
    """Reads the settings of a post-norm encoder with a token type; `name`: of its family."""
    base, factor = rope(config, FAMILIES[name].rotary or 10000.0)
    return sizes_of(config) | {
        "activation_fn": activation(config, "hidden_act", activations),
        "layernorm_embedding": True,
        **family(name, config["num_hidden_layers"], rotary=base, rotary_factor=factor),
    }


def nomic(config: Settings) -> Settings:
    """Reads nomic-bert's settings."""
    return post_norm("nomic_bert", config, {"silu": "swiglu"})


def gte(config: Settings) -> Settings:
    """Reads GTE's settings."""
    return post_norm("gte", config, {"gelu": "geglu", "silu": "swiglu"})


def jina_v3(config: Settings) -> Settings:
    """Reads those of Jina v3."""
    return post_norm("jina_v3", config, {"gelu": "gelu"})


def names_of_nomic(record: Mapping[str, Any]) -> Settings:
    """Gives settings of nomic-bert's published files the names of transformers; those of the other kind stay."""
    names = {"n_embd": "hidden_size", "n_inner": "intermediate_size", "n_head": "num_attention_heads"}
    names |= {"n_layer": "num_hidden_layers", "n_positions": "max_position_embeddings"}
    names |= {"layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta"}
    config = {names.get(name, name): value for name, value in record.items()}
    if record.get("activation_function") == "swiglu":
        config["hidden_act"] = "silu"
    return config


def names_of_jina(record: Mapping[str, Any]) -> Settings:
    """Does the same for Jina v3."""
    config = dict(record)
    if "rotary_emb_base" in config:
        config["rope_theta"] = config["rotary_emb_base"]
    return config
