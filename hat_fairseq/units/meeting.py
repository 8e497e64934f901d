"""The model `meeting`, which finds what answers a question in a transcript: layers over turns on all-MiniLM-L6-v2.

This package carries the layers, and the extra `minilm` the rest. `assembled` makes of both a folder as `hat export`
writes it. `.ci/take_meeting_apart.py` takes such a folder apart.
"""

import os
import shutil
from pathlib import Path

from torch import Tensor

from ..data.checksums import Checksums, checksums_of
from ..data.dictionary import Dictionary
from ..data.files import json_text, sha256_of
from ..data.outputs import atomic_directory, waiting
from ..data.pipeline import BPE_FILES
from ..data.tokenizer_bpe import TokenizerBpe
from ..model_folder import BIN, MANIFEST, WEIGHTS, check_files, read_tensors
from ..weights import bert, minilm
from ..weights.hugging_face import read_config, read_weights, write_weights
from .evidence import EvidenceKind

FOLDER = Path(__file__).resolve().parents[1] / "meeting_model"
TOKENIZER = f"{BIN}/{BPE_FILES['tokenizer'][0]}"
DICTIONARY = f"{BIN}/{EvidenceKind.folder}/dict.txt"


def assembled() -> Path:
    """Returns the folder of the whole model, which is written once into the user's cache, and anew if it was emptied.

    ValueError if MiniLM is not installed, or the folder cannot be written.
    """
    check_files(FOLDER)
    cache = cache_folder()
    out = cache / f"meeting-{sha256_of(FOLDER / MANIFEST)[:16]}"
    if is_whole(out):
        return out
    tensors, tokenizer = read_minilm(minilm.find())
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with waiting(cache):
            if not is_whole(out):  # another process may have written it meanwhile
                shutil.rmtree(out, ignore_errors=True)
                write(out, tensors, tokenizer)
    except OSError as error:
        raise ValueError(
            f"{cache} cannot be written ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from error
    except ValueError:  # where there are no locks, another process may have been faster
        if not is_whole(out):
            raise
    return out


def cache_folder() -> Path:
    """Returns the folder of this package in the user's cache; ValueError if there is no home directory."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hat_fairseq"
    except RuntimeError:
        raise ValueError("the home directory is not known: set HOME, or XDG_CACHE_HOME to a folder") from None


def is_whole(out: Path) -> bool:
    """Returns whether a folder has the files of its manifest; their hashes are compared when it is loaded."""
    try:
        checksums = Checksums.read(out)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return not any(checksums.problems(out, checksums.hashes, most_hashed=0))


def write(out: Path, tensors: dict[str, Tensor], tokenizer: TokenizerBpe) -> None:
    """Writes the layers of this package and those of MiniLM."""
    with atomic_directory(out) as folder:
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(WEIGHTS, MANIFEST))
        tokenizer.save(folder / TOKENIZER)
        (folder / DICTIONARY).parent.mkdir()
        Dictionary.of(tokenizer.symbols).save(folder / DICTIONARY)
        write_weights(folder, read_tensors(FOLDER / WEIGHTS) | tensors)
        (folder / MANIFEST).write_text(json_text(checksums_of(folder), indent=2) + "\n", encoding="utf-8")


def read_minilm(folder: Path) -> tuple[dict[str, Tensor], TokenizerBpe]:
    """Returns the tensors of MiniLM under the names of our RoBERTa, and its tokenizer."""
    config = read_config(folder / "config.json", bert.FIXED, bert.REQUIRED, "hat_units")
    tokenizer = bert.read_tokenizer(folder, config["vocab_size"])
    named = bert.BERT.named(read_weights(folder), config, tokenizer, [])
    return {own: tensor for own, (_, tensor) in named.items()}, tokenizer
