"""Faults around `hat preprocess`: signals, killed workers, full disks, little memory, two at once; real processes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import HEEDING, WITHOUT_LOCKS, environment, hat, run_command, write_lines

fault = pytest.mark.fault
AREA = "Preprocessing"
HAT = [sys.executable, "-m", "hat_fairseq.cli"]
KILLED = "hat: error: a worker process was killed by signal 9; if memory ran out, use fewer --workers\n"
READER = """
import time
from hat_fairseq.data.kinds import Document

SPLITS = ("train",)

def read(split, root, counts):
    for number in range(200):
        yield Document(str(number), sentences=(f"a b{number}",), target=("a",))
        while number == 100 and not (root / "go").exists():
            (root / "reading").touch()
            time.sleep(0.05)
"""


def shell(script: str, *words: object, cwd: Path) -> tuple[int, str]:
    """Status and stderr of a shell script in which `"$@"` is `hat` with these words."""
    command = ["bash", "-c", script, "bash", *HAT, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=cwd, timeout=120)
    return done.returncode, done.stderr


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder with a training part of 600 documents, 90 kB."""
    rows = ({"id": str(n), "sentences": [f"one two {n} ." * 8], "target": f"{n}"} for n in range(600))
    return write_lines(tmp_path / "documents/train.jsonl", rows).parent


def begun(folder: Path, *prefix: str) -> tuple[list[str], subprocess.Popen]:
    """A command that waits for more documents, and its process."""
    (folder / "slow.py").write_text(READER)
    words = ["preprocess", folder / "slow.py", "--root", folder, "--out", folder / "out", "--num-codes", 9]
    command = [*map(str, words), "--workers", "2"]
    options = {"stderr": subprocess.PIPE, "text": True, "env": environment(), "start_new_session": True}
    process = subprocess.Popen([*HEEDING, *prefix, *HAT, *command], **options)
    deadline = time.monotonic() + 120
    while not (folder / "reading").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return command, process


@pytest.mark.slow
@fault(AREA, "SIGTERM or SIGHUP", "exit 143 or 129, nothing is left, the same command is accepted at once")
@fault(AREA, "Ctrl-C", "exit 130, nothing is left, the same command is accepted at once")
@fault(AREA, "kill -9 of the command with workers", "its workers end too")
@fault(AREA, "kill -9 of a worker, as by the OOM killer", "exit 2 and one line within seconds, never a hang")
@pytest.mark.parametrize(
    ("name", "status", "message"),
    [("TERM", 143, ""), ("HUP", 129, ""), ("INT", 130, "hat: interrupted\n"), ("KILL", -9, ""), ("worker", 2, KILLED)],
)
def test_an_ended_run_leaves_nothing(name: str, status: int, message: str, tmp_path: Path) -> None:
    command, process = begun(tmp_path)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for number in workers if name == "worker" else [process.pid]:
        os.kill(int(number), signal.SIGKILL if name == "worker" else signal.Signals[f"SIG{name}"])
    if name != "worker":
        process.wait(timeout=120)
    (tmp_path / "go").touch()  # the parent looks at its workers when it has read, and the next run does not wait
    error = process.communicate(timeout=120)[1]  # until the last worker, too, has closed its copy of the pipe
    error = re.sub("error: .* records from .*?: ", "error: ", error)
    assert (process.returncode, error) == (status, message)
    assert not (tmp_path / "out").exists()
    assert bool(list(tmp_path.glob(".out*"))) == (name == "KILL")
    assert hat(*command) == 0
    assert not list(tmp_path.glob(".out*"))
    assert hat("doctor", tmp_path / "out") == 0


@pytest.mark.slow
@fault(AREA, "SIGTERM or SIGHUP while workers are started", "as at any other time")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_while_workers_are_started(name: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(READER)
    words = ["preprocess", tmp_path / "slow.py", "--root", tmp_path, "--out", tmp_path / "out", "--workers", 60]
    process = subprocess.Popen([*HEEDING, *HAT, *map(str, words)], stderr=subprocess.PIPE, text=True, env=environment())
    (tmp_path / "go").touch()
    while not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text():
        assert process.poll() is None
    process.send_signal(number := signal.Signals[name])
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 128 + number
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.slow
@fault(AREA, "two runs with one --out, in two containers with equal process ids", "the second is refused")
def test_two_runs_with_one_output(tmp_path: Path) -> None:
    space = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*space, "true"], capture_output=True).returncode:
        space = []  # only root has namespaces
    command, first = begun(tmp_path, *space)
    second = subprocess.run([*space, *HAT, *command], capture_output=True, text=True, env=environment(), timeout=120)
    message = f"another process is writing {tmp_path}/out; wait for it, or choose another name"
    assert (second.returncode, second.stderr) == (2, f"hat: error: {message}\n")
    (tmp_path / "go").touch()
    assert first.wait(timeout=120) == 0
    assert hat("doctor", tmp_path / "out") == 0


@pytest.mark.slow
@fault(AREA, "a file system without locks", "a warning; what a killed run has left stays")
def test_no_locks(documents: Path, tmp_path: Path) -> None:
    (left := tmp_path / f".out.partial-{'0' * 32}").mkdir()  # another run may be writing it
    words = [*WITHOUT_LOCKS, *HAT, "preprocess", documents, "--num-codes", 5, "--limit", 5, "--out", tmp_path / "out"]
    warning = f"{tmp_path}: files cannot be locked (Function not implemented): run no other command that writes there"
    assert run_command(*words).stderr == f"{warning}\n"
    assert left.is_dir()
    assert hat("doctor", tmp_path / "out") == 0


