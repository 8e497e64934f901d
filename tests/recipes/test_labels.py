"""What `hat recipe run labels` adds to the other recipes: another encoder, documents without ids, and what it shows."""

import json
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import hat, write_lines

from hat_fairseq.data.manifest import describe_inputs
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import labels

FIGURES = {"accuracy": {"mean": 50.0, "low": 40.0, "high": 60.0}}


def test_the_scores_have_the_baselines_first_and_the_model_last(tmp_path: Path) -> None:
    results, path = tmp_path / "test.jsonl", tmp_path / "test.score.json"
    path.write_text(
        json.dumps({str(results): {"figures": FIGURES, "documents": 9}, "words": {"figures": FIGURES, "documents": 9}})
    )
    expected = {"accuracy": 50.0, "low": 40.0, "high": 60.0, "n": 9}
    assert json.loads(labels.as_json(path, results)) == {"words": expected, "model": expected}
    assert [*labels.scores_of(path, results)] == ["words", "model"]


def test_the_sentences_with_the_highest_weights_are_named(tmp_path: Path) -> None:
    segments = [{"text": f"s{number}\x1b"[: 2 + (number == 1)], "weight": number / 10} for number in (1, 3, 0, 2)]
    write_lines(tmp_path / "r.jsonl", [{"id": str(number), "label": "a", "segments": segments} for number in range(9)])
    lines = [*labels.decisive(tmp_path / "r.jsonl")]
    assert all(line.isprintable() for line in lines)
    assert lines[:5] == [
        "0: a. The sentences with the highest weights:",
        "  0.30  s3",
        "  0.20  s2",
        "  0.10  s1\\x1b",
        "  0.00  s0",
    ]
    assert sum("highest weights" in line for line in lines) == labels.DOCUMENTS
    write_lines(tmp_path / "none.jsonl", [{"id": "1", "label": "a"}])
    assert [*labels.decisive(tmp_path / "none.jsonl")] == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("train.csv", "text,label\nA text.,a\n", ["--number-ids"]),
        ("train.tsv", "id\ttext\tlabel\n1\tA text.\ta\n", []),
        ("train.jsonl", '{"text": "A text.", "label": "a"}\n', ["--number-ids"]),
        ("train.jsonl", '{"id": "1", "text": "A text.", "label": "a"}\n', []),
        ("train.jsonl", "", ["--number-ids"]),
        ("train.jsonl", "{", []),  # hat preprocess says what is wrong
        ("test.csv", "text,label\nA text.,a\n", []),
    ],
)
def test_documents_without_ids_are_numbered(name: str, text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert labels.words_of_ids(str(tmp_path)) == expected


def test_the_folder_is_what_is_preprocessed() -> None:
    steps = recipes.steps_of("labels", ["--root", "mine", "--cpu"])
    assert [*steps] == ["import", "preprocess", "train", "predict", "export"]
    assert steps["preprocess"][0][5] == "mine"
    assert "--cpu" in steps["train"][0]
    assert steps["import"][0][5] == "minilm"


@pytest.mark.parametrize(("columns", "numbered"), [(["label=kind", "text=body"], True), (["id=name"], False)])
def test_columns_are_those_of_the_data(columns: list[str], numbered: bool, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("name,body,kind\n1,A text.,a\n")
    words = [word for each in columns for word in ("--columns", each)]
    command = recipes.steps_of("labels", ["--root", str(tmp_path), *words])["preprocess"][0]
    assert [value for flag, value in pairwise(command) if flag == "--columns"] == columns
    assert ("--number-ids" in command) == numbered


@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("labels", ["--encoder", "absent"], "--encoder absent is no folder of hat import --package"),
        ("imdb", ["--encoder", "x"], "--encoder is for the recipes labels and sentence_labels"),
        ("labels", ["--lr", "1"], "`hat recipe run` takes"),
    ],
)
def test_refusals(name: str, flags: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipes.steps_of(name, flags)


@pytest.mark.parametrize("name", ["labels", "pubmed"])
def test_a_recipe_that_needs_a_folder_asks_for_it_before_any_step(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hat("recipe", "run", name) == 2
    assert f"`hat recipe run {name}` needs --root DIR" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("labels_of", "message"),
    [
        ({"train": {"a": 2}, "valid": {"a": 1}, "test": {"a": 1}}, "every document of train has the label 'a'"),
        ({"train": {"a": 2, "b": 1}, "valid": {"a": 1}, "test": {}}, "test has no labels, so the model cannot be"),
        ({"train": {"a": 2, "b": 1}, "valid": {"a": 1}, "test": {"b": 1}}, ""),
    ],
)
def test_labels_are_checked_before_the_training(labels_of: dict[str, Any], message: str, tmp_path: Path) -> None:
    splits = {split: {"labels": labels} for split, labels in labels_of.items()}
    (tmp_path / "manifest.json").write_text(json.dumps({"splits": splits}))
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        recipes.check_labels(["hat", "preprocess", "mine", "--out", str(tmp_path)])


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_without_files_is_refused_before_any_step(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if exists:
        (tmp_path / "mine").mkdir()
    assert hat("recipe", "run", "labels", "--root", "mine") == 2
    assert "--root mine is no folder with files" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"] * exists


@pytest.mark.parametrize(
    ("root", "lines", "columns", "refused"),
    [
        ("mine", None, [], False),
        ("./mine", None, ["--columns", "text=a"], False),
        ("mine", None, ["--columns", "text=b"], True),
        ("other", None, [], True),
        ("mine", "{}\n", [], True),
        ("mine", "", [], True),
    ],
)
def test_data_of_other_files_are_not_taken_for_those_of_root(
    root: str, lines: str | None, columns: list[str], refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lines`: what the training file has by then; nothing: it is gone."""
    monkeypatch.chdir(tmp_path)
    for folder in ("mine", "other"):
        write_lines(tmp_path / folder / "train.jsonl", [{"id": "a", "text": "x", "label": "y"}])
    (tmp_path / "data").mkdir()
    inputs = describe_inputs([Path("mine/train.jsonl")])
    (tmp_path / "data/manifest.json").write_text(json.dumps({"inputs": inputs, "options": {"columns": ["text=a"]}}))
    if lines:
        (tmp_path / "mine/train.jsonl").write_text(lines)
    elif lines is not None:
        (tmp_path / "mine/train.jsonl").unlink()
    command = ["hat", "preprocess", root, "--out", "data", *columns]
    with pytest.raises(ValueError, match="data was made from other files") if refused else nullcontext():
        recipes.check_source(command, Path(root))
