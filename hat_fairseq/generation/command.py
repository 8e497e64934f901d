"""`hat generate`: texts for all documents of a split by fairseq-generate, in shards, resumable, joined and scored.

R/{subset}.parts keeps the output, so that running the command again generates only the missing samples.
R/{subset}.jsonl is the result, one document a line, in input order.
"""

import argparse
import shlex
from pathlib import Path

from ..data.manifest import check_files
from ..data.pipeline import TextPipeline
from ..data.records_json import read_records, with_meta
from ..data.rows import read_ids
from ..scoring import command as score_command
from ..scoring.bleu import make_bleu, settings_of
from . import shards
from .join_chunks import join, read_generated, write_joined
from .resume import Machine, PartialResults, describe_setup, named_flags

#: cli.py passes unknown flags to `main` as args.others; they are fairseq-generate's.
PASSES_FLAGS_ON = True
PACKAGE = Path(__file__).resolve().parents[1]
OWN_FLAGS = ["--shard-id", "--distributed-world-size", "--distributed-rank", "--skip-samples", "--nbest", "--quiet"]
OWN_FLAGS += ["--skip-invalid-size-inputs-valid-test"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `hat generate`; all other flags go to fairseq-generate."""
    parser.usage = "hat generate DATA --path CHECKPOINT --results-path R [options] [any flag of fairseq-generate]"
    parser.add_argument("data", metavar="DATA", type=Path, help="bin directory of hat preprocess; before all flags")
    parser.add_argument("--path", required=True, help="checkpoint, or several with colons between them")
    parser.add_argument("--results-path", required=True, type=Path, metavar="R", help="directory for the results")
    parser.add_argument("--gen-subset", default="test", help="split to generate for (default: test)")
    parser.add_argument("--num-shards", type=int, help="number of processes (default: one for each GPU)")
    parser.add_argument(
        "--machine", type=int, metavar="M", help="generate every N-th sample only; the last machine joins"
    )
    parser.add_argument("--of", type=int, metavar="N", help="number of machines, which share R")
    parser.add_argument("--score", metavar="ARGS", help="score the result, e.g. 'rouge --like files2rouge' or 'bleu'")
    parser.add_argument("--overwrite", action="store_true", help="start again: delete earlier results")


def main(args: argparse.Namespace) -> int:
    """Generates the missing samples, joins all, scores them."""
    ids = args.data / f"{args.gen_subset}.ids"
    if not ids.is_file():
        splits = ", ".join(sorted(path.stem for path in args.data.glob("*.ids"))) or "none"
        raise ValueError(
            f"{ids} is missing: DATA is the bin directory of hat preprocess, --gen-subset one of its splits ({splits})"
        )
    if args.num_shards is not None and args.num_shards < 1:
        raise ValueError(f"--num-shards must be at least 1, not {args.num_shards}")
    machine = machine_of(args)
    out = args.results_path / f"{args.gen_subset}.jsonl"
    # a mistake ends here, not after generation
    score = parse_score(args.score, args.data, args.gen_subset, out) if args.score else None
    flags = fairseq_flags(args)
    check_files(args.data, args.gen_subset, contents=True)
    chunks = read_ids(ids)
    settings = TextPipeline.load(args.data).settings
    folder, results = out.with_suffix(".parts"), [out, *([out.with_suffix(".score.json")] if score else [])]
    with PartialResults.open(folder, args.overwrite, machine, results) as parts:
        parts.check(describe_setup(args.data, args.gen_subset, args.path, flags, machine))
        samples = range(len(chunks))
        missing = parts.share(samples) - parts.finished()
        if missing:
            shards.generate([str(args.data), *flags], parts, missing, len(chunks), args.num_shards)
        elif machine is None:
            print(f"{parts.folder}: all {len(chunks)} samples are finished, nothing to generate")
        if others := len({*samples} - parts.finished()):
            print(f"machine {args.machine} of {args.of} is done; {others} samples of others are missing")
            return 0
        texts = read_generated(parts.files())
        documents = args.data.resolve().parent / "text" / f"{args.gen_subset}.jsonl"
        rows = join(chunks, texts, ids, settings.target_separator, settings.target_language)
        write_joined(out, with_meta(rows, documents), chunks)
    if score is None:
        return 0
    print(f"hat score {shlex.join(score.words)}", flush=True)
    return int(score_command.main(score))


def machine_of(args: argparse.Namespace) -> Machine | None:
    """The machine that `--machine` and `--of` name; ValueError if there is none."""
    if args.machine is args.of is None:
        return None
    if not 1 <= (args.machine or 0) <= (args.of or 0):
        raise ValueError("--machine M and --of N go together, and M is from 1 to N")
    if args.overwrite:
        raise ValueError("--overwrite deletes what other machines write: remove the folder before all of them start")
    return args.machine, args.of


def fairseq_flags(args: argparse.Namespace) -> list[str]:
    """Returns the flags of fairseq-generate: the given ones, and defaults for data of `hat preprocess`.

    Raises:
        ValueError: a flag that `hat generate` sets itself.
    """
    others = named_flags(args.others)
    for flag in OWN_FLAGS:
        if flag in others:
            raise ValueError(f"{flag} cannot be given to hat generate: it generates one text for every document")
    defaults = {
        "--user-dir": str(PACKAGE),
        "--task": "document_to_text",
        "--bpe": "document",  # D- lines are final text
        "--document-pipeline": str(args.data),
        "--log-format": "none",
    }
    left_out = [word for flag, value in defaults.items() if flag not in others for word in (flag, value)]
    return [*left_out, "--path", args.path, "--gen-subset", args.gen_subset, *args.others]


def parse_score(words: str, data: Path, subset: str, hypotheses: Path) -> argparse.Namespace:
    """Parses the value of --score as arguments of `hat score`, `words`; a mistake in them ends the process.

    Raises:
        ValueError: the references are missing, or have no targets; a tokenizer is missing.
    """
    references = data.resolve().parent / "text" / f"{subset}.jsonl"
    if not references.is_file():
        raise ValueError(f"{references} is missing: --score needs the references that hat preprocess writes there")
    if next(read_records(references)).target is None:
        raise ValueError(f"{references} has no targets, so the texts cannot be scored: leave out --score")
    arguments = [*shlex.split(words), "--hypotheses", str(hypotheses), "--references", str(references)]
    if "--json" not in arguments:
        arguments += ["--json", str(hypotheses.with_suffix(".score.json")), "--overwrite"]
    parser = argparse.ArgumentParser(prog="hat score")
    score_command.add_arguments(parser)
    args = parser.parse_args(arguments, argparse.Namespace(words=arguments))
    if args.metric == "bleu":
        make_bleu(settings_of(args))
    return args
