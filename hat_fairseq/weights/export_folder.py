"""The folder that `hat export` writes of a model of ours, and `hat import hat_fairseq` reads back.

`config.json`, `model.safetensors` and `generation_config.json` are those of transformers. `modeling_hat_fairseq.py` and
its two modules come from `weights/hf`; the tokenizer is `hat_fairseq.hf.HatTokenizer`. `hat_fairseq.json` has the
settings of the training, the names of the tensors in fairseq, and the fingerprints of the dictionaries. The weights
that are read back may have been trained further with transformers: the names and shapes of the tensors must be the
same.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from omegaconf import OmegaConf
from torch import Tensor

from ..data.bpe import FILES
from ..data.files import Fields
from ..data.outputs import atomic_directory, atomic_file
from ..data.package import BIN, bare_checkpoint
from ..data.pipeline import FILE_NAME, TextPipeline
from ..hf import HatTokenizer
from .hugging_face import read_json, read_weights, write_weights
from .package import as_json, load, recorded
from .roberta import POSITIONS, TYPES

FINGERPRINT = "_fingerprint"
ORIGIN = "hat_fairseq.json"
FLAT = {FILE_NAME, *(name for names in FILES.values() for name in names)}  # of the data, without dictionaries
CODE = Path(__file__).with_name("hf")
MODELING = "modeling_hat_fairseq"
LAYERS = ("layers_hat_fairseq", "attention_hat_fairseq")  # which it imports
DICTIONARIES = {  # in the folder -> where a bin directory has it; the first that exists
    "dict.source.txt": ("dict.source.txt", "input0/dict.txt", "dict.txt"),
    "dict.target.txt": ("dict.target.txt",),
    "dict.role.txt": ("dict.role.txt",),
    "dict.label.txt": ("label/dict.txt",),
}


@dataclass
class Trained:
    """A model that is to be exported."""

    model: Any
    cfg: Any
    task: Any
    updates: int
    data: Path  # its bin directory

    @classmethod
    def load(cls, path: Path, data: Path | None) -> Self:
        """Loads a checkpoint with its data; ValueError if they do not belong together, or the data are not given."""
        if data is None:
            raise ValueError(f"{path} is no package: give --data, the bin directory of its training, for the tokenizer")
        return cls(*load(path, data), data)


def renamed(model: torch.nn.Module, rename: Callable[[str], str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a model under the names of the export, each once; and the name there of each of ours."""
    tensors, names, first = dict[str, Tensor](), dict[str, str](), dict[int, str]()
    for ours, tensor in model.state_dict().items():
        if ours.endswith(FINGERPRINT):
            continue
        names[ours] = first.setdefault(tensor.data_ptr(), rename(ours))
        tensors[names[ours]] = tensor
    return tensors, names


def write_folder(
    out: Path,
    trained: Trained,
    tensors: Mapping[str, Tensor],
    names: dict[str, str],
    config: dict[str, Any],
    generation: dict[str, Any] | None,
    limit: int,
) -> None:
    """Writes the folder and prints what is in it.

    Args:
        tensors, names: of `renamed`.
        config: of transformers; with `auto_map` our code is put into the folder.
        generation: generation_config.json; None for models that generate nothing.
        limit: the longest input of the model, `</s>` included.
    """
    with atomic_directory(out) as folder:
        write_weights(folder, tensors)
        (folder / "config.json").write_text(as_json(config), encoding="utf-8")
        if generation is not None:
            (folder / "generation_config.json").write_text(as_json(generation), encoding="utf-8")
        if "auto_map" in config:
            for module in (MODELING, *LAYERS):
                shutil.copyfile(CODE / f"{module}.py", folder / f"{module}.py")
        data, note = write_tokenizer(folder, trained, limit)
        (folder / ORIGIN).write_text(as_json(origin(trained, names) | {"data": data}), encoding="utf-8")
    parameters = sum(tensor.numel() for tensor in tensors.values())
    print(f"wrote {out}: {len(tensors)} tensors, {parameters:,} parameters, as {config['architectures'][0]}")
    print(note)


