"""ROUGE-1/2/L of summaries with 95 % intervals and a signature."""

import argparse
from dataclasses import asdict

from hat_fairseq.scoring.files import read_hypotheses, read_references
from hat_fairseq.scoring.report import Report, aligned
from hat_fairseq.scoring.rouge import METRICS, rouge, score_against_others
from hat_fairseq.scoring.rouge_settings import BACKENDS, PRESETS, SENTENCE_METHODS, SEVERAL, RougeSettings

HYPOTHESES = ".jsonl (id, text), or plain text with one document a line"
REFERENCES = (
    ".jsonl with id and target (text, list of sentences, or several such lists), or plain text; "
    "several files have several references of each document"
)
SEVERAL_REFERENCES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that are not given take the preset's value, else that of `RougeSettings`."""
    default = RougeSettings()
    parser.add_argument("--like", choices=sorted(PRESETS), help="split and stem as that tool does by default")
    parser.add_argument("--backend", choices=BACKENDS, help=f"default: {default.backend}")
    parser.add_argument("--stem", action=argparse.BooleanOptionalAction, default=None, help="default: stem")
    for side, method in (("hypothesis", default.hypothesis_sentences), ("reference", default.reference_sentences)):
        text = f"how each {side} is split (default: {method})"
        parser.add_argument(f"--{side}-sentences", choices=SENTENCE_METHODS, help=text)
    text = f"with several references, the best score of a document or the mean (default: {default.several_references})"
    parser.add_argument("--several-references", choices=SEVERAL, help=text)
    text = "also score each hypothesis against other documents' references (by rouge-score): the drop shows how much "
    text += "of the score is specific to the document"
    parser.add_argument("--against-others", action="store_true", help=text)


def settings_from(args: argparse.Namespace) -> RougeSettings:
    """The preset's settings, replaced by the options that were given."""
    given = {name: getattr(args, name) for name in asdict(RougeSettings()) if getattr(args, name) is not None}
    return RougeSettings(**{**PRESETS.get(args.like, {}), **given})


def score(args: argparse.Namespace) -> Report:
    """A row for each system, F x 100 with intervals; the signature; scores against other documents' references."""
    settings = settings_from(args)
    references = read_references(args.references)
    systems = {path: read_hypotheses(path, references) for path in args.hypotheses}
    reports = {path: rouge(texts, references.texts, settings) for path, texts in systems.items()}
    rows = [["", *METRICS.values()]]
    rows += [[path, *(str(report.scores[metric]) for metric in METRICS)] for path, report in reports.items()]
    lines = [*aligned(rows), *dict.fromkeys(report.signature for report in reports.values())]
    notes = []
    for path, report in reports.items():
        repeated = f"{report.repeated_trigrams:.2f} % (references: {report.repeated_in_references:.2f} %)"
        lines.append(f"repeated 3-grams: {path} {repeated}")
        if args.against_others:
            means = score_against_others(systems[path], references.texts, settings)
            figures = " ".join(f"{mean:.2f}" for mean in means.values())
            lines.append(f"against other documents' references: {path} {figures}")
        if count := report.empty_hypotheses:
            notes.append(f"{path}: {count} of {report.documents} hypotheses are empty and score 0")
        if count := report.non_ascii_documents:
            letters = "have letters outside a-z, which ROUGE ignores"
            notes.append(f"{path}: {count} of {report.documents} documents {letters}")
    return Report(lines, notes, {path: asdict(report) for path, report in reports.items()})
