"""Options of inference: each has an effect, or is refused by its name; and `--out -`."""

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import hat
from fine_tuned import MODELS, FineTuned

from hat_fairseq.data.bpe import NoBpe
from hat_fairseq.data.kind import LabelledKind
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.inference import predict
from hat_fairseq.inference.loading import split_with
from hat_fairseq.inference.predict import answer_options

LABELLED = {name: kind for name, kind in KINDS.items() if isinstance(kind, LabelledKind)}
OF_ANSWERS = {"n_best": 3, "max_answer_length": 9}
TAKEN = {
    "qa": OF_ANSWERS | {"no_answer_threshold": 0.5},
    "evidence": {"threshold": 0.5, "most_passages": 2},
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


# Options that say where, how fast and how precisely; and --on-empty, for which test_empty_input.py has input.
NOT_OF_RESULT = {"help", "data", "out", "overwrite", "batch_size", "max_tokens", "device", "workers", "cluster"}
NOT_OF_RESULT |= {"precision", "on_empty"}
VALUES: dict[Any, list[object]] = {None: ["text=x"], int: [1], float: [-1e9, 1e9]}


@pytest.mark.parametrize(
    "name", ["qa", *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name != "qa")]
)
@pytest.mark.parametrize("out", ["out.jsonl", "-"])
def test_each_option_changes_the_predictions_or_is_refused(
    name: str, out: str, fine_tuned: Callable[[str], FineTuned], tmp_path: Path, monkeypatch, capfd
) -> None:
    made = fine_tuned(name)
    monkeypatch.chdir(tmp_path)
    words = ["predict", made.checkpoint, made.raw / "test.jsonl", "--data", made.data / "bin", "--device", "cpu"]

    def outcome(*flags: object) -> tuple[str, dict[str, bytes]]:
        """The error, if any, and all that is written."""
        status = hat(*words, "--out", out, *flags)
        printed, error = capfd.readouterr()
        written = {path.name: path.read_bytes() for path in tmp_path.iterdir()} | {"-": printed.encode()}
        for path in tmp_path.iterdir():
            path.unlink()
        return error if status else "", written

    usual = outcome()
    assert not usual[0]
    parser = argparse.ArgumentParser()
    predict.add_arguments(parser)
    for action in parser._actions:
        if not action.option_strings or action.dest in NOT_OF_RESULT:
            continue
        if name == "candidates" and action.dest == "splitter":
            continue  # it divides the questions, and these have one sentence each
        flag = action.option_strings[0]
        values = action.choices or VALUES[action.type] if action.nargs != 0 else [None]
        outcomes = [outcome(flag, *([] if value is None else [value])) for value in values]
        refused = [error for error, _ in outcomes if error]
        assert all(re.search(f"{flag}|{action.dest}", error) for error in refused), refused
        assert refused or any(written != usual[1] for _, written in outcomes), f"{flag} is ignored"


def test_a_splitter_for_texts_that_stay_whole() -> None:
    pipeline = TextPipeline(Settings(kind="classification", segments="none"), NoBpe())
    with pytest.raises(ValueError, match="--splitter library has no effect on a model of data with --segments none"):
        split_with(pipeline, "library")
    pipeline = TextPipeline(Settings(kind="classification", segments="packed"), NoBpe())
    split_with(pipeline, "library")
    assert pipeline.settings.splitter == "library"


def test_a_dash_is_the_standard_output(tmp_path: Path, monkeypatch, capfdbinary) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "turns": [{"role": "PM", "text": "So we start the meeting ."}]} for name in "ab"]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [
        "generate",
        "demo",
        "in.jsonl",
        "--device",
        "cpu",
        "--min-len",
        1,
        "--max-len-b",
        20,
    ]
    assert hat(*words, "--out", "-") == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == ["a", "b"]
    assert hat(*words, "--out", "out.jsonl") == 0
    assert [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()] == lines
    capfdbinary.readouterr()
    assert hat("look", "demo", "in.jsonl", "--out", "-") == 2
    assert b"--out -: `hat look` does not write this to the standard output" in capfdbinary.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_look_at_the_demo(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hat("look", "demo", "--min-len", 1, "--max-len-b", 20, "--device", "cpu") == 0
    assert "<html" in Path("look.html").read_text()
