"""The kind evidence: forms of records, labels of rows, places in the raw text, truncation, and what is refused."""

import csv
import itertools
import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import refusal, write_lines
from drawn import draws
from hypothesis import given
from hypothesis import strategies as st
from invisible import INVISIBLE

from hat_fairseq import cli
from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Answer, Record, Turn
from hat_fairseq.data.records_json import read_records, record_from_json, record_to_json
from hat_fairseq.data.rows import Row
from hat_fairseq.data.text import is_blank, normalise
from hat_fairseq.units.evidence import (
    Decision,
    Evidence,
    EvidenceKind,
    EvidenceOptions,
    Threshold,
    count_questions_and_units,
    raw_text,
    units_of,
    units_of_row,
)

BPE = LearnedBpe.learn(["PM: we will make it of rubber . who wants a button ? the button is yellow . Goodbye"], 60)
QUESTIONS = ("who wants a button ?", "the button is yellow")


def pipeline(**settings: Any) -> TextPipeline:
    return TextPipeline(Settings(kind="evidence", **settings), BPE)


def said(row: Row) -> list[str]:
    """The text of each question and unit of a row."""
    tokens = [token for token in row.tokens if token != "</s>"]
    starts = [place for place, token in enumerate(tokens) if token == "<s>"]
    return [BPE.decode(tokens[begin + 1 : end]) for begin, end in itertools.pairwise([*starts, len(tokens)])]


def record_of(**keys: Any) -> Any:
    return record_from_json({"id": "a", **keys}, "here:1", "evidence")


def test_turns_sentences_and_running_text_become_the_same_rows() -> None:
    texts, gold = ["who wants it ?", "", "the button is yellow .", "we will ."], [[0, 3], []]
    questions = list(QUESTIONS)
    spans = [[{"text": "who wants", "start": 0}, {"text": " we w", "start": 37}], []]
    running = " ".join(filter(None, texts))
    records = {
        "sentences": record_of(questions=questions, sentences=texts, evidence=gold),
        "turns": record_of(questions=questions, turns=[{"text": text} for text in texts], evidence=gold),
        "lines": record_of(questions="\n".join(questions), sentences="\n".join(texts), evidence="0 3\n"),
        "spans": record_of(questions=questions, text=running, spans=spans),
    }
    for name, record in records.items():
        assert record_from_json(json.loads(json.dumps(record_to_json(record))), "", "evidence") == record
        encoder = pipeline(splitter="punctuation")
        (row,) = encoder.rows(record)
        assert said(row) == [*QUESTIONS, texts[0], *texts[2:]], name
        assert row.label == list("101000")
        assert EvidenceKind().gold_labels(record) == ("with evidence", "without evidence")
        numbers = [0, 1, 2] if name == "spans" else [0, 2, 3]
        assert [each.number for each in units_of_row(row)] == numbers
        assert encoder.counts["sentences_empty"] == (name != "spans")
        (blind,) = pipeline(splitter="punctuation").encode(record)
        assert blind.tokens == row.tokens
        assert blind.label is None
        ids = np.array([{"<s>": 0, "</s>": 2}.get(token, 9) for token in [*row.tokens, "</s>", "<pad>"]])
        assert count_questions_and_units(ids) == (2, 3)
        unknown = -100
        assert EvidenceKind().target(row.label, ids, {}) == [
            *(3, 3, 1, unknown, 0, unknown, 1, unknown),  # the document answers the first question
            *(2, 2, 0, unknown, 0, unknown, 0, unknown),
        ]
        with pytest.raises(ValueError, match="5 labels for 2 questions on 3 units"):
            EvidenceKind().target(row.label[1:], ids, {})


def test_roles_stand_before_turns_and_outside_of_the_places() -> None:
    turns = [{"role": "PM", "text": " we will\tmake it ."}, {"speaker": "UI", "text": "Goodbye"}]
    record = record_of(questions=list(QUESTIONS[:1]), turns=turns, spans=[[{"text": "Good", "start": 19}]])
    (row,) = pipeline().rows(record)
    assert said(row) == [QUESTIONS[0], "PM: we will make it .", "UI: Goodbye"]
    assert row.label == ["0", "1"]
    raw = raw_text(record)
    units = units_of_row(row)
    assert [raw[each.begin : each.end] for each in units] == ["we will\tmake it .", "Goodbye"]


