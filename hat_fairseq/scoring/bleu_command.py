"""BLEU (document and sentence level) and chrF2 of translations with signatures, by sacrebleu."""

import argparse
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from hat_fairseq.data.pipeline import recorded_language
from hat_fairseq.data.word_tokenizer import join_sentences
from hat_fairseq.scoring.bleu import (
    CHRF2,
    DOCUMENT_BLEU,
    SENTENCE_BLEU,
    BleuReport,
    BleuSettings,
    Translation,
    bleu,
    make_bleu,
)
from hat_fairseq.scoring.files import DocumentTexts, read_hypotheses, read_references
from hat_fairseq.scoring.report import Report, aligned
from hat_fairseq.scoring.script import settings_by_script

HYPOTHESES = (
    ".jsonl (id, text and, for s-BLEU, segments), or plain text with one document a line; "
    "p-values are against the first system"
)
REFERENCES = (
    ".jsonl with id and target (list of segments, or several such lists), or plain text; "
    "several files have several references of each document"
)
SEVERAL_REFERENCES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "sacrebleu's tokenizer, e.g. 13a, zh, intl, char (default: that of the language or the script)"
    parser.add_argument("--tokenize", metavar="NAME", help=text)
    text = "ISO 639-1 code of the texts (default: what hat preprocess recorded beside the references, unless it is en; "
    text += "else what their script says: zh, ja, ko or en)"
    parser.add_argument("--language", metavar="CODE", help=text)
    parser.add_argument("--lowercase", action="store_true", help="compare in lower case")
    parser.set_defaults(seed=BleuSettings().seed)


def score(args: argparse.Namespace) -> Report:
    """A row for each system, and the signature of every score."""
    if args.seed < 1:  # sacrebleu's paired test takes 0 for "no seed"
        raise ValueError(f"the seed must be at least 1, not {args.seed}")
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # its paired test reports every step
    settings = settings_of(args)
    make_bleu(settings)  # a missing package is known before the files are read
    references = read_references(args.references)
    segments = [
        [text.split("\n") if isinstance(text, str) else text for text in of_document]
        for of_document in references.texts
    ]
    reason = ""
    if not args.language:
        settings, reason = settings_by_script(settings, (line for each in segments for text in each for line in text))
    systems = {path: read_translations(path, references, settings.language) for path in args.hypotheses}
    reports, signatures = bleu(systems, segments, settings)
    record = {"systems": {path: asdict(report) for path, report in reports.items()}, "signatures": signatures}
    lines = table(reports) + [f"{metric}: {signature}" for metric, signature in signatures.items()]
    lines += [reason] if reason else []
    return Report(lines, [*notes(reports), *tokenized(systems)], record)


def settings_of(args: argparse.Namespace) -> BleuSettings:
    """The settings that the options and the references' pipeline give."""
    language = args.language or language_of(args.references)
    return BleuSettings(args.tokenize, args.lowercase, args.bootstrap_samples, args.seed, language)


def language_of(references: Sequence[str]) -> str:
    """The language that `hat preprocess` recorded beside the references, else `en`; ValueError if there are several."""
    found = set(filter(None, map(recorded_language, references)))
    if len(found) > 1:
        raise ValueError(f"the references are of the languages {', '.join(sorted(found))}: choose one with --language")
    return found.pop() if found else BleuSettings.language


def read_translations(path: str, references: DocumentTexts, language: str) -> list[Translation]:
    """A system's documents in the references' order; ValueError if `segments`, joined, are not the `text`."""
    texts = read_hypotheses(path, references)
    parts = read_hypotheses(path, references, ("segments", "text"))
    translations = []
    for number, (text, segments) in enumerate(zip(texts, parts, strict=True)):
        whole = text if isinstance(text, str) else join_sentences(text, language)
        known = None if isinstance(segments, str) else tuple(segments)
        if known is not None and "".join("".join(known).split()) != "".join(whole.split()):
            name = f"document {references.ids[number]!r}" if references.ids else f"document {number + 1}"
            raise ValueError(f"{path}: the segments of {name}, joined, are not its text")
        translations.append(Translation(whole, known))
    return translations


def tokenized(systems: Mapping[str, Sequence[Translation]]) -> Iterator[str]:
    """A note for each system that seems to have been scored as tokens; sacrebleu warns from 100 documents on."""
    for path, documents in systems.items():
        count = sum(document.text.rstrip().endswith(" .") for document in documents)
        if 2 * count > len(documents):
            what = f"{count} of {len(documents)} documents end in a full stop after a space"
            yield f"{path}: {what}: if the texts are tokenised, detokenise them, or BLEU is not comparable"


def table(reports: dict[str, BleuReport]) -> list[str]:
    """A row for each system, with p-values where systems were compared."""
    tested = len(reports) > 1 and any(report.scores[CHRF2].p_value is not None for report in reports.values())
    names = [name for metric in (DOCUMENT_BLEU, CHRF2) for name in ([metric, "p"] if tested else [metric])]
    rows = [["", *names, SENTENCE_BLEU, "unmatched documents", "unmatched segments"]]
    for system, report in reports.items():
        row = [system]
        for figure in (report.scores[DOCUMENT_BLEU], report.scores[CHRF2]):
            p_value = "" if figure.p_value is None else f"{figure.p_value:.4f}"
            row += [str(figure), p_value] if tested else [str(figure)]
        row.append(str(report.scores.get(SENTENCE_BLEU, "-")))
        for part, whole in (
            (report.unmatched_documents, report.documents),
            (report.unmatched_segments, report.segments),
        ):
            row.append(f"{part} of {whole} ({100 * part / whole:.1f} %)")
        rows.append(row)
    return aligned(rows)


def notes(reports: dict[str, BleuReport]) -> list[str]:
    lines = []
    for name, report in reports.items():
        if count := report.empty_hypotheses:
            lines.append(f"{name}: {count} of {report.documents} hypotheses are empty")
        if report.same_as_first:
            lines.append(f"{name}: the same texts as the first system, so no p-value")
        if count := report.without_segments:
            missing = "have no segments, which s-BLEU needs: preprocess with --target-separator"
            lines.append(f"{name}: {count} of {report.documents} documents {missing}")
    return lines
