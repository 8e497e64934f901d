"""The `hat` command: its verbs, its errors and its exit statuses, in real processes."""

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import HEEDING, USER_DIR, environment, run_command, training_words, write_lines
from warm import WarmPython

import hat_fairseq
from hat_fairseq import cli, threads

ROOT = Path(__file__).resolve().parents[1]
MODULE = [sys.executable, "-m", "hat_fairseq.cli"]


@pytest.mark.fault("Installation", "`hat --help` where nothing is installed", "lists every command")
def test_help_lists_every_verb_where_nothing_is_installed() -> None:
    """-S leaves out site-packages: no torch, no fairseq, no yaml."""
    command = [sys.executable, "-I", "-S", str(ROOT / "hat_fairseq" / "cli.py"), "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "120"})
    for verb in cli.VERBS:
        assert f"\n    {verb}" in run.stdout
        assert cli.verb_help(verb)[:30] in run.stdout


@pytest.mark.parametrize("verb", cli.VERBS)
def test_the_help_of_every_verb_is_in_one_style(verb: str) -> None:
    """A sentence for the verb; for each option a text that begins small and ends without a full stop."""
    assert cli.verb_help(verb).endswith("."), verb
    assert cli.verb_help(verb)[0].isupper(), verb
    module, parser = cli.import_verb(verb), argparse.ArgumentParser(verb)
    module.add_arguments(parser)
    assert callable(module.main)
    assert parser.format_help()
    for action in (action for action in parser._actions if action.dest not in ("help", "metric")):
        assert action.help, action
        assert not action.help.endswith("."), action
        assert not action.help.startswith("default"), action


def test_wrong_usage_is_status_2_and_help_and_version_are_0(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = (["no-such-verb"], ["user-dir", "--no-such"], ["import"], ["import", "kiddothe2b", "d", "--out", "o"])
    for arguments, status in [*((words, 2) for words in wrong), (["import", "--help"], 0), (["--version"], 0)]:
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments)
        captured = capsys.readouterr()
        assert stop.value.code == status, arguments
        assert captured.err.count("\n") == (status == 2), arguments
        assert "usage:" not in captured.err
    assert captured.out == f"hat_fairseq {hat_fairseq.__version__}\n"


def test_hat_alone_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    captured = capsys.readouterr()
    assert not captured.err
    assert all(f"\n    {verb}" in captured.out for verb in cli.VERBS)


def test_each_verb_has_help_of_its_own() -> None:
    texts = [cli.verb_help(verb) for verb in cli.VERBS]
    assert len(set(texts)) == len(texts)


SHORT = [verb for verb in cli.VERBS if hasattr(cli.import_verb(verb), "SHORT_HELP")]


@pytest.mark.parametrize("verb", SHORT)
def test_a_short_help_has_some_options_and_says_where_all_are(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit) as stop:
            cli.main([verb, flag])
        assert stop.value.code == 0
        shown[flag] = capsys.readouterr().out
    lines = shown["-h"].rstrip().split("\n")
    options = {flag: set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) for flag, text in shown.items()}
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert options["-h"] == {*cli.import_verb(verb).SHORT_HELP} < options["--help"]
    assert lines[0].startswith(f"usage: hat {verb} ")
    assert f"`hat {verb} --help` lists all" in lines[-1]


def test_the_verbs_with_most_options_have_a_short_help() -> None:
    assert {"preprocess", "generate", "look"} <= {*SHORT}


@pytest.mark.parametrize(
    "words", ["recipe train --help", "recipe list -h", "recipe show qmsum --help", "recipe --help"]
)
def test_the_help_of_a_recipe_needs_no_name(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):  # with which argparse ends after a help of its own
        assert cli.main(words.split()) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("usage: hat recipe")
    assert "a recipe of hat recipe list, or a YAML file" in captured.out
    assert not captured.err


