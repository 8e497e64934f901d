"""Turn a dataset into fairseq's binary data, and count everything that is dropped or replaced."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hat_fairseq.data import manifest
from hat_fairseq.data.blocks import blocks_of
from hat_fairseq.data.columns import columns_of
from hat_fairseq.data.files import at
from hat_fairseq.data.kinds import KINDS, Kind, kind_of
from hat_fairseq.data.language import parse_code
from hat_fairseq.data.options import ROWS, Options, Settings, add_options, options_of_roles
from hat_fairseq.data.outputs import atomic_directory
from hat_fairseq.data.pipeline import BinFolder, has_dictionary
from hat_fairseq.data.readers import Reader, find_reader, names
from hat_fairseq.data.run import Run
from hat_fairseq.data.text import SEPARATOR
from hat_fairseq.options import check_effects, no_effect, options_of, typed
from hat_fairseq.workers import Workers, add_workers

# Settings that an earlier run has decided for data of another kind; for data of its own kind it decides all.
FOR_ANOTHER_KIND = ("source_tokenizer", "source_language")
SHORT_HELP = (
    *("--out", "--kind", "--root", "--columns", "--splitter", "--bpe", "--num-codes", "--max-source-tokens"),
    *("--long-source", "--roles", "--vocabulary", "--workers", "--overwrite"),
)
OF_TABLES = {"columns", "number_ids"}  # options that a reader cannot have a default for: it names the keys itself


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hat preprocess READER --out DIR [options]"
    parser.formatter_class = partial(argparse.HelpFormatter, max_help_position=30)
    parser.epilog = "A reader states other defaults that suit its dataset. --no-X switches an option off."
    readers = "the name of a reader such as ami, the .py file of a reader, or a folder of data"
    parser.add_argument("reader", metavar="READER", help=readers)
    kinds = f"the kind of the records in a folder of data: {', '.join(KINDS)} (default: text)"
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help=kinds)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the directory to create for the result")
    parser.add_argument(
        "--root", type=Path, metavar="DIR", help="the folder of the raw release, for readers that need one"
    )
    files = "the folder with encoder.json, vocab.bpe and dict.txt for --bpe gpt2, with sentencepiece.bpe.model for "
    files += "--bpe sentencepiece, with tokenizer.json or vocab.txt for --bpe tokenizer"
    parser.add_argument("--bpe-dir", type=Path, metavar="DIR", help=files)
    add_workers(parser, "1")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier result in --out")
    add_options(parser)


def main(args: argparse.Namespace) -> int:
    columns, languages = columns_of(args.columns, args.number_ids), (args.source_language, args.target_language)
    reader = find_reader(args.reader, args.kind, columns, languages)
    options = resolve_options(vars(args), reader)
    check_folders(args, options)
    if args.root is None and reader.sources:  # a reader that needs --root says so before anything is written
        next(reader.lines(reader.splits[0], None, Counter()), None)
    if os.pathsep in str(args.out):
        raise ValueError(f"--out {args.out}: fairseq takes {os.pathsep!r} for the end of a path; choose another name")
    with (
        Workers(args.workers, args.cluster) as workers,
        atomic_directory(args.out, manifest.FILE_NAME, args.overwrite, "reader") as directory,
        (blocks := blocks_of(args.out, workers, reader.sources)).kept_for_next_run(after_refusal=False),
    ):
        run = Run(reader, options, directory, blocks, args.root, args.bpe_dir)
        record = manifest.write_manifest(directory, reader, options, run.run(), run.inputs)
    print(manifest.table(record), f"wrote {args.out}", sep="\n")
    for split, figures in record["splits"].items():
        if note := manifest.truncated(figures):
            print(f"warning: {split}: {note}", file=sys.stderr)
    return 0


def resolve_options(arguments: Mapping[str, Any], reader: Reader) -> Options:
    """Returns the options of the arguments, else of the reader, of the kind, or the defaults.

    Raises ValueError if they disagree.
    """
    kind, known = kind_of(reader.kind), options_of(Options)
    arguments = options_of_roles(with_languages(arguments))
    if unknown := sorted(reader.defaults.keys() - known.keys() | reader.defaults.keys() & OF_TABLES):
        raise ValueError(f"reader {reader.name}: unknown option {unknown[0]!r}; known are {', '.join(sorted(known))}")
    chosen = {name: value for name, value in arguments.items() if name in known and value is not None}
    chosen |= {"columns": tuple(chosen.get("columns") or ())}
    options = Options(**{**with_languages(reader.defaults), **chosen, "kind": kind.name})
    learns = options.bpe == Options.bpe and not options.vocabulary  # a dictionary, which can have <sep>
    if options.aligned and learns and "target_separator" not in {**reader.defaults, **chosen}:
        options = replace(options, target_separator=True)
    if options.vocabulary:
        options = inherit(options, arguments)
    check_kind(options, kind)
    check_stated(options, kind, chosen)
    if not has_dictionary(options) and "train" not in reader.splits:
        raise ValueError(
            f"{reader.name} has no train split to learn {'BPE codes' if kind.is_text else 'the dictionary'} "
            f"from; use {'--bpe gpt2, sentencepiece or tokenizer, or ' if kind.is_text else ''}--vocabulary with "
            "the bin directory of the training data"
        )
    return options


def with_languages(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of options with codes of languages as BCP 47 writes them; ValueError for an unknown one."""
    codes = {name: values[name] for name in ("source_language", "target_language") if values.get(name) is not None}
    parsed = {}
    for name, code in codes.items():
        with at(typed(name)):
            parsed[name] = parse_code(code)
    return {**values, **parsed}


