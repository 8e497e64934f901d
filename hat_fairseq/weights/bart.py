"""Convert Hugging Face BART weights to fairseq's checkpoint layout.

Input: a folder with `config.json` and `model.safetensors` or `pytorch_model.bin`, as `save_pretrained` writes it for
BartModel or BartForConditionalGeneration. Output: a file for `fairseq-train --restore-file`. It holds tensors, numbers
and strings only, so `torch.load(weights_only=True)` reads it, and no training options: the flags that build the same
architecture are printed. The two libraries name the parameters of the layers alike and use the same position rows
(row i + 2 is position i), so converting is dropping a prefix and checking that nothing else differs.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from torch import Tensor

from . import checkpoint
from .checkpoint import refuse_existing, write_files
from .hugging_face import (
    SPECIAL_IDS,
    check_tensors,
    folder_of,
    linear_shapes,
    norm_shapes,
    one_of,
    read_config,
    read_symbols,
    read_weights,
)

# What fairseq's BART fixes; older config.json files spell some of these out.
FIXED = {
    "model_type": "bart",
    "activation_function": "gelu",
    "scale_embedding": False,
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "static_position_embeddings": False,
} | SPECIAL_IDS
REQUIRED = ("d_model", "vocab_size", "max_position_embeddings") + tuple(
    f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "ffn_dim", "attention_heads")
)
PRESETS = {  # name: (width, feed-forward width, layers, heads) of both sides
    "hat_bart_large": (1024, 4096, 12, 16),
    "hat_bart_base": (768, 3072, 6, 12),
}
POSITION_OFFSET = 2  # both libraries keep two unused rows below position 0


def layer_keys(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor except the output projection; `shared.weight` is the embedding."""
    width, positions = config["d_model"], config["max_position_embeddings"] + POSITION_OFFSET
    shapes: dict[str, tuple[int, ...]] = {"shared.weight": (config["vocab_size"], width)}
    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        shapes[f"{side}.embed_positions.weight"] = (positions, width)
        shapes |= norm_shapes(f"{side}.layernorm_embedding", width)
        for number in range(config[f"{side}_layers"]):
            layer = f"{side}.layers.{number}"
            for attention in attentions:
                for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes |= linear_shapes(f"{layer}.{attention}.{projection}", width, width)
                shapes |= norm_shapes(f"{layer}.{attention}_layer_norm", width)
            shapes |= linear_shapes(f"{layer}.fc1", config[f"{side}_ffn_dim"], width)
            shapes |= linear_shapes(f"{layer}.fc2", width, config[f"{side}_ffn_dim"])
            shapes |= norm_shapes(f"{layer}.final_layer_norm", width)
    return shapes


def shared_embedding(weights: dict[str, Tensor]) -> Tensor:
    """Take the one `(vocab_size, d_model)` embedding out of `weights`, with the copies that must equal it."""
    names = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    copies = {name: weights.pop(name) for name in names if name in weights}
    if not copies:
        raise ValueError(f"the weights have no embedding: none of {', '.join(names)}")
    bias = weights.pop("final_logits_bias", None)
    if bias is not None and bool(bias.ne(0).any()):
        raise ValueError("final_logits_bias is not zero, and fairseq's BART has no bias on its output")
    return one_of(copies, "BART in fairseq shares one embedding")


def convert_weights(weights: dict[str, Tensor], config: dict[str, Any]) -> dict[str, Tensor]:
    """The same tensors under fairseq's names; ValueError names what is missing, unknown or of another shape."""
    weights = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    weights["shared.weight"] = shared_embedding(weights)
    check_tensors(weights, layer_keys(config))
    embedding = weights.pop("shared.weight")
    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        weights[f"{name}.weight"] = embedding
    for side in ("encoder", "decoder"):
        weights[f"{side}.version"] = torch.tensor([3.0])  # the layout that fairseq writes since 2018; none means 1
    return weights


def architecture_flags(config: dict[str, Any]) -> list[str]:
    """The named architecture nearest to `config`, the flags in which it differs, and the position limits."""
    sizes = {
        "embed-dim": "d_model",
        "ffn-embed-dim": "ffn_dim",
        "layers": "layers",
        "attention-heads": "attention_heads",
    }
    choices = []
    for name, preset in PRESETS.items():
        flags = []
        for (flag, key), default in zip(sizes.items(), preset, strict=True):
            values = {side: config[key if key == "d_model" else f"{side}_{key}"] for side in ("encoder", "decoder")}
            # Both sides or none: an architecture may take the decoder's default from the encoder.
            if set(values.values()) != {default}:
                flags += [word for side, value in values.items() for word in (f"--{side}-{flag}", str(value))]
        choices.append(["--arch", name, *flags])
    positions = str(config["max_position_embeddings"])
    return min(choices, key=len) + ["--max-source-positions", positions, "--max-target-positions", positions]


add_arguments = checkpoint.add_arguments


def main(args: argparse.Namespace) -> int:
    config = read_config(folder_of(args) / "config.json", FIXED, REQUIRED, "fairseq's BART")
    symbols = read_symbols(args.directory, config["vocab_size"])
    refuse_existing(args, symbols)
    write_files(args.out, convert_weights(read_weights(args.directory), config), symbols)
    rows = config["vocab_size"]
    print(f"embedding rows: {rows} (the dictionary of the data must have {rows} entries, or {rows - 1} without <mask>)")
    print("start training from it (and resume after an interruption) with:")
    print(f"  {' '.join(architecture_flags(config))} --finetune-from-model {args.out}")
    return 0
