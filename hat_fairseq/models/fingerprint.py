"""The fingerprint of a dictionary, a buffer of the model, so that checkpoints contain it.

A wrong dictionary of the right size would load without an error and give wrong text. Every command that loads the
weights therefore compares the fingerprints.
"""

import hashlib

import torch
from fairseq.data import Dictionary
from torch import Tensor

BUFFER = "_fingerprint"  # the names of all these buffers end with it


def fingerprint(dictionary: Dictionary) -> Tensor:
    """sha256 of the symbols in order, as 8 words of 32 bits.

    The words are int64: averaging checkpoints sums all tensors and divides, which is exact for equal words.
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
