"""ROUGE-1/2/L of summaries with 95 % intervals and a signature."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from hat_fairseq.scoring.columns import aligned
from hat_fairseq.scoring.others import score_against_others
from hat_fairseq.scoring.rouge import METRICS, RougeReport, rouge
from hat_fairseq.scoring.signature import BACKENDS, PRESETS, RougeSettings
from hat_fairseq.scoring.splitting import SENTENCE_METHODS
from hat_fairseq.scoring.summaries import HYPOTHESIS_KEYS, REFERENCE_KEYS, pair, read_summaries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; those left out take the preset's value, else ``RougeSettings``' default."""
    default = RougeSettings()
    parser.add_argument(
        "--hypotheses",
        nargs="+",
        required=True,
        metavar="FILE",
        help="one or more systems: .jsonl (id, text), or plain text with one document a line",
    )
    parser.add_argument(
        "--references",
        required=True,
        metavar="FILE",
        help=".jsonl with id and target (text or list of sentences), or plain text",
    )
    parser.add_argument("--like", choices=sorted(PRESETS), help="split and stem as that tool does by default")
    parser.add_argument("--backend", choices=BACKENDS, help=f"default: {default.backend}")
    parser.add_argument("--stem", action=argparse.BooleanOptionalAction, default=None, help="default: stem")
    parser.add_argument(
        "--hypothesis-sentences",
        choices=SENTENCE_METHODS,
        help=f"how hypotheses are split (default: {default.hypothesis_sentences})",
    )
    parser.add_argument(
        "--reference-sentences",
        choices=SENTENCE_METHODS,
        help=f"how references are split (default: {default.reference_sentences})",
    )
    parser.add_argument(
        "--bootstrap-samples", type=int, metavar="N", help=f"0 for no intervals (default: {default.bootstrap_samples})"
    )
    parser.add_argument("--seed", type=int, help=f"of the resampling (default: {default.seed})")
    parser.add_argument(
        "--against-others",
        action="store_true",
        help="also score each hypothesis against other documents' references (by rouge-score): what it loses there is "
        "what it says about its own document",
    )
    parser.add_argument("--json", metavar="FILE", help="write scores and signatures there as well")


def main(args: argparse.Namespace) -> int:
    """Score each file of hypotheses and print one row for it."""
    settings = settings_from(args)
    references = read_summaries(args.references, REFERENCE_KEYS)
    paired = {path: pair(read_summaries(path, HYPOTHESIS_KEYS), references) for path in args.hypotheses}
    reports = {path: rouge(hypotheses, references.texts, settings) for path, hypotheses in paired.items()}
    print(render(reports))
    if args.against_others:
        for path, hypotheses in paired.items():
            means = score_against_others(hypotheses, references.texts, settings)
            print(f"against other documents' references: {path}", *(f"{mean:.2f}" for mean in means.values()))
    for note in notes(reports):
        print(note, file=sys.stderr)
    if args.json:
        text = json.dumps({path: asdict(report) for path, report in reports.items()}, indent=2, ensure_ascii=False)
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    return 0


def settings_from(args: argparse.Namespace) -> RougeSettings:
    """Return the preset's settings with the options that were given on top."""
    chosen = dict(PRESETS[args.like]) if args.like else {}
    for name in asdict(RougeSettings()):
        if getattr(args, name) is not None:
            chosen[name] = getattr(args, name)
    return RougeSettings(**chosen)  # type: ignore[arg-type]


def render(reports: dict[str, RougeReport]) -> str:
    """Return a table with a row per system, F x 100 with 95 % intervals, and the signature below it."""
    rows = [["", *METRICS.values()]]
    for name, report in reports.items():
        rows.append([name, *(str(report.scores[metric]) for metric in METRICS)])
    signatures = dict.fromkeys(report.signature for report in reports.values())
    return "\n".join([*aligned(rows), *signatures])


def notes(reports: dict[str, RougeReport]) -> list[str]:
    """Return a line for everything that lowers a score unexpectedly."""
    lines = []
    for name, report in reports.items():
        if report.empty_hypotheses:
            lines.append(f"{name}: {report.empty_hypotheses} of {report.documents} hypotheses are empty and score 0")
        if report.non_ascii_documents:
            lines.append(
                f"{name}: {report.non_ascii_documents} of {report.documents} documents have letters outside a-z, "
                "which ROUGE ignores"
            )
    return lines
