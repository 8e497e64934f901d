"""Convert Hugging Face BART weights to fairseq's checkpoint layout.

Input: a folder with `config.json` and `model.safetensors` or `pytorch_model.bin`, as `save_pretrained` writes it for
BartModel or BartForConditionalGeneration. Output: a file for `fairseq-train --restore-file`. It holds tensors, numbers
and strings only, so `torch.load(weights_only=True)` reads it, and no training options: the flags that build the same
architecture are printed. The two libraries name the parameters of the layers alike and use the same position rows
(row i + 2 is position i), so converting is dropping a prefix and checking that nothing else differs.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hat_fairseq.gpt2_dictionary import dictionary_symbols

SPECIAL_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
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


def read_config(path: Path) -> dict[str, Any]:
    """`config.json`; ValueError where it describes something else than fairseq's BART can compute."""
    config = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in REQUIRED if not isinstance(config.get(key), int)]
    if missing:
        raise ValueError(f"{path}: no number for {', '.join(missing)}")
    for key, value in FIXED.items():
        if config.get(key, value) != value:
            raise ValueError(f"{path}: {key} is {config[key]!r}, only {value!r} can be converted to fairseq's BART")
    return config


def read_weights(directory: Path) -> dict[str, Tensor]:
    """All tensors of `model.safetensors` or else `pytorch_model.bin` in `directory`; nothing in them is executed."""
    safetensors, pickled = directory / "model.safetensors", directory / "pytorch_model.bin"
    if safetensors.is_file():
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(safetensors)
        except SafetensorError as error:
            raise ValueError(f"{safetensors} is not a complete safetensors file: {error}") from error
    if not pickled.is_file():
        raise ValueError(f"{directory} has neither model.safetensors nor pytorch_model.bin (one file, not shards)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's guesses about the file; the refusal below is one line
            state = torch.load(pickled, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{pickled} is refused: it is damaged or holds more than tensors ({reason})") from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise ValueError(f"{pickled} is refused: it does not hold a dictionary of tensors only")
    return state


def layer_keys(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor except the shared embedding and the output projection."""
    width, positions = config["d_model"], config["max_position_embeddings"] + POSITION_OFFSET
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, rows: int, columns: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (rows, columns), (rows,)

    def layer_norm(name: str) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        shapes[f"{side}.embed_positions.weight"] = (positions, width)
        layer_norm(f"{side}.layernorm_embedding")
        for number in range(config[f"{side}_layers"]):
            layer = f"{side}.layers.{number}"
            for attention in attentions:
                for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{layer}.{attention}.{projection}", width, width)
                layer_norm(f"{layer}.{attention}_layer_norm")
            linear(f"{layer}.fc1", config[f"{side}_ffn_dim"], width)
            linear(f"{layer}.fc2", width, config[f"{side}_ffn_dim"])
            layer_norm(f"{layer}.final_layer_norm")
    return shapes


def shared_embedding(weights: dict[str, Tensor]) -> Tensor:
    """Take the one `(vocab_size, d_model)` embedding out of `weights`, with the copies that must equal it."""
    names = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    copies = {name: weights.pop(name) for name in names if name in weights}
    if not copies:
        raise ValueError(f"the weights have no embedding: none of {', '.join(names)}")
    first = next(iter(copies.values()))
    for name, tensor in copies.items():
        if not torch.equal(tensor, first):
            raise ValueError(f"{name} differs from {next(iter(copies))}; BART in fairseq shares one embedding")
    bias = weights.pop("final_logits_bias", None)
    if bias is not None and bool(bias.ne(0).any()):
        raise ValueError("final_logits_bias is not zero, and fairseq's BART has no bias on its output")
    return first


def convert_weights(weights: dict[str, Tensor], config: dict[str, Any]) -> dict[str, Tensor]:
    """The same tensors under fairseq's names; ValueError names what is missing, unknown or of another shape."""
    weights = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    embedding = shared_embedding(weights)
    shapes = layer_keys(config)
    for what, names in (("missing", shapes.keys() - weights.keys()), ("unknown", weights.keys() - shapes.keys())):
        if names:
            raise ValueError(f"{len(names)} tensors are {what} for this config.json: {', '.join(sorted(names)[:8])}")
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()} | {"shared": tuple(embedding.shape)}
    expected = shapes | {"shared": (config["vocab_size"], config["d_model"])}
    for name, shape in expected.items():
        if found[name] != shape:
            raise ValueError(f"{name} has shape {found[name]}, config.json says {shape}")
    model = {name: weights[name] for name in shapes}
    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        model[f"{name}.weight"] = embedding
    for side in ("encoder", "decoder"):
        model[f"{side}.version"] = torch.tensor([3.0])  # the layout that fairseq writes since 2018; none means 1
    return model


def checkpoint(model: dict[str, Tensor]) -> dict[str, Any]:
    """The least that fairseq's trainer reads beside the weights: update 0 of epoch 1 and no optimizer state."""
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}
    return {
        "args": None,
        "cfg": None,
        "model": model,
        "optimizer_history": [history],
        "last_optimizer_state": None,
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }


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


def write_atomically(path: Path, write: Callable[[Any], object]) -> None:
    """Let `write` fill a temporary sibling of `path`, then rename it: `path` is never a part of a file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def read_dictionary(directory: Path, vocab_size: int) -> list[str] | None:
    """Lines of the dict.txt that gives fairseq the row numbers of these weights; None without tokenizer files."""
    vocabulary, merges = directory / "vocab.json", directory / "merges.txt"
    if not (vocabulary.is_file() and merges.is_file()):
        return None
    ids = json.loads(vocabulary.read_text(encoding="utf-8"))
    if len(ids) != vocab_size:
        raise ValueError(f"{vocabulary} has {len(ids)} entries, the embedding has {vocab_size} rows")
    return dictionary_symbols(ids, merges.read_text(encoding="utf-8").split("\n"))


def refuse_existing(args: argparse.Namespace, symbols: list[str] | None) -> None:
    """Unless --overwrite: ValueError where a file is that `write_files` would write; known before any work."""
    paths = [args.out] if symbols is None else [args.out, args.out.parent / "dict.txt"]
    for path in paths if not args.overwrite else ():
        if path.exists():
            raise ValueError(f"{path} exists; give another --out or --overwrite")


def write_files(out: Path, model: dict[str, Tensor], symbols: list[str] | None) -> None:
    """Write a model as a checkpoint of fairseq, and beside it dict.txt where its entries are known."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, lambda file: torch.save(checkpoint(model), file))
    print(f"wrote {out}: {sum(t.numel() for t in set(model.values()) if t.numel() > 1):,} parameters")
    if symbols is None:
        print("no vocab.json and merges.txt in the folder: no dict.txt written")
        return
    path = out.parent / "dict.txt"
    write_atomically(path, lambda file: file.write("".join(f"{s} 1\n" for s in symbols).encode()))
    print(f"wrote {path}: {len(symbols)} entries, for fairseq-preprocess --srcdict and --tgtdict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="HF_DIR", help="folder with config.json and the weights")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint to write; dict.txt goes beside it")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")


def main(args: argparse.Namespace) -> int:
    if not args.directory.is_dir():
        raise ValueError(f"{args.directory} is not a folder")
    config = read_config(args.directory / "config.json")
    symbols = read_dictionary(args.directory, config["vocab_size"])
    refuse_existing(args, symbols)
    write_files(args.out, convert_weights(read_weights(args.directory), config), symbols)
    rows = config["vocab_size"]
    print(f"embedding rows: {rows} (the dictionary of the data must have {rows} entries, or {rows - 1} without <mask>)")
    print("start training from it (and resume after an interruption) with:")
    print(f"  {' '.join(architecture_flags(config))} --finetune-from-model {args.out}")
    return 0
