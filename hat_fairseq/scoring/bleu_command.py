"""BLEU (document and sentence level) and chrF2 of translations with signatures, by sacrebleu."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path

from hat_fairseq.scoring.bleu import CHRF2, DOCUMENT_BLEU, SENTENCE_BLEU, BleuReport, Translation, bleu
from hat_fairseq.scoring.bleu_settings import BleuSettings
from hat_fairseq.scoring.columns import aligned
from hat_fairseq.scoring.summaries import HYPOTHESIS_KEYS, REFERENCE_KEYS, Summaries, pair, read_summaries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    default = BleuSettings()
    parser.add_argument(
        "--hypotheses",
        nargs="+",
        required=True,
        metavar="FILE",
        help="one or more systems, the first is the one that others are tested against: .jsonl (id, text and, for "
        "s-BLEU, segments), or plain text with one document a line",
    )
    parser.add_argument(
        "--references",
        required=True,
        metavar="FILE",
        help=".jsonl with id and target (list of segments), or plain text",
    )
    parser.add_argument(
        "--tokenize",
        default=default.tokenize,
        metavar="NAME",
        help="sacrebleu's tokenizer, e.g. 13a, zh, intl, char (default: %(default)s)",
    )
    parser.add_argument("--lowercase", action="store_true", help="compare in lower case")
    parser.add_argument(
        "--bootstrap-samples",
        type=int,
        default=default.bootstrap_samples,
        metavar="N",
        help="0 for no intervals and no significance tests (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=default.seed, help="of the resampling (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write scores and signatures there as well")


def main(args: argparse.Namespace) -> int:
    """Score each file of hypotheses and print one row for it."""
    if len(set(args.hypotheses)) < len(args.hypotheses):
        raise ValueError("--hypotheses names a file twice")
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # its paired test reports every step
    settings = BleuSettings(args.tokenize, args.lowercase, args.bootstrap_samples, args.seed)
    references = read_summaries(args.references, REFERENCE_KEYS)
    systems = {path: read_translations(path, references) for path in args.hypotheses}
    segments = [text.split("\n") if isinstance(text, str) else list(text) for text in references.texts]
    reports, signatures = bleu(systems, segments, settings)
    print(render(reports, signatures))
    for note in notes(reports):
        print(note, file=sys.stderr)
    if args.json:
        record = {"systems": {path: asdict(report) for path, report in reports.items()}, "signatures": signatures}
        Path(args.json).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def read_translations(path: str, references: Summaries) -> list[Translation]:
    """Return a system's documents in the references' order.

    Raises:
        ValueError: as in ``summaries``; or a document whose ``segments`` are not its ``text``.
    """
    texts = pair(read_summaries(path, HYPOTHESIS_KEYS), references)
    parts = pair(read_summaries(path, ("segments", *HYPOTHESIS_KEYS)), references)
    translations = []
    for number, (text, segments) in enumerate(zip(texts, parts, strict=True)):
        whole = text if isinstance(text, str) else " ".join(text)
        known = None if isinstance(segments, str) else tuple(segments)
        if known is not None and " ".join(known).split() != whole.split():
            name = f"document {references.ids[number]!r}" if references.ids else f"document {number + 1}"
            raise ValueError(f"{path}: the segments of {name}, joined by spaces, are not its text")
        translations.append(Translation(whole, known))
    return translations


def render(reports: dict[str, BleuReport], signatures: dict[str, str]) -> str:
    """Return a table with a row per system, and the signature of every score below it."""
    tested = len(reports) > 1 and any(report.scores[CHRF2].p_value is not None for report in reports.values())
    names = [name for metric in (DOCUMENT_BLEU, CHRF2) for name in ([metric, "p"] if tested else [metric])]
    rows = [["", *names, SENTENCE_BLEU, "unmatched documents", "unmatched segments"]]
    for system, report in reports.items():
        row = [system]
        for metric in (DOCUMENT_BLEU, CHRF2):
            figure = report.scores[metric]
            row += [str(figure)] + ([_p_value(figure.p_value)] if tested else [])
        row.append(str(report.scores.get(SENTENCE_BLEU, "-")))
        row.append(_share(report.unmatched_documents, report.documents))
        row.append(_share(report.unmatched_segments, report.segments))
        rows.append(row)
    return "\n".join([*aligned(rows), *(f"{metric}: {signature}" for metric, signature in signatures.items())])


def notes(reports: dict[str, BleuReport]) -> list[str]:
    """Return a line for everything unexpected in the table."""
    lines = []
    for name, report in reports.items():
        if report.empty_hypotheses:
            lines.append(f"{name}: {report.empty_hypotheses} of {report.documents} hypotheses are empty")
        if report.same_as_first:
            lines.append(f"{name}: the same texts as the first system, so no p-value")
        if report.without_segments:
            lines.append(
                f"{name}: {report.without_segments} of {report.documents} documents have no segments, which s-BLEU "
                "needs: preprocess with --target-separator"
            )
    return lines


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)"
