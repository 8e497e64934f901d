"""Folders of Hugging Face weights: `config.json` and tensors, as `save_pretrained` writes them.

Nothing in the files is executed, and everything that a converter does not expect is one ValueError.
"""

import pickle
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data import files
from ..data.outputs import check_space

# Settings with which the encoder is that of BART and RoBERTa.
PLAIN = {
    "no_hierarchy": True,
    "encoder_attention": "full",
    "encoder_learned_pos": True,
    "layernorm_embedding": True,
    "encoder_normalize_before": False,
    "encoder_qkv_dim": None,
}


def read_json(path: Path) -> dict[str, Any]:
    """Reads the object in a JSON file; ValueError names the file if it holds anything else."""
    record = files.read_json(path)
    if not isinstance(record, dict):
        raise ValueError(f"{path} holds a {type(record).__name__}, an object in braces is expected")
    return record


def read_config(path: Path, fixed: Mapping[str, Any], numbers: Iterable[str], target: str) -> dict[str, Any]:
    """Reads `config.json`; ValueError if it describes what `target`, the model to convert to, cannot compute.

    `fixed`: settings that `target` cannot change; they may be missing. `numbers`: settings that must be there; whole
    numbers, except epsilons and probabilities.
    """
    config = read_json(path)
    kinds = {key: (int, float) if key.endswith(("_eps", "_prob")) else (int,) for key in numbers}
    if missing := [key for key, kind in kinds.items() if type(config.get(key)) not in kind]:
        raise ValueError(f"{path}: no number for {', '.join(missing)} (sizes are whole numbers)")
    for key, value in fixed.items():
        if config.get(key, value) != value:
            raise ValueError(f"{path}: {key} is {config[key]!r}, only {value!r} can be converted to {target}")
    return config


def read_weights(directory: Path) -> dict[str, Tensor]:
    """Reads `model.safetensors`, else `pytorch_model.bin`; ValueError if damaged, or not finite tensors."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = directory / "model.safetensors"
    try:
        weights = load_file(path) if path.is_file() else _read_pickle(directory / "pytorch_model.bin")
    except SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file: {error}") from error
    if quantised := [name for name, tensor in weights.items() if tensor.is_quantized or tensor.layout != torch.strided]:
        raise ValueError(f"{path.parent}: {quantised[0]} is quantised or sparse; save the weights as plain tensors")
    if broken := sorted(name for name, tensor in weights.items() if not tensor.isfinite().all()):
        raise ValueError(f"{directory}: NaN or infinite values in {', '.join(broken[:8])}; fetch the weights again")
    return weights


def write_weights(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes `model.safetensors`; tensors may share memory, and are then written twice."""
    from safetensors.torch import save_file

    path = folder / "model.safetensors"
    check_space(folder, 1.01 * sum(tensor.nbytes for tensor in tensors.values()))
    path.touch()
    mode = path.stat().st_mode
    save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})
    path.chmod(mode)  # safetensors writes for the owner only


def _read_pickle(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ValueError(f"{path.parent} has neither model.safetensors nor {path.name} (one file, not shards)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's guesses about the file; the refusal below is one line
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{path} is refused: it is damaged or holds more than tensors ({reason})") from error
    if not isinstance(state, dict) or not all(type(k) is str and isinstance(v, Tensor) for k, v in state.items()):
        raise ValueError(f"{path} is refused: it does not hold a dictionary of tensors only")
    return state
