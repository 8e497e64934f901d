"""Write texts for all documents of a split, and score them.

R/SPLIT.jsonl is the result, one document a line, in the order of the input. A run that was stopped goes on where it
was.
"""

import argparse
import os
import shlex
from pathlib import Path

from ..data.outputs import check_output
from ..data.pipeline import FILE_NAME
from ..data.records_json import read_records
from ..generation.settings import add_generation, given_options
from ..scoring import command as score_command
from ..scoring.bleu import make_bleu, settings_of
from . import command
from .loading import check_writes_texts
from .summarize import Texts, write_texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hat generate DATA --path CHECKPOINT --results-path DIR [options]"
    parser.add_argument("input", metavar="DATA", type=Path, help="bin directory of hat preprocess, beside `text`")
    parser.add_argument("--path", required=True, help=command.MODEL)
    parser.add_argument("--results-path", required=True, type=Path, metavar="DIR", help="directory for the results")
    text = "split to generate for (default: %(default)s)"
    parser.add_argument("--gen-subset", default="test", metavar="SPLIT", help=text)
    parser.add_argument("--score", metavar="ARGS", help="score the result, e.g. 'rouge --like files2rouge' or 'bleu'")
    parser.add_argument("--overwrite", action="store_true", help="replace earlier results")
    command.add_batches(parser)
    command.add_machine(parser)
    add_generation(parser)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of --sampling (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    """Generates the texts of the split, and scores them."""
    out = args.results_path / f"{args.gen_subset}.jsonl"
    if (data := command.bin_of(args.input)) is None:
        raise ValueError(f"{args.input} has no {FILE_NAME}: it should be the bin directory of hat preprocess")
    workers, files = command.workers_of(args), command.model_files(args, args.path)
    pipeline = files.pipeline(workers)
    check_writes_texts(files.path, pipeline.kind)
    records = list(command.records_of(args.input, args.gen_subset, pipeline.kind))
    inputs: list[str | Path] = [data, data.resolve().parent / "text", *files.path.split(os.pathsep)]
    score = parse_score(args.score, data, out, args.overwrite) if args.score else None
    check_output(out, args.overwrite, inputs, "--results-path")
    job = Texts(files, given_options(args), args.batch_size, args.max_tokens, args.seed)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_texts(job, records, set(), out, workers)
    if score is None:
        return 0
    print(f"hat score {shlex.join(score.arguments)}", flush=True)
    return int(score_command.write_scores(score))


def parse_score(words: str, data: Path, hypotheses: Path, overwrite: bool) -> argparse.Namespace:
    """Parses the value of --score as arguments of `hat score`, `arguments`; a mistake in them ends the process.

    The scores are written to the file of their own `--json`, or beside the texts.

    Raises:
        ValueError: the references have no targets; a tokenizer is missing; the file of the scores exists.
    """
    references = data.resolve().parent / "text" / hypotheses.name
    if next(read_records(references)).target is None:
        raise ValueError(f"{references} has no targets, so the texts cannot be scored: leave out --score")
    arguments = [*shlex.split(words), "--hypotheses", str(hypotheses), "--references", str(references)]
    parser = argparse.ArgumentParser(prog="hat score")
    score_command.add_arguments(parser)
    args = parser.parse_args(arguments)
    if args.json is None:
        file = hypotheses.with_suffix(".score.json")
        check_output(file, overwrite, (), "--results-path")
        args = parser.parse_args(arguments := [*arguments, "--json", str(file), "--overwrite"])
    args = score_command.checked(args)
    if args.metric == "bleu":
        make_bleu(settings_of(args))
    args.arguments = arguments
    return args
