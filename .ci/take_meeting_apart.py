"""Take a trained folder of layers on MiniLM apart, into what hat_fairseq/meeting_model has.

python .ci/take_meeting_apart.py FOLDER OUT
"""

import shutil
import sys
from pathlib import Path

import torch

from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.files import json_text
from hat_fairseq.data.outputs import atomic_directory
from hat_fairseq.model_folder import MANIFEST, WEIGHTS, check_files, read_tensors
from hat_fairseq.units.meeting import DICTIONARY, TOKENIZER, read_minilm
from hat_fairseq.weights import minilm
from hat_fairseq.weights.hugging_face import write_weights


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
        (folder / MANIFEST).write_text(json_text(checksums_of(folder), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    take_apart(*map(Path, sys.argv[1:]))