def inherit(options: Options, arguments: Mapping[str, Any]) -> Options:
    """Returns the options, with those that `--vocabulary` sets.

    Raises ValueError if one among the `arguments` contradicts it.
    """
    earlier = f"--vocabulary {options.vocabulary}"
    pipeline = BinFolder.open(str(options.vocabulary)).pipeline
    settings, is_text = pipeline.settings, pipeline.kind.is_text
    if kind_of(options.kind).is_text != is_text:
        raise ValueError(
            f"{earlier} is of data of the kind {settings.kind}, which has other tokens than --kind {options.kind}"
        )
    same_kind = settings.kind == options.kind
    own = options_of(Settings) if same_kind else FOR_ANOTHER_KIND
    inherited = {name: getattr(settings, name) for name in own}
    if settings.splitter == "given":  # then line breaks had no effect
        inherited.pop("line_breaks", None)
    if is_text:
        inherited["bpe"] = pipeline.bpe.kind
    for name in ("bpe_dir", "num_codes"):
        if arguments.get(name) is not None:
            raise ValueError(f"{typed(name)} and {earlier} contradict each other; remove one")
    for name, each in options_of(Options).items():
        value = arguments.get(name)
        if value is not None and value != (earlier_value := inherited.get(name, value)):
            raise ValueError(
                f"{each.typed(value)} contradicts {earlier}, which has {each.typed(earlier_value)}; remove it"
            )
    if not same_kind and options.target_separator and not settings.target_separator:
        raise ValueError(f"--target-separator: the dictionary of {earlier} has no {SEPARATOR}")
    return replace(options, **inherited)


def check_kind(options: Options, kind: Kind) -> None:
    """Raises ValueError for an option that the kind of data does not have, or that contradicts another one."""
    for name, each in options_of(Options).items():
        value = getattr(options, name)
        is_for_kind = each.group in ("", *kind.options) and (name != "splitter" or kind.has_running_text)
        if not is_for_kind and each.is_set(value):
            raise ValueError(f"{each.typed(value)} has no effect with --kind {kind.name}; remove it")
    if options.long_source not in kind.policies:
        rows = "; documents continue in the next row" if kind.packs else ""
        raise ValueError(
            f"--long-source {options.long_source} is not for --kind {kind.name}; choose "
            f"{', '.join(kind.policies)}{rows}"
        )
    if kind.keeps == "element" and options.segments != "sentences":
        raise ValueError(f"--segments {options.segments}: with --kind {kind.name} each segment keeps its own marker")
    if kind.keeps == "whole" and (options.segments == "none" or options.segments != "packed" and options.max_segments):
        name = "--segments none" if options.segments == "none" else "--max-segments without --segments packed"
        raise ValueError(f"{name} has no effect with --kind {kind.name}, whose texts are one segment; remove it")
    if options.bpe != "learned" and options.target_separator:
        raise ValueError(f"--target-separator needs --bpe learned: the dictionary of --bpe {options.bpe} has no <sep>")
    if options.aligned and options.splitter != "given":
        raise ValueError(f"--aligned is for given segments, not for --splitter {options.splitter}")
    if options.aligned and (options.roles or options.role_in_text):
        raise ValueError("--aligned does not go together with --roles")


def check_stated(options: Options, kind: Kind, stated: Mapping[str, Any]) -> None:
    """Raises ValueError for one of the `stated` options that has no effect; here also for what kinds differ in."""
    check_effects(Options, vars(options), stated)
    limits = [options.max_source_tokens, options.max_segments]
    if options.aligned:  # chunks end where the source or the target is full
        limits += [options.max_target_tokens, options.max_chunk_tokens]
    if options_of(Options)["long_source"].is_set(stated.get("long_source")) and not any(limits):
        of_source = "max_source_tokens or max_segments" if ROWS in kind.options else "max_source_tokens"
        raise no_effect("long_source", "without", of_source, options.long_source)
    if "splitter" in stated and options.splitter != "given" and not kind.divides_text(options):
        raise no_effect("splitter", "without", "segments=sentences|packed", options.splitter)
    if "long_source" in stated and options.long_source == "truncate-sentences" and options.segments == "none":
        raise ValueError(
            "--long-source truncate-sentences has no effect with --segments none, where no sentence has a marker; give "
            "truncate"
        )
    chunks = options.aligned and options.long_source == "chunk"
    if "long_target" in stated and options.long_target != "error" and chunks:
        raise ValueError(
            f"--long-target {options.long_target} has no effect with --aligned --long-source chunk, where a segment "
            "longer than a chunk stays whole; remove it, and add --max-chunk-tokens N to truncate such segments"
        )


def check_folders(args: argparse.Namespace, options: Options) -> None:
    """Raises ValueError for a file or a folder that nothing reads."""
    if args.bpe_dir is not None and (options.bpe == "learned" or not kind_of(options.kind).is_text):
        raise ValueError(
            "--bpe-dir has no effect without --bpe gpt2, sentencepiece or tokenizer; remove it, or add that"
        )
    if args.root is not None and args.reader not in names() and Path(args.reader).is_dir():
        raise ValueError(f"--root has no effect: {args.reader} is a folder, which is read itself; remove it")
    if options.partial and args.reader not in names() and Path(args.reader).is_dir():
        raise ValueError(f"--partial has no effect: {args.reader} is a folder, and no release; remove it")
