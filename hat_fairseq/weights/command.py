"""Convert weights of other projects to fairseq's checkpoint layout: RoBERTa's, and released hierarchical ones.

`roberta`: a Hugging Face RoBERTa, with or without its masked-LM head, for `hat_roberta` and `hierarchical_transformer`.
`kiddothe2b`: the Hierarchical Attention Transformers of Chalkidis et al. 2022.

Either is a folder with `config.json` and `model.safetensors` or `pytorch_model.bin`. The output holds tensors, numbers
and strings only. The flags that build the network are printed; for released hierarchical weights those that compute
what the weights were trained to compute, which is without segment positions, and the quirks of the authors' code apart.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from . import checkpoint, released_hat_config, roberta
from .gpt2_dictionary import MASK, SPECIALS
from .hugging_face import folder_of, read_symbols, read_weights
from .released_hat import from_hugging_face


@dataclass
class Converted:
    """What an importer returns.

    Attributes:
        model: state under our names.
        vocab_size: rows of the embedding, for the dictionary.
        starts: flags that build a network for it, each list one way to start.
        report: what else there is to say.
        architecture: our settings, kept in the checkpoint for `hat export`.
    """

    model: dict[str, Tensor]
    starts: list[list[str]]
    report: list[str]
    architecture: dict[str, Any] | None = field(default=None)


def import_roberta(args: argparse.Namespace, config: dict[str, Any]) -> Converted:
    model, report = roberta.convert_weights(read_weights(args.directory), config)
    starts = [roberta.size_flags(config), roberta.hierarchical_flags(config)]
    report.append("newly initialised when training starts, and listed in its log: what only the hierarchy has")
    return Converted(model, starts, report)


def import_chalkidis(args: argparse.Namespace, config: dict[str, Any]) -> Converted:
    positions = args.segment_positions or "none"
    weights = read_weights(args.directory)
    model = from_hugging_face(weights, positions == "add")
    released_hat_config.check_shapes(model, config, args.directory / "config.json")
    settings = released_hat_config.settings(config, len(model["encoder.embed_positions.weight"]), positions)
    quirks = released_hat_config.QUIRKS
    report = [f"to compute what the authors' code computes: {' '.join(released_hat_config.flags(quirks))}"]
    start = ["--arch", "hierarchical_transformer", *released_hat_config.flags(settings)]
    head = released_hat_config.head_settings(weights)
    if head["task"] != "masked_lm":
        report.append(f"its head is loaded by {' '.join(released_hat_config.flags(head))}")
    return Converted(model, [start], report, {"arch": "hierarchical_transformer", **settings, **quirks, **head})


def check_mask(symbols: list[str] | None, vocab_size: int) -> None:
    """ValueError where the vocabulary has no `<mask>`, which every masked-LM and encoder task has a row for."""
    if symbols is not None and MASK not in symbols and vocab_size == len(SPECIALS) + len(symbols):
        raise ValueError(f"the vocabulary has no {MASK}; fairseq's RoBERTa has a row for it, the last one")


READERS = {
    "kiddothe2b": (released_hat_config.read_chalkidis_config, import_chalkidis),
    "roberta": (roberta.read_roberta_config, import_roberta),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", choices=sorted(READERS), help="whose weights they are")
    checkpoint.add_arguments(parser)
    parser.add_argument(
        "--segment-positions",
        choices=["none", "add"],
        help="kiddothe2b, default none; add: for weights that were trained with positions of segments (none of the "
        "released ones)",
    )


def main(args: argparse.Namespace) -> int:
    if args.segment_positions and args.release != "kiddothe2b":
        raise ValueError(f"--segment-positions is for kiddothe2b, {args.release} has no segments")
    read_config, convert = READERS[args.release]
    config = read_config(folder_of(args) / "config.json")
    symbols = read_symbols(args.directory, config["vocab_size"])
    checkpoint.refuse_existing(args, symbols)
    check_mask(symbols, config["vocab_size"])
    converted = convert(args, config)
    checkpoint.write_files(args.out, converted.model, symbols, converted.architecture)
    print("start training from it (and resume after an interruption) with:")
    for flags in converted.starts:
        print(f"  {' '.join(flags)} --finetune-from-model {args.out}")
    for line in converted.report:
        print(line)
    return 0
