"""Write a trained model as a folder that Hugging Face's transformers reads: weights, settings and tokenizer.

`hat_transformer`, `hat_bart`, `hat_roberta`, `ernie_sparse`: with our own code in the folder, or without hierarchy as
BART and RoBERTa where they are that; the same hypotheses, scores and logits. `hat import hat_fairseq` reads a folder
back.
"""

import argparse
from pathlib import Path
from typing import Any

from ..data.package import BIN, is_package
from . import export_hat, export_roberta

EXPORTERS = {  # registered name of a model -> what exports it
    "hat_transformer": export_hat.export,
    "hat_bart": export_hat.export,
    "hat_roberta": export_roberta.export,
    "ernie_sparse": export_roberta.export,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=["hf"], required=True, help="hf: the folder that Hugging Face's classes read")
    parser.add_argument("--path", type=Path, required=True, help="checkpoint or package")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; it must not exist")
    data = "bin directory of the training: tokenizer, labels (default: that of the package)"
    parser.add_argument("--data", type=Path, metavar="BIN", help=data)
    defaults = "fairseq generation options as JSON, e.g. '{\"beam\": 4}' (default: those of the package)"
    parser.add_argument("--generation", metavar="JSON", help=defaults)


def main(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise ValueError(f"{args.out} exists; give another --out")
    checkpoint = read_checkpoint(args.path)
    name = model_of(checkpoint, args.path)
    if name not in EXPORTERS:
        raise ValueError(f"{args.path} is a {name}: it cannot be exported; {', '.join(EXPORTERS)} can")
    args.data = args.path / BIN if args.data is None and is_package(args.path) else args.data
    EXPORTERS[name](args, checkpoint)
    return 0


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The content of a checkpoint of training or import; ValueError without settings."""
    from fairseq import checkpoint_utils

    from ..register import register

    register()
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    checkpoint = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if checkpoint.get("cfg") is None:
        raise ValueError(f"{path} has weights and no settings of a training: train with it first")
    return checkpoint


def model_of(checkpoint: dict[str, Any], path: Path) -> str:
    """The registered name of the model, or of an architecture that is not known."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

    model = checkpoint["cfg"]["model"]
    values = model if isinstance(model, dict) else vars(model)
    name = values.get("arch") or values.get("_name")
    model_class = (ARCH_MODEL_REGISTRY | MODEL_REGISTRY).get(name)
    return next((known for known in MODEL_REGISTRY if MODEL_REGISTRY[known] is model_class), str(name))
