"""Tiny releases of Natural Questions and TyDi QA: real questions and paragraphs in the authors' formats."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_json_lines

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
Json = dict[str, Any]


@cache
def samples() -> list[Json]:
    """Eleven questions, each with a paragraph of Wikipedia and answers in it."""
    return [record for _, record in read_json_lines(SAMPLES / "natural_questions.jsonl")]


@cache
def tydi() -> list[Json]:
    """Eleven questions in ten languages and English, with whole articles and three annotations each."""
    return [record for _, record in read_json_lines(SAMPLES / "tydi_qa.jsonl.gz")]


def write_gz(path: Path, records: list[Json]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def page(number: int, annotators: int) -> Json:
    """A page in the original format: a title, the question's own paragraph and those of two others, a table.

    The candidates are the paragraphs, the table, a row inside it, and a tag. Of the annotators every third finds
    nothing. Question 0 has two spans, question 3 is answered by yes, question 4 in the row of the table, question 5 by
    nothing short.
    """
    sample, others = samples()[number], [samples()[(number + step) % 11] for step in (1, 2)]
    tokens: list[tuple[str, bool]] = [("<H1>", True), ("Title", False), ("</H1>", True)]
    candidates, spans = [], []
    for text in (others[0]["text"], sample["text"], others[1]["text"]):
        begin = len(tokens)
        tokens.append(("<P>", True))
        places = {}
        for match in re.finditer(r"\S+", text):
            places[len(tokens)] = match.span()
            tokens.append((match[0], False))
            if len(places) == 5:
                tokens += [("<I>", True), ("</I>", True)]
        tokens.append(("</P>", True))
        candidates.append((begin, len(tokens), True))
        if text is sample["text"]:
            for answer in sample["answers"][: 2 if number == 0 else 1]:
                first, last = answer["start"], answer["start"] + len(answer["text"])
                inside = [place for place, (a, b) in places.items() if a < last and b > first]
                spans.append((inside[0], inside[-1] + 1))
    table = len(tokens)
    tokens += [("<Table>", True), ("<Tr>", True), ('<Td_colspan="2">', True), ("a b", False), ("&", False)]
    tokens += [("</Td>", True), ("</Tr>", True), ("</Table>", True)]
    candidates += [(table, len(tokens), True), (table + 1, len(tokens) - 1, False)]
    candidates.append((0, 1, True))  # a candidate of nothing but a tag
    html, bounds = b"", []
    for token, _ in tokens:
        bounds.append((len(html), len(html) + len(token.encode())))
        html += token.encode() + b" "

    def span(begin: int, end: int) -> Json:
        offsets = {"start_byte": bounds[begin][0], "end_byte": bounds[end - 1][1]} if begin >= 0 else {}
        return {"start_token": begin, "end_token": end, **(offsets or {"start_byte": -1, "end_byte": -1})}

    chosen = 4 if number == 4 else 1
    none = {"long_answer": {**span(-1, -1), "candidate_index": -1}, "short_answers": [], "yes_no_answer": "NONE"}
    found = {
        "long_answer": {**span(*candidates[chosen][:2]), "candidate_index": chosen},
        "short_answers": [span(*each) for each in sorted(spans)] if number not in (3, 4, 5) else [],
        "yes_no_answer": "YES" if number == 3 else "NONE",
    }
    return {
        "example_id": number - 5,
        "question_text": sample["question"],
        "document_title": sample["id"],
        "document_url": "https://en.wikipedia.org/",
        "document_html": html.decode(),
        "document_tokens": [
            {"token": token, "html_token": is_tag, "start_byte": begin, "end_byte": end}
            for (token, is_tag), (begin, end) in zip(tokens, bounds, strict=True)
        ],
        "long_answer_candidates": [{**span(a, b), "top_level": top} for a, b, top in candidates],
        "annotations": [{"annotation_id": index, **(none if index % 3 == 2 else found)} for index in range(annotators)],
    }


def simplified(original: Json) -> Json:
    """A page as the authors' `simplify_nq_example` makes it of the original one."""
    kept = {key: original[key] for key in ("example_id", "question_text", "document_url")}
    kept["document_text"] = " ".join(token["token"].replace(" ", "_") for token in original["document_tokens"])

    def without_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [without_bytes(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {key: without_bytes(each) for key, each in value.items() if not key.endswith("_byte")}

    return kept | {key: without_bytes(original[key]) for key in ("long_answer_candidates", "annotations")}


def write_natural_questions(root: Path) -> None:
    """Simplified training pages with one annotation, original development pages with five; 8 and 11."""
    write_gz(root / "v1.0-simplified_simplified-nq-train.jsonl.gz", [simplified(page(n, 1)) for n in range(8)])
    write_gz(root / "dev/nq-dev-00.jsonl.gz", [page(n, 5) for n in range(6)])
    write_gz(root / "dev/nq-dev-01.jsonl.gz", [page(n, 5) for n in range(6, 11)])


def write_tydi_qa(root: Path) -> None:
    """The development part as released, and a training part of the same articles with one annotation each."""
    answered = []
    for record in tydi():
        best = max(record["annotations"], key=lambda each: each["passage_answer"]["candidate_index"])
        answered.append({**record, "annotations": [best]})
    write_gz(root / "tydiqa-v1.0-train.jsonl.gz", answered)
    write_gz(root / "tydiqa-v1.0-dev.jsonl.gz", tydi())


WRITERS = {"natural_questions": write_natural_questions, "tydi_qa": write_tydi_qa}
