"""Convert the weights of an encoder, or of BART, to fairseq's checkpoint layout or to a folder for `hat embed`.

`hat import DIR --out FILE` finds the family by config.json; `hat import --list` names all. `hat import FAMILY DIR`
reads the folder as that family, and `hat import minilm` all-MiniLM-L6-v2, the BERT that the extra `minilm` installs.

The input is a folder with `config.json` and `model.safetensors`, also in shards, or `pytorch_model.bin`. The output
holds tensors, numbers and strings only. The flags that build the model are printed in one line, to be pasted after
`fairseq-train`.
"""

import argparse
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from ..data.bpe import Bpe
from ..data.dictionary import SPECIAL
from ..data.files import check_lfs
from ..data.outputs import atomic_file, check_output
from ..data.sentencepiece_bpe import MODEL, SentencePieceBpe
from ..data.tokenizer_bpe import CASE, TOKENIZER, TokenizerBpe
from ..model_folder import BIN, bare_checkpoint
from ..networks.families import parse_family
from . import bert, minilm
from .families import MINILM, RELEASES, Release, check_code, family_of, listing
from .hugging_face import MASK, read_bpe, read_config, read_weights
from .proof import UNCHECKED, prove_ids, prove_states
from .rename import Converted, parse_flags
from .untrained import write_untrained
from .vector_settings import of_release

