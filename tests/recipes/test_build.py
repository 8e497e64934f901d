"""How a recipe merges with the flags after its name, and what one update then sees."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files, update
from hat_fairseq.recipes.update import split, values_of

PREDICT = """
predict: {model: c, input: '{recipe}', split: test, out: 'r/{split}.jsonl', score: 's --references {split} {out}'}
"""


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Writes the recipe `new`; there is no other one."""
    monkeypatch.setattr(files, "CONFIGS", tmp_path)
    return (tmp_path / "new.yaml").write_text


def built(verb, *extra):
    """The words of the command after `python -P -m`."""
    return recipes.build_commands(verb, "new", extra)[0][3:]


def predict_commands(*extra):
    return [command[4:] for command in recipes.build_commands("predict", "new", extra)]


def test_values_arrive_as_written_and_null_is_none(configs):
    configs("task: {data: d}\ntrain: {lr: 3e-05, max_update: 7, bf16: false, clip-norm: null, cpu: true}")
    command = recipes.build_commands("train", "new")[0]
    assert command[:6] == [sys.executable, "-P", "-m", "hat_fairseq.cli", "train", "d"]
    flags = {flag.name: flag.values for flag in split(command[6:])}
    assert flags == {"lr": ["3e-05"], "max-update": ["7"], "cpu": []}  # as written


def test_sections_reach_their_commands(configs):
    configs(
        "task: {data: d, a: 1, b: 1}\ntrain: {b: 2}\ngenerate: {model: m, input: '{recipe}/bin', c: [x, 'y z']}\n"
        "preprocess: {reader: r}"
    )
    assert values_of(split(built("train"))).items() >= {"a": "1", "b": "2"}.items()
    generate = ["hat_fairseq.cli", "generate", "m", "new/bin", "--c", "x", "y z"]
    assert built("generate") == generate
    assert built("preprocess", "--out", "o") == ["hat_fairseq.cli", "preprocess", "r", "--out", "o"]


def test_trailing_flags_replace_those_of_the_recipe_as_they_are_written(configs):
    configs("task: {data: d, bf16: true, lr: 1, save-dir: '{lr}', seed: 1, no-hierarchy: true}")
    trailing = ["--lr", "2", "--save_dir=x", "--betas", "(0, 1)", "-v", "--no-hierarchy"]
    command = built("train", *trailing, "--bf16=null")
    assert command == ["hat_fairseq.cli", "train", "d", "--seed", "1", *trailing]
    with pytest.raises(ValueError, match="--fp16=null: the recipe has no flag --fp16 to remove"):
        built("train", "--fp16=null")


def test_a_flag_may_stand_for_the_value_of_another(configs):
    configs("task: {data: d}\ntrain: {max-update: 5, total-num-update: '{max-update}', dir: 'r/{recipe}-{lr}', lr: 1}")
    assert values_of(split(built("train")))["total-num-update"] == "5"
    longer = values_of(split(built("train", "--max-update", "7", "--lr=2")))
    assert longer["total-num-update"] == "7"
    assert longer["dir"] == "r/new-2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: {lr: 1\n", r"new\.yaml:2: malformed YAML"),
        ("train:\n  lr: 1\n  lr: 2\n", r"new\.yaml:3: malformed YAML: 'lr' occurs twice"),
        ("trian: {lr: 1}\n", r"new\.yaml: unknown section 'trian' \(known: import, preprocess, task, train"),
        ("train: [lr, 1]\n", r"new\.yaml: section 'train' must hold `flag: value` lines"),
        ("train: {optimizer: {lr: 1}}\n", r"new\.yaml: section 'train': 'optimizer' must be one value or a list"),
        (
            "base: [other.yaml]\n",
            r"new\.yaml: unknown section 'base' .*; write one file, as `hat recipe copy NAME` or 0.7's",
        ),
        ("task: {data: d, a: '{max-update}'}\n", r"'{max-update}': --max-update has no value to put there"),
        ("task: {data: d, a: '{b}', b: '{a}'}\n", "--[ab] has no value to put there"),
        ("train: {lr: 1}\n", r"recipe 'new' cannot train: it has no 'data' in section task or train"),
    ],
)
def test_malformed_recipes(text, message, configs):
    configs(text)
    with pytest.raises(ValueError, match=message):
        built("train")


