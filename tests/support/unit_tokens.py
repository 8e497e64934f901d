"""Rows of drawn units for `hat_units`, cut into segments of 9 positions, and their vectors."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from building import TINY_ENCODER, Vocabulary, build
from torch import Tensor

from hat_fairseq.networks.encoder import Encoder
from hat_fairseq.units.vector_file import VectorFile

BOS, PAD, EOS = 0, 1, 2
FLAGS = f"{TINY_ENCODER} --max-positions 20 --segment-length 9"


def evidence_model(flags: str = "") -> Any:
    model = build("hat_units_tiny", f"{FLAGS} --unit-dropout 0.1{flags}", Vocabulary(mask=True))
    model.register_classification_head("evidence", num_classes=1, level="evidence")
    return model.eval()


def keeping(model: Any, path: Path) -> Any:
    """The model, which keeps its vectors in a file, as a task sets it up for `--vectors`."""
    model.core.store = VectorFile(path)
    return model


def row(questions: list[list[int]], units: list[list[int]]) -> list[int]:
    parts = [[token for each in part for token in (BOS, *each)] for part in (questions, units)]
    return [*parts[0], EOS, EOS, *parts[1], EOS]


def drawn(*lengths: int, seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, 20, (length,), generator=generator).tolist() for length in lengths]


def padded(*rows: list[int]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), batch_first=True, padding_value=PAD)


def states(model: Any, piece: list[int]) -> Tensor:
    return Encoder.forward(model.core, torch.tensor([[BOS, *piece, EOS]])).tokens[0]


def vector(model: Any, segment: list[int]) -> Tensor:
    """The definition: the mean over the tokens of all its pieces, markers included, then length 1."""
    pieces = [segment[i : i + 7] for i in range(0, max(1, len(segment)), 7)]
    return F.normalize(torch.cat([states(model, piece) for piece in pieces]).mean(dim=0), dim=0)


def contexts(model: Any, units: list[list[int]]) -> list[Tensor]:
    """The definition: each chunk has 7 tokens, but for the first and last ones 0 (7 // 8) of them are a margin."""
    tokens = [token for unit in units for token in unit]
    flat = torch.cat([states(model, tokens[i : i + 7])[1:-1] for i in range(0, len(tokens), 7)])
    return [part.mean(dim=0) for part in flat.split(list(map(len, units)))]
