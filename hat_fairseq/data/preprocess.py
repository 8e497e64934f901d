"""Turn a dataset into fairseq's binary data, and count everything that is dropped or replaced."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hat_fairseq.data import alignment, bpe, long_source, manifest, sentence_split, word_tokenizer
from hat_fairseq.data.build import Build
from hat_fairseq.data.example import TASKS
from hat_fairseq.data.example_build import ExampleBuild
from hat_fairseq.data.files import atomic_directory
from hat_fairseq.data.readers import Reader, find_reader
from hat_fairseq.data.settings import SEGMENTS
from hat_fairseq.data.task_options import check_task_options
from hat_fairseq.data.vocabulary import has_dictionary, inherit

# An option that is not given takes the reader's default, and where it has none, this one.
DEFAULTS: dict[str, Any] = {
    "vocabulary": None,
    "bpe": "learned",
    "num_codes": 40000,
    "codes": None,
    "splitter": "given",
    "source_language": "en",
    "target_language": "en",
    "source_tokenizer": "none",
    "target_tokenizer": "none",
    "aligned": False,
    "target_separator": False,
    "roles": False,
    "role_in_text": False,
    "max_source_tokens": None,
    "max_target_tokens": None,
    "long_source": "error",
    "long_target": "error",
    "chunk_by": "source",
    "segments": "sentences",
    "segment_length": 128,
    "max_segments": None,
    "window_overlap": 128,
    "pack": None,
    "on_empty": "error",
    "on_misaligned": "error",
    "limit": None,
    "partial": False,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``hat preprocess``."""
    parser.epilog = "The options of the second group have defaults for each dataset, which its reader states."
    parser.add_argument("reader", help="name of a reader (ami, cnn_dm...), a reader's .py, or a folder of data")
    parser.add_argument("--task", choices=TASKS, help="what a folder of JSON lines holds; default: text, documents")
    parser.add_argument("--out", type=Path, required=True, help="directory to create")
    parser.add_argument("--root", type=Path, help="where the raw release is, for readers that need one")
    parser.add_argument(
        "--splits", nargs="+", metavar="SPLIT", help="only these: train, valid, test, test1 ... (default: all)"
    )
    parser.add_argument("--bpe-dir", type=Path, help="where encoder.json, vocab.bpe and dict.txt are, for --bpe gpt2")
    parser.add_argument("--workers", type=int, default=1, help="processes; the result does not depend on it")
    parser.add_argument("--no-binarize", action="store_true", help="write the text only, leave out the binary data")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier result")

    _add_options(parser.add_argument_group("text processing"))


def _add_options(group: argparse._ArgumentGroup) -> None:
    switch = argparse.BooleanOptionalAction
    group.add_argument("--vocabulary", metavar="BIN", help="take BPE, dictionary and settings of an earlier bin")
    group.add_argument("--bpe", choices=bpe.KINDS, help="learned from the training part, or GPT-2's as BART uses it")
    group.add_argument("--num-codes", type=int, help="codes to learn")
    group.add_argument("--codes", metavar="FILE", help="codes in fastBPE's format, instead of learning them")
    group.add_argument("--splitter", choices=sentence_split.METHODS, help="how to find sentences")
    for side in ("source", "target"):
        group.add_argument(f"--{side}-language", metavar="CODE", help=f"ISO 639-1 code of the {side}")
        group.add_argument(f"--{side}-tokenizer", choices=word_tokenizer.NAMES, help="words before the BPE")
    group.add_argument(
        "--aligned", action=switch, help="source and target segments correspond; chunks keep them together"
    )
    group.add_argument("--target-separator", action=switch, help="put <sep> between the segments of the target")
    group.add_argument("--roles", action=switch, help="write a parallel stream of roles")
    group.add_argument("--role-in-text", action=switch, help="put the role before its turn")
    group.add_argument("--max-source-tokens", type=int, help="limit with markers, without the final </s>")
    group.add_argument("--max-target-tokens", type=int, help="limit without the final </s>")
    group.add_argument("--long-source", choices=long_source.POLICIES, help="what to do with a source above its limit")
    group.add_argument("--long-target", choices=("error", "truncate"), help="likewise for a target")
    text = "where chunks of aligned test documents end: by the source alone, as at inference, or by the pair"
    group.add_argument("--chunk-by", choices=("source", "pair"), help=text)
    group.add_argument("--segments", choices=SEGMENTS, help="what gets a marker: sentences, packed segments, or parts")
    group.add_argument("--segment-length", type=int, help="limit of a packed segment in tokens, <s> and </s> included")
    group.add_argument("--max-segments", type=int, help="most segments of a row, for pre-training")
    group.add_argument("--window-overlap", type=int, help="most tokens that windows share, for questions")
    group.add_argument("--pack", action=switch, help="fill rows with consecutive documents, for pre-training")
    group.add_argument("--on-empty", choices=("error", "drop"), help="what to do with documents without text")
    group.add_argument(
        "--on-misaligned",
        choices=alignment.POLICIES,
        help="with --aligned: what to do with segments that have no counterpart",
    )
    group.add_argument("--limit", type=int, help="only the first documents of each split")
    group.add_argument("--partial", action="store_true", default=None, help="the release may be incomplete")


