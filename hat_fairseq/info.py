"""Say what a checkpoint, the folder of a model, or a directory of data is: network, task, limits, data, files.

Nothing is loaded into a model: settings and the sizes of tensors are read, so it is fast for every size. Without MODEL
the packaged models and the architectures are listed.
"""

import argparse
import json
import math
import struct
import zipfile
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .data.dictionary import DICTIONARIES, find_dictionary
from .data.files import check_lfs, json_text, read_json
from .data.pipeline import FILE_NAME, TextPipeline
from .fairseq_commands import require_fairseq
from .model_folder import CARD, ModelFolder, is_model_folder
from .printed import aligned
from .weights.read_card import Card
from .weights.vector_settings import VectorSettings

MANIFEST = "manifest.json"
DTYPES = {"F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16"}  # of weights; fingerprints are whole numbers
LIMITS = ("max_source_tokens", "long_source", "max_segments")
OF_TARGETS = ("max_target_tokens", "long_target")
UNLIMITED = 2**31 - 1
PACKAGED = {  # models of this package: their folders, and what uses them
    "demo": ("demo_model", "hat generate demo INPUT --out FILE: summaries of meetings of AMI"),
    "meeting": ("meeting_model", "hat ask TRANSCRIPT QUESTION: passages of meetings that answer questions"),
}
Facts = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a checkpoint, the folder of a model, a directory of hat preprocess, demo, meeting, or USER/NAME on the "
    text += "Hugging Face Hub"
    text += " (default: list the packaged models and the architectures)"
    parser.add_argument("model", nargs="?", metavar="MODEL", help=text)
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of lines")


def main(args: argparse.Namespace) -> int:
    """Prints what is known of a path; without one the models and architectures of this package."""
    if args.model is None:
        known = catalogue()
        print(json_text(known, indent=2) if args.json else "\n".join(tables_of(known)))
        return 0
    facts = {name: value for name, value in info(args.model).items() if value not in (None, {}, [], "")}
    print(json_text(facts, indent=2) if args.json else "\n".join(lines_of(facts)))
    return 0


def catalogue() -> dict[str, list[Facts]]:
    """Returns the packaged models, and the architectures that `--arch` takes; ValueError without fairseq."""
    require_fairseq("hat info")
    from .register import register

    register()
    from .models.catalogue import architectures

    return {"models": [packaged(name, *each) for name, each in PACKAGED.items()], "architectures": architectures()}


def packaged(name: str, folder: str, use: str) -> Facts:
    """Returns what the card of a packaged model says, and the command that uses it."""
    facts = Card.read(Path(__file__).with_name(folder) / CARD).facts
    number = int(facts["parameters"].partition(" ")[0].replace(",", ""))
    architecture = facts["architecture, task"].partition(",")[0]
    return {"name": name, "architecture": architecture, "parameters": number, "use": use}


def tables_of(known: Mapping[str, Sequence[Facts]]) -> list[str]:
    """Returns a line for each packaged model and each architecture."""
    lines = ["models of this package:"]
    lines += [f"{each['name']:36}{each['parameters']:>13,}  {each['use']}" for each in known["models"]]
    lines += [
        "",
        "architectures, for hat train --arch NAME, with the 50,265 symbols of RoBERTa (Long Range Arena: bytes):",
    ]
    return lines + [f"{each['name']:36}{each['parameters']:>13,}  {each['paper']}" for each in known["architectures"]]


def info(name: str) -> Facts:
    """Returns facts about a path or a name; ValueError for what is none of these."""
    from .weights.names import local_path

    path = Path(name) if Path(name).exists() else Path(local_path(name))
    if not path.exists():
        raise ValueError(f"{name} does not exist: give a checkpoint, the folder of a model, or a directory of data")
    if path.is_file():
        return checkpoint_facts(path)
    if is_model_folder(path):
        return folder_facts(path)
    if (directory := next((each for each in (path, path / "bin") if (each / FILE_NAME).is_file()), None)) is not None:
        return data_facts(directory)
    raise ValueError(f"{path} is no folder of a model (config.json), and no directory of hat preprocess ({FILE_NAME})")


def folder_facts(path: Path) -> Facts:
    """Returns what the folder of a model says; its tensors are not read."""
    folder = ModelFolder.open(path)
    if folder.description is None and not folder.origin.record:
        return encoder_facts(path)
    task, model = (folder.origin.record.get("cfg", {}).get(name, {}) for name in ("task", "model"))
    described, sizes = folder.description or {}, Counter[str]()
    for file in sorted(path.glob("*.safetensors")):
        sizes.update(tensors_of(file))
    card = Card.read(path / CARD)
    names = ("max_source_positions", "max_target_positions")
    limits: dict[str, Any] = {name: described[name] for name in names if described.get(name, UNLIMITED) != UNLIMITED}
    return {
        "what": "folder of a model",
        "path": str(path),
        "architecture": model.get("arch"),
        "network": described.get("network"),
        "task": task.get("_name"),
        **parameters(sizes),
        "updates": folder.origin.record.get("updates"),
        **of_bin(folder.data, limits),
        "trained on": card.facts.get("trained on"),
        "compared": VectorSettings.read(path).compared,
        "licence": card.fields.get("license"),
        "files": files_of(path),
    }


