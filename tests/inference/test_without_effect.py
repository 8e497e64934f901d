"""Options of inference: each has an effect, or is refused by its name; and `--out -`."""

import json
from pathlib import Path

import pytest
from commands import hat

from hat_fairseq.data.kind import LabelledKind
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.inference.predict import answer_options

LABELLED = {name: kind for name, kind in KINDS.items() if isinstance(kind, LabelledKind)}
OF_ANSWERS = {"n_best": 3, "max_answer_length": 9}
TAKEN = {
    "qa": OF_ANSWERS | {"no_answer_threshold": 0.5},
    "document_qa": OF_ANSWERS | {"paragraph_threshold": 0.5, "answer_threshold": 0.5},
}


@pytest.mark.parametrize("name", LABELLED)
def test_options_of_answers_by_kind(name: str) -> None:
    taken = TAKEN.get(name, {})
    for option in answer_options():
        if option in taken:
            assert getattr(LABELLED[name].chosen({option: taken[option]}), option) == taken[option]
        else:
            with pytest.raises(ValueError, match=f"--{option.replace('_', '-')} has no effect on the kind {name}"):
                LABELLED[name].chosen({option: 1})


def test_a_dash_is_the_standard_output(tmp_path: Path, monkeypatch, capfdbinary) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "turns": [{"role": "PM", "text": "So we start the meeting ."}]} for name in "ab"]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [
        "summarize",
        "--path",
        "demo",
        "--input",
        "in.jsonl",
        "--device",
        "cpu",
        "--generation",
        '{"min_len": 1, "max_len_b": 20}',
    ]
    assert hat(*words, "--out", "-") == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == ["a", "b"]
    assert hat(*words, "--out", "out.jsonl") == 0
    assert [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()] == lines
    capfdbinary.readouterr()
    assert hat("look", "demo", "--input", "in.jsonl", "--out", "-") == 2
    assert b"--out -: `hat look` does not write this to the standard output" in capfdbinary.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_look_at_the_demo(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hat("look", "demo", "--generation", '{"min_len": 1, "max_len_b": 20}', "--device", "cpu") == 0
    assert "<html" in Path("look.html").read_text()