def test_predicting_and_scoring_are_two_commands(configs):
    """Trailing flags reach both; `--score` replaces the second, or removes it."""
    configs(PREDICT)
    predict, score = predict_commands()
    assert predict == ["predict", "c", "new", "--split", "test", "--out", "r/test.jsonl"]
    assert score == ["score", "s", "--references", "test", "r/test.jsonl"]
    assert built("predict")[1:] == predict
    predict, score = predict_commands("--split", "valid", "--cpu")
    assert predict[1:] == ["c", "new", "--out", "r/valid.jsonl", "--split", "valid", "--cpu"]
    assert score == ["score", "s", "--references", "valid", "r/valid.jsonl"]
    for extra in (["--score", "other {out} --x 'a b'"], ["--score=other {out} --x 'a b'"]):
        predict, score = predict_commands("--cpu", *extra, "--fp16")
        assert predict[-2:] == ["--cpu", "--fp16"]
        assert score == ["score", "other", "r/test.jsonl", "--x", "a b"]
    (predict,) = predict_commands("--score=null")
    assert "--score" not in predict


@pytest.mark.parametrize("verb", ["generate", "predict"])
@pytest.mark.parametrize(("data", "folder"), [("d", "d"), ("d/bin", "d")])
def test_a_score_without_files_is_of_the_split_of_the_input(configs, verb, data, folder):
    configs(
        f"{verb}: {{model: c, input: {data}, split: test, out: 'r/{{split}}.jsonl', overwrite: true, score: s --x 1}}"
    )
    score = ["score", "s", "--x", "1", "r/valid.jsonl", "--references", f"{folder}/text/valid.jsonl"]
    score += ["--out", "r/valid.score.json"]
    built = recipes.build_commands(verb, "new", ["--split", "valid"])[1][4:]
    assert built == score  # which replaces scores
    assert recipes.build_commands(verb, "new", ["--split", "valid", "--overwrite=null"])[1][4:] == score
    with pytest.raises(ValueError, match="results on the standard output are not scored: add --score=null"):
        recipes.build_commands(verb, "new", ["--out", "-"])


def test_a_score_of_an_input_that_is_a_file_is_of_that_file(configs, tmp_path):
    (file := tmp_path / "mine.jsonl").write_text("{}\n")
    configs("generate: {model: c, input: d, split: test, out: 'r/{split}.jsonl', overwrite: true, score: s}")
    score = recipes.build_commands("generate", "new", ["--input", str(file)])[1][4:]
    assert score == ["score", "s", "r/mine.jsonl", "--references", str(file), "--out", "r/mine.score.json"]


UPDATE = "task: {data: d}\ntrain: {batch-size: 4}\nupdate: {batch-size: 64, gpus: 2}"
REMOVED = "task: {data: d}\ntrain: {batch-size: 4, max-tokens: null, update-freq: false}\n"
REMOVED += "update: {batch-size: 8, max-tokens: null, gpus: 1}"
TOKENS = "task: {data: d}\ntrain: {max-tokens: 1024}\nupdate: {max-tokens: 131072, gpus: 8}"


@pytest.mark.parametrize(
    ("text", "extra", "freq", "gpus", "description"),
    [
        (UPDATE, "", "8", "2", "2 GPUs x 4 documents x 8 = 64 documents an update"),
        (UPDATE, "--gpus 1", "16", "1", "4 documents x 16 = 64 documents an update"),
        (UPDATE, "--gpus=4 --batch-size 16", "1", "4", "4 GPUs x 16 documents x 1 = 64 documents an update"),
        (UPDATE, "--distributed-world-size 1", "16", "1", "4 documents x 16 = 64 documents an update"),
        (UPDATE, "--update-batch-size 32", "4", "2", "2 GPUs x 4 documents x 4 = 32 documents an update"),
        (UPDATE, "--cpu --batch-size=1", "32", "2", "2 processes x 1 document x 32 = 64 documents an update"),
        (UPDATE, "--update-freq 4,2", "4,2", "2", ""),
        (TOKENS, "", "16", "8", "8 GPUs x 1,024 tokens x 16 = 131,072 tokens an update"),
        (TOKENS, "--gpus 2 --max-tokens 4096", "16", "2", "2 GPUs x 4,096 tokens x 16 = 131,072 tokens an update"),
        (UPDATE, "--update-max-tokens 64 --max-tokens 16", "2", "2", "2 GPUs x 16 tokens x 2 = 64 tokens an update"),
        ("task: {data: d}\ntrain: {batch-size: 4}", "--gpus 2", None, "2", ""),
        (REMOVED, "", "2", "1", "4 documents x 2 = 8 documents an update"),
    ],
)
def test_update_freq_follows_from_what_an_update_sees(text, extra, freq, gpus, description, configs):
    configs(text)
    command = recipes.build_commands("train", "new", extra.split())[0]
    flags = values_of(split(command))
    assert (flags.get("update-freq"), flags["distributed-world-size"]) == (freq, gpus)
    assert update.describe(command) == description
    assert not {"gpus", "update-batch-size", "update-max-tokens"} & flags.keys()


