"""`hat recipe` and the scripts that call it, as processes: what they print, run and refuse."""

import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import REPOSITORY

from hat_fairseq import cli
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files, update

HAT = Path(sys.executable).parent / "hat"


def run(*arguments, cwd, **environment):
    """Runs a command as a user does: from anywhere, without PYTHONPATH."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= environment
    return subprocess.run([*map(str, arguments)], cwd=cwd, env=variables, capture_output=True, text=True)


def words_of(text):
    return shlex.split(text.replace("\\\n", ""), comments=True)


def test_dry_run_prints_commands_to_paste(tmp_path, monkeypatch, capsys):
    done = run(HAT, "recipe", "train", "cnn_dm", "--no-hierarchy", cwd=tmp_path, DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# 4 documents x 16 = 64 documents an update\n")
    assert words_of(done.stdout) == recipes.build_commands("train", "cnn_dm", ["--no-hierarchy"])[0]
    assert "--adam-betas '(0.9, 0.999)' \\\n" in done.stdout
    monkeypatch.setenv("DRY_RUN", "1")
    assert cli.main(["recipe", "predict", "race"]) == 0
    first, second = recipes.build_commands("predict", "race")
    assert words_of(capsys.readouterr().out) == [*first, "&&", *second]


def test_an_input_that_is_a_file_has_no_split(tmp_path, monkeypatch):
    """Results have the name of the file, so those of the split stay."""
    monkeypatch.chdir(tmp_path)

    def results(verb, name, *flags):
        """The file that the command writes, and which of two flags it has."""
        command = recipes.build_commands(verb, name, ["--input", "new.jsonl", *flags])[0]
        return command[command.index("--out") + 1], {"--split", "--overwrite"} & {*command}

    assert results("predict", "race") == ("results/race/test.jsonl", {"--split", "--overwrite"}), "it does not exist"
    (tmp_path / "new.jsonl").write_text("{}\n")
    assert results("predict", "race", "--score=null") == ("results/race/new.jsonl", set())
    assert results("generate", "ami") == ("results/ami/new.jsonl", set())
    assert results("predict", "race", "--overwrite") == ("results/race/new.jsonl", {"--overwrite"})
    stated = results("predict", "race", "--split", "test")  # which `hat predict` refuses
    assert stated == ("results/race/test.jsonl", {"--split"})


@pytest.mark.slow
@pytest.mark.fault("Input", "a training or generation without data", "names the directory and `hat recipe preprocess`")
def test_without_dry_run_it_becomes_the_command(tmp_path):
    """Which imports nothing from the current directory, where nothing has been preprocessed."""
    for name in ("torch", "fairseq", "fairseq_cli", "yaml", "hat_fairseq"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported from the current directory')")
    done = run(HAT, "recipe", "train", "ami", cwd=tmp_path)
    assert done.stdout.splitlines()[1].startswith(f"{sys.executable} -P -m hat_fairseq.cli train data-bin/ami/bin")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr == "hat: error: data-bin/ami/bin has no data: run `hat recipe preprocess ami` first\n"
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("reader", ["cnn_dm", "squad2", "imdb"])
def test_a_release_without_root_is_refused_before_anything_is_written(reader, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["preprocess", reader, "--bpe", "gpt2", "--out", f"data-bin/{reader}"]) == 2
    error = capsys.readouterr().err
    assert "--root" in error
    assert error.count("\n") == 1
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_the_score_is_run_when_predicting_has_succeeded(tmp_path):
    """Its status is that of the recipe. `hat predict --help` succeeds."""
    done = run(HAT, "recipe", "predict", "race", "--model", "none.pt", cwd=tmp_path)
    assert done.returncode != 0
    assert "none.pt" in done.stderr + done.stdout
    assert "examples.jsonl" not in done.stderr
    assert "test.jsonl" not in done.stderr  # which `hat score` would miss
    done = run(HAT, "recipe", "predict", "race", "--help", cwd=tmp_path)
    assert "usage: hat predict" in done.stdout
    assert done.returncode == cli.EXIT_ERROR
    assert done.stderr == "hat: error: results/race: the directory of --out does not exist\n"  # of `hat score`


@pytest.mark.slow
def test_a_copy_in_another_folder_is_the_same_recipe(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in files.names():
        assert cli.main(["recipe", "copy", name]) == 0
        assert cli.main(["recipe", "show", name]) == 0
        assert capsys.readouterr().out.endswith((tmp_path / f"{name}.yaml").read_text())
        assert recipes.build_commands("train", f"{name}.yaml") == recipes.build_commands("train", name)
    (tmp_path / "ami_small.yaml").rename("mine.yaml")
    words = recipes.build_commands("preprocess", "./mine.yaml")[0]
    assert words[5:8] == ["ami", "--out", "data-bin/mine"]


def test_the_list_has_each_recipe_once_with_what_it_needs_in_80_columns(capsys):
    assert cli.main(["recipe", "list"]) == 0
    output = capsys.readouterr().out
    *groups, _ = output.split("\n\n")
    entries = [line.split() for group in groups for line in group.splitlines()[1:] if line[:3].strip()]
    assert sorted(words[0] for words in entries) == files.names()
    assert all(len(line) <= 80 for line in output.splitlines())
    assert [group.partition(":")[0] for group in groups] == ["paper"] * 5 + ["for"] * 3
    (rohde,) = (group for group in groups if group.startswith("paper: Rohde et al. 2021\n"))
    cnn_dm = " ".join(rohde.partition("  cnn_dm ")[2].partition("\n  i")[0].split())
    assert cnn_dm == "CNN/DailyMail: highlights of news (--root DIR, bart.large, 1 GPU)"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train arxvi", f"no recipe 'arxvi' in {files.CONFIGS}; did you mean arxiv?"),
        ("train nosuch", f"no recipe 'nosuch' in {files.CONFIGS}; `hat recipe list` shows them"),
        ("train", "`hat recipe train` needs the name of a recipe; `hat recipe list` shows them"),
        ("generate mnli", "recipe 'mnli' cannot generate: it has no section 'generate'"),
        ("train ./mine.yaml", "./mine.yaml does not exist"),
        ("show", "`hat recipe show` needs the name of a recipe; `hat recipe list` shows them"),
        ("list ami", "`hat recipe list` takes no name: remove 'ami'"),
        ("copy ami", "ami.yaml exists: remove or rename it first"),
        ("copy arxiv mine.yaml", "`hat recipe copy` takes the name of a recipe only: remove 'mine.yaml'"),
        ("predict pubmed", "recipe 'pubmed' cannot predict: it has no section 'predict'"),
    ],
)
def test_errors_are_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ami.yaml").write_text("")
    assert cli.main(["recipe", *words.split()]) == 2
    output, error = capsys.readouterr()
    assert output == ""
    assert error.startswith(f"hat: error: {message}")
    assert error.count("\n") == 1


SCRIPTS = sorted(path for folder in ("train_scripts", "generate_scripts") for path in (REPOSITORY / folder).iterdir())


def test_the_scripts_of_the_papers_are_written_from_the_recipes():
    """`python .ci/write_recipe_scripts.py` writes them anew."""
    written = runpy.run_path(str(REPOSITORY / ".ci/write_recipe_scripts.py"))["scripts"]()
    assert {str(path.relative_to(REPOSITORY)): path.read_text() for path in SCRIPTS} == {
        str(path): text for path, text in written.items()
    }
    assert all(os.access(path, os.X_OK) for path in SCRIPTS)


def calls_of(script, cwd, *words):
    """What a script calls, each call as a list of words: `hat` and `fairseq-train` are stand-ins that write it down."""
    for name in ("hat", "fairseq-train"):
        (program := cwd / name).write_text('#!/bin/sh\nprintf "%s\\t" "${0##*/}" "$@" >> calls\necho >> calls\n')
        program.chmod(0o755)
    (cwd / "calls").write_text("")
    done = run("bash", script, *words, cwd=cwd, PATH=f"{cwd}:{os.environ['PATH']}", ROOT="the release")
    assert done.returncode == 0, done.stderr
    return [line.split("\t")[:-1] for line in (cwd / "calls").read_text().splitlines()]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_script_preprocesses_once_and_runs_the_commands_of_the_recipe(script, tmp_path):
    def flags_of(words):
        return sorted(flag.words for flag in update.split(words))

    def expected(verb, *extra):
        return [flags_of(command[4:]) for command in recipes.build_commands(verb, script.stem, extra)]

    recipe = files.load(files.find(script.stem))
    train = script.parent.name == "train_scripts"
    words = ["--lr", "7"] if train else []
    first, *rest = calls_of(script, tmp_path, *words)
    needs_root = "--root" in files.head(files.find(script.stem))[2]
    assert [flags_of(first[1:])] == expected("preprocess", *["--root", "the release"] * needs_root)
    if train:
        user_dir, (program, *flags) = rest
        assert user_dir == ["hat", "user-dir"]
        assert program == "fairseq-train"
        assert flags[-2:] == words
        assert flags_of(["train", *flags[:-2]]) == sorted([*expected("train")[0], ["--user-dir", ""]])
    else:
        verb = "generate" if recipe["generate"] else "predict"
        assert [flags_of(call[1:]) for call in rest] == expected(verb)
    (tmp_path / first[first.index("--out") + 1]).mkdir(parents=True)
    assert calls_of(script, tmp_path, *words) == rest


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("bleu --tokenize nosuch", "unknown tokenizer 'nosuch'"),
        ("rouge --like rouge-1.5.5 --bootstrap-samples 0", "the perl backend"),
    ],
)
@pytest.mark.parametrize("step", ["generate", "run"])
def test_a_mistake_in_the_score_is_found_before_the_work(step, score, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = files.find("ami_small").read_text().replace("score: rouge", f"score: {score}")
    (tmp_path / "mine.yaml").write_text(text)
    assert cli.main(["recipe", step, "./mine.yaml"]) == cli.EXIT_ERROR
    assert message in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [tmp_path / "mine.yaml"]