PIECES = st.text(alphabet="abc.?! \t\n\r\x07\x85\u00a0\u200b\u00ad\u2028é\ud800", max_size=12)
BLANK = st.sampled_from(["", " ", "\x07", "\u200b\u200b", "\n", *INVISIBLE])


def letters(text: str) -> str:
    """What shows of a part of a text; the x because a lone surrogate is blank alone, and replaced in a text."""
    return normalise(f"x{text}", Counter()).replace(" ", "")[1:]


@pytest.mark.slow
@draws
@given(st.lists(st.one_of(PIECES, BLANK), min_size=1, max_size=8), st.sampled_from(["given", *"abc"]), st.data())
def test_passages_are_places_in_the_raw_text(texts: list[str], form: str, data: Any) -> None:
    """Of turns, and of running text of which line breaks do or do not end sentences."""
    if all(map(is_blank, texts)):
        return
    record: Record
    if form == "given":
        record, settings = Evidence("a", questions=QUESTIONS, turns=tuple(map(Turn, texts))), {}
    else:
        breaks = {"a": "space", "b": "paragraphs", "c": "sentences"}[form]
        settings = {"splitter": "punctuation", "line_breaks": breaks}
        record = Evidence("a", questions=QUESTIONS, text="\n\n".join(texts))
    encoder, raw = pipeline(**settings), raw_text(record)
    rows = encoder.encode(record)
    prepared = encoder.prepare(record)
    units, sentences = units_of(prepared, encoder.settings), prepared.texts[-1].sentences
    assert [letters(raw[each.begin : each.end]) for each in units] == [
        sentence.text.replace(" ", "") for sentence in sentences
    ]
    for unit in units:  # no white space or control character at the ends
        assert letters(raw[unit.begin]) or is_blank(raw[unit.begin])
        assert not raw[unit.begin].isspace()
        assert not raw[unit.end - 1].isspace()
        assert form != "given" or letters(raw[unit.begin : unit.end]) == letters(texts[unit.number])
    scores = np.array(data.draw(st.lists(st.floats(0, 1), min_size=2 * len(units), max_size=2 * len(units))))
    threshold = data.draw(st.sampled_from([0.0, 0.5, 0.9]))
    outputs = [np.pad(scores.reshape(2, -1, 1), ((0, 0), (1, 0), (0, 1))).ravel()]  # no document, no lines
    found = EvidenceKind().predict(record, rows, outputs, [], Decision(Threshold(threshold))).to_json()
    for each, row in zip(found["questions"], scores.reshape(2, -1), strict=True):
        chosen = {unit.number for unit, score in zip(units, row, strict=True) if score >= threshold}
        known = [unit.number for unit in units]
        assert [p for p in each["probabilities"] if p is not None] == pytest.approx(row.tolist(), abs=1e-6)
        assert form != "given" or len(each["probabilities"]) == len(texts)
        seen: list[int] = []
        for passage in each["passages"]:
            own = [number for number in known if passage["first"] <= number <= passage["last"]]
            assert chosen.issuperset(own)
            assert own[0] == passage["first"]
            assert own[-1] == passage["last"]
            first, last = units[known.index(own[0])], units[known.index(own[-1])]
            assert (passage["begin"], passage["end"]) == (first.begin, last.end)
            assert passage["text"] == raw[first.begin : last.end]
            assert passage["probability"] == pytest.approx(max(row[known.index(n)] for n in own), abs=1e-6)
            seen += own
        assert sorted(seen) == sorted(chosen)
        order = [passage["probability"] for passage in each["passages"]]
        assert order == sorted(order, reverse=True)
        most = EvidenceKind().predict(record, rows, outputs, [], Decision(Threshold(threshold), most_passages=1))
        assert [len(q["passages"]) for q in most.questions] == [min(1, len(q["passages"])) for q in found["questions"]]


