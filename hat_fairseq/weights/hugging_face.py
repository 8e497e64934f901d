"""Folders of Hugging Face weights: `config.json`, tensors and vocabulary, as `save_pretrained` writes them.

Reading only; nothing in the files is executed. What a folder holds is compared with what the converter expects before
anything is written, and every difference is one ValueError.
"""

from __future__ import annotations

import argparse
import json
import pickle
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .gpt2_dictionary import dictionary_symbols

SPECIAL_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def folder_of(args: argparse.Namespace) -> Path:
    """`HF_DIR`; ValueError where it is no folder."""
    if not args.directory.is_dir():
        raise ValueError(f"{args.directory} is not a folder")
    return args.directory


def read_config(path: Path, fixed: Mapping[str, Any], numbers: Iterable[str], target: str) -> dict[str, Any]:
    """`config.json`.

    Args:
        fixed: settings that `target` has, too, and cannot change; they may be missing.
        numbers: settings that must be there.
        target: what the weights are converted to, for the error.
    Raises:
        ValueError: it describes something else than `target` can compute.
    """
    config = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in numbers if type(config.get(key)) not in (int, float)]
    if missing:
        raise ValueError(f"{path}: no number for {', '.join(missing)}")
    for key, value in fixed.items():
        if config.get(key, value) != value:
            raise ValueError(f"{path}: {key} is {config[key]!r}, only {value!r} can be converted to {target}")
    return config


def read_weights(directory: Path) -> dict[str, Tensor]:
    """All tensors of `model.safetensors` or else `pytorch_model.bin` in `directory`.

    Raises:
        ValueError: neither is there, or it is damaged, or holds more than tensors.
    """
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


def linear_shapes(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    """Shapes of a linear layer's two tensors."""
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def norm_shapes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    """Shapes of a layer norm's two tensors."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def check_tensors(weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """ValueError unless `weights` are exactly the tensors of `shapes`."""
    for what, names in (("missing", shapes.keys() - weights.keys()), ("unknown", weights.keys() - shapes.keys())):
        if names:
            raise ValueError(f"{len(names)} tensors are {what} for this config.json: {', '.join(sorted(names)[:8])}")
    for name, shape in shapes.items():
        if tuple(weights[name].shape) != shape:
            raise ValueError(f"{name} has shape {tuple(weights[name].shape)}, config.json says {shape}")


def one_of(copies: Mapping[str, Tensor], advice: str) -> Tensor:
    """The tensor of which `copies` are stored under several names.

    Raises:
        ValueError: they differ.
    """
    name, first = next(iter(copies.items()))
    for other, tensor in copies.items():
        if not torch.equal(tensor, first):
            raise ValueError(f"{other} differs from {name}; {advice}")
    return first


def read_symbols(directory: Path, vocab_size: int) -> list[str] | None:
    """Lines of the dict.txt that gives fairseq the row numbers of these weights; None without tokenizer files.

    Read from vocab.json and merges.txt, or from the tokenizer.json that newer versions write instead.

    Raises:
        ValueError: one of two files is missing, the BPE is of another kind, or no dict.txt can have these rows.
    """
    files = [directory / name for name in ("vocab.json", "merges.txt")]
    if all(path.is_file() for path in files):
        source, ids = files[0], json.loads(files[0].read_text(encoding="utf-8"))
        merges = files[1].read_text(encoding="utf-8").split("\n")
    elif (directory / "tokenizer.json").is_file():
        source = directory / "tokenizer.json"
        ids, merges = _fast_tokenizer(source)
    elif any(path.is_file() for path in files):
        missing = next(path for path in files if not path.is_file())
        raise ValueError(f"{missing} is missing: a byte-level BPE is vocab.json and merges.txt together")
    else:
        return None
    if len(ids) != vocab_size:
        raise ValueError(f"{source} has {len(ids)} entries, the embedding has {vocab_size} rows")
    return dictionary_symbols(ids, merges, source.name)


def _fast_tokenizer(path: Path) -> tuple[dict[str, int], list[str]]:
    """Token rows and merges of a `tokenizer.json`."""
    record = json.loads(path.read_text(encoding="utf-8"))
    model = record.get("model", {})
    if model.get("type") != "BPE" or not isinstance(model.get("merges"), list):
        raise ValueError(f"{path} is no byte-level BPE ({model.get('type')}); fairseq's RoBERTa and BART have one")
    added = {token["content"]: token["id"] for token in record.get("added_tokens", [])}
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return {**model["vocab"], **added}, merges
