"""`hat show` prints documents with their texts: one, or those with the lowest or highest score."""

import json
from pathlib import Path

import pytest
from commands import hat, refusal, write_lines
from sacrebleu.metrics import CHRF

TURNS = [{"role": "PM", "text": "Hello ."}] * 5
TARGETS = {"a": "The cat sat .", "b": "The dogs ran home .", "c": "Blue buttons .", "d": "The cat sat ."}
TEXTS = {"a": "The cat slept .", "b": "The dog ran home .", "c": "Nothing .", "d": "The cat slept ."}


@pytest.fixture
def words(tmp_path: Path) -> list[object]:
    documents = ({"id": name, "turns": TURNS, "target": [text]} for name, text in TARGETS.items())
    hypotheses = ({"id": name, "text": text} for name, text in TEXTS.items())
    files = write_lines(tmp_path / "documents.jsonl", documents), write_lines(tmp_path / "hypotheses.jsonl", hypotheses)
    return ["show", "--documents", files[0], "--hypotheses", files[1]]


@pytest.mark.parametrize(
    ("flags", "names"), [(["--worst", "2"], "ca"), (["--best", "3"], "bad"), (["--worst", "9"], "cadb")]
)
def test_of_equal_scores_the_first_document_comes_first(flags: list[str], names: str, words: list, capsys) -> None:
    assert hat(*words, *flags) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line[4] for line in out if line.endswith(": 5 sentences or turns")] == list(names)


@pytest.mark.parametrize(("language", "name"), [("zh", "chrF2"), ("en-GB", "ROUGE-1")])
def test_other_languages_than_english_are_ranked_by_chrf(
    language: str, name: str, words: list, tmp_path: Path, capsys
) -> None:
    (tmp_path / "pipeline.json").write_text(json.dumps({"settings": {"target_language": language}}))
    assert hat(*words, "--best", "1") == 0
    assert capsys.readouterr().out.startswith(f"=== {name} ")


def test_translations_segment_by_segment(tmp_path: Path, capsys) -> None:
    targets = {"d": "Good morning. " * 5, "e": "Good night."}
    sentences = ["早上好。", "我们开始。"]
    rows = ({"id": name, "sentences": sentences, "target": [text, "We begin."]} for name, text in targets.items())
    segments = ({"id": name, "text": "x", "segments": ["Good morning.", "We \x1b[31mbegin."]} for name in "de")
    files = write_lines(tmp_path / "d.jsonl", rows), write_lines(tmp_path / "h.jsonl", segments)
    words = ["show", "--segments", "--documents", files[0], "--hypotheses", files[1]]
    assert hat(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    score = CHRF().sentence_score("Good morning.", ["Good morning. " * 5]).score
    assert lines[:3] == ["--- d: 2 segments", f"[1] chrF2 {score:.2f}", "  source: 早上好。"]
    assert lines[5].startswith("[2] chrF2 ")
    assert lines[7].endswith("begin.")
    assert "\x1b" not in lines[7]
    assert hat(*words, "--worst", "1") == 0
    assert capsys.readouterr().out.startswith("=== chrF2 ")
    write_lines(tmp_path / "h.jsonl", [{"id": "d", "segments": ["One."]}])
    assert "(2 of the source, 1 generated, 2 of the reference); remove --segments" in refusal(*words)


def test_what_is_refused(words: list, tmp_path: Path) -> None:
    write_lines(tmp_path / "two.jsonl", ({"id": name, "text": "Hello ."} for name in "ae"))
    (tmp_path / "plain.txt").write_text("A meeting .\n")
    documents, plain = ["--documents", tmp_path / "two.jsonl"], ["--hypotheses", tmp_path / "plain.txt"]
    for flags, message in (
        (["--id", "m2"], "no document 'm2'"),
        (["--worst", "0"], "at least 1"),
        ([*documents, "--id", "e"], "hypotheses.jsonl has no summary of document 'e'"),
        ([*documents, "--best", "1"], "document 'a' has no target to score against"),
        (plain, "plain.txt: no ids"),
    ):
        assert message in refusal(*words, *flags)
