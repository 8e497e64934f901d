"""Options of inference: each has an effect, or is refused by its name; and `--out -`."""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from commands import hat, read_lines, refusal, write_lines
from evidence_model import QUESTIONS
from fine_tuned import MODELS, FineTuned
from golden_models import copied

from hat_fairseq import cli
from hat_fairseq.data.bpe import NoBpe
from hat_fairseq.data.kind import LabelledKind
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.inference.loading import split_with
from hat_fairseq.inference.predict import answer_options
from hat_fairseq.options import typed

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
            with pytest.raises(ValueError, match=f"{typed(option)} has no effect on the kind {name}"):
                LABELLED[name].chosen({option: 1})


# Options that say where, how fast and how precisely; and --on-empty, for which test_empty_input.py has input.
NOT_OF_RESULT = {"help", "data", "out", "overwrite", "batch_size", "max_tokens", "device", "workers", "cluster"}
NOT_OF_RESULT |= {"precision", "on_empty", "png", "pages", "page", "json", "html"}
VALUES: dict[Any, list[object]] = {None: ["text=x"], int: [1, 2], float: [-1e9, 1e9]}
OF_GENERATION: dict[str, list[object]] = {  # by name, where these would not do
    "max_len_a": [1.0],
    "beam": [1],
    "max_len_b": [12],
    "min_len": [19],
    "lenpen": [-5.0, 9.0],
    "temperature": [0.1, 50.0],
    "sampling_topp": [0.5],
}
THRESHOLDS: dict[str, list[object]] = {
    "qa": ["no-answer=-1e9"],
    "document_qa": ["answer=1e9", "paragraph=1e9"],
    "evidence": [0.99],
}
SHORT = ["--beam", 4, "--min-len", 3, "--max-len-b", 20]


@dataclass(frozen=True)
class Command:
    """A command without --out; and values of options that are not those of `VALUES`."""

    words: list[object]
    values: dict[str, list[object]] = field(default_factory=dict)
    flags: tuple[object, ...] = ()  # its own, after which the option stands
    output: str = "--out"

    def options(self) -> Iterator[tuple[str, list[str], list[object]]]:
        """Name, flags and values to try of each option that has to do with the result."""
        parser = argparse.ArgumentParser()
        cli.import_verb(str(self.words[0])).add_arguments(parser)
        for action in parser._actions:
            if action.option_strings and action.dest not in NOT_OF_RESULT:
                values = action.choices or VALUES.get(action.type, VALUES[None]) if action.nargs != 0 else [None]
                yield action.dest, action.option_strings, self.values.get(action.dest, list(values))


@pytest.fixture
def commands(
    fine_tuned: Callable[[str], FineTuned], request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[str, str], Command]:
    """The command of a verb and a kind of data."""

    def make_ask(source: str) -> Command:
        """On records, or on plain text without names."""
        model = request.getfixturevalue("evidence_model")
        if source == "text":
            path = tmp_path / "in.txt"
            path.write_text("We met at 9 a.m. today. The remote costs 25 euros.\n\nWho is there? Nobody.\n")
            return Command(["ask", model.checkpoint, path, QUESTIONS[0], "--data", model.data, "--threshold", 0])
        path, values = model.data.parents[1] / "raw/test.jsonl", {"passages": [1], "threshold": [0.99]}
        first, second = (row["id"] for row in read_lines(path))
        words = ["ask", model.checkpoint, path, QUESTIONS[0], "--data", model.data]
        return Command(words, {**values, "id": [second]}, ("--id", first, "--threshold", 0.5))

    def make(verb: str, kind: str) -> Command:
        if verb == "ask":
            return make_ask(kind)
        if kind == "text":
            golden = copied("summaries", tmp_path)
            words = [verb, golden.model, golden.raw, "--data", golden.data / "bin", "--device", "cpu"]
            rows = read_lines(golden.raw)
            values = OF_GENERATION | {"id": [rows[-1]["id"]]}
        else:
            made = fine_tuned(kind)
            words = [verb, made.checkpoint, made.raw / "test.jsonl", "--data", made.data / "bin", "--device", "cpu"]
            rows = read_lines(made.raw / "test.jsonl")
            metric = {"qa": "squad", "document_qa": "qa"}.get(kind, "classification")
            values = {"score": [f"{metric} --bootstrap-samples 0"], "id": [rows[-1]["id"]]}
            values |= {"threshold": THRESHOLDS[kind]} if kind in THRESHOLDS else {}
        flags = tuple(SHORT) if verb == "generate" else ()
        return Command(words, values, flags, "--out")

    return make