@fault(AREA, "files of the user in the hidden folder of blocks, or called like a partial output", "they stay, named")
def test_files_of_the_user(documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = [tmp_path / name for name in (".out.blocks/a.zip", ".out.blocks/b/c", ".out.partial-1", ".out.partial-a/b")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    words = ["preprocess", documents, "--num-codes", 5, "--limit", 5, "--out", tmp_path / "out"]
    assert hat(*words) == 0
    assert capsys.readouterr().err == f"{tmp_path}/.out.blocks stays, because it has other files: a.zip, b\n"
    assert all(path.read_text() == "mine" for path in mine)
    assert sorted(path.name for path in (tmp_path / ".out.blocks").iterdir()) == ["a.zip", "b"]
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "file").touch()
    (tmp_path / f".out.partial-{'0' * 32}").symlink_to(target)
    assert hat(*words, "--overwrite") == 0
    assert (target / "file").exists()


@pytest.mark.slow
@fault(AREA, "too many open files", "exit 2, never a hang")
@fault(AREA, "little memory (ulimit -v)", "it works or ends with one line, never a hang")
@fault(AREA, "the disk becomes full", "one line with the path, nothing is left")
@fault(AREA, "a disk that will not suffice", "refused before the work, with the size that is needed")
def test_too_few_resources(documents: Path, tmp_path: Path) -> None:
    words = ["preprocess", documents, "--num-codes", 50, "--out"]
    status, error = shell('ulimit -v 220000; exec "$@"', *words, "memory", cwd=tmp_path)
    assert status == 0 or (status == 2 and error.splitlines()[-1].startswith("hat: error: "))
    ended = shell('ulimit -n 12; exec "$@"', *words, "out", "--workers", 4, cwd=tmp_path)
    assert ended == (2, "hat: error: Too many open files\n")
    ended = shell('ulimit -f 50; exec "$@"', *words, "out", cwd=tmp_path)
    assert ended == (2, f"hat: error: {tmp_path}/.out.blocks: File too large\n")
    assert not list(tmp_path.glob("*out*"))
    mount = 'mkdir disk; unshare --mount bash -c \'mount -t tmpfs -o size=64k no disk || exit 77; exec "$@"\' bash "$@"'
    status, error = shell(mount, *words, "disk/out", cwd=tmp_path)
    if status in (1, 77):
        pytest.skip("mounting is not allowed")
    assert error == f"hat: error: {tmp_path}/disk: the disk has 0.1 MB left, and about 0.5 MB are needed\n"


@pytest.mark.slow
@fault(AREA, "--overwrite through a link", "its target is replaced, the link stays")
@fault(AREA, "stdout or stderr is closed", "the data is written, exit 0")
@fault(AREA, "the disk of stdout is full", "the data is written, one line names the standard output, exit 2")
@fault(AREA, "--num-codes 1000000000", "as many as there are")
def test_what_works(documents: Path, tmp_path: Path) -> None:
    words = ["preprocess", documents, "--num-codes", 10**9, "--limit", 5]
    assert shell('"$@" 2>&-', *words, "--out", "real", cwd=tmp_path) == (0, "")
    assert hat("doctor", tmp_path / "real") == 0
    status, warned = shell('"$@" >&-', *words, "--out", "real", "--overwrite", cwd=tmp_path)
    assert status == 0
    assert warned.startswith("warning: --num-codes 1000000000 are too many for these training texts")
    assert "most words that are not in these texts will be unknown to the model; give fewer codes" in warned
    full = shell('env -u PYTHONUNBUFFERED "$@" > /dev/full', *words, "--out", "full", cwd=tmp_path)
    assert full == (2, f"{warned}hat: error: standard output: No space left on device\n")
    assert hat("doctor", tmp_path / "full") == 0
    (tmp_path / "link").symlink_to("real")
    assert hat(*words, "--out", tmp_path / "link", "--overwrite") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents", "full", "link", "real"]
    assert (tmp_path / "link").is_symlink()
    assert hat("doctor", tmp_path / "real") == 0


@fault("Input", "one sentence without an end", "counted in the report")
@fault("Input", "labels of one class only", "a warning")
def test_what_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(tmp_path / "train.jsonl", [{"id": "a", "text": "word " * 600, "label": "b"}])
    words = ["--kind", "classification", "--splitter", "punctuation", "--num-codes", 5]
    assert hat("preprocess", tmp_path, "--out", tmp_path / "out", *words) == 0
    captured = capsys.readouterr()
    assert captured.err == "warning: every record has the label 'b'\n"
    assert re.search(r"source sentences over 512 tokens +1\n", captured.out)


def test_labels_that_look_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ["pos", "pos ", "a  b", "a b", "caf\u00e9", "cafe\u0301", "Pos"]
    write_lines(
        tmp_path / "train.jsonl", [{"id": str(n), "text": "a word", "label": each} for n, each in enumerate(labels)]
    )
    words = ["--kind", "classification", "--segments", "none", "--num-codes", 1]
    assert hat("preprocess", tmp_path, "--out", tmp_path / "out", *words) == 0
    captured = capsys.readouterr()
    pairs = [(r"'pos'", r"'pos '"), (r"'a  b'", r"'a b'"), (r"'cafe\u0301'", r"'caf\xe9'")]
    for one, other in pairs:
        assert f"warning: the labels {one} and {other} look the same, and are two classes\n" in captured.err
    assert captured.err.count("look the same") == len(pairs)
    assert "label 'pos ' " in captured.out
