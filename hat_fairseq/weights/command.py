"""Convert released weights to fairseq's checkpoint layout.

`bart`: a Hugging Face BART, for `hat_bart` and fairseq's BART.
`roberta`: a Hugging Face RoBERTa, with or without its masked-LM head, for `hat_roberta` and `hierarchical_transformer`.
`xlm_roberta`: likewise a Hugging Face XLM-RoBERTa, whose vocabulary is a sentencepiece model.
`hierarchical_transformer`: the Hierarchical Attention Transformers of Chalkidis et al. 2022.
`hat_fairseq`: a folder of `hat export`, with the settings of its training and its data.

The input is a folder with `config.json` and `model.safetensors` or `pytorch_model.bin`. The output holds tensors,
numbers and strings only. The flags that build the model are printed in one line, to be pasted after `fairseq-train`.
For `hierarchical_transformer` they compute what the weights were trained to compute.
"""

import argparse
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.dictionary import SPECIAL
from ..data.files import Fields
from ..data.outputs import atomic_file
from ..data.pipeline import BPE_FILES, FILE_NAME
from ..data.sentencepiece_bpe import MODEL
from ..package_files import BIN, bare_checkpoint
from . import bart, released_hat, roberta
from .hugging_face import read_config, read_json, read_weights
from .rename import Converted
from .vocabulary import MASK, read_pieces, read_symbols

EXPORTED = "hat_fairseq"  # a folder of `hat export`


@dataclass(frozen=True)
class Release:
    """How the folder of a release is read; `fixed`, `numbers` and `target` as in `read_config`."""

    target: str
    fixed: Mapping[str, Any]
    numbers: Sequence[str]
    convert: Callable[..., Converted]  # weights and config to a checkpoint's
    # the lines of dict.txt for that many rows of the embedding; None without the files of the vocabulary
    symbols: Callable[[Path, int], list[str] | None] = read_symbols
    vocabulary: str = "vocab.json and merges.txt"  # names of these files