CASES = [("generate", "text", "out.jsonl"), ("ask", "records", "out.jsonl"), ("ask", "text", "out.jsonl")]
CASES += [("predict", name, out) for name in MODELS for out in ("out.jsonl", "-")]
CASES += [("embed", name, "out.jsonl") for name in MODELS]
CASES += [("look", name, "out.json") for name in ("text", *MODELS)]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "name", "out"), CASES)
def test_each_option_changes_the_result_or_is_refused(
    verb: str, name: str, out: str, commands: Callable, tmp_path: Path, monkeypatch, capfd
) -> None:
    command = commands(verb, name)
    (place := tmp_path / "place").mkdir()
    monkeypatch.chdir(place)

    def outcome(*flags: object) -> tuple[str, dict[str, bytes]]:
        """The error, if any, and all that is written."""
        status = hat(*command.words, *command.flags, command.output, out, *flags)
        printed, error = capfd.readouterr()
        written = {path.name: path.read_bytes() for path in place.iterdir()} | {"-": printed.encode()}
        for path in place.iterdir():
            path.unlink()
        return error if status else "", written

    usual = outcome()
    if name != "classification" and verb in ("embed", "look") and usual[0]:
        return  # the verb is not for this kind
    assert not usual[0]
    ignored = []
    for option, names, values in command.options():
        if name == "candidates" and option == "splitter":
            continue  # it divides the questions, and these have one sentence each
        if (verb, name, option) == ("look", "qa", "splitter"):
            continue  # the page is of one record, in which both splitters end the same sentences; predict reads all
        if (verb, name, option) == ("ask", "text", "passages"):
            continue  # at the threshold 0 the text is one passage; that of records has several
        refused = False
        for value in values:
            error, written = outcome(names[0], *([] if value is None else [value]))
            assert not error or re.search(f"{names[0]}|{option}", error), error
            refused |= bool(error)
            if not error and written != usual[1]:
                break
        else:
            ignored += [] if refused else [names[0]]
    assert not ignored


@pytest.mark.parametrize("verb", ["generate", "predict", "embed", "ask"])
def test_overwrite_where_no_file_is_written(verb: str, tmp_path: Path) -> None:
    (source := tmp_path / "in.txt").write_text("PM: Hello.\n")
    words = [verb, "demo", source, *(["Who?"] if verb == "ask" else []), "--out", "-", "--overwrite"]
    assert "--overwrite has no effect with" in refusal(*words).replace("without", "with")


def test_partial_is_for_releases(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [{"id": "a", "text": "So we go on .", "target": "We go ."}])
    words = ["preprocess", tmp_path / "raw", "--out", tmp_path / "data", "--num-codes", 10, "--partial"]
    assert f"--partial has no effect: {tmp_path}/raw is a folder, and no release; remove it" in refusal(*words)


def test_a_splitter_for_texts_that_stay_whole() -> None:
    pipeline = TextPipeline(Settings(kind="classification", segments="none"), NoBpe())
    with pytest.raises(ValueError, match="--splitter library has no effect on a model of data with `--segments none`"):
        split_with(pipeline, "library")
    pipeline = TextPipeline(Settings(kind="classification", segments="packed"), NoBpe())
    split_with(pipeline, "library")
    assert pipeline.settings.splitter == "library"


@pytest.mark.slow
def test_a_dash_is_the_standard_output(tmp_path: Path, monkeypatch, capfdbinary) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "turns": [{"role": "PM", "text": "So we start the meeting ."}]} for name in "ab"]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["generate", "demo", "in.jsonl", "--device", "cpu", "--min-len", 1, "--max-len-b", 20]
    assert hat(*words, "--out", "-") == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == ["a", "b"]
    assert hat(*words, "--out", "out.jsonl") == 0
    assert [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()] == lines
    capfdbinary.readouterr()
    assert hat("look", "demo", "in.jsonl", "--device", "cpu", "--out", "-") == 0
    assert json.loads(capfdbinary.readouterr().out)["document"] == "a"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_look_at_the_demo(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hat("look", "demo", "--device", "cpu") == 0
    assert "<html" in Path("look.html").read_text()