def test_spans_are_mapped_as_looking_at_every_character() -> None:
    draw, counts, expected_without = random.Random(3), Counter[str](), 0
    for _ in range(200):
        texts = [draw.choice(["", " ", "who  wants", "a button ?", " yellow", "\x07"]) for _ in range(6)] + ["end"]
        raw = "\n".join(texts)
        begin = draw.randrange(len(raw))
        end = draw.randint(begin + 1, len(raw))
        record = Evidence(
            "a", questions=QUESTIONS, sentences=tuple(texts), spans=((Answer(raw[begin:end], begin),), ())
        )
        encoder = pipeline()
        (row,) = encoder.rows(record)
        owner = [number for number, text in enumerate(texts) for _ in text + "\n"]
        inside = {}  # of each unit, from its first to its last character that is kept
        for number in range(len(texts)):
            kept = [i for i, o in enumerate(owner[:-1]) if o == number and raw[i] not in " \n\x07"]
            if kept:
                inside[number] = set(range(kept[0], kept[-1] + 1))
        right = {number for number, own in inside.items() if own & set(range(begin, end))}
        assert row.label is not None
        assert row.label == [str(int(number in right)) for number in inside] + ["0"] * len(inside)
        counts += encoder.counts
        expected_without += not right
    assert counts["evidence_without_text"] == expected_without > 5


def test_evidence_that_is_not_in_the_row_is_counted() -> None:
    texts = ["we will", "", "who wants a button ?", "the button is yellow .", "Goodbye"]
    record = record_of(questions=list(QUESTIONS), sentences=texts, evidence=[[1, 2, 4], [0, 3, 4]])
    encoder = pipeline()
    (whole,) = encoder.rows(record)
    assert whole.label == list("01011011")
    assert encoder.counts["evidence_without_text"] == 1
    assert encoder.counts["evidence_truncated"] == 0
    lengths = [place for place, token in enumerate(whole.tokens) if token == "<s>"]
    short = pipeline(max_source_tokens=lengths[4] + 1, long_source="truncate")  # two units and </s>
    (row,) = short.rows(record)
    assert row.tokens == whole.tokens[: lengths[4]]
    assert row.label == list("0110")
    assert short.counts["evidence_truncated"] == 3
    assert short.counts["evidence_without_text"] == 1
    found = EvidenceKind().predict(record, short.encode(record), [np.full(12, 0.5)], [], Decision(Threshold(0.5)))
    assert found.questions[0]["probabilities"] == [0.5, None, 0.5, None, None]
    (passage,) = found.questions[0]["passages"]
    assert (passage["first"], passage["last"], passage["roles"]) == (0, 2, [])


@pytest.mark.parametrize(
    ("gold", "label", "target"),
    [
        ({"evidence": [[0, 2], []], "lines": [[2], []]}, "10 00 11 00 00 00", (3, 3, 1, 0, 0, 0, 1, 1)),
        ({"lines": [[2], []]}, "-0 -0 -1 -0 -0 -0", (3, 3, -100, 0, -100, 0, -100, 1)),
        ({"evidence": [[0, 2], []]}, "1 0 1 0 0 0", (3, 3, 1, -100, 0, -100, 1, -100)),
    ],
)
def test_passages_and_lines_are_known_or_not(gold: dict[str, Any], label: str, target: tuple[int, ...]) -> None:
    record = record_of(questions=list(QUESTIONS), sentences=["who wants it ?", "we will .", "Goodbye"], **gold)
    (row,) = pipeline().rows(record)
    assert row.label == label.split()
    assert record.without_gold().gold_value is None
    ids = np.array([{"<s>": 0, "</s>": 2}.get(token, 9) for token in [*row.tokens, "</s>"]])
    assert tuple(EvidenceKind().target(row.label, ids, {})[:8]) == target


def scores_of(*probabilities: float) -> np.ndarray:
    """Of a question: the document, then units, the same as passages and reversed as lines; (2 (1 + N),)."""
    return np.array([(0.4, 0.6), *zip(probabilities, probabilities[::-1], strict=True)]).ravel()


