"""Convert released weights of other projects to fairseq's checkpoint layout.

`kiddothe2b`: the Hierarchical Attention Transformers of Chalkidis et al. 2022, a folder with `config.json` and
`pytorch_model.bin` or `model.safetensors`. The output holds tensors, numbers and strings only. The flags that compute
what the released weights were trained to compute are printed: without segment positions, and with the quirks that the
config or the paper's code has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from torch import Tensor

from .convert_bart import read_dictionary, read_weights, refuse_existing, write_files
from .convert_chalkidis import from_hugging_face

FIXED: dict[str, Any] = {
    "hidden_act": "gelu",
    "type_vocab_size": 1,
    "position_embedding_type": "absolute",
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
FLAGS = {
    "max_sentences": "max-segments",
    "hidden_size": "encoder-embed-dim",
    "intermediate_size": "encoder-ffn-embed-dim",
    "num_attention_heads": "encoder-attention-heads",
    "layer_norm_eps": "layer-norm-eps",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention-dropout",
}


def read_config(path: Path) -> dict[str, Any]:
    """`config.json`; ValueError where it describes something else than ours can compute."""
    config = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in (*FLAGS, "vocab_size", "encoder_layout") if config.get(key) is None]
    if missing:
        raise ValueError(f"{path}: nothing for {', '.join(missing)}")
    for key, value in FIXED.items():
        if config.get(key, value) != value:
            raise ValueError(f"{path}: {key} is {config[key]!r}, only {value!r} can be converted")
    return config


def layout(config: dict[str, Any]) -> str:
    """`{"0": {"sentence_encoder": true, "document_encoder": false}, ...}` -> `S|...`."""
    layers = sorted(config["encoder_layout"].items(), key=lambda item: int(item[0]))
    parts = {"sentence_encoder": "S", "document_encoder": "D"}
    return "|".join("".join(letter for part, letter in parts.items() if layer[part]) for _, layer in layers)


def architecture_flags(config: dict[str, Any], segment_length: int, segment_positions: str) -> list[str]:
    flags = ["--arch", "hierarchical_transformer", "--layout", f"'{layout(config)}'"]
    flags += ["--segment-length", str(segment_length), "--segment-positions", segment_positions]
    return flags + [word for key, flag in FLAGS.items() for word in (f"--{flag}", str(config[key]))]


def check_shapes(model: dict[str, Tensor], config: dict[str, Any], layers: int, path: Path) -> None:
    """ValueError where the weights are not what config.json says."""
    found = 1 + max(int(name.split(".")[2]) for name in model if name.startswith("encoder.layers."))
    shape = list(model["encoder.embed_tokens.weight"].shape)
    expected = [config["vocab_size"], config["hidden_size"]]
    if found != layers or shape != expected:
        raise ValueError(f"{path}: {layers} layers, embedding {expected}; the weights have {found} and {shape}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", choices=["kiddothe2b"], help="whose weights they are")
    parser.add_argument("directory", type=Path, metavar="HF_DIR", help="folder with config.json and the weights")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint to write; dict.txt goes beside it")
    parser.add_argument(
        "--segment-positions",
        choices=["none", "add"],
        default="none",
        help="add: for weights that were trained with positions of segments (none of the released ones)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")


def main(args: argparse.Namespace) -> int:
    if not args.directory.is_dir():
        raise ValueError(f"{args.directory} is not a folder")
    path = args.directory / "config.json"
    config = read_config(path)
    symbols = read_dictionary(args.directory, config["vocab_size"])
    refuse_existing(args, symbols)
    model = from_hugging_face(read_weights(args.directory), args.segment_positions == "add")
    check_shapes(model, config, len(layout(config).split("|")), path)
    segment_length = len(model["encoder.embed_positions.weight"]) - FIXED["pad_token_id"] - 1
    write_files(args.out, model, symbols)
    print("start training from it (and resume after an interruption) with:")
    flags = architecture_flags(config, segment_length, args.segment_positions)
    print(f"  {' '.join(flags)} --finetune-from-model {args.out}")
    print("to compute what the authors' code computes: --pool-padded-segments --attend-segment-padding")
    return 0
