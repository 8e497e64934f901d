"""Documents that show nothing, given to the packaged model."""

from pathlib import Path
from typing import Any

import pytest
from commands import hat, read_lines, refusal, write_lines
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
    assert f"document '0' ({path}:2)" in error and "--on-empty keep" in error
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
