"""`hat score qa`: examples and predictions of one's own, with figures computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hat_fairseq import cli

PAGES = ["It was cold.", "Ann and Bob met at noon in the old harbour."]
ANNOTATIONS = {
    "span": [{"paragraph": 1, "spans": [{"text": "the old harbour", "start": 27}]}, {}],
    "several": [{"paragraph": 1, "spans": [{"text": "Bob", "start": 8}, {"text": "Ann", "start": 0}]}],
    "yes": [{"paragraph": 0, "yes_no": "yes"}],
    "paragraph": [{"paragraph": 0}, {"paragraph": 1}],
    "nothing": [{}],
}
PREDICTIONS = {
    "span": ("harbour", 1),  # F1 2/3
    "several": ("Ann and Bob", 0),
    "yes": ("no", 0),
    "paragraph": ("", 1),
    "nothing": ("cold", None),
}


def write(path: Path, *records: dict) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def run(tmp_path: Path, *records: dict, lines: list[dict]) -> int:
    files = ["--hypotheses", write(tmp_path / "h.jsonl", *lines), "--references", write(tmp_path / "r.jsonl", *records)]
    return cli.main(
        ["score", "qa", *files, "--bootstrap-samples", "0", "--overwrite", "--json", str(tmp_path / "out.json")]
    )


def scores(tmp_path: Path) -> dict[str, float]:
    figures = json.loads((tmp_path / "out.json").read_text())[str(tmp_path / "h.jsonl")]["scores"]
    return {name: each["mean"] if isinstance(each, dict) else each for name, each in figures.items()}


def test_spans_yes_no_paragraphs_and_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        {"id": name, "question": "?", "paragraphs": PAGES, "annotations": each} for name, each in ANNOTATIONS.items()
    ]
    lines = [{"id": name, "answer": text, "paragraph": number} for name, (text, number) in PREDICTIONS.items()]
    assert run(tmp_path, *records, lines=lines) == 0
    expected = {
        "exact": 100 * 2 / 5,  # several, paragraph
        "f1": 100 * (2 + 2 / 3) / 5,
        "HasAns_exact": 100 / 3,
        "HasAns_f1": 100 * (1 + 2 / 3) / 3,
        "NoAns_exact": 50,
        "yes_no": 0,
        "paragraph": 80,  # not that of `several`
    }
    assert scores(tmp_path) == pytest.approx(expected)
    _, row, signature = capsys.readouterr().out.splitlines()
    assert row.split()[1:] == ["40.00", "53.33", "33.33", "55.56", "50.00", "0.00", "80.00"]
    assert signature.endswith("questions: 5, with an answer: 3, of these yes or no: 1")


def test_the_kind_qa_and_examples_without_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {"id": "a", "question": "?", "text": PAGES[1]}
    lines = [{"id": "a", "answer": "Bob!", "no_answer_score": 9}]
    assert run(tmp_path, record | {"answers": [{"text": "Bob", "start": 8}]}, lines=lines) == 0
    assert scores(tmp_path) == {"exact": 100, "f1": 100, "HasAns_exact": 100, "HasAns_f1": 100}
    assert run(tmp_path, record, lines=lines) == 2
    assert "document 'a' " in (error := capsys.readouterr().err) and "no answers or annotations" in error