def origin(trained: Trained, names: dict[str, str]) -> dict[str, Any]:
    """Settings that `hat import hat_fairseq` needs beside the weights."""
    buffers = {name: t for name, t in trained.model.state_dict().items() if name.endswith(FINGERPRINT)}
    return {
        "updates": trained.updates,
        **recorded(trained.cfg),
        "names": names,
        "fingerprints": {name: tensor.tolist() for name, tensor in buffers.items()},
    }


def write_tokenizer(folder: Path, trained: Trained, limit: int) -> tuple[dict[str, str], str]:
    """Writes the files of the data; returns where the bin directory has each, and a line about the tokenizer."""
    data = {}
    for name, places in DICTIONARIES.items():
        if place := next((place for place in places if (trained.data / place).is_file()), None):
            data[name] = place
    if not (trained.data / FILE_NAME).is_file():
        copy(trained.data, folder, data)
        return data, f"tokenizer: none, because {trained.data} was not made by hat preprocess"
    pipeline = TextPipeline.load(trained.data)
    data |= {name: name for name in (FILE_NAME, *FILES[pipeline.bpe.kind])}
    copy(trained.data, folder, data)
    has_roles = getattr(trained.task, "role_dictionary", None) is not None
    tokenizer = HatTokenizer(str(folder / FILE_NAME), limit, has_roles, "<mask>" in trained.task.source_dictionary)
    tokenizer.save_pretrained(folder)
    return data, f"tokenizer: HatTokenizer, BPE {pipeline.bpe.kind}, splitter {pipeline.settings.splitter}"


def copy(data: Path, folder: Path, names: Mapping[str, str]) -> None:
    for name, place in names.items():
        shutil.copyfile(data / place, folder / name)


def restore(directory: Path, out: Path, overwrite: bool) -> int:
    """Writes the checkpoint that a folder was made of, and beside it `bin` with its data; ValueError for any other."""
    from ..fairseq_fixes.checkpoints import package_settings

    if not (directory / ORIGIN).is_file():
        raise ValueError(f"{directory / ORIGIN} is missing: not a folder of hat export")
    known = ("updates", "namespaces", "cfg", "names", "fingerprints", "data")
    fields = Fields(read_json(directory / ORIGIN), str(directory / ORIGIN), known)
    names, data, data_folder = fields.get("names", dict), fields.get("data", dict), out.parent / BIN
    places = {place for each in DICTIONARIES.values() for place in each} | FLAT
    if surplus := sorted((set(data.values()) - places) | (data.keys() - DICTIONARIES.keys() - FLAT)):
        raise fields.error(f"refused, because it names {surplus[0]!r}, which is no file of the data")
    for path in (out, *(data_folder / place for place in data.values())):
        if path.exists() and not overwrite:
            raise ValueError(f"{path} exists; give another --out or --overwrite")
    weights = read_weights(directory)
    bias, types = weights.pop("final_logits_bias", None), weights.pop(f"roberta.{TYPES}", None)
    if bias is not None and bool(bias.any()):
        raise ValueError(f"{directory}: final_logits_bias is not zero, and fairseq's BART has no bias on its output")
    if missing := sorted(set(names.values()) - weights.keys()):
        raise ValueError(f"{directory}: {len(missing)} tensors are missing: {', '.join(missing[:8])}")
    if unknown := sorted(weights.keys() - set(names.values())):
        raise ValueError(f"{directory}: {len(unknown)} tensors are unknown: {', '.join(unknown[:8])}")
    model = {ours: weights[theirs] for ours, theirs in names.items()}
    if types is not None and bool(types.any()):  # trained further: every token has this row
        model[POSITIONS] = model[POSITIONS] + types
    fingerprints = Fields(fields.get("fingerprints", dict), f"{fields.where}: fingerprints")
    for name in fingerprints.record:
        if not name.endswith(FINGERPRINT):
            raise fields.error(f"{name!r:.80} is no fingerprint")
        model[name] = torch.tensor(fingerprints.items(name, int))
    cfg: Any = OmegaConf.create(package_settings(fields, data_folder), flags={"allow_objects": True})
    for name, place in data.items():
        (data_folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / name, data_folder / place)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(bare_checkpoint(model, cfg, fields.get("updates", int)), file)
    print(f"wrote {out}: {len(names)} tensors, and {data_folder}: {', '.join(sorted(data.values()))}")
    print(f"use it with --path {out} --data {data_folder}, or start from it with --finetune-from-model {out}")
    return 0