RELEASES = {
    "bart": Release("fairseq's BART", bart.FIXED, bart.NUMBERS, bart.convert),
    "roberta": Release("fairseq's RoBERTa", roberta.FIXED, roberta.NUMBERS, roberta.convert),
    "xlm_roberta": Release(
        "fairseq's XLM-RoBERTa", roberta.FIXED_XLM, roberta.NUMBERS, roberta.convert, read_pieces, MODEL
    ),
    "hierarchical_transformer": Release(
        "a hierarchical_transformer", roberta.BERT, released_hat.NUMBERS, released_hat.convert
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", choices=[*RELEASES, EXPORTED], help="whose weights they are")
    text = "hierarchical_transformer: add for weights that were trained with positions of segments, which the released "
    text += "ones were not (default: none)"
    parser.add_argument("--segment-positions", choices=["none", "add"], help=text)
    parser.add_argument("directory", type=Path, metavar="HF_DIR", help="folder with config.json and the weights")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="checkpoint to write; dict.txt goes beside it"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")


def main(args: argparse.Namespace) -> int:
    if args.segment_positions and args.release != "hierarchical_transformer":
        raise ValueError(f"--segment-positions is for hierarchical_transformer; {args.release} has no segments")
    if not args.directory.is_dir():
        raise ValueError(f"{args.directory} is not a folder")
    if args.release == EXPORTED:
        return restore(args.directory, args.out, args.overwrite)
    release = RELEASES[args.release]
    config = read_config(args.directory / "config.json", release.fixed, release.numbers, release.target)
    symbols = release.symbols(args.directory, config["vocab_size"])
    no_mask = symbols is not None and MASK not in symbols and len(SPECIAL) + len(symbols) == config["vocab_size"]
    if no_mask and args.release != "bart":
        raise ValueError(f"the vocabulary has no {MASK}; fairseq's RoBERTa has a row for it, the last one")
    for path in [args.out] if symbols is None else [args.out, args.out.parent / "dict.txt"]:
        if path.exists() and not args.overwrite:
            raise ValueError(f"{path} exists; give another --out or --overwrite")
    options = {"segment_positions": args.segment_positions} if args.segment_positions else {}
    converted = release.convert(read_weights(args.directory), config, **options)
    write_files(args.out, converted.model, symbols)
    if symbols is None:
        print(f"no {release.vocabulary} in the folder: no dict.txt written")
    elif release.vocabulary == MODEL:
        print(f"preprocess with: --bpe sentencepiece --bpe-dir {shlex.quote(str(args.directory))}")
    print("start training from it (and resume after an interruption) with:")
    for flags in converted.starts:
        print(f"  {shlex.join([*flags, '--finetune-from-model', str(args.out)])}")
    for line in converted.report:
        print(line)
    return 0


def write_files(out: Path, model: dict[str, Tensor], symbols: list[str] | None) -> None:
    """Writes a model as a checkpoint of fairseq, and beside it dict.txt where its entries are known."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(bare_checkpoint(model), file)
    print(f"wrote {out}: {sum(t.numel() for t in set(model.values()) if t.numel() > 1):,} parameters")
    if symbols is None:
        return
    path = out.parent / "dict.txt"
    with atomic_file(path) as file:
        file.write("".join(f"{s} 1\n" for s in symbols).encode())
    print(f"wrote {path}: {len(symbols)} entries, for fairseq-preprocess --srcdict and --tgtdict")


def restore(directory: Path, out: Path, overwrite: bool) -> int:
    """Writes the checkpoint that a folder was made of, and beside it `bin` with its data; ValueError for any other."""
    from omegaconf import OmegaConf

    from ..fairseq_fixes.checkpoints import package_settings
    from .export import DICTIONARIES, FINGERPRINT, ORIGIN

    if not (directory / ORIGIN).is_file():
        raise ValueError(f"{directory / ORIGIN} is missing: not a folder of hat export")
    known = ("updates", "namespaces", "cfg", "names", "fingerprints", "data")
    fields = Fields(read_json(directory / ORIGIN), str(directory / ORIGIN), known)
    names, data, data_folder = fields.get("names", dict), fields.get("data", dict), out.parent / BIN
    files = {FILE_NAME, *(name for names in BPE_FILES.values() for name in names)}  # besides dictionaries
    places = {place for each in DICTIONARIES.values() for place in each} | files
    if surplus := sorted((set(data.values()) - places) | (data.keys() - DICTIONARIES.keys() - files)):
        raise fields.error(f"refused, because it names {surplus[0]!r}, which is no file of the data")
    for path in (out, *(data_folder / place for place in data.values())):
        if path.exists() and not overwrite:
            raise ValueError(f"{path} exists; give another --out or --overwrite")
    model = read_exported(directory, names)
    fingerprints = Fields(fields.get("fingerprints", dict), f"{fields.where}: fingerprints")
    for name in fingerprints.record:
        if not name.endswith(FINGERPRINT):
            raise fields.error(f"{name!r:.80} is no fingerprint")
        model[name] = torch.tensor(fingerprints.items(name, int))
    cfg: Any = OmegaConf.create(package_settings(fields, data_folder), flags={"allow_objects": True})
    for name, place in data.items():
        (data_folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / name, data_folder / place)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(bare_checkpoint(model, cfg, fields.get("updates", int)), file)
    print(f"wrote {out}: {len(names)} tensors, and {data_folder}: {', '.join(sorted(data.values()))}")
    print(f"use it with --path {out} --data {data_folder}, or start from it with --finetune-from-model {out}")
    return 0


def read_exported(directory: Path, names: dict[str, str]) -> dict[str, Tensor]:
    """Reads the weights of a folder of `hat export` under our names; ValueError for missing or unknown tensors."""
    weights = read_weights(directory)
    bias, types = weights.pop("final_logits_bias", None), weights.pop(f"roberta.{roberta.TYPES}", None)
    if bias is not None and bool(bias.any()):
        raise ValueError(f"{directory}: final_logits_bias is not zero, and fairseq's BART has no bias on its output")
    if missing := sorted(set(names.values()) - weights.keys()):
        raise ValueError(f"{directory}: {len(missing)} tensors are missing: {', '.join(missing[:8])}")
    if unknown := sorted(weights.keys() - set(names.values())):
        raise ValueError(f"{directory}: {len(unknown)} tensors are unknown: {', '.join(unknown[:8])}")
    model = {own: weights[other] for own, other in names.items()}
    if types is not None and bool(types.any()):  # trained further: every token has this row
        model[roberta.POSITIONS] = model[roberta.POSITIONS] + types
    return model
