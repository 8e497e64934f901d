"""Recipes that predict: two commands, the second of which scores what the first has made."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hat_fairseq import cli, recipe
from hat_fairseq.data.preprocess import resolve_options
from hat_fairseq.data.readers import find_reader
from hat_fairseq.register import register
from hat_fairseq.scoring import command as score_command

register()  # registers the tasks and architectures that the recipes name

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = {name: recipe.load(recipe.CONFIGS / f"{name}.yaml") for name in recipe.names()}
NAMES = [name for name, sections in SECTIONS.items() if sections["predict"]]
NEW = """
predict: {data: '{recipe}/bin', path: c, split: test, out: 'r/{split}.jsonl', score: 's --references {split} {out}'}
"""


@pytest.fixture
def new(tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "CONFIGS", tmp_path)
    (tmp_path / "new.yaml").write_text(NEW)


def commands(*extra):
    """The words behind the interpreter and -m."""
    return [command[3:] for command in recipe.build_commands("predict", "new", extra)]


def test_predicting_and_scoring_are_two_commands(new):
    predict, score = commands()
    assert predict == ["predict", "new/bin", "--path", "c", "--split", "test", "--out", "r/test.jsonl"]
    assert score == ["score", "s", "--references", "test", "r/test.jsonl"]
    assert recipe.build_command("predict", "new")[3:] == predict


def test_a_flag_behind_the_name_reaches_both(new):
    predict, score = commands("--split", "valid", "--cpu")
    assert predict[2:8] == ["--path", "c", "--split", "test", "--out", "r/valid.jsonl"]
    assert predict[8:] == ["--split", "valid", "--cpu"]
    assert score == ["score", "s", "--references", "valid", "r/valid.jsonl"]


@pytest.mark.parametrize("extra", [["--score", "other {out} --x 'a b'"], ["--score=other {out} --x 'a b'"]])
def test_the_score_may_be_another(new, extra):
    predict, score = commands("--cpu", *extra, "--fp16")
    assert predict[-2:] == ["--cpu", "--fp16"] and score == ["score", "other", "r/test.jsonl", "--x", "a b"]


def test_the_score_may_be_left_out(new):
    (predict,) = commands("--score=null")
    assert "--score" not in predict


def test_a_recipe_without_the_section_says_so():
    for verb, name in (("generate", "mnli"), ("predict", "pubmed"), ("predict", "roberta_pretraining")):
        with pytest.raises(ValueError, match=f"recipe '{name}' cannot {verb}: it has no section '{verb}'"):
            recipe.build_command(verb, name)


def run(*words, cwd, **environment):
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([*map(str, words)], capture_output=True, text=True, env=variables, cwd=cwd)


def test_the_printed_lines_are_both_commands_to_paste(tmp_path):
    done = run("bash", ROOT / "predict_scripts/race.sh", cwd=tmp_path, DRY_RUN="1", PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    words = shlex.split(done.stdout.replace("\\\n", ""), comments=True)
    first, second = recipe.build_commands("predict", "race")
    assert words == [*first, "&&", *second]


def test_nothing_is_scored_when_predicting_fails(tmp_path):
    done = run(sys.executable, ROOT / "hat_fairseq/recipe.py", "predict", "race", "--path", "none.pt", cwd=tmp_path)
    assert done.returncode not in (0, None)
    assert "none.pt" in done.stderr or "data-bin/race" in done.stderr
    assert "examples.jsonl" not in done.stderr  # of which `hat score` would say that it is missing


def test_the_score_is_run_and_its_status_is_the_recipes(tmp_path):
    """With a first command that succeeds: `hat predict --help`."""
    done = run(sys.executable, ROOT / "hat_fairseq/recipe.py", "predict", "race", "--help", cwd=tmp_path)
    assert "usage: hat predict" in done.stdout
    assert done.returncode == cli.EXIT_ERROR and "race" in done.stderr and "examples.jsonl" in done.stderr


# The recipes of the repository


@pytest.mark.parametrize("name", NAMES)
def test_predict_recipe_arrives(name):
    predict, score = recipe.build_commands("predict", name)
    given = cli.build_parser("predict").parse_args(predict[3:])
    section = SECTIONS[name]["predict"]
    assert str(given.data) == f"data-bin/{name}/bin" and str(given.path) == f"checkpoints/{name}/checkpoint_best.pt"
    assert str(given.out) == f"results/{name}/{section['split']}.jsonl" and given.split == section["split"]
    for flag, value in section.items():
        if flag not in ("data", "path", "out", "split", "score"):
            assert getattr(given, flag.replace("-", "_")) == yaml.safe_load(value), flag
    scoring = cli.build_parser("score").parse_args(score[3:])
    assert scoring.references == f"data-bin/{name}/text/{section['split']}.examples.jsonl"
    assert str(given.out) in scoring.hypotheses
    assert set(score_command.METRICS) > {"classification", "squad"}


@pytest.mark.parametrize("name", [name for name in NAMES if SECTIONS[name]["preprocess"]["reader"] != "raw/{recipe}"])
def test_the_split_that_is_predicted_is_one_of_the_readers(name):
    reader = SECTIONS[name]["preprocess"]["reader"]
    assert SECTIONS[name]["predict"]["split"] in find_reader(reader).splits
    assert resolve_options({}, find_reader(reader))