def main(args: argparse.Namespace) -> int:
    """Run ``hat preprocess``."""
    reader = choose_splits(find_reader(args.reader, args.task), args.splits)
    options = resolve_options(vars(args), reader)
    with atomic_directory(args.out, manifest.FILE_NAME, args.overwrite) as directory:
        build_type = Build if reader.task == "text" else ExampleBuild
        build = build_type(reader, options, directory, args.root, args.bpe_dir, args.workers)
        build.text_and_pipeline()
        if not args.no_binarize:
            build.binarize(shown_as=args.out)
        record = manifest.write_manifest(directory, reader, options, build.reports)
    print(manifest.table(record))
    print(f"wrote {args.out}")
    return 0


def choose_splits(reader: Reader, names: Sequence[str] | None) -> Reader:
    """The reader with the named splits only; ValueError for one that it does not have."""
    if names is None:
        return reader
    if unknown := [name for name in names if name not in reader.splits]:
        raise ValueError(f"--splits {unknown[0]}: the reader {reader.name} has {', '.join(reader.splits)}")
    return replace(reader, splits=tuple(split for split in reader.splits if split in names))


def resolve_options(given: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """The options that decide the result: as given, else the reader's default, else ours.

    Raises:
        ValueError: the reader has a default for something that is no option, or a value makes no sense.
    """
    given = {name: value for name, value in given.items() if name != "task"}  # the reader's, by now
    unknown = sorted(reader.defaults.keys() - DEFAULTS.keys())
    if unknown:
        raise ValueError(f"reader {reader.name}: unknown option {unknown[0]!r}; known are {', '.join(DEFAULTS)}")
    defaults = {**DEFAULTS, **reader.defaults}
    options = {name: default if given.get(name) is None else given[name] for name, default in defaults.items()}
    options["task"] = reader.task
    if options["vocabulary"]:
        options = inherit(options, given)
    if options["pack"] is None:
        options["pack"] = reader.task == "mlm"
    if options["limit"] is not None and options["limit"] < 1:
        raise ValueError(f"--limit must be at least 1, not {options['limit']}")
    _check_together(options, reader)
    check_task_options(options, DEFAULTS)
    return options


def _check_together(options: Mapping[str, Any], reader: Reader) -> None:
    if not has_dictionary(options) and "train" not in reader.splits:
        raise ValueError(
            f"reader {reader.name} has no train split to learn BPE codes from; use --bpe gpt2, or --vocabulary with "
            "what the training part gave"
        )
    if options["bpe"] == "gpt2" and options["codes"]:
        raise ValueError("--codes goes with --bpe learned; --bpe gpt2 has its own")
    if options["bpe"] == "gpt2" and options["target_separator"]:
        raise ValueError("--target-separator needs --bpe learned: GPT-2's dictionary has no <sep>")
    if options["chunk_by"] == "pair" and not (options["aligned"] and options["long_source"] == "chunk"):
        raise ValueError("--chunk-by pair has no effect without --aligned and --long-source chunk; remove it")
    if options["aligned"] and options["splitter"] != "given":
        raise ValueError(f"--aligned is for given segments, not for --splitter {options['splitter']}")
    if options["aligned"] and (options["roles"] or options["role_in_text"]):
        raise ValueError("--aligned does not go together with --roles and --role-in-text")
