"""`hat score evidence`: predictions and references from files, joined by document id, and baselines beside them."""

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline
from hat_fairseq.data.records_json import read_records
from hat_fairseq.printed import aligned
from hat_fairseq.scoring.baselines import Fitted, baselines
from hat_fairseq.scoring.files import check_joined, is_empty, read_by_id, splits_beside
from hat_fairseq.scoring.report import Interval, Output, Signature
from hat_fairseq.units.baselines import RULES, Reference, references_of
from hat_fairseq.units.evidence import EvidenceKind, evidence_of, known_units
from hat_fairseq.units.scores import EvidenceReport, Found, System, compare

DOMAIN = "domain"  # a key of meta


def read_evidence(path: str) -> tuple[dict[str, Reference], int]:
    """Reads records of the kind `evidence` by their ids; ValueError for none, or running text without a pipeline.

    Returns also how many documents were skipped, because they or one of their questions have no text.
    """
    references, skipped = references_of(read_records(path, EvidenceKind.name), _settings(path))
    if not references:
        raise ValueError(f"{path} is empty: nothing to score")
    return {each.record.id: each for each in references}, skipped


def _settings(path: str) -> Settings | None:
    """What divides running text as `hat preprocess` did, if the file is of its folder `text`."""
    data = Path(path).resolve().parent.with_name("bin")
    return TextPipeline.load(data).settings if (data / FILE_NAME).is_file() else None


def read_systems(path: str, references: Mapping[str, Reference], wanted: str) -> dict[str, System]:
    """Reads predictions; ValueError for other documents, questions or numbers of units than the references have."""
    predictions = read_by_id(path, lambda fields: fields)
    predictions = {name: fields for name, fields in predictions.items() if not is_empty(fields)}
    check_joined(predictions, references, (path, wanted))
    return {name: system_of(predictions[name], reference) for name, reference in references.items()}


def system_of(fields: Fields, reference: Reference) -> System:
    """Returns what the prediction of a document says; that of an older version has one threshold for all questions."""
    objects, asked = fields.objects("questions"), reference.record.questions
    if len(objects) != len(asked):
        raise fields.error(f"{len(objects)} questions, and {reference.record.name} has {len(asked)}")
    system = []
    for number, (each, question) in enumerate(zip(objects, asked, strict=True), start=1):
        each.where = f"{fields.where}: question {number}"
        if each.text("question") != question:
            raise each.error(f"it is {each.text('question')!r:.80}, and in {reference.record.name} {question!r:.80}")
        system.append(_found(each, fields, reference))
    return system


def _found(question: Fields, document: Fields, reference: Reference) -> Found:
    has_lines = "line_probabilities" in question
    return Found(
        _probabilities(question, "probabilities", reference),
        _probability(question if "threshold" in question else document, "threshold"),
        list(_passages(question, reference)),
        _probabilities(question, "line_probabilities", reference) if has_lines else None,
        _probability(question, "line_threshold") if has_lines else None,
        _probability(question, "answer_probability") if "answer_probability" in question else None,
    )


def _probability(fields: Fields, name: str, *value: Any) -> float:
    """The value, or that under a key; ValueError unless it is a number from 0 to 1."""
    number: Any = value[0] if value else fields.record.get(name)
    if type(number) not in (int, float) or not 0 <= number <= 1:
        raise fields.error(f"{name} must be a number from 0 to 1, not {number!r:.60}")
    return float(number)


def _probabilities(question: Fields, name: str, reference: Reference) -> list[float | None]:
    values, count = question.get(name, list), reference.count
    if reference.record.text is not None:  # sentences that were truncated are not there
        values = values + [None] * (count - len(values))
    if len(values) != count:
        raise question.error(
            f"{len(values)} {name}, and {reference.record.name} has {count} turns or sentences; were they divided "
            "otherwise?"
        )
    return [None if value is None else _probability(question, f"each of {name}", value) for value in values]


def _passages(question: Fields, reference: Reference) -> Iterable[tuple[int, int]]:
    for each in question.objects("passages"):
        first, last = each.get("first", int), each.get("last", int)
        if not 0 <= first <= last < reference.count:
            raise question.error(f"the passage {first} to {last} is none of 0 to {reference.count - 1}")
        yield first, last


def score(args: argparse.Namespace) -> Output:
    """Returns a row for each system, the signature, and tables of differences and of domains."""
    (wanted,) = args.references
    train, valid = splits_of(args, wanted)
    references, skipped = read_evidence(wanted)
    check_gold(references.values(), wanted)
    systems = {path: read_systems(path, references, wanted) for path in args.hypotheses}
    rules = rules_of(train, valid, references) if args.baselines is not None else []
    systems |= {rule.title: _system_of_rule(rule, references) for rule in rules}
    reports = reports_of(systems, list(references.values()), args)
    signature = next(iter(reports.values())).signature
    if rules:
        signature = Signature({"baselines": _chosen_on(train, valid, wanted)} | signature.settings, signature.title)
    record = {name: _json(report, signature) for name, report in reports.items()}
    more = _differences(reports)
    for domain, own in domains_of(references.values()).items():
        of_domain = reports_of(systems, own, args) if any(map(has_evidence, own)) else {}
        more += ["", f"{DOMAIN} {domain}: {len(own)} documents{'' if of_domain else ', none with evidence'}"]
        more += [*aligned(_table(of_domain)), *_differences(of_domain)] if of_domain else []
        for name, report in of_domain.items():
            record[name].setdefault("domains", {})[domain] = _json(report)
    if rules:
        more += ["", "settings of the baselines, and their thresholds"]
        more += aligned([[rule.title, _shown(rule.chosen)] for rule in rules])
    for rule in rules:
        record[rule.title]["chosen"] = {name: asdict(choice) for name, choice in rule.chosen.items()}
    return Output(_table(reports), [str(signature)], more, _notes(valid, references.values(), rules, skipped), record)


