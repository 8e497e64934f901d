"""Folders of Hugging Face weights: `config.json` and tensors, as `save_pretrained` writes them.

Nothing in the files is executed.
"""

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
    """Reads `model.safetensors`, else `pytorch_model.bin`; ValueError if damaged, or not finite tensors only."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from ..fairseq_fixes.checkpoints import named_failures

    path, pickled = directory / "model.safetensors", directory / "pytorch_model.bin"
    if path.is_file():
        try:
            weights = load_file(path)
        except SafetensorError as error:
            raise ValueError(f"{path} is not a complete safetensors file: {error}") from error
    elif pickled.is_file():
        with named_failures(str(pickled)):
            weights = torch.load(pickled, map_location="cpu", weights_only=True)
    else:
        raise ValueError(f"{directory} has neither model.safetensors nor {pickled.name} (one file, not shards)")
    if not isinstance(weights, dict) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise ValueError(f"{pickled} is refused: it does not hold a dictionary of tensors only")
    if others := [name for name, tensor in weights.items() if tensor.is_quantized or tensor.layout != torch.strided]:
        raise ValueError(f"{directory}: {others[0]} is quantised or sparse; save the weights as plain tensors")
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
