"""The list of architectures: name, network, number of parameters and paper of each."""

from argparse import Namespace
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from ..networks import build
from .architectures import ARCHITECTURES, LRA_MODELS

SYMBOLS, SYMBOLS_OF_LRA = 50_265, 260  # of RoBERTa's dictionary; bytes and special symbols
PAPERS = {  # by how the names of architectures begin
    "hat_units": "layers over sentences or turns, of this package",
    "hat_": "HAT, Rohde et al. 2021",
    "poolingformer": "Poolingformer, Zhang et al. 2021",
    "ernie_sparse": "ERNIE-Sparse, Liu et al. 2022",
    "bigbird": "BigBird, Zaheer et al. 2020",
    "transformer_lra": "Long Range Arena, Tay et al. 2021",
    "hierarchical_transformer": "Chalkidis et al. 2022",
}


def architectures() -> list[dict[str, Any]]:
    """Returns what is known of each architecture, in the order of the table."""
    pairs = [(name, network) for network, names in ARCHITECTURES.items() for name in names]
    return [
        {"name": name, "network": network, "parameters": parameters_of(name, network), "paper": paper_of(name)}
        for name, network in pairs
    ]


def parameters_of(name: str, network: str) -> int:
    """Counts the parameters with RoBERTa's dictionary, of Long Range Arena with bytes; on tensors without memory."""
    settings = Namespace()
    ARCH_CONFIG_REGISTRY[name](settings)
    symbols = SYMBOLS_OF_LRA if name.startswith(tuple(f"{model}_lra_" for model in LRA_MODELS)) else SYMBOLS
    description = {"network": network, "settings": vars(settings), "vocab_size": symbols, "source_vocab_size": symbols}
    sides = ("max_source_positions", "max_target_positions")
    positions = {side: getattr(settings, side) for side in sides if hasattr(settings, side)}
    with torch.device("meta"):
        model = build({**description, **positions, "num_roles": 0, "heads": {}})
    return sum(each.numel() for each in model.parameters())


def paper_of(name: str) -> str:
    """Returns the paper of an architecture."""
    return next((paper for beginning, paper in PAPERS.items() if name.startswith(beginning)), "")
