"""`hat import hat_fairseq`: converts a folder of `hat export` back to a checkpoint with its data.

The weights may have been trained further with transformers: the names and shapes of the tensors must be the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from ..data.bpe import FILES
from ..data.files import Fields
from ..data.outputs import atomic_file
from ..data.package import BIN, bare_checkpoint
from ..data.pipeline import FILE_NAME
from .export_folder import DICTIONARIES, FINGERPRINT, ORIGIN
from .hugging_face import read_json, read_weights
from .roberta import POSITIONS, TYPES

FLAT = {FILE_NAME, *(name for names in FILES.values() for name in names)}  # of the data, without dictionaries


def restore(directory: Path, out: Path, overwrite: bool) -> int:
    """Writes the checkpoint and beside it the folder `bin` with dictionaries, pipeline and BPE.

    Raises:
        ValueError: no folder of `hat export`, tensors that are missing or unknown, or outputs that exist.
    """
    from ..fairseq_fixes.packages import settings

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
    for name, words in fields.get("fingerprints", dict).items():
        if not name.endswith(FINGERPRINT):
            raise fields.error(f"{name!r:.80} is no fingerprint")
        model[name] = torch.tensor(words)
    cfg: Any = OmegaConf.create(settings(fields, data_folder), flags={"allow_objects": True})
    for name, place in data.items():
        (data_folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / name, data_folder / place)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(bare_checkpoint(model, cfg, fields.get("updates", int)), file)
    print(f"wrote {out}: {len(names)} tensors, and {data_folder}: {', '.join(sorted(data.values()))}")
    print(f"use it with --path {out} --data {data_folder}, or start from it with --finetune-from-model {out}")
    return 0