CONFIG = "config.json"
OF_ROBERTA = ("roberta", "xlm_roberta")  # whose rows are in the order of fairseq, whatever tokenizer.json says


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "release",
        metavar="FAMILY",
        nargs="?",
        help=f"{', '.join(RELEASES)} or {MINILM}; by default config.json decides",
    )
    text = "hierarchical_transformer: say whether the weights were trained with positions of segments; the released "
    text += "ones were not (default: none)"
    parser.add_argument("--segment-positions", choices=["none", "add"], help=text)
    text = "the folder with config.json and the weights; minilm is read from the installed package instead"
    parser.add_argument("directory", type=Path, metavar="HF_DIR", nargs="?", help=text)
    parser.set_defaults(wrong_usage=parser.error)
    parser.add_argument("--list", action="store_true", help="print the families, what starts from each, what it loses")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the checkpoint to this file, and dict.txt, and for a BERT tokenizer.json, beside it",
    )
    text = "encoders: write a folder for hat embed, as hat export does, of a model without hierarchy and labels"
    parser.add_argument("--package", type=Path, metavar="DIR", help=text)
    text = "with --package: the maximum number of tokens of a document; beyond that of the weights, positions are "
    text += "copied and attention has windows (default, and at least: that of the weights)"
    parser.add_argument("--max-positions", type=int, metavar="N", help=text)
    text = "do not compare the ids and states with those of the folder's own tokenizer and model"
    parser.add_argument("--unchecked", action="store_true", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace the files of --out and --package")


@dataclass(frozen=True)
class Folder:
    """A folder of weights: how it is read, its config.json, its tokenizer, and the entries of its dictionary.

    `symbols` is None where the files do not say the entries.
    """

    path: Path
    release: Release
    config: dict[str, Any]
    tokenizer: TokenizerBpe | None
    symbols: list[str] | None

    @property
    def bpe(self) -> Bpe | None:
        """Returns what reads a text; None where the files do not say it."""
        if self.tokenizer is not None or self.symbols is None:
            return self.tokenizer
        return SentencePieceBpe(self.path / MODEL) if self.release.vocabulary == MODEL else read_bpe(self.path)

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """Reads all but the weights; ValueError for what cannot be converted."""
        path, release = args.directory, release_of(args)
        check_code(path / CONFIG, release)
        fixed = release.fixed, release.sizes, release.target, release.defaults, release.rename
        config = read_config(path / CONFIG, *fixed)
        if release.tokenizer is not None:
            tokenizer = release.tokenizer(path, config["vocab_size"])
            return cls(path, release, config, tokenizer, tokenizer.symbols)
        symbols = release.symbols(path, config["vocab_size"])
        if args.release != "bart" and symbols is not None and lacks_mask(symbols, config["vocab_size"]):
            raise ValueError(f"the vocabulary has no {MASK}; fairseq's RoBERTa has a row for it, the last one")
        return cls(path, release, config, None, symbols)

    def converted(self, segment_positions: str | None) -> Converted:
        """Converts the weights; ValueError with the folder for those that do not fit."""
        stated = {"segment_positions": segment_positions, "tokenizer": self.tokenizer}
        options = {name: value for name, value in stated.items() if value is not None}
        try:
            return self.release.convert(read_weights(self.path), self.config, **options)
        except ValueError as error:
            if str(self.path) in str(error):
                raise
            raise ValueError(f"{self.path}: {error}") from error

    def compared(self, family: str, converted: Converted) -> list[str]:
        """Compares it with the folder's own tokenizer and model; returns lines about it. ValueError if it differs."""
        rows = self.tokenizer.rows if self.tokenizer is not None else range(self.config["vocab_size"])
        rows = rows if family != "mbart" else [row for row in rows if row is not None]
        bpe, lines = self.bpe, ["ids not compared: the folder has no vocabulary"]
        if bpe is not None and self.symbols is not None:
            lines = [prove_ids(self.path, bpe, self.symbols, rows, family != "mbart")]
        return [*lines, prove_states(self.path, family, converted, rows)]


def main(args: argparse.Namespace) -> int:
    if args.list:
        print(listing())
        return 0
    find_family(args)
    check_arguments(args)
    folder = Folder.of(args)
    # all but what an earlier run of this command may have written
    read = [path for path in args.directory.iterdir() if path.suffix != ".pt" and path.name != "dict.txt"]
    for path in files_of(args.out, folder):
        check_output(path, args.overwrite, read)
    converted = folder.converted(args.segment_positions)
    compared = [UNCHECKED] if args.unchecked else folder.compared(args.release, converted)
    if args.package is not None:
        write_package(args, folder, converted, "; ".join(compared))
    if args.out is not None:
        write_files(args.out, converted.model, folder.symbols, "; ".join(compared))
        if folder.tokenizer is not None:
            write_tokenizer(args.out.with_name(TOKENIZER), folder.tokenizer)
    print_starts(args, folder, converted)
    print("\n".join([*converted.report, *compared]))
    return 0


def examined(path: Path) -> tuple[str, list[str]]:
    """Returns by which family a folder is read, and how it compares; ValueError for why it is refused."""
    args = argparse.Namespace(release=family_of(path / CONFIG), directory=path, package=None)
    folder = Folder.of(args)
    return args.release, folder.compared(args.release, folder.converted(None))


def check_arguments(args: argparse.Namespace) -> None:
    """Finds the folder of `minilm`; ValueError for arguments that contradict each other, and for another folder."""
    if args.segment_positions and args.release != "hierarchical_transformer":
        raise ValueError(f"--segment-positions is for hierarchical_transformer; {args.release} has no segments")
    if args.release == MINILM:
        if args.directory is not None:
            raise ValueError("minilm is the installed package, without a folder; for a folder: hat import bert HF_DIR")
        args.release, args.directory = "bert", minilm.find()
    if args.directory is None:
        here = f"; or ./{args.release} for the folder of this name" if Path(args.release).is_dir() else ""
        raise ValueError(f"give the folder of the weights: hat import {args.release} HF_DIR --out FILE{here}")
    check_outputs(args)
    if not args.directory.is_dir():
        raise ValueError(f"{args.directory} is not a folder")
    for path in sorted(args.directory.iterdir()):
        check_lfs(path)


def check_outputs(args: argparse.Namespace) -> None:
    """Raises ValueError for outputs that contradict each other, or that the family does not have."""
    if args.out is None and args.package is None:
        raise ValueError("give --out FILE, a checkpoint to write; or of a BERT --package DIR")
    if args.package is not None and args.release in ("bart", "mbart", "hierarchical_transformer"):
        raise ValueError(
            f"--package is for encoders without hierarchy; train with the checkpoint of {args.release} first"
        )
    if args.max_positions is not None and args.package is None:
        raise ValueError("--max-positions is for --package; a training has a flag of this name")
    if None not in (args.out, args.package) and args.out.resolve().is_relative_to(args.package.resolve()):
        raise ValueError(
            f"--out {args.out} is in the folder of --package, which has no other files: name one elsewhere"
        )


def find_family(args: argparse.Namespace) -> None:
    """Reads `hat import DIR` as `hat import FAMILY DIR`."""
    if args.release in (*RELEASES, MINILM):
        return
    if args.release is None or args.directory is not None:
        name = "" if args.release is None else f" (no family is called {args.release!r:.80})"
        args.wrong_usage(
            f"give the folder of the weights: hat import DIR --out FILE{name}; hat import --list: families"
        )
    args.directory = Path(args.release)
    if not args.directory.is_dir():
        raise ValueError(f"{args.directory} is neither a folder nor a family; hat import --list names the families")
    args.release = family_of(args.directory / CONFIG)
    print(f"{args.directory}: {args.release}")


def release_of(args: argparse.Namespace) -> Release:
    """Returns how the folder is read; a RoBERTa by tokenizer.json where its own vocabulary does not do."""
    release, has_json = RELEASES[args.release], (args.directory / TOKENIZER).is_file()
    if args.release not in OF_ROBERTA or not has_json:
        if args.package is not None and args.release == "roberta":
            raise ValueError(f"--package of a RoBERTa needs {args.directory / TOKENIZER}")
        return release
    has_pieces = args.release == "xlm_roberta" and (args.directory / MODEL).is_file()
    if has_pieces or (args.release == "roberta" and args.package is None):
        return release
    return replace(release, tokenizer=bert.read_tokenizer)


def lacks_mask(symbols: list[str], size: int) -> bool:
    """Tells whether a whole vocabulary of this size has no token for masked words."""
    return MASK not in symbols and len(SPECIAL) + len(symbols) == size


def write_package(args: argparse.Namespace, folder: Folder, converted: Converted, compared: str) -> None:
    """Writes the folder for `hat embed`, and prints its size and what its vectors are."""
    flags, bpe = package_flags(converted, args.max_positions), folder.bpe
    assert folder.symbols is not None and bpe is not None
    vectors = replace(of_release(folder.path, CASE in bpe.loses), compared=compared)
    size = write_untrained(args.package, converted.model, bpe, folder.symbols, flags, args.overwrite, vectors)
    print(f"wrote {args.package}: {size}")
    print(f"vectors: {vectors}")


def package_flags(converted: Converted, longest: int | None) -> list[str]:
    """Returns the flags of a `hat_roberta` for documents of so many tokens."""
    flat = converted.starts[0]
    args = parse_flags(flat)
    if parse_family(getattr(args, "encoder_family", "plain")).rotary is None:
        return bert.package_flags(flat, args.max_positions, longest)
    bert.check_longest(args.max_positions, longest)
    return flat if longest is None else [*flat, "--max-positions", str(longest)]


def files_of(out: Path | None, folder: Folder) -> list[Path]:
    """Returns the files that are written for a checkpoint."""
    if out is None:
        return []
    dictionary = [] if folder.symbols is None else [out.parent / "dict.txt"]
    return [out, *dictionary, *([] if folder.tokenizer is None else [out.with_name(TOKENIZER)])]


def print_starts(args: argparse.Namespace, folder: Folder, converted: Converted) -> None:
    """Prints how to preprocess for a checkpoint or a package, and to train from it."""
    start = args.out or args.package
    if args.out is None:
        print(f"preprocess with: --vocabulary {shlex.quote(str(start / BIN))}")
    elif folder.symbols is None:
        print(f"no {folder.release.vocabulary} in the folder: no dict.txt written")
    elif folder.release.vocabulary == MODEL or folder.tokenizer is not None:
        bpe, where = ("sentencepiece", args.directory) if folder.tokenizer is None else ("tokenizer", args.out.parent)
        print(f"preprocess with: --bpe {bpe} --bpe-dir {shlex.quote(str(where))}")
    print("start training from it (and resume after an interruption) with:")
    for flags in converted.starts:
        is_encoder = folder.tokenizer is not None and flags[1] in bert.SEQ2SEQ
        option = "--encoder-from" if is_encoder else "--finetune-from-model"
        print(f"  {shlex.join([*flags, option, str(start)])}")


def write_tokenizer(path: Path, tokenizer: TokenizerBpe) -> None:
    """Writes tokenizer.json; a link is replaced, and not what it leads to."""
    with tempfile.TemporaryDirectory() as folder, atomic_file(path) as file:
        tokenizer.save(Path(folder, TOKENIZER))
        file.write(Path(folder, TOKENIZER).read_bytes())
    print(f"wrote {path}")


def write_files(out: Path, model: dict[str, Tensor], symbols: list[str] | None, compared: str) -> None:
    """Writes a model as a checkpoint of fairseq, and beside it dict.txt where its entries are known."""
    checkpoint = bare_checkpoint(model)
    checkpoint["extra_state"]["compared"] = compared
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(checkpoint, file)
    print(f"wrote {out}: {sum(t.numel() for t in set(model.values()) if t.numel() > 1):,} parameters")
    if symbols is None:
        return
    path = out.parent / "dict.txt"
    with atomic_file(path) as file:
        file.write("".join(f"{s} 1\n" for s in symbols).encode())
    print(f"wrote {path}: {len(symbols)} entries, for fairseq-preprocess --srcdict and --tgtdict")
