"""Generate texts for all documents of a split: fairseq-generate in shards, resumable, joined and scored.

R/{subset}.parts keeps what was generated, so the same command again generates only what is missing; R/{subset}.jsonl is
the result, one document a line, in input order.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from hat_fairseq.data.ids import read_ids
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.generation import shards
from hat_fairseq.generation.join_chunks import join, read_generated, write_joined
from hat_fairseq.generation.resume import PartialResults, describe_setup, named_flags
from hat_fairseq.scoring import command as score_command

#: cli.py hands flags that it does not know to `main` as args.others: they are fairseq-generate's.
PASSES_FLAGS_ON = True
PACKAGE = Path(__file__).resolve().parents[1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``hat generate``; all others go to fairseq-generate as they are."""
    parser.usage = "hat generate DATA --path CHECKPOINT --results-path R [options] [any flag of fairseq-generate]"
    parser.add_argument("data", metavar="DATA", type=Path, help="bin directory of hat preprocess; before all flags")
    parser.add_argument("--path", required=True, help="checkpoint, or several with colons between them")
    parser.add_argument("--results-path", required=True, type=Path, metavar="R", help="directory for the results")
    parser.add_argument("--gen-subset", default="test", help="split to generate for (default: test)")
    parser.add_argument("--num-shards", type=int, help="processes to share the work (default: one for each GPU)")
    parser.add_argument("--score", metavar="ARGS", help="score then, e.g. 'rouge --like files2rouge' or 'bleu'")
    parser.add_argument("--overwrite", action="store_true", help="generate all anew, whatever is there")


def main(args: argparse.Namespace) -> int:
    """Generate what is missing, join it, score it."""
    ids = args.data / f"{args.gen_subset}.ids"
    if not ids.is_file():
        splits = ", ".join(sorted(path.stem for path in args.data.glob("*.ids"))) or "none"
        raise ValueError(
            f"{ids} is missing: DATA is the bin directory of hat preprocess, --gen-subset one of its splits ({splits})"
        )
    if args.num_shards is not None and args.num_shards < 1:
        raise ValueError(f"--num-shards must be at least 1, not {args.num_shards}")
    out = args.results_path / f"{args.gen_subset}.jsonl"
    score = score_words(args.score, args.data, args.gen_subset, out) if args.score else None
    score_args = parse_score(score) if score else None  # known to be right before hours of work
    flags = fairseq_flags(args)
    chunks = read_ids(ids)
    segments = TextPipeline.load(args.data).settings.target_separator
    with PartialResults.open(args.results_path / f"{args.gen_subset}.parts", args.overwrite) as parts:
        parts.check(describe_setup(args.data, args.gen_subset, args.path, flags))
        missing = set(range(len(chunks))) - parts.finished()
        if missing:
            shards.generate([str(args.data), *flags], parts, missing, args.num_shards)
        else:
            print(f"{parts.folder}: all {len(chunks)} samples are there, nothing to generate")
        texts = read_generated(parts.files())
        write_joined(out, join(chunks, texts, ids, segments), chunks)
    if score is None or score_args is None:
        return 0
    print(f"hat score {shlex.join(score)}", flush=True)
    return int(score_command.main(score_args))


def fairseq_flags(args: argparse.Namespace) -> list[str]:
    """Return the flags of fairseq-generate: the given ones, and those that follow from data of hat preprocess.

    Raises:
        ValueError: a flag that hat generate sets itself.
    """
    others = named_flags(args.others)
    for flag in (
        "--shard-id",
        "--distributed-world-size",
        "--distributed-rank",
        "--skip-samples",
        "--nbest",
        "--quiet",
    ):
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


def score_words(words: str, data: Path, subset: str, hypotheses: Path) -> list[str]:
    """Return the words of `hat score` for what --score says.

    Raises:
        ValueError: there are no references.
    """
    references = data.resolve().parent / "text" / f"{subset}.documents.jsonl"
    if not references.is_file():
        raise ValueError(f"{references} is missing: --score needs the references that hat preprocess wrote there")
    arguments = [*shlex.split(words), "--hypotheses", str(hypotheses), "--references", str(references)]
    if "--json" not in arguments:
        arguments += ["--json", str(hypotheses.with_name(f"{subset}.score.json"))]
    return arguments


def parse_score(words: list[str]) -> argparse.Namespace:
    """Return the arguments of `hat score`; a wrong one ends the process here."""
    parser = argparse.ArgumentParser(prog="hat score")
    score_command.add_arguments(parser)
    return parser.parse_args(words)