@pytest.mark.parametrize(
    ("decision", "passages", "lines", "answered"),
    [
        (Decision(Threshold(0.5)), [(1, 2)], [[]], True),
        (Decision(Threshold(0.5), Threshold(0.3), 0.5), [(1, 2)], [[1, 2]], True),
        (Decision(Threshold(0.5), Threshold(0.3), 0.51), [(1, 2)], [[1, 2]], False),
        (Decision(None, Threshold(0.5)), [(0, 1)], [[0, 1]], True),
        (Decision(Threshold(0.5, relative=True)), [(2, 2)], [[]], True),
        (Decision(Threshold(1.5, relative=True)), [(1, 2)], [[]], True),
        (Decision(Threshold(0.95)), [], [], True),
    ],
)
def test_a_decision_says_what_is_chosen(
    decision: Decision, passages: list[tuple[int, int]], lines: list[list[int]], answered: bool
) -> None:
    record = record_of(questions=[QUESTIONS[0]], sentences=["who wants it ?", "we will .", "Goodbye"])
    (found,) = (
        EvidenceKind().predict(record, pipeline().encode(record), [scores_of(0.1, 0.7, 0.9)], [], decision).questions
    )
    assert [(each["first"], each["last"]) for each in found["passages"]] == passages
    assert [each["lines"] for each in found["passages"]] == lines
    assert (found["answered"], found["answer_probability"]) == (answered, 0.5)
    assert ("line_probabilities" in found) == (decision.lines is not None)


def head_with(thresholds: list[float], relative: list[bool], answers: float) -> Any:
    head = SimpleNamespace(thresholds=np.array(thresholds), relative=np.array(relative), answers=np.float64(answers))
    return SimpleNamespace(classification_head=lambda name: head)


def test_models_decide_together_or_are_refused() -> None:
    kind, both = (
        EvidenceKind(),
        [head_with([0.5, 1.0], [False, True], 0.25), head_with([0.25, 2.0], [False, True], 0.75)],
    )
    assert kind.options_of(None, both) == Decision(Threshold(0.375), Threshold(1.5, True), 0.5)
    assert kind.options_of(EvidenceOptions(0.9, 3), both) == Decision(Threshold(0.9), Threshold(1.5, True), 0.5, 3)
    assert kind.options_of(None, [head_with([-1, -1], [False] * 2, 0)]) == Decision(Threshold(0.5))
    assert kind.options_of(None, [head_with([-1, 0.5], [False] * 2, 0)]) == Decision(None, Threshold(0.5))
    with pytest.raises(ValueError, match="choose passages in different ways: give --threshold"):
        kind.options_of(None, [both[0], head_with([1.0, 1.0], [True, True], 0)])


GOOD = {"id": "a", "questions": ["q"], "sentences": ["x", "y"]}
BAD = [
    ({"evidence": [[2]]}, "document 'a': 2 in evidence is not one of 0 to 1"),
    ({"evidence": [[-1]]}, "-1 in evidence is not one of 0 to 1"),
    ({"evidence": [[0]], "lines": [[2]]}, "2 in lines is not one of 0 to 1"),
    ({"lines": [[0], [1]]}, "document 'a': lines is for 2 questions of 1"),
    ({"sentences": None, "text": "x y", "lines": [[0]]}, "evidence of running text is spans"),
    ({"evidence": [[0], [1]]}, "document 'a': evidence is for 2 questions of 1"),
    ({"evidence": [["0"]]}, "must be a number, not '0'"),
    ({"evidence": "0 x"}, "evidence is not numbers: '0 x'"),
    ({"evidence": [0]}, "must be a list, not 0"),
    ({"evidence": [[0]], "spans": [[]]}, "evidence and spans are two forms of the same thing; give one of them"),
    ({"spans": [[{"text": "z", "start": 0}]]}, "the answer 'z' does not stand at character 0, where 'x' stands"),
    ({"spans": [[{"text": "y", "start": 1}]]}, "the answer 'y' does not stand at character 1, where '\\n' stands"),
    ({"spans": []}, "spans is for 0 questions of 1"),
    ({"turns": [{"text": "x"}]}, "give exactly one of text, turns, sentences, not turns and sentences"),
    ({"sentences": None, "text": "x y", "evidence": [[0]]}, "evidence of running text is spans"),
    ({"label": "yes"}, "unknown key 'label'"),
]


