"""How a recipe merges with its bases and with the flags behind its name."""

from __future__ import annotations

import sys

import pytest
from commands import USER_DIR

from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes.update import split, values_of

PREDICT = """
predict: {model: c, input: '{recipe}', split: test, out: 'r/{split}.jsonl', score: 's --references {split} {out}'}
"""


def built(verb, *extra):
    """The words of the command behind `python -P -m`."""
    return recipes.build_commands(verb, "new", extra)[0][3:]


def predict_commands(*extra):
    return [command[4:] for command in recipes.build_commands("predict", "new", extra)]


def test_later_wins_and_null_removes(configs, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "one.yaml").write_text(
        "task: {data: d}\ntrain: {lr: 1, max_update: 5, bf16: true, clip-norm: 0}"
    )
    (tmp_path / "base" / "two.yaml").write_text("base: [one.yaml]\ntrain: {lr: 3e-05, max-update: 6}")
    configs("base: [base/one.yaml, base/two.yaml]\ntrain: {max-update: 7, bf16: false, clip-norm: null, cpu: true}")
    command = recipes.build_commands("train", "new")[0]
    assert command[:5] == [sys.executable, "-P", "-m", "fairseq_cli.train", "d"]
    flags = {flag.name: flag.values for flag in split(command[5:])}
    assert flags == {"user-dir": [str(USER_DIR)], "lr": ["3e-05"], "max-update": ["7"], "cpu": []}  # as written


def test_sections_reach_their_commands(configs):
    configs(
        "task: {data: '{recipe}/bin', a: 1, b: 1}\ntrain: {b: 2}\ngenerate: {c: [x, 'y z']}\npreprocess: {reader: r}"
    )
    assert values_of(split(built("train"))).items() >= {"a": "1", "b": "2"}.items()
    generate = ["hat_fairseq.cli", "generate", "new/bin", "--a", "1", "--b", "1", "--c", "x", "y z"]
    assert built("generate") == generate
    assert built("preprocess", "--out", "o") == ["hat_fairseq.cli", "preprocess", "r", "--out", "o"]


def test_trailing_flags_come_last_as_they_are_written(configs):
    configs("task: {data: d, bf16: true, lr: 1}")
    trailing = ["--lr", "2", "--save_dir=x", "--betas", "(0, 1)", "-v", "--no-hierarchy"]
    command = built("train", *trailing, "--bf16=null")
    assert command == ["fairseq_cli.train", "d", "--user-dir", str(USER_DIR), "--lr", "1", *trailing]
    with pytest.raises(ValueError, match="--fp16=null: the recipe has no flag --fp16 to remove"):
        built("train", "--fp16=null")


def test_a_flag_may_stand_for_the_value_of_another(configs):
    configs("task: {data: d}\ntrain: {max-update: 5, total-num-update: '{max-update}', dir: 'r/{recipe}-{lr}', lr: 1}")
    assert values_of(split(built("train")))["total-num-update"] == "5"
    longer = values_of(split(built("train", "--max-update", "7", "--lr=2")))
    assert longer["total-num-update"] == "7" and longer["dir"] == "r/new-2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: {lr: 1\n", r"new\.yaml:2: malformed YAML"),
        ("train:\n  lr: 1\n  lr: 2\n", r"new\.yaml:3: malformed YAML: 'lr' occurs twice"),
        ("train:\n  max-update: 1\n  max_update: 2\n", r"new\.yaml:3: malformed YAML: 'max_update' occurs twice"),
        (
            "trian: {lr: 1}\n",
            r"new\.yaml: unknown section 'trian' \(known: base, preprocess, task, train, update, generate, predict\)",
        ),
        ("train: [lr, 1]\n", r"new\.yaml: section 'train' must hold `flag: value` lines"),
        ("train: {optimizer: {lr: 1}}\n", r"new\.yaml: section 'train': 'optimizer' must be one value or a list"),
        ("- train\n", r"new\.yaml: expected sections"),
        ("base: other.yaml\n", r"new\.yaml: base must be a list of files, found 'other.yaml'"),
        ("base: [other.yaml]\n", r"new\.yaml: its base 'other.yaml' does not exist"),
        ("base: [new.yaml]\n", r"new\.yaml: is its own base"),
        ("task: {data: d, a: '{max-update}'}\n", r"'{max-update}': --max-update has no value to put there"),
        ("task: {data: d, a: '{b}', b: '{a}'}\n", "--[ab] has no value to put there"),
        ("train: {lr: 1}\n", r"recipe 'new' cannot train: it has no 'data' in section task or train"),
    ],
)
def test_malformed_recipes(configs, text, message):
    configs(text)
    with pytest.raises(ValueError, match=message):
        built("train")


def test_predicting_and_scoring_are_two_commands(configs):
    configs(PREDICT)
    predict, score = predict_commands()
    assert predict == ["predict", "c", "new", "--split", "test", "--out", "r/test.jsonl"]
    assert score == ["score", "s", "--references", "test", "r/test.jsonl"]
    assert built("predict")[1:] == predict


def test_a_trailing_flag_reaches_both_commands(configs):
    configs(PREDICT)
    predict, score = predict_commands("--split", "valid", "--cpu")
    assert predict[1:7] == ["c", "new", "--split", "test", "--out", "r/valid.jsonl"]
    assert predict[7:] == ["--split", "valid", "--cpu"]
    assert score == ["score", "s", "--references", "valid", "r/valid.jsonl"]


@pytest.mark.parametrize("extra", [["--score", "other {out} --x 'a b'"], ["--score=other {out} --x 'a b'"]])
def test_another_score(configs, extra):
    configs(PREDICT)
    predict, score = predict_commands("--cpu", *extra, "--fp16")
    assert predict[-2:] == ["--cpu", "--fp16"] and score == ["score", "other", "r/test.jsonl", "--x", "a b"]


def test_no_score(configs):
    configs(PREDICT)
    (predict,) = predict_commands("--score=null")
    assert "--score" not in predict
