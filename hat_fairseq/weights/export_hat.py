"""`hat export` of an encoder-decoder: as BART if it equals BART, else with our code in the folder."""

import argparse
from dataclasses import asdict, fields
from typing import Any

from ..generation.options import packaged_options, parse_generation_options
from .bart import SIZES
from .export_folder import MODELING, Trained, renamed, write_folder
from .hugging_face import SPECIAL_IDS

# What BART and RoBERTa of transformers compute; a model with another setting is exported with our code.
PLAIN = {
    "no_hierarchy": True,
    "encoder_attention": "full",
    "encoder_learned_pos": True,
    "layernorm_embedding": True,
    "encoder_normalize_before": False,
    "encoder_qkv_dim": None,
}
BART = PLAIN | {
    "decoder_learned_pos": True,
    "decoder_normalize_before": False,
    "share_all_embeddings": True,
    "layer_norm_eps": 1e-5,
    "decoder_kv_heads": None,
}
RATES = ("dropout", "attention_dropout", "activation_dropout")
# Of fairseq's options those that generation_config.json expresses; all others must be unset or fairseq's default.
EXPRESSED = ("beam", "nbest", "lenpen", "unnormalized", "min_len", "max_len_b", "no_repeat_ngram_size")


def export(args: argparse.Namespace, checkpoint: dict[str, Any]) -> None:
    """Writes the folder of an encoder-decoder."""
    options = packaged_options(args.path)
    if args.generation is not None:
        options = parse_generation_options(args.generation, "--generation")
    trained = Trained.load(args.path, args.data)
    model = trained.model
    settings = settings_of(model)
    positions = model.encoder.max_positions(), model.decoder.max_positions()
    roles = model.encoder.embed_segments
    is_bart = roles is None and positions[0] == positions[1] and BART.items() <= settings.items()
    if is_bart:
        tensors, names = renamed(model, bart_name)
        config = bart_config(settings, len(model.decoder.dictionary), positions[0])
    else:
        tensors, names = renamed(model, str)
        config = hat_config(settings, model, positions)
        config["num_roles"] = 0 if roles is None else len(roles.weight)
    config |= {"is_encoder_decoder": True, "decoder_start_token_id": 2, **SPECIAL_IDS}
    config["torch_dtype"] = str(next(model.parameters()).dtype)[6:]
    write_folder(args.out, trained, tensors, names, config, generation_config(options, positions[1]), positions[0])
    if is_bart:
        print("differs: transformers' BART counts the </s> that ends a text of the greatest length as certain")


def settings_of(model: Any) -> dict[str, Any]:
    """The settings of a model as JSON has them; choices of fairseq are strings."""
    values = asdict(model.config).items()
    return {name: v if v is None or isinstance(v, bool | int | float) else str(v) for name, v in values}


def common(settings: dict[str, Any], name: str, auto: str) -> dict[str, Any]:
    """Entries of config.json for all models with our code; `auto`: the class of transformers that finds `name`."""
    return {
        "architectures": [name],
        "model_type": "hat_fairseq",
        "auto_map": {"AutoConfig": f"{MODELING}.HatFairseqConfig", auto: f"{MODELING}.{name}"},
        "settings": settings,
        "tie_word_embeddings": False,  # a table that is used twice is one parameter
    }


def bart_name(ours: str) -> str:
    """BART's name of a tensor."""
    return "model.shared.weight" if ours == "encoder.embed_tokens.weight" else f"model.{ours}"


def bart_config(settings: dict[str, Any], vocabulary: int, positions: int) -> dict[str, Any]:
    """config.json of a BartForConditionalGeneration."""
    return {
        "architectures": ["BartForConditionalGeneration"],
        "model_type": "bart",
        **{theirs: settings[ours] for ours, theirs in SIZES.items()},
        **{name: settings[name] for name in RATES},
        "activation_function": settings["activation_fn"],
        "scale_embedding": not settings["no_scale_embedding"],
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
    }


def hat_config(settings: dict[str, Any], model: Any, positions: tuple[int, int]) -> dict[str, Any]:
    """config.json of a HatForConditionalGeneration."""
    return common(settings, "HatForConditionalGeneration", "AutoModelForSeq2SeqLM") | {
        "source_vocab_size": len(model.encoder.dictionary),
        "vocab_size": len(model.decoder.dictionary),
        "max_source_positions": positions[0],
        "max_target_positions": positions[1],
        "hidden_size": settings["decoder_embed_dim"],
        "num_attention_heads": settings["decoder_attention_heads"],
        # Of the cache of keys and values: each layer has one of the tokens and one of the sentences.
        "num_hidden_layers": 2 * settings["decoder_layers"],
    }


def generation_config(options: dict[str, Any], positions: int) -> dict[str, Any]:
    """fairseq's options of generation, and its defaults, as those of transformers; ValueError for one it does not have.

    Both divide a score by the length with `</s>` to the power of lenpen. transformers counts the first token, the
    `</s>` that starts every text, as part of the length; fairseq does not.
    """
    from fairseq.dataclass.configs import GenerationConfig

    values: dict[str, Any] = {each.name: each.default for each in fields(GenerationConfig)} | options
    for name, value in options.items():
        if name not in EXPRESSED and value != GenerationConfig.__dataclass_fields__[name].default:
            raise ValueError(f"generation option {name} {value!r}: transformers has no such option; leave it out")
    longest = min(int(values["max_len_b"]), positions - 1)
    if values["min_len"] > longest:
        least = values["min_len"]
        raise ValueError(f"generation option min_len {least} is more than the longest text, {longest} tokens")
    return {
        **SPECIAL_IDS,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": 2,
        "suppress_tokens": [1],  # padding is never generated
        "num_beams": values["beam"],
        "num_return_sequences": values["nbest"],
        "early_stopping": True,  # a document is finished with as many hypotheses as beams
        "length_penalty": 0.0 if values["unnormalized"] else float(values["lenpen"]),
        "min_length": values["min_len"] + 1,
        "max_length": longest + 2,
        "no_repeat_ngram_size": values["no_repeat_ngram_size"],
    }