def encoder_facts(path: Path) -> Facts:
    """Returns what `hat import` would do with a folder of the Hugging Face Hub."""
    require_fairseq("hat info of a folder for hat import")
    from .weights.command import examined

    facts = {"what": "folder for hat import", "path": str(path)}
    try:
        family, compared = examined(path)
    except ValueError as error:
        return facts | {"refused": str(error)}
    return facts | {"read as": family, "compared": "; ".join(compared)}


def checkpoint_facts(path: Path) -> Facts:
    """Returns what a checkpoint of fairseq says; ValueError for another file."""
    import torch

    from .fairseq_fixes.trust import allow_checkpoint_types, named_failures

    check_lfs(path)
    allow_checkpoint_types()
    with named_failures(str(path)):
        state = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
    if not isinstance(state, dict) or "model" not in state:
        raise ValueError(f"{path} is no checkpoint of fairseq: it has no weights under 'model'")
    settings = state.get("cfg") or {}
    task, model = ({**plain(settings.get(name) or state.get("args") or {})} for name in ("task", "model"))
    tensors = {each.data_ptr(): each for each in state["model"].values()}
    sizes = Counter[str]()
    for each in tensors.values():
        if each.is_floating_point():
            sizes[str(each.dtype).removeprefix("torch.").replace("float", "fp").replace("bfp", "bf")] += each.numel()
    names = ("max_source_positions", "max_target_positions", "max_positions")
    data = Path(str(task.get("data") or model.get("data") or ""))
    bin_directory = data if (data / FILE_NAME).is_file() else None
    return {
        "what": "checkpoint of fairseq",
        "path": str(path),
        "architecture": model.get("arch"),
        "task": task.get("_name") or task.get("task"),
        **parameters(sizes),
        "updates": (state.get("optimizer_history") or [{}])[-1].get("num_updates"),
        **(of_bin(bin_directory, {name: task[name] for name in names if task.get(name)}) if bin_directory else {}),
        "trained on": str(data) if data.name else None,
        "compared": (state.get("extra_state") or {}).get("compared"),
        "files": {path.name: path.stat().st_size},
    }


def data_facts(path: Path) -> Facts:
    """Returns what a directory of `hat preprocess` says."""
    manifest = read_json(path.parent / MANIFEST) if (path.parent / MANIFEST).is_file() else {}
    splits = {name: split["documents"] for name, split in manifest.get("splits", {}).items()}
    return {
        "what": "data of hat preprocess",
        "path": str(path),
        "reader": manifest.get("reader"),
        "documents": splits,
        **of_bin(path, {}),
        "files": files_of(path),
    }


def of_bin(path: Path, limits: Mapping[str, Any]) -> Facts:
    """Returns kind, limits, languages, vocabulary and labels of a `bin` directory; nothing without one."""
    if not (path / FILE_NAME).is_file():
        return {"limits": dict(limits)}
    pipeline = TextPipeline.load(path)
    settings = asdict(pipeline.settings)
    names = (*LIMITS, *OF_TARGETS) if pipeline.kind.has_target else LIMITS
    stated = {name: settings[name] for name in names if settings.get(name)}
    entries = {}
    for stream in DICTIONARIES:
        if (file := find_dictionary(path, stream)) is not None:
            entries[stream] = sum(1 for line in file.open("rb") if line.strip())
    return {"kind": pipeline.kind.name, "limits": {**limits, **stated}, "vocabulary": entries}


def tensors_of(path: Path) -> Counter[str]:
    """Counts the numbers of each type in a safetensors file, from its head alone."""
    check_lfs(path)
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(min(length, path.stat().st_size)))
    counts = Counter[str]()
    for name, each in head.items():
        if name != "__metadata__" and each["dtype"] in DTYPES:
            counts[DTYPES[each["dtype"]]] += math.prod(each["shape"])
    return counts


def parameters(sizes: Mapping[str, int]) -> Facts:
    """Returns the number of parameters, and the types that they are stored in."""
    return {"parameters": sum(sizes.values()), "precision": ", ".join(sizes)}


def plain(section: Any) -> dict[str, Any]:
    """Returns a section of settings as a dictionary."""
    return vars(section) if isinstance(section, Namespace) else dict(section)


def files_of(folder: Path) -> dict[str, int]:
    """Returns the sizes of the files of a folder by their names in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def lines_of(facts: Facts) -> list[str]:
    """Returns a line for each fact."""
    return aligned([[name, written(value)] for name, value in facts.items()])


def written(value: Any) -> str:
    """Writes a number with separators, and pairs on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {written(each)}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