def _shown(chosen: Mapping[str, Any]) -> str:
    return "; ".join(f"{'lines: ' * (name == 'lines')}{choice}" for name, choice in chosen.items())


def _system_of_rule(rule: Fitted, references: Mapping[str, Reference]) -> dict[str, System]:
    """Returns a rule as it would be read from a file of predictions."""
    lines = (Fields(prediction.to_json(), rule.title) for prediction in rule.predictions)
    return {name: system_of(next(lines), own) for name, own in references.items()}


def splits_of(args: argparse.Namespace, wanted: str) -> tuple[str | None, str | None]:
    """Returns the files of training and of validation; None where one is missing, or the references themselves."""
    if args.baselines is None:
        return None, None
    train, valid = (
        path if Path(path).is_file() and not Path(path).samefile(wanted) else None
        for path in splits_beside(args.baselines, wanted)
    )
    return args.baselines or train, valid


def has_evidence(reference: Reference) -> bool:
    """Tells whether a question of a document has evidence or lines."""
    return any(any(map(bool, own)) for own in (reference.evidence, reference.lines) if own is not None)


def check_gold(references: Collection[Reference], wanted: str) -> None:
    """Raises ValueError for a document without evidence and lines, or if there is no question with them."""
    for each in references:
        if each.evidence is None and each.lines is None:
            raise ValueError(f"{each.record.name} has neither evidence nor spans nor lines, so it cannot be scored")
    if not any(map(has_evidence, references)):
        raise ValueError(f"{wanted}: no question has evidence, so there is nothing to score")


def rules_of(train: str | None, valid: str | None, references: Mapping[str, Reference]) -> list[Fitted]:
    """Computes the rules."""
    test = list(references.values())
    chosen_on = list(read_evidence(valid)[0].values()) if valid else test
    asked = list(read_evidence(train)[0].values()) if train else chosen_on if valid else None
    questions = None if asked is None else [question for each in asked for question in each.record.questions]
    return baselines(list(RULES.values()), questions, chosen_on, test)


def reports_of(
    systems: Mapping[str, Mapping[str, System]], references: Sequence[Reference], args: argparse.Namespace
) -> dict[str, EvidenceReport]:
    """Returns the reports of systems on some of the references."""
    return compare(
        {name: [system[each.record.id] for each in references] for name, system in systems.items()},
        [each.evidence for each in references],
        lines=[each.lines for each in references],
        units=[each.numbers for each in references],
        bootstrap_samples=args.bootstrap_samples,
        seed=args.seed,
    )


def domains_of(references: Iterable[Reference]) -> dict[str, list[Reference]]:
    """Returns the references of each domain, in order of their names; nothing if one is that of all records."""
    references, domains = list(references), dict[str, list[Reference]]()
    for each in references:
        domain = (each.record.meta or {}).get(DOMAIN)
        if isinstance(domain, str):
            domains.setdefault(domain, []).append(each)
    return {} if list(domains.values()) == [references] else dict(sorted(domains.items()))


def _table(reports: Mapping[str, EvidenceReport]) -> list[list[str]]:
    figures = list(next(iter(reports.values())).scores)
    return [["", *figures], *([name, *map(str, each.scores.values())] for name, each in reports.items())]


def _differences(reports: Mapping[str, EvidenceReport]) -> list[str]:
    first, *_ = reports
    rows = [[name, *map(_signed, each.differences.values())] for name, each in reports.items() if each.differences]
    return ["", *aligned([[f"minus {first}", *reports[first].scores], *rows])] if rows else []


def _json(report: EvidenceReport, signature: Signature | None = None) -> dict[str, Any]:
    fields = report.to_json()
    record = {"figures": fields["scores"], "signature": str(signature or report.signature)}
    return record | ({"differences": fields["differences"]} if report.differences else {})


def _signed(interval: Interval) -> str:
    limits = "" if interval.low is None else f" [{interval.low:+.2f}, {interval.high:+.2f}]"
    return f"{interval.mean:+.2f}{limits}"


def _chosen_on(train: str | None, valid: str | None, wanted: str) -> str:
    """What the rules depend on, for the signature."""
    parts = [f"chosen on {valid or wanted}"]
    parts += [f"rare words of the questions of {train or valid}"] if train or valid else []
    return ", ".join(parts)


def _notes(valid: str | None, references: Iterable[Reference], rules: Sequence[Fitted], skipped: int) -> list[str]:
    """What of the evidence has no text, what is not scored, and choices that were made on what they are used for."""
    counts, notes = Counter[str](), list[str]()
    for each in references:
        if each.evidence is not None:
            evidence_of(each.record, each.units, counts)
        known_units(each.record.lines, each.units, counts)
    if without := counts["evidence_without_text"]:
        notes.append(f"{without} units or spans of the evidence have no text and are skipped")
    if rules and not valid:
        notes.append(
            "settings and thresholds of the baselines are the best for the references, which favours them: put "
            "valid.jsonl beside the references"
        )
    if skipped:
        notes.append(f"{skipped} documents have no text and are skipped")
    return notes