MISSPELT = [
    ("trian data", "did you mean train?"),
    ("summarise a.txt", "did you mean generate?"),
    ("version", "did you mean --version?"),
    ("score rogue", "did you mean rouge?"),
    ("score rouge a --references b --liek=x", "did you mean --like instead of --liek?"),
    ("preprocess ami --kind clasification --out x", "did you mean classification?"),
    ("preprocess samsm --out x", "did you mean samsum or qmsum?"),
    ("recipe train arxvi", "did you mean arxiv?"),
    ("recipe train lra_lstops", "did you mean lra_listops, lra_listops_small or lra_listops_pretraining?"),
    ("user-dir --quite-another", ""),
]


@pytest.mark.fault("Installation", "a misspelt verb, flag, reader, metric or kind", "names what was meant, exit 2")
@pytest.mark.parametrize(("words", "meant"), MISSPELT)
def test_what_may_have_been_meant(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = cli.main(words.split())
    except SystemExit as stop:
        status = int(str(stop.code))
    assert status == 2
    assert capsys.readouterr().err.rstrip().endswith(meant or "unrecognized arguments: --quite-another")


def test_a_mistake_is_one_line_and_status_2_and_a_traceback_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing, config = tmp_path / "no-such-folder", tmp_path / "config.json"
    for folder, text in ((missing, f"{missing} is not a folder"), (tmp_path, f"{config}: No such file or directory")):
        assert cli.main(["import", "bart", str(folder), "--out", str(tmp_path / "model.pt")]) == 2
        captured = capsys.readouterr()
        assert captured.err == f"hat: error: {text}\n"
        assert captured.out == ""
    assert cli.main(["train"]) == 2
    assert capsys.readouterr().err.startswith("hat: error: `hat train` needs the bin folder of `hat preprocess`")
    assert cli.describe(ValueError("line one\n   line two")) == "line one line two"
    full = "the standard output or a temporary file: No space left on device"  # others have names
    assert cli.describe(OSError(28, "No space left on device")) == full
    assert cli.describe(OSError(24, "Too many open files")) == "Too many open files"
    monkeypatch.setenv("HAT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="is not a folder"):
        cli.main(["import", "bart", str(missing), "--out", str(tmp_path / "model.pt")])


@pytest.mark.slow
@pytest.mark.fault("Installation", "Ctrl-C", "one line, exit 130")
def test_interrupt_is_status_130(tmp_path: Path) -> None:
    """config.json is a pipe nobody writes to, so the process is certainly waiting inside the verb."""
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    command = [*MODULE, "import", "bart", str(tmp_path), "--out", str(tmp_path / "model.pt")]
    process = subprocess.Popen([*HEEDING, *command], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    writer = None
    deadline = time.monotonic() + 120
    while writer is None and time.monotonic() < deadline:
        try:
            # Fails until the other side has opened the pipe for reading.
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.1)
    assert writer is not None
    stderr = ""
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it came just before reading began: asleep, ask again
            _, stderr = process.communicate(timeout=5)
            break
    os.close(writer)
    assert process.returncode == 130, stderr
    assert stderr.endswith("hat: interrupted\n"), stderr


@pytest.mark.fault("Installation", "the reader of a pipe has gone", "no message, exit 141")
def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([*MODULE, "recipe", "list"], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert run.returncode == 141
    assert "Traceback" not in run.stderr
    assert "BrokenPipe" not in run.stderr


@pytest.mark.slow
def test_lines_to_a_standard_output_that_is_closed_are_refused() -> None:
    command = shlex.join([*MODULE, "embed", "minilm", "in.jsonl", "--out", "-"])
    run = subprocess.run(f"{command} >&-", shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 2
    assert "--out -: the standard output is closed" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("columns", [100, 0])
def test_a_bar_in_a_terminal_before_the_first_document(tmp_path: Path, columns: int) -> None:
    """Also in one that states no width; in a log, which is no terminal, there is none."""
    (tmp_path / "raw").mkdir()
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [{"id": split, "sentences": ["It rained."], "target": "Rain."}])
    words = [*MODULE, "preprocess", tmp_path / "raw", "--num-codes", 10, "--out"]
    outside, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (40, columns))
    command = [*map(str, words), str(tmp_path / "one")]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=terminal, check=True)
    os.close(terminal)
    shown = os.read(outside, 10_000).decode()
    os.close(outside)
    assert shown.startswith("\rtrain: read: 0 documents [00:00, ")
    assert "0/1 [00:00<?, ? blocks/s]" in shown
    assert "read" not in run_command(*words, tmp_path / "two").stderr


@pytest.fixture
def fairseq(warm: WarmPython, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """What `hat train` becomes, without the seconds of its imports."""
    return lambda *words, check=True: warm.completed(
        ["hat_fairseq.fairseq_commands", *map(str, words)], tmp_path, check
    )


@pytest.mark.slow
def test_train_is_fairseqs_command_with_the_plugin(ami: Path, run, tmp_path: Path) -> None:
    """`hat train` needs no --user-dir; fairseq gets all flags. The loss of fairseq-validate is that of the training."""
    out = tmp_path / "out"
    train = [*MODULE, "train", *training_words(ami / "bin", out, "--max-update", 1)]
    words = [word for word in train if word not in ("--user-dir", str(USER_DIR))]
    log = run_command(*words, cwd=tmp_path).stdout
    assert "tensorboardX" not in log
    (loss,) = re.findall(r'"valid_loss": "([\d.]+)"', log)
    words = ["fairseq-validate", ami / "bin", *f"--path {out}/checkpoint_last.pt --batch-size 2 --cpu".split()]
    words += ["--user-dir", USER_DIR]
    validation = run(*words, cwd=tmp_path)
    assert f"valid on 'valid' subset | loss {loss} | " in validation.stdout
    assert "DEBUG" not in validation.stderr
    words[3] = tmp_path / "none.pt"
    refused = run(*words, cwd=tmp_path, check=False)
    assert refused.returncode
    assert "none.pt names no task of hat_fairseq: add --task" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_help_of_train_names_a_command_that_shows_the_flags_of_model_and_task(run, tmp_path: Path) -> None:
    said = " ".join(run("hat", "train", "--help", cwd=tmp_path).stdout.split())
    program, *words = said.partition("all, with those of the task and the model that you name: ")[2].split()
    assert program == "fairseq-train"
    assert words[-1] == "--help"
    shown = run(program, *words, cwd=tmp_path).stdout
    assert "--no-hierarchy" in shown
    assert "--eval-rouge" in shown
    assert "--max-epoch" in shown


def test_help_on_a_model_and_a_task(fairseq) -> None:
    """Its own flags alone, and what an architecture sets."""
    shown = fairseq("--arch", "hat_bart_base", "--task=document_classification", "--help").stdout
    assert "\n--task document_classification:\n" in shown
    assert "\n--arch hat_bart_base:\n" in shown
    assert "--no-hierarchy" in shown
    assert "--max-epoch" not in shown
    assert "hat_bart_base sets " in shown
    assert "--decoder-layers 6," in " ".join(shown.split())
    wrong = fairseq("--task", "document_to_texts", "-h", check=False)
    assert wrong.returncode == 2
    assert not wrong.stdout
    assert wrong.stderr.endswith("there is no --task document_to_texts; did you mean document_to_text?\n")
    for flags in (["--user-dir", __file__], [f"--user-dir={__file__}"]):
        wrong = run_command("hat", "train", str(ROOT / "tests"), *flags, check=False)
        assert wrong.stderr.startswith(f"hat train: error: --user-dir {__file__} is no folder with an __init__.py")


@pytest.mark.fault("Training", "no `--arch`, or a misspelt flag or model", "one line that names it, exit 2")
def test_a_training_says_which_flag_or_model_may_have_been_meant(fairseq, tmp_path: Path) -> None:
    task, arch = ["--task", "document_to_text"], ["--arch", "hat_transformer_tiny"]
    for words, message in (
        ([*task, "--archh", "hat_transformer_tiny"], "--arch is missing: name a model, such as --arch hat_tra"),
        ([*task, "--arch", "hat_transformer_tinny"], "did you mean hat_transformer_tiny?"),
        ([*task, *arch, "--no-hierachy"], "--no-hierachy; did you mean --no-hierarchy instead of --no-hierachy?"),
    ):
        wrong = fairseq(tmp_path, *words, check=False)
        assert wrong.returncode == 2
        assert message in wrong.stderr.splitlines()[-1]
        assert "Traceback" not in wrong.stderr
        assert "usage:" not in wrong.stderr


def test_a_training_that_refuses_its_data_has_status_2(fairseq, tmp_path: Path) -> None:
    words = [tmp_path, "--task", "document_to_text", "--arch", "hat_transformer_tiny", "--optimizer", "adam"]
    done = fairseq(*words, "--lr", 0.1, "--batch-size", 1, "--save-dir", tmp_path / "c", check=False)
    assert done.returncode == 2
    assert "has no dictionary" in done.stderr.splitlines()[-1]


def test_a_quota_limits_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cpu_quota", lambda: 1.5)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    threads.limit_threads(chosen := {})
    assert chosen == {"OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(("quota", "user"), [(None, {}), (0.5, {"OMP_NUM_THREADS": "7"})])
def test_threads_that_the_user_has_set_stay(
    quota: float | None, user: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "cpu_quota", lambda: quota)
    threads.limit_threads(chosen := dict(user))
    assert chosen == user


WAITING = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"
PRINTS_VARIABLES = f"""
import os, sys
print("torch" in sys.modules, {{name: os.environ.get(name) for name in {WAITING}}}, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({}, {"GOMP_SPINCOUNT": "3000"}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
        ({"GOMP_SPINCOUNT": "", "OMP_WAIT_POLICY": "passive"}, {"GOMP_SPINCOUNT": "", "OMP_WAIT_POLICY": "passive"}),
    ],
    ids=str,
)
def test_threads_wait_as_the_user_says_or_spin_for_a_short_time(user: dict, expected: dict) -> None:
    threads.limit_waiting(chosen := dict(user))
    assert chosen == expected


@pytest.mark.slow
def test_threads_of_a_training_spin_for_a_short_time(tmp_path: Path) -> None:
    """In the process of fairseq that `hat train` starts."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/__init__.py").write_text(PRINTS_VARIABLES)
    variables = {name: value for name, value in environment().items() if name not in WAITING}
    result = run_command("hat", "train", tmp_path, "--user-dir", tmp_path / "own", env=variables)
    assert result.stdout == f"True {dict(zip(WAITING, ('3000', None), strict=True))}\n"


def test_the_wait_of_threads_is_set_before_torch_is_imported() -> None:
    script = "import os, sys; from hat_fairseq import cli; cli.import_verb('user-dir'); "
    script += "assert 'torch' not in sys.modules; print(os.environ['GOMP_SPINCOUNT'])"
    variables = {name: value for name, value in environment().items() if name not in WAITING}
    assert run_command(sys.executable, "-c", script, env=variables).stdout == "3000\n"


QUOTAS = [
    ("0::/", {"cpu.max": "150000 100000\n"}, 1.5),
    ("0::/jobs/7", {"cpu.max": "max 100000\n", "jobs/7/cpu.max": "50000 100000\n"}, 0.5),
    ("0::/jobs/8", {"cpu.max": "200000 100000\n", "jobs/8/cpu.max": "50000 100000\n"}, 0.5),
    ("0::/on/the/host", {"cpu.max": "200000 100000\n"}, 2.0),
    ("0::/", {"cpu.max": "max 100000\n"}, None),
    ("3:cpuset:/\n4:cpu,cpuacct:/x", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "25000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 0.25),
    ("0::/", {}, None),
]


def test_the_quota_of_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (group, files, quota) in enumerate(QUOTAS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "group").write_text(group + "\n")
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        monkeypatch.setattr(threads, "CGROUP", folder / "group")
        monkeypatch.setattr(threads, "CGROUPS", folder)
        assert threads.cpu_quota() == quota, group


def test_columns_take_one_pair_and_leave_the_words_after_them() -> None:
    words = ["preprocess", "--columns", "text=what", "--columns", "=x", "raw", "--out", "o"]
    args, _ = cli.build_parser("preprocess").parse_known_args(words)
    assert args.columns == ["text=what", "=x"]
    assert args.reader == "raw"
