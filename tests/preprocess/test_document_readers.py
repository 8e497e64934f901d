"""The readers of Natural Questions and TyDi QA: paragraphs, offsets there and back, what is skipped and refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from preprocess.question_containers import (
    page,
    samples,
    simplified,
    tydi,
    write_gz,
    write_natural_questions,
    write_tydi_qa,
)

from hat_fairseq import cli
from hat_fairseq.data.kinds import DocumentQuestion
from hat_fairseq.data.kinds.document_questions import choose_annotation
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Annotation, Answer, Record
from hat_fairseq.data.records_json import json_line
from hat_fairseq.scoring.official import dataset_of, without_offsets, write_official_answers


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


def one_page(root: Path, change: Callable[[dict[str, Any]], object]) -> tuple[Record, Counter[str]]:
    """The record of a page that was changed, and the counts above 0."""
    raw, counts = json.loads(json.dumps(page(0, 5))), Counter[str]()
    change(raw)
    write_gz(root / "nq-dev-00.jsonl.gz", [raw])
    (record,) = read("natural_questions", "valid", root, counts)
    return record, +counts


# Natural Questions


def test_paragraphs_are_the_candidates_without_tags(tmp_path: Path) -> None:
    write_natural_questions(tmp_path)
    counts: Counter[str] = Counter()
    records = read("natural_questions", "valid", tmp_path, counts)
    assert [record.id for record in records] == [str(number - 5) for number in range(11)]
    for number, record in enumerate(records):
        own, *others = (samples()[(number + step) % 11]["text"] for step in (0, 1, 2))
        expected = [" ".join(text.split()) for text in (others[0], own, others[1])]
        assert record.parts == (samples()[number]["question"], (*expected, "ab &"))
        assert dataset_of(record) == "natural_questions"
    # each page has a row in a table and a tag as candidates; the answer to question 4 is in the row
    assert counts == Counter(
        nested_candidates_skipped=11,
        candidates_without_text_skipped=11,
        annotations_in_skipped_candidates=4,
        answers_lost_by_reader=1,
    )
    yes, row, long = records[3:6]
    assert yes.annotations == (Annotation(1, yes_no="yes"),) * 2 + (Annotation(),) + (Annotation(1, yes_no="yes"),) * 2
    assert set(row.annotations or ()) == {Annotation()} and (long.annotations or ())[0] == Annotation(1)
    for number in (0, 1, 2, 6, 7, 8, 9, 10):
        found = choose_annotation(records[number].annotations or ())
        wanted = sorted(samples()[number]["answers"][: 2 if number == 0 else 1], key=lambda answer: answer["start"])
        assert found.paragraph == 1 and len(found.spans) == len(wanted)
        for span, answer in zip(found.spans, wanted, strict=True):
            assert " ".join(answer["text"].split()) in span.text  # a token may hold more than the answer


def test_simplified_pages_give_the_same_records(tmp_path: Path) -> None:
    for folder, make in (("original", page), ("simplified", lambda n, count: simplified(page(n, count)))):
        write_gz(tmp_path / folder / "nq-train-00.jsonl.gz", [make(number, 1) for number in range(11)])
    original, simple = (read("natural_questions", "train", tmp_path / name) for name in ("original", "simplified"))
    assert len(original) == 11
    for one, other in zip(original, simple, strict=True):  # a space inside a token is an underscore there
        parts = one.parts[0], tuple(text.replace("ab &", "a_b &") for text in one.parts[1])
        assert (other.id, other.parts, other.annotations) == (one.id, parts, one.annotations)
        assert one.meta is other.meta is None, "what the official files need is kept of the development part only"


def test_what_is_outside_of_paragraphs_is_counted(tmp_path: Path) -> None:
    def outside(raw: dict[str, Any]) -> None:
        raw["annotations"][0]["short_answers"] = [{"start_token": 0, "end_token": 2}]
        for number in (1, 3, 4):
            raw["annotations"][number]["long_answer"]["candidate_index"] = 5

    record, counts = one_page(tmp_path, outside)
    assert record.annotations == (Annotation(1), *[Annotation()] * 4)
    assert counts["short_answers_outside_paragraph"] == 1 and counts["annotations_in_skipped_candidates"] == 3
    assert counts["answers_lost_by_reader"] == 0
    record, counts = one_page(tmp_path, lambda raw: raw.update(annotations=[]))
    assert record.annotations == ()
    record, counts = one_page(tmp_path, lambda raw: raw.pop("annotations"))
    assert record.annotations is None
    record, counts = one_page(tmp_path, lambda raw: raw.update(long_answer_candidates=[]))
    assert counts["pages_without_candidate"] == 1 and counts["answers_lost_by_reader"] == 1
    assert record.sentences and len(record.sentences) == 1 and record.sentences[0].startswith("Title ")
    prediction = {"paragraph": 0, "answer": "Title", "answer_paragraph": 0, "start": 0, "type": "span"}
    pair = record, {**prediction, "paragraph_score": 1.0, "answer_score": 2.0}
    path = write_official_answers(tmp_path, "natural_questions", [pair])
    (found,) = json.loads(path.read_text())["predictions"]
    assert found["long_answer"]["start_token"] == -1 and found["short_answers"][0]["start_token"] == 1


# TyDi QA


def test_passages_and_answers_are_the_bytes_of_the_article(tmp_path: Path) -> None:
    """In every language of the sample."""
    write_tydi_qa(tmp_path)
    counts: Counter[str] = Counter()
    records, answers = read("tydi_qa", "valid", tmp_path, counts), 0
    assert len({raw["language"] for raw in tydi()}) >= 10
    for record, raw in zip(records, tydi(), strict=True):
        data = raw["document_plaintext"].encode()
        bounds = [(c["plaintext_start_byte"], c["plaintext_end_byte"]) for c in raw["passage_answer_candidates"]]
        assert record.id == str(raw["example_id"]) and record.parts[0] == raw["question_text"]
        assert record.sentences == tuple(data[begin:end].decode() for begin, end in bounds)
        for annotation, given in zip(record.annotations or (), raw["annotations"], strict=True):
            index, minimal = given["passage_answer"]["candidate_index"], given["minimal_answer"]
            assert annotation.paragraph == (index if index >= 0 else None)
            assert (annotation.yes_no or "none") == given["yes_no_answer"].lower()
            expected = data[minimal["plaintext_start_byte"] : minimal["plaintext_end_byte"]].decode()
            assert [span.text for span in annotation.spans] == ([expected] if expected else [])
            answers += len(annotation.spans)
    assert answers == 6 and not +counts


def test_offsets_inside_characters_and_outside_of_passages(tmp_path: Path) -> None:
    text = "ab é cd\nxy zé"  # é has two bytes
    bounds = [(0, 8), (9, 14), (8, 9)]
    candidates = [{"plaintext_start_byte": a, "plaintext_end_byte": b} for a, b in bounds]

    def annotation(index: int, begin: int, end: int) -> dict[str, Any]:
        minimal = {"plaintext_start_byte": begin, "plaintext_end_byte": end}
        return {"passage_answer": {"candidate_index": index}, "minimal_answer": minimal, "yes_no_answer": "NONE"}

    given = [annotation(0, 4, 8), annotation(0, 6, 8), annotation(1, 4, 8), annotation(2, -1, -1), annotation(-1, 3, 5)]
    record = {"example_id": 7, "language": "french", "question_text": "?", "document_plaintext": text}
    record |= {"passage_answer_candidates": candidates, "annotations": given}
    write_gz(tmp_path / "tydiqa-v1.0-dev.jsonl.gz", [record])
    counts: Counter[str] = Counter()
    (found,) = read("tydi_qa", "valid", tmp_path, counts)
    assert found.parts == ("?", ("ab é cd", "xy z"))  # byte 14 is inside the last character
    assert found.annotations == (
        Annotation(0, (Answer("é cd", 3),)),  # so is byte 4
        Annotation(0, (Answer("cd", 5),)),
        Annotation(1),
        Annotation(),
        Annotation(),
    )
    assert +counts == Counter(
        offsets_inside_characters=3,
        minimal_answers_outside_passage=2,
        annotations_in_skipped_candidates=1,
        candidates_without_text_skipped=1,
    )
    record |= {"passage_answer_candidates": [], "annotations": given[:1]}
    write_gz(tmp_path / "tydiqa-v1.0-dev.jsonl.gz", [record])
    (found,) = read("tydi_qa", "valid", tmp_path, counts)
    assert found.parts[1] == (text,) and counts["articles_without_candidate"] == counts["answers_lost_by_reader"] == 1


# Both


@pytest.mark.parametrize("name", ["natural_questions", "tydi_qa"])
def test_gold_answers_as_predictions_have_full_marks(name: str, tmp_path: Path) -> None:
    """Characters become tokens or bytes again: by the metric of the dataset, with what is kept of the release."""
    write_natural_questions(tmp_path / "natural_questions")
    write_tydi_qa(tmp_path / "tydi_qa")
    records = read(name, "valid", tmp_path / name)
    lines = []
    for record in records:
        gold = choose_annotation(record.annotations or ())
        span = gold.spans[0] if gold.spans else None
        prediction = {
            "id": record.id,
            "type": gold.yes_no or ("span" if span else "paragraph" if gold.paragraph is not None else "none"),
            "paragraph": gold.paragraph,
            "paragraph_score": float(gold.paragraph is not None),
            "answer": span.text if span else gold.yes_no or "",
            "answer_paragraph": gold.paragraph if span else None,
            "start": span.start if span else None,
            "answer_score": float(span is not None or gold.yes_no is not None),
            "meta": {**(record.meta or {}), "mine": 1},
        }
        assert without_offsets(prediction)["meta"] == {"mine": 1}
        lines.append(json.dumps(prediction) + "\n")
    (tmp_path / "p.jsonl").write_text("".join(lines), encoding="utf-8")
    kept = tmp_path / "valid.jsonl"
    kept.write_text("".join(json_line(record) + "\n" for record in records), encoding="utf-8")
    words = [
        "score",
        name,
        "--hypotheses",
        f"{tmp_path}/p.jsonl",
        "--references",
        str(kept),
        "--bootstrap-samples",
        "0",
    ]
    assert cli.main([*words, "--json", str(tmp_path / "s.json")]) == 0
    (scores,) = json.loads((tmp_path / "s.json").read_text()).values()
    if name == "natural_questions":  # one of ten answers is lost, and one has two spans
        assert scores["scores"]["long"]["precision"] == 100 and scores["scores"]["long"]["recall"] > 90
        assert scores["scores"]["short"]["f1"]["mean"] > 85
    else:
        languages = scores["scores"]["minimal"]["languages"]
        assert all(languages[language]["f1"] == 100 for language in ("arabic", "indonesian", "russian"))


REFUSED = [
    ("natural_questions", {"question_text": 7}, "question_text must be a string, not 7"),
    ("natural_questions", {"example_id": "7"}, "example_id must be a number, not '7'"),
    ("natural_questions", {"long_answer_candidates": None}, "long_answer_candidates must be a list"),
    ("natural_questions", {"long_answer_candidates": [{"start_token": 3, "end_token": 999999}]}, "candidate 0 has the"),
    ("natural_questions", {"annotations": [{}]}, "there is no long_answer"),
    (
        "natural_questions",
        {
            "annotations": [
                {
                    "long_answer": {"candidate_index": 0},
                    "short_answers": [{"start_token": 3, "end_token": 999999}],
                    "yes_no_answer": "NONE",
                }
            ]
        },
        "a short answer has the tokens 3 to 999999 of",
    ),
    ("tydi_qa", {"document_plaintext": None}, "document_plaintext must be a string"),
    ("tydi_qa", {"annotations": [{}]}, "there is no passage_answer"),
    (
        "tydi_qa",
        {"passage_answer_candidates": [{"plaintext_start_byte": 5, "plaintext_end_byte": 99999999}]},
        "the bytes 5 to 99999999 are not in a text of",
    ),
]


@pytest.mark.parametrize(("name", "change", "message"), REFUSED)
def test_what_is_no_release_is_refused(name: str, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path, record = ("nq-dev-0.jsonl.gz", page(0, 1)) if name[0] == "n" else ("tydiqa-v1.0-dev.jsonl.gz", tydi()[0])
    write_gz(tmp_path / path, [{**record, **change}])
    with pytest.raises(ValueError, match=f"{re.escape(str(tmp_path / path))}:1: .*{message}"):
        read(name, "valid", tmp_path)
    with pytest.raises(ValueError, match="has no .*train.*it must contain"):
        read(name, "train", tmp_path)
    with pytest.raises(ValueError, match="--root DIR is required: .* containing"):
        read(name, "train", None)


def test_records_of_another_dataset_are_no_official_answers(tmp_path: Path) -> None:
    for record in (
        DocumentQuestion("7", question="q", paragraphs=("x",)),
        DocumentQuestion("a7", question="q", paragraphs=("x",), meta={"tydi_qa": {}}),
    ):
        with pytest.raises(ValueError, match="is not from tydi_qa, or not from its"):
            write_official_answers(tmp_path, "tydi_qa", [(record, {})])
