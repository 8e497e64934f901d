"""Documents that show nothing, given to the packaged model and to one that answers questions."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import hat, read_lines, refusal, write_lines
from evidence_model import EvidenceModel
from invisible import INVISIBLE, VISIBLE, drawn

import hat_fairseq

BLANKS: list[Any] = [None, *INVISIBLE, *drawn("input", 5)]


def test_hat_summarize(tmp_path: Path) -> None:
    documents = [{"text": blank} for blank in BLANKS] + [{"sentences": blank and [blank, blank]} for blank in BLANKS]
    turns = [{"role": "PM", "text": text} for text in ("Good morning.", *BLANKS, *VISIBLE)]
    rows: list[dict[str, Any]] = [{"id": "good", "turns": turns}]
    rows += [{"id": str(number), **document} for number, document in enumerate(documents)]
    path, out = write_lines(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    words = ["generate", "demo", path, "--splitter", "punctuation", "--device", "cpu"]
    words += ["--beam", 1, "--max-len-b", 3, "--min-len", 1, "--out", out]
    error = refusal(*words)
    assert f"document '0' ({path}:2)" in error
    assert "--on-empty keep" in error
    assert hat(*words, "--on-empty", "keep") == 0
    lines = read_lines(out)
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    assert [line["text"] for line in lines[1:]] == [""] * len(documents)
    write_lines(path, [{"id": "role", "turns": [turns[0], {"role": "\u200b", "text": "Hello."}]}])
    words.remove("--splitter")
    words.remove("punctuation")  # nothing is left to be divided
    assert f"turn 2 of document 'role' ({path}:1) has an empty role" in refusal(*words, "--overwrite")


def test_python() -> None:
    model = hat_fairseq.load("demo", device="cpu")
    for blank in BLANKS:
        for document in ({"text": blank}, {"sentences": [blank]}, {"turns": [{"role": "PM", "text": blank}]}):
            with pytest.raises(ValueError, match="document '1'.* has an empty source"):
                model.generate([document], **({"splitter": "punctuation"} if "text" in document else {}))


def test_what_is_kept_is_scored(evidence_model: EvidenceModel, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Also of a file that is no folder of `hat preprocess`, whose sentences the pipeline of the model finds."""
    rows = [
        {"id": "a", "turns": [{"role": "PM", "text": "It costs twelve Euro ."}], "questions": ["How much ?"]},
        {"id": "b", "turns": [{"role": "PM", "text": "\u200b"}], "questions": ["How much ?"]},
    ]
    path = write_lines(tmp_path / "in.jsonl", [{**row, "evidence": [[0]]} for row in rows])
    words = ["predict", evidence_model.checkpoint, path, "--data", evidence_model.data, "--device", "cpu"]
    words += ["--on-empty", "keep", "--out", tmp_path / "out.jsonl"]
    assert hat(*words) == 0
    scores = ["--references", path, "--bootstrap-samples", 0, "--out", tmp_path / "out.score.json"]
    assert hat("score", "evidence", tmp_path / "out.jsonl", *scores) == 0
    printed = capsys.readouterr()
    assert "1 documents have no text and are skipped" in printed.err
    assert json.loads((tmp_path / "out.score.json").read_text())[str(tmp_path / "out.jsonl")]["figures"]
