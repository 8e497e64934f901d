"""`hat show` prints one document with its summary."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from hat_fairseq.scoring import show

DOCUMENT = {"id": "m1", "turns": [{"role": "PM", "text": "Hello ."}] * 5, "target": ["They met .", "They left ."]}


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], **options: object) -> str:
    (tmp_path / "documents.jsonl").write_text(json.dumps(DOCUMENT) + "\n")
    (tmp_path / "hypotheses.jsonl").write_text(json.dumps({"id": "m1", "text": "A meeting ."}) + "\n")
    paths = {"documents": str(tmp_path / "documents.jsonl"), "hypotheses": str(tmp_path / "hypotheses.jsonl")}
    show.main(Namespace(**{**paths, "id": None, "sentences": 2, **options}))
    return capsys.readouterr().out


def test_source_reference_and_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(tmp_path, capsys).splitlines()
    assert lines == [
        "--- m1: 5 sentences or turns",
        "  PM: Hello .",
        "  PM: Hello .",
        "  [3 more]",
        "--- reference",
        "  They met . They left .",
        "--- generated",
        "  A meeting .",
    ]


def test_unknown_documents_and_missing_ids_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no document 'm2'"):
        run(tmp_path, capsys, id="m2")
    plain = tmp_path / "plain.txt"
    plain.write_text("A meeting .\n")
    with pytest.raises(ValueError, match="no ids"):
        run(tmp_path, capsys, hypotheses=str(plain))
