"""Whatever shows nothing is empty: in every field of every kind, in tables, in parallel text, in roles and labels."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import hat, read_lines, refusal, write_lines
from invisible import INVISIBLE, SURROGATES, VISIBLE, WHITE_SPACE, drawn

from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.kinds import Question
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Answer
from hat_fairseq.data.text import is_blank

GOOD: dict[str, dict[str, Any]] = {
    "text": {"text": "It rained. We went home.", "target": "Rain."},
    "classification": {"text": "It rained.", "label": "a"},
    "choice": {"text": "It rained.", "choices": ["We went home.", "We stayed."], "label": 0},
    "candidates": {"question": "Who?", "candidates": ["Ann", "Bob"], "text": "It was Ann.", "label": 0},
    "segments": {"segments": ["It rained.", "We went."], "labels": ["a", "b"]},
    "tokens": {"words": ["It", "rained"], "labels": ["a", "b"]},
    "qa": {"question": "Who?", "text": "It was Ann.", "answers": [{"text": "Ann", "start": 7}]},
    "document_qa": {"question": "Who?", "paragraphs": ["It was Ann.", "Not Bob."], "annotations": [{"paragraph": 0}]},
    "evidence": {"questions": ["Why?", "Who?"], "sentences": ["It rained.", "We went."], "evidence": [[0], []]},
    "mlm": {"text": "It rained."},
    "sequence": {"tokens": ["1", "2"], "label": "a"},
    "byte_sequence": {"text": "It rained.", "label": "a"},
    "byte_pair": {"text": "It rained.", "second": "It poured.", "label": "a"},
}
GIVEN = {"sentences": ["It rained.", "We went."], "target": "Rain."}
# Kind, flags, other fields of all records, and a field that shows nothing.
FIELDS: list[tuple[str, str, dict[str, Any], Callable[[Any], dict[str, Any]]]] = [
    ("text", "", {}, lambda blank: {"text": blank}),
    ("text", "", {}, lambda blank: {"target": blank}),
    ("text", "", {}, lambda blank: {"target": None, "summary": [blank, blank]}),
    ("text", "", {}, lambda blank: {"question": blank or ""}),
    ("text", "--splitter given", {"text": None, **GIVEN}, lambda blank: {"sentences": [blank, blank]}),
    ("text", "--splitter given", {"text": None, **GIVEN}, lambda b: {"sentences": None, "turns": [{"text": b}]}),
    ("text", "--splitter given --aligned", {"text": None, **GIVEN, "target": "a\nb"}, lambda b: {"target": [b, b]}),
    ("text", "--splitter given --aligned", {"text": None, **GIVEN, "target": "a\nb"}, lambda b: {"sentences": [b, b]}),
    ("classification", "", {}, lambda blank: {"text": blank}),
    ("classification", "--segments none", {"text": None, "segments": ["a"]}, lambda blank: {"segments": [blank]}),
    ("classification", "", {"second": "It poured."}, lambda blank: {"second": blank or ""}),
    ("choice", "", {}, lambda blank: {"text": blank}),
    ("choice", "", {}, lambda blank: {"choices": ["We went home.", blank]}),
    ("choice", "", {"question": "What then?"}, lambda blank: {"choices": [blank, "We went home."]}),
    ("candidates", "", {}, lambda blank: {"question": blank}),
    ("candidates", "", {}, lambda blank: {"candidates": ["Ann", blank]}),
    ("candidates", "", {}, lambda blank: {"text": blank}),
    ("segments", "", {}, lambda blank: {"segments": ["It rained.", blank]}),
    ("tokens", "", {}, lambda blank: {"words": [blank, "rained"]}),
    ("qa", "", {}, lambda blank: {"question": blank}),
    ("qa", "", {}, lambda blank: {"text": blank, "answers": []}),
    ("document_qa", "", {}, lambda blank: {"question": blank}),
    ("document_qa", "", {}, lambda blank: {"paragraphs": ["It was Ann.", blank]}),
    ("evidence", "", {}, lambda blank: {"questions": ["Why?", blank]}),
    ("evidence", "", {}, lambda blank: {"questions": [blank, blank]}),
    ("evidence", "", {"evidence": [[], []]}, lambda blank: {"questions": [], "evidence": []}),
    ("evidence", "", {"evidence": [[], []]}, lambda blank: {"sentences": [blank, blank]}),
    ("mlm", "", {}, lambda blank: {"text": blank}),
    ("mlm", "", {"text": None, "segments": ["a"]}, lambda blank: {"segments": None if blank is None else [blank]}),
    ("sequence", "", {}, lambda blank: {"tokens": None if blank is None else [blank]}),
    ("byte_sequence", "", {}, lambda blank: {"text": blank}),
    ("byte_pair", "", {}, lambda blank: {"text": blank}),
    ("byte_pair", "", {}, lambda blank: {"second": blank}),
]


def flags_of(kind: str, more: str) -> list[str]:
    text = [] if "sequence" in kind or "byte" in kind else ["--num-codes", "20"]
    divided = text and kind not in ("segments", "tokens", "document_qa", "evidence") and "--segments none" not in more
    splitter = ["--splitter", "punctuation"] if divided else []
    return ["--kind", kind, *text, *splitter, *more.split()]


def treatments(out: Path, split: str = "train") -> dict[str, int]:
    return json.loads((out / "manifest.json").read_text())["splits"][split]["treatments"]


@pytest.mark.parametrize("number", range(len(FIELDS)))
def test_a_field_that_shows_nothing_is_an_empty_document(number: int, tmp_path: Path) -> None:
    kind, more, others, change = FIELDS[number]
    good, flags = GOOD[kind] | others, flags_of(kind, more)
    blanks: list[Any] = [None, "", *drawn(number), *INVISIBLE]
    if kind == "sequence":  # a symbol with white space is refused
        blanks = [None, *drawn(number, without=WHITE_SPACE)]
    rows = [{"id": "a", **good}, *({"id": f"bad{n}", **good, **change(each)} for n, each in enumerate(blanks))]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"in/{split}.jsonl", rows if split == "train" else rows[:1])
    words = ["preprocess", tmp_path / "in", *flags, "--out", tmp_path / "out"]
    error = refusal(*words)
    assert f"document 'bad0' ({tmp_path}/in/train.jsonl:2)" in error
    assert "--on-empty drop" in error
    assert hat(*words, "--on-empty", "drop") == 0
    assert treatments(tmp_path / "out")["documents_empty_dropped"] == len(blanks)
    assert [row["id"] for row in read_lines(tmp_path / "out/text/train.jsonl")] == ["a"]


def test_elements_that_show_nothing_are_left_out_and_counted(tmp_path: Path) -> None:
    """No marker stands for them; and the same characters inside of a text stay as they are."""
    blanks = [None, *drawn("elements", 5), *INVISIBLE]
    rows = [{"id": "a", "sentences": [*VISIBLE, *blanks], "target": [*blanks, *VISIBLE]}]
    rows += [{"id": "b", "turns": [{"role": "A", "text": text} for text in (*blanks, *VISIBLE)], "target": VISIBLE}]
    rows += [{"id": "c", "question": "Who?", "sentences": VISIBLE, "target": [[*VISIBLE, *blanks], blanks]}]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"in/{split}.jsonl", rows)
    assert hat("preprocess", tmp_path / "in", "--out", tmp_path / "out", "--num-codes", 50) == 0
    a, b, c = read_lines(tmp_path / "out/text/test.jsonl")
    assert a["sentences"] == a["target"] == [turn["text"] for turn in b["turns"]] == VISIBLE
    assert c["sentences"] == ["Who?", *VISIBLE]
    assert c["target"] == VISIBLE
    counted = treatments(tmp_path / "out")
    assert (counted["sentences_empty"], counted["target_sentences_empty"]) == (2 * len(blanks), 2 * len(blanks))
    assert counted["references_empty"] == 1
    lines = (tmp_path / "out/text/train.source").read_text(encoding="utf-8").splitlines()
    assert [line.split(" ").count("<s>") for line in lines] == [len(VISIBLE), len(VISIBLE), 1 + len(VISIBLE)]
    words = [line.replace("@@ ", "").replace("<s> ", "") for line in lines]
    assert words[0] == words[1] == " ".join(VISIBLE)


@pytest.mark.parametrize("splitter", ["punctuation", "library"])
def test_what_follows_the_last_sentence_stays_with_it(splitter: str, tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "text": f"It rained. We left. {blank}", "target": "x"} for n, blank in enumerate(INVISIBLE)]
    questions = [{"question": "Who?", "text": f"It was Ann.{blank}", "answers": []} for blank in INVISIBLE]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"in/{split}.jsonl", rows)
        write_lines(tmp_path / f"qa/{split}.jsonl", ({"id": f"q{n}", **row} for n, row in enumerate(questions)))
    flags = ["--splitter", splitter, "--num-codes", 20]
    assert hat("preprocess", tmp_path / "in", "--out", tmp_path / "out", *flags) == 0
    assert [len(row["sentences"]) for row in read_lines(tmp_path / "out/text/train.jsonl")] == [2] * len(rows)
    assert hat("preprocess", tmp_path / "qa", "--kind", "qa", "--out", tmp_path / "q", *flags) == 0
    lines = (tmp_path / "q/text/train").with_suffix(".source").read_text().splitlines()
    assert [line.split().count("<s>") for line in lines] == [2] * len(rows)


def test_pairs_that_show_nothing_are_dropped_and_counted(tmp_path: Path) -> None:
    blank, other = drawn("pairs", 2)
    pairs = [("One.", "Eins."), (blank, other), ("Two.", "Zwei."), ("Three.", blank)]
    sides = {key: [pair[side] for pair in pairs] for side, key in enumerate(("sentences", "target"))}
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"in/{split}.jsonl", [{"id": "a", **sides}])
    words = ["preprocess", tmp_path / "in", "--aligned", "--num-codes", 20, "--out", tmp_path / "out"]
    assert "segment 4 has an empty target" in refusal(*words)
    assert hat(*words, "--on-misaligned", "drop") == 0
    counted = treatments(tmp_path / "out")
    assert (counted["segment_pairs_empty"], counted["segment_pairs_one_sided_dropped"]) == (1, 1)
    assert read_lines(tmp_path / "out/text/train.jsonl")[0]["target"] == ["Eins.", "Zwei."]


def test_lines_that_show_nothing_end_documents_of_parallel_text(tmp_path: Path) -> None:
    blanks = [*INVISIBLE, *drawn("lines", 9, without="\n" + SURROGATES)]
    for split in ("train", "valid", "test"):
        for side, word in (("en", "rain"), ("de", "Regen")):
            (tmp_path / "in").mkdir(exist_ok=True)
            text = "".join(f"{word} {number}.\n{word}.\n{blank}\n" for number, blank in enumerate(blanks))
            (tmp_path / f"in/{split}.en-de.{side}").write_text(text, encoding="utf-8", newline="\n")
    assert hat("preprocess", tmp_path / "in", "--out", tmp_path / "out", "--num-codes", 20) == 0
    assert [len(row["target"]) for row in read_lines(tmp_path / "out/text/train.jsonl")] == [2] * len(blanks)


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_cells(form: str, tmp_path: Path) -> None:
    """An empty cell of the text is an empty text; one of a column that may be missing is not given."""
    blanks = [None, " ", "\u200b", "\u00ad\u2060", "\u3164"]
    good = {"question": "Why?", "text": "It rained. We left.", "target": "Rain."}
    rows = [{"id": "a", **good}]
    rows += [{"id": f"t{n}", **good, "text": blank} for n, blank in enumerate(blanks)]
    rows += [{"id": f"s{n}", **good, "target": blank} for n, blank in enumerate(blanks)]
    if form != "jsonl":
        rows += [{"id": f"q{n}", **good, "question": blank} for n, blank in enumerate(blanks)]
    (tmp_path / "in").mkdir()
    for split in ("train", "valid", "test"):
        blind = [row | {"target": None} for row in rows[:1]] if split == "test" else rows
        write_table(tmp_path / f"in/{split}.{form}", blind)
    words = ["preprocess", tmp_path / "in", "--splitter", "punctuation", "--num-codes", 20, "--out", tmp_path / "out"]
    error = refusal(*words)
    assert "document 't0' (" in error
    assert "has an empty source" in error
    assert "--on-empty drop" in error
    assert hat(*words, "--on-empty", "drop") == 0
    assert treatments(tmp_path / "out")["documents_empty_dropped"] == 2 * len(blanks)
    stored = read_lines(tmp_path / "out/text/train.jsonl")
    assert [len(row["sentences"]) for row in stored] == [3] + [2] * len(blanks) * (form != "jsonl")
    assert "target" not in read_lines(tmp_path / "out/text/test.jsonl")[0]


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".jsonl":
        write_lines(path, rows)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    else:
        pyarrow = pytest.importorskip("pyarrow", reason="make setup")
        from pyarrow import parquet

        types = pyarrow.schema([(name, pyarrow.string()) for name in rows[0]])
        parquet.write_table(pyarrow.Table.from_pylist(rows, types), path)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["stream", "text", "both"])
def test_an_empty_role_is_called_empty(form: str, tmp_path: Path) -> None:
    for number, blank in enumerate(["", *drawn("roles"), *INVISIBLE]):
        turns = [{"role": "PM", "text": "Hello."}, {"role": blank, "text": " "}, {"role": blank, "text": "No."}]
        for split in ("train", "valid", "test"):
            write_lines(tmp_path / f"in/{split}.jsonl", [{"id": "a", "turns": turns, "target": "x"}])
        words = ["preprocess", tmp_path / "in", "--num-codes", 20]
        error = refusal(*words, "--roles", form, "--out", tmp_path / "out")
        assert f"turn 3 of document 'a' ({tmp_path}/in/train.jsonl:1) has an empty role" in error
        assert hat(*words, "--out", tmp_path / f"without{number}") == 0  # where roles have no effect


def test_the_role_of_an_empty_turn_is_no_role(tmp_path: Path) -> None:
    turns = [{"role": "\u200b", "text": "\ufeff"}, {"role": "PM", "text": "Hello."}]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"in/{split}.jsonl", [{"id": "a", "turns": turns, "target": "x"}])
    assert hat("preprocess", tmp_path / "in", "--num-codes", 20, "--roles", "--out", tmp_path / "out") == 0
    assert (tmp_path / "out/bin/dict.role.txt").read_text().split()[0] == "PM"


@pytest.mark.parametrize("kind", ["classification", "tokens", "sequence"])
def test_labels(kind: str, tmp_path: Path) -> None:
    for blank in ("", *drawn(f"label {kind}"), *INVISIBLE):
        record = {**GOOD[kind], **({"labels": ["a", blank]} if kind == "tokens" else {"label": blank})}
        write_lines(tmp_path / "in/train.jsonl", [{"id": "a", **record}])
        error = refusal("preprocess", tmp_path / "in", *flags_of(kind, ""), "--out", tmp_path / "out")
        if set(blank) & set(SURROGATES):
            assert "document 'a'" in error
            assert "lone surrogate" in error
        else:
            assert "document 'a'" in error
            assert "has an empty label" in error


@pytest.mark.parametrize("kind", ["qa", "document_qa"])
def test_answers_that_show_nothing_are_counted_as_not_found(kind: str, tmp_path: Path) -> None:
    blanks = ["", *drawn(f"answers {kind}", 5), *INVISIBLE]
    rows = []
    for number, blank in enumerate(blanks):
        text, answer = f"It was {blank} Ann.", {"text": blank, "start": 7}
        if kind == "qa":
            rows.append({"id": str(number), "question": "Who?", "text": text, "answers": [answer]})
        else:
            annotations = [{"paragraph": 0, "spans": [answer]}]
            rows.append({"id": str(number), "question": "Who?", "paragraphs": [text], "annotations": annotations})
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"in/{split}.jsonl", rows)
    words = ["preprocess", tmp_path / "in", *flags_of(kind, "--splitter given" if kind == "document_qa" else "")]
    assert hat(*words, "--out", tmp_path / "out") == 0
    counted = treatments(tmp_path / "out")
    assert counted["answers_not_found"] == counted["examples_left_without_answer"] == len(blanks)


def test_is_blank() -> None:
    assert all(map(is_blank, ("", *INVISIBLE, *drawn("many", 2000), "\ufffe", "\ufff9", "\U0001d159")))
    assert not any(map(is_blank, (*VISIBLE, "-", "\ufffd", "\ue000", "\u1100", *map("{}x".format, drawn("more", 500)))))


def test_answers_after_paragraphs_that_show_nothing_are_found(learned_bpe: LearnedBpe) -> None:
    """Such a paragraph is no sentence, and the characters after it keep their places."""
    for number, blank in enumerate(["", *drawn("paragraphs", 20), *INVISIBLE]):
        for text in (f"{blank}\n\nShe is here. He left.", f"She is here.\n\n{blank}\n\nHe left.\n\n{blank}"):
            record = Question(str(number), question="Who?", text=text, answers=(Answer("He", text.index("He")),))
            settings = Settings(kind="qa", splitter="punctuation")
            (row,) = TextPipeline(settings, learned_bpe).rows(record)
            first, last = map(int, row.label or ())
            assert text[row.characters[first][0] : row.characters[last][1]] == "He", (number, text)


def test_references_that_show_nothing_are_counted(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "One.", "target": [["x"], []]},
        {"id": "b", "text": "Two.", "target": [["y"], ["", "z"], [" \u200b"]]},
    ]
    for split in ("train", "valid"):
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)
    assert hat("preprocess", tmp_path / "raw", "--splitter", "punctuation", "--out", tmp_path / "out") == 0
    targets = [row["target"] for row in read_lines(tmp_path / "out/text/train.jsonl")]
    assert targets == [["x"], [["y"], ["z"]]]
    counts = json.loads((tmp_path / "out/manifest.json").read_text())["splits"]["train"]["treatments"]
    assert [counts[name] for name in ("references_empty", "references_not_trained_on", "target_sentences_empty")] == [
        2,
        1,
        1,
    ]
