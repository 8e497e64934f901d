"""The model `meeting`, which finds what answers a question in a transcript: layers over turns on all-MiniLM-L6-v2.

This package carries the layers, and the extra `minilm` the rest. `assembled` makes of both a folder as `hat export`
writes it. `python -m hat_fairseq.weights.meeting FOLDER OUT` takes such a folder apart.
"""

import os
import shutil
import sys
from pathlib import Path

import torch
from torch import Tensor

from ..data.dictionary import Dictionary
from ..data.files import json_text, sha256_of
from ..data.kinds.evidence import EvidenceKind
from ..data.outputs import atomic_directory
from ..data.pipeline import BPE_FILES
from ..data.tokenizer_bpe import TokenizerBpe
from ..model_folder import BIN, MANIFEST, WEIGHTS, check_files, describe_files, read_tensors
from . import bert, minilm, roberta
from .hugging_face import read_config, read_weights, write_weights

FOLDER = Path(__file__).resolve().parents[1] / "meeting_model"
TOKENIZER = f"{BIN}/{BPE_FILES['tokenizer'][0]}"
DICTIONARY = f"{BIN}/{EvidenceKind.folder}/dict.txt"


def assembled() -> Path:
    """Returns the folder of the whole model, which is written once into the user's cache.

    ValueError if MiniLM is not installed, or the folder cannot be written.
    """
    check_files(FOLDER)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hat_fairseq"
    out = cache / f"meeting-{sha256_of(FOLDER / MANIFEST)[:16]}"
    if out.is_dir():
        return out
    tensors, tokenizer = read_minilm(minilm.find())
    try:
        with atomic_directory(out) as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(WEIGHTS, MANIFEST))
            tokenizer.save(folder / TOKENIZER)
            (folder / DICTIONARY).parent.mkdir()
            Dictionary.of(tokenizer.symbols).save(folder / DICTIONARY)
            write_weights(folder, read_tensors(FOLDER / WEIGHTS) | tensors)
            (folder / MANIFEST).write_text(json_text(describe_files(folder), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ValueError(
            f"{cache} cannot be written ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from error
    return out


def read_minilm(folder: Path) -> tuple[dict[str, Tensor], TokenizerBpe]:
    """Returns the tensors of MiniLM under the names of our RoBERTa, and its tokenizer."""
    config = read_config(folder / "config.json", bert.FIXED, bert.NUMBERS, "hat_evidence")
    tokenizer = bert.read_tokenizer(folder, config["vocab_size"])
    weights, _, _ = bert.as_roberta(read_weights(folder), config, tokenizer)
    weights = {
        name: x for name, x in weights.items() if name != roberta.TYPES and not name.endswith(roberta.NO_WEIGHTS)
    }
    return {roberta.TABLE.own_name(name): x for name, x in weights.items()}, tokenizer


def take_apart(model: Path, out: Path) -> None:
    """Writes what a folder has beside MiniLM; ValueError if it is not one of layers on this very encoder."""
    check_files(model)
    tensors, (others, tokenizer) = read_tensors(model / WEIGHTS), read_minilm(minilm.find())
    for name, tensor in others.items():
        if name not in tensors or not torch.equal(tensors.pop(name), tensor):
            raise ValueError(f"{model}: {name} is not that of MiniLM: train with --freeze-encoder")
    with atomic_directory(out) as folder:
        shutil.copytree(model, folder, dirs_exist_ok=True)
        tokenizer.save(folder / TOKENIZER)
        Dictionary.of(tokenizer.symbols).save(folder / DICTIONARY)
        for name in (TOKENIZER, DICTIONARY):
            if (folder / name).read_bytes() != (model / name).read_bytes():
                raise ValueError(f"{model / name} is not that of MiniLM")
            (folder / name).unlink()
        (folder / DICTIONARY).parent.rmdir()
        for name in (WEIGHTS, MANIFEST):
            (folder / name).unlink()
        write_weights(folder, tensors)
        (folder / MANIFEST).write_text(json_text(describe_files(folder), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    take_apart(*map(Path, sys.argv[1:]))