def test_wrong_evidence_is_refused_in_one_line(tmp_path: Path) -> None:
    for number, (keys, message) in enumerate(BAD):
        row = {key: value for key, value in {**GOOD, **keys}.items() if value is not None}
        raw = tmp_path / str(number)
        for split in ("train", "valid"):
            write_lines(raw / f"{split}.jsonl", [{**GOOD, "id": "b", "evidence": [[0]]}, row])
        words = refusal("preprocess", raw, "--kind", "evidence", "--out", tmp_path / "out", "--num-codes", 10)
        error = words.splitlines()[-1]
        assert message in error, (message, error)
        assert f"{number}/train.jsonl" in error, (message, error)
    assert not (tmp_path / "out").exists()


def test_tables_have_a_line_for_each_question_and_sentence(tmp_path: Path) -> None:
    rows = [
        ("a", "who ?\nwhat ?", "One.\nTwo.\nThree.", "0 2\n1"),
        ("b", "who ?\nwhat ?", "One.\nTwo.\nThree.", "\n0, 1,2"),
        ("c", "who ?", "One.", "0"),
        ("d", "who ?", "One.", " - "),
        ("e", "who ?\nwhat ?", "One.\nTwo.", "-\n-"),
    ]
    with open(tmp_path / "train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "questions", "sentences", "evidence"), *rows])
    records: list[Any] = list(read_records(tmp_path / "train.csv", "evidence"))
    assert [each.evidence for each in records] == [((0, 2), (1,)), ((), (0, 1, 2)), ((0,),), ((),), ((), ())]
    assert records[0].questions == ("who ?", "what ?")
    assert records[0].elements == ("One.", "Two.", "Three.")
    with open(tmp_path / "test.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "questions", "text"), ("a", "who ?", "One. Two.")])
    (record,) = read_records(tmp_path / "test.csv", "evidence")
    assert record == Evidence("a", questions=("who ?",), text="One. Two.")


def test_preprocessing_writes_labels_and_what_it_counts(tmp_path: Path) -> None:
    row = {"questions": ["who wants it ?", "why ?"], "sentences": ["we do", "", "no", "yes"], "evidence": [[0, 1], [2]]}
    for split in ("train", "valid"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [{"id": "a", **row}, {"id": "b", **row, "evidence": [[], []]}])
    words = ["preprocess", tmp_path / "raw", "--kind", "evidence", "--out", tmp_path / "out", "--num-codes", 10]
    assert cli.main(list(map(str, words))) == 0
    assert (tmp_path / "out/text/valid.label").read_text().splitlines() == ["1 0 0 0 1 0", "0 0 0 0 0 0"]
    counts = json.loads((tmp_path / "out/manifest.json").read_text())["splits"]["train"]["treatments"]
    assert counts["evidence_without_text"] == 1
    assert counts["sentences_empty"] == 2


def test_spans_are_gold_beside_evidence_and_alone(tmp_path: Path) -> None:
    """Of all records of a split, or of some of them."""
    row = {"questions": ["who wants it ?"], "sentences": ["we do", "no", "yes"]}
    numbers, spans = {"evidence": [[1]]}, {"spans": [[{"text": "no", "start": 6}]]}
    for name, first, second in (("alone", spans, spans), ("beside", spans, numbers), ("numbers", numbers, numbers)):
        for split in ("train", "valid"):
            lines = [{"id": f"{split}-{n}", **row, **gold} for n, gold in enumerate((first, second))]
            write_lines(tmp_path / f"{name}/raw/{split}.jsonl", lines)
        words = ["preprocess", tmp_path / name / "raw", "--kind", "evidence", "--out", tmp_path / name / "out"]
        assert cli.main([*map(str, words), "--num-codes", "10"]) == 0
        assert (tmp_path / name / "out/text/valid.label").read_text() == "0 1 0\n0 1 0\n"
        report = json.loads((tmp_path / name / "out/manifest.json").read_text())["splits"]["valid"]
        assert report["labels"] == {"with evidence": 2}
        files = {path.name for path in (tmp_path / name / "out/bin/label").iterdir()}
        assert files == {"dict.txt", "train.bin", "train.idx", "valid.bin", "valid.idx"}
