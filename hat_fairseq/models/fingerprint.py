"""A dictionary's fingerprint, kept in the checkpoint as a buffer.

A wrong dictionary of the right size loads without a complaint and gives wrong text. Kept beside the weights, the
fingerprint is checked by everything that loads them: restore, resume, validate, generate, interactive and `inference`
interface.
"""

import hashlib

import torch
from fairseq.data import Dictionary
from torch import Tensor

BUFFER = "_fingerprint"  # every buffer of this kind ends so


def fingerprint(dictionary: Dictionary) -> Tensor:
    """sha256 of the symbols in order, as 8 words of 32 bits.

    int64 words, because checkpoint averaging sums all tensors and divides: equal words come back exactly.
    """
    digest = hashlib.sha256("\n".join(dictionary.symbols).encode("utf-8")).digest()
    return torch.tensor([int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4)])


def check_fingerprints(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    """Compares the fingerprints of a checkpoint's `state` with the model's; a checkpoint from elsewhere has none.

    Raises:
        ValueError: a dictionary differs.
    """
    for name in [name for name in own if name.endswith(BUFFER)]:
        found = state.setdefault(name, own[name].clone())
        if not torch.equal(found.cpu(), own[name].cpu()):
            raise ValueError(
                f"{name}: the checkpoint was trained with another dictionary "
                f"({_short(found)}, here {_short(own[name])}): "
                "use the dict.*.txt files of the data directory that it was trained on"
            )


def _short(words: Tensor) -> str:
    return "sha256 " + "".join(f"{int(word):08x}" for word in words[:2]) + "..."