@pytest.mark.parametrize(
    ("text", "extra", "message"),
    [
        (UPDATE, "--gpus 3", r"an update of 64 documents is not a multiple of 3 GPUs x 4$"),
        (UPDATE, "--update-max-tokens 8193 --max-tokens 1024", r"of 8,193 tokens is not a multiple of 2 GPUs x 1,024$"),
        (UPDATE, "--gpus 0", "--gpus must be a whole number above 0, not '0'"),
        (UPDATE, "--gpus --cpu", "--gpus needs one whole number"),
        (UPDATE, "--max-tokens 2048", r"and --max-tokens would make it smaller: .*--update-max-tokens"),
        (UPDATE, "--update-max-tokens 8192", "an update of 8192 tokens needs --max-tokens"),
        (UPDATE, "--update-batch-size 32 --update-freq 2", "--update-freq and --update-batch-size both set"),
        (UPDATE + "\n  ", "--update-batch-size 8 --update-max-tokens 8", "in documents or in tokens: .* not both"),
        ("task: {data: d, update-freq: 2, batch-size: 1}\nupdate: {batch-size: 4}", "", "--update-freq follows from"),
        ("task: {data: d}\nupdate: {batch_size: 4, gpu: 1}", "", "section 'update': unknown 'gpu'"),
    ],
)
def test_updates_that_cannot_be_had(text, extra, message, configs):
    configs(text)
    with pytest.raises(ValueError, match=message):
        recipes.build_commands("train", "new", extra.split())


EVERY = """
preprocess: {reader: r, out: d}
task: {data: d/bin}
predict: {model: c.pt, input: d, split: test, out: 'r/{split}.jsonl', score: rouge}
"""


def test_run_has_the_steps_of_a_recipe_in_order(configs):
    configs(EVERY)
    steps = recipes.steps_of("new", ["--root", "x", "--gpus=2"])
    assert [*steps] == ["preprocess", "train", "predict"]
    assert len(steps["predict"]) == 2
    assert steps["preprocess"][0][-2:] == ["--root", "x"]
    assert "--distributed-world-size" in steps["train"][0]
    with pytest.raises(ValueError, match="takes --root, .* give --lr to a step, such as `hat recipe train new`"):
        recipes.steps_of("new", ["--lr", "1"])
    configs("preprocess: {reader: r, out: d}\ntask: {data: d/bin}")
    assert [*recipes.steps_of("new", [])] == ["preprocess", "train"]


@pytest.mark.parametrize("fails", [None, "preprocess", "train", "predict", "score"])
def test_run_stops_at_a_failure_and_does_nothing_twice(configs, fails, tmp_path, monkeypatch, capsys):
    configs(EVERY)
    monkeypatch.chdir(tmp_path)
    made = {"preprocess": Path("d/manifest.json"), "train": Path("c.pt"), "predict": Path("r/test.jsonl")}
    called = []

    def run(title, command, log, out):
        called.append(verb := command[4])
        if verb == fails:
            return 7
        if verb in made:
            made[verb].parent.mkdir(exist_ok=True)
            made[verb].write_text("")
            age = {"train": 100, "predict": 200}.get(verb, 0)
            os.utime(made[verb], (age, age))
        return 0

    monkeypatch.setattr(recipes, "run_step", run)
    monkeypatch.setattr(recipes, "first_table", lambda log: "the table")
    every = ["preprocess", "train", "predict", "score"]
    assert recipes.run_all("new", []) == (7 if fails else 0)
    assert called == every[: every.index(fails) + 1 if fails else None]
    called.clear()
    recipes.run_all("new", [])
    if fails is None:
        assert called == ["train", "score"]
        assert "preprocess: done already" in capsys.readouterr().out
    else:
        assert fails in called
        assert ("preprocess" in called) == (fails == "preprocess")
