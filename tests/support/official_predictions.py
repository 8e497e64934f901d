"""Questions and predictions in the official formats of Natural Questions and TyDi QA, made from real annotations.

Everything is drawn from `random.Random(seed)`, so the figures of the authors' scripts can be kept.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[1] / "samples"

Record = dict[str, Any]


def rows(name: str) -> list[Record]:
    return [json.loads(line) for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()]


def score_of(draw: random.Random, likely: bool) -> float:
    """Few different values, so many ties, 0 and negative ones among them; higher for what is `likely` right."""
    return draw.randint(-12, 12) / 4 + 4 * likely


def tydi_questions(seed: int, copies: int = 40) -> list[Record]:
    """The real questions, and copies of them under other ids whose annotators disagree in other ways."""
    draw, questions = random.Random(seed), rows("tydi_qa_annotations.jsonl")
    real = list(questions)
    for copy in range(1, copies):
        for record in real:
            annotations = [_tydi_annotation(draw, draw.choice(record["annotations"])) for _ in range(3)]
            questions.append({**record, "example_id": record["example_id"] + copy, "annotations": annotations})
    return questions


def _tydi_annotation(draw: random.Random, real: Record) -> Record:
    start, end, index, yes_no = -1, -1, draw.choice([-1, 0, 1, 2]), "NONE"
    kind = draw.choice(["real", "none", "span", "span", "yes or no"])
    if kind == "real":
        return real
    if kind == "span":
        start = draw.randint(100, 130)
        end = start + draw.randint(1, 40)
    elif kind == "yes or no":
        yes_no = draw.choice(["YES", "NO"])
    minimal = {"plaintext_start_byte": start, "plaintext_end_byte": end}
    return {"passage_answer": {"candidate_index": index}, "minimal_answer": minimal, "yes_no_answer": yes_no}


def tydi_predictions(seed: int, questions: list[Record]) -> list[Record]:
    """Right and wrong answers, none, and no prediction at all; every third seed leaves out a language."""
    draw, predictions = random.Random(seed + 1000), []
    for question in questions:
        gold = draw.choice(question["annotations"])
        start, end = gold["minimal_answer"]["plaintext_start_byte"], gold["minimal_answer"]["plaintext_end_byte"]
        yes_no, index = gold["yes_no_answer"], gold["passage_answer"]["candidate_index"]
        kind = draw.choice(["gold", "moved", "random", "yes or no", "none", "missing"])
        if kind == "moved" and start >= 0:
            start, end = start + draw.randint(-5, 5), end + draw.randint(6, 12)
        elif kind == "random":
            start, yes_no = draw.randint(90, 160), "NONE"
            end = start + draw.randint(1, 50)
        elif kind in ("yes or no", "none"):
            start, end, yes_no = -1, -1, draw.choice(["yes", "NO"]) if kind == "yes or no" else "none"
        record = {
            "example_id": question["example_id"],
            "language": question["language"],
            "passage_answer_index": index if kind == "gold" else draw.choice([index, -1, 0, 1, 2]),
            "passage_answer_score": score_of(draw, kind == "gold"),
            "minimal_answer": {"start_byte_offset": start, "end_byte_offset": end},
            "minimal_answer_score": score_of(draw, kind == "gold"),
            "yes_no_answer": yes_no,
        }
        for key, nothing in (("passage_answer_index", -1), ("yes_no_answer", "none")):
            if record[key] == nothing and draw.random() < 0.5:
                del record[key]
        if kind != "missing" and not (seed % 3 == 2 and question["language"] == "thai"):
            predictions.append(record)
    return predictions


def natural_questions(seed: int, copies: int = 50) -> list[Record]:
    """Questions with paragraph and answers of the release; each copy has five annotators who disagree at random."""
    draw, questions = random.Random(seed), []
    for number, record in enumerate(rows("natural_questions.jsonl")):
        tokens = [_span(record["text"], *match.span()) for match in re.finditer(r"\S+", record["text"])]
        candidates = [_joined(tokens, 0, len(tokens)), _joined(tokens, 0, 2), _joined(tokens, 1, len(tokens) - 1)]
        real = [_around(tokens, record["text"], answer) for answer in record["answers"]]
        for copy in range(copies):
            kinds = draw.choice([ANSWERS, ["none"] * 4 * len(ANSWERS) + ANSWERS])
            annotations = [_natural_annotation(draw, draw.choice(kinds), candidates, real) for _ in range(5)]
            questions.append({"example_id": (-1) ** copy * (1000 * number + copy + 1), "annotations": annotations})
    return questions


ANSWERS = ["none", "long", "short", "short", "YES", "NO"]
NO_SPAN = {"start_byte": -1, "end_byte": -1, "start_token": -1, "end_token": -1}
WRONG = {"start_byte": 3, "end_byte": 9, "start_token": -1, "end_token": -1}


def _span(text: str, start: int, end: int) -> Record:
    return {"start_byte": len(text[:start].encode()), "end_byte": len(text[:end].encode())}


def _joined(tokens: list[Record], start: int, end: int) -> Record:
    """The span of the tokens `[start, end)`."""
    offsets = {"start_byte": tokens[start]["start_byte"], "end_byte": tokens[end - 1]["end_byte"]}
    return {**offsets, "start_token": start, "end_token": end}


def _around(tokens: list[Record], text: str, answer: Record) -> Record:
    """The span of the tokens that a real answer touches."""
    span = _span(text, answer["start"], answer["start"] + len(answer["text"]))
    touched = [
        n for n, t in enumerate(tokens) if t["start_byte"] < span["end_byte"] and span["start_byte"] < t["end_byte"]
    ]
    return _joined(tokens, touched[0], touched[-1] + 1)


def _natural_annotation(draw: random.Random, kind: str, candidates: list[Record], real: list[Record]) -> Record:
    return {
        "long_answer": NO_SPAN if kind == "none" else draw.choice(candidates),
        "short_answers": draw.sample(real + candidates[1:], draw.randint(1, 3)) if kind == "short" else [],
        "yes_no_answer": kind if kind in ("YES", "NO") else "NONE",
    }


def natural_predictions(seed: int, questions: list[Record]) -> list[Record]:
    """Right and wrong answers, by bytes, tokens or both, with contradicting, repeated and null spans."""
    draw, predictions = random.Random(seed + 1000), []
    for question in questions:
        sure = draw.random() < 0.5
        gold = max(question["annotations"], key=lambda each: sure * len(each["short_answers"]) + draw.random())
        spans = [_changed(draw, span, sure) for span in gold["short_answers"]]
        spans += draw.choice([[], [NO_SPAN], spans[:1]] if sure else [[], [WRONG]])
        yes_no = (
            "none" if any(span != NO_SPAN for span in spans) else draw.choice([gold["yes_no_answer"], "NONE", "yes"])
        )
        record = {
            "example_id": question["example_id"],
            "long_answer": _changed(draw, gold["long_answer"], sure),
            "long_answer_score": score_of(draw, sure),
            "short_answers": spans,
            "short_answers_score": score_of(draw, sure),
            "yes_no_answer": yes_no,
        }
        for key, nothing in (("long_answer", NO_SPAN), ("short_answers", []), ("yes_no_answer", "NONE")):
            if record[key] == nothing and draw.random() < 0.5:
                del record[key]
        predictions.append(record)
    draw.shuffle(predictions)
    return predictions


def _changed(draw: random.Random, span: Record, sure: bool) -> Record:
    """The span as it is, without bytes or tokens, with other bytes or tokens; rather a wrong one if not `sure`."""
    if span == NO_SPAN:
        return NO_SPAN if sure else draw.choice([NO_SPAN, WRONG])
    no_bytes, no_tokens = {"start_byte": -1, "end_byte": -1}, {"start_token": -1, "end_token": -1}
    more_bytes, more_tokens = {"end_byte": span["end_byte"] + 1}, {"end_token": span["end_token"] + 1}
    right: list[Record] = [{}, no_bytes, no_tokens, more_bytes, more_tokens]
    wrong: list[Record] = [more_bytes | more_tokens, NO_SPAN, WRONG, WRONG]
    return {**span, **draw.choice(right * 4 + wrong if sure else right + wrong * 3)}
