"""Shards of `hat preprocess --shard K --of N`, and `hat merge`: the files of one process, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from example_data import OPTIONS

from hat_fairseq import cli
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.outputs import files_below
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import record_to_json

REPOSITORY = Path(__file__).resolve().parents[2]
MEETINGS = ["--roles", "--max-source-tokens", "400", "--long-source", "chunk", "--on-empty", "drop"]


READER = """
import time
from hat_fairseq.data.files import note_input
from hat_fairseq.data.record import Record

SPLITS = ("train",)

def read(split, root, counts):
    note_input(root / "raw.txt")
    for number in range(40):
        counts["lines_seen"] += 1
        yield Record(str(number % 39 if (root / "twice").exists() else number), ((f"text {number} .",),), target=("a",))
    while (root / "slow").exists():
        (root / "reading").touch()
        time.sleep(0.1)
"""


def fault(name: str, outcome: str) -> pytest.MarkDecorator:
    return pytest.mark.fault("Several processes and machines", name, outcome)


def content(directory: Path) -> dict[str, object]:
    """Every file of a result; of the manifest all but command and date."""
    files: dict[str, object] = {name: (directory / name).read_bytes() for name in files_below(directory)}
    record = json.loads((directory / "manifest.json").read_text())
    return files | {"manifest.json": {**record, "command": None, "date": None}}


def shards_of(words: list[str], out: Path, number: int) -> list[str]:
    """Makes all shards, the last one first."""
    folders = [str(out / f"shard{shard}") for shard in range(1, number + 1)]
    for shard in range(number, 0, -1):
        share = ["--shard", str(shard), "--of", str(number), "--workers", str(1 + shard % 2)]
        assert cli.main(["preprocess", *words, "--out", folders[shard - 1], *share]) == 0
    return folders


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, meetings: list[Record]) -> Path:
    """Meetings with roles; one has no text, one is in two splits, valid has less than a record a shard."""
    folder = tmp_path_factory.mktemp("documents")
    empty = Record("empty", ((" ",),), roles=("PM",), target=("a",))
    for split, part in {
        "train": [*meetings[:3], empty, *meetings[3:5]],
        "valid": meetings[:1],
        "test": meetings[5:],
    }.items():
        lines = (json.dumps(record_to_json(record)) + "\n" for record in part)
        (folder / f"{split}.jsonl").write_text("".join(lines))
    return folder


FAST = ("classification", "qa", "mlm")  # one row a record, several rows, and rows of several records
SHARDED = [k if k in FAST else pytest.param(k, marks=pytest.mark.slow) for k in ("text", *OPTIONS)]


@pytest.mark.parametrize("kind", SHARDED)
def test_shards_give_the_files_of_one_process(kind: str, folders: Path, documents: Path, tmp_path: Path) -> None:
    words = [str(documents if kind == "text" else folders / kind), "--kind", kind, *OPTIONS.get(kind, MEETINGS)]
    if not KINDS[kind].alphabet:
        sample = ["--num-codes", "300", "--limit", "20"] if KINDS[kind].is_text else []
        assert cli.main(["preprocess", *words, *sample, "--out", str(tmp_path / "sample")]) == 0
        words += ["--vocabulary", str(tmp_path / "sample/bin")]
    assert cli.main(["preprocess", *words, "--out", str(tmp_path / "one")]) == 0
    for number in (3, 1) if kind == "text" else (3,):
        out = tmp_path / str(number)
        assert cli.main(["merge", *reversed(shards_of(words, out, number)), "--out", str(out / "all")]) == 0
        assert content(out / "all") == content(tmp_path / "one")


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Of a reader whose records have a vocabulary, `sample`, and which reads `tmp_path`."""
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "raw.txt").touch()
    words = [str(tmp_path / "reader.py"), "--root", str(tmp_path)]
    for name, codes in (("sample", "9"), ("other", "1")):
        assert cli.main(["preprocess", *words, "--num-codes", codes, "--out", str(tmp_path / name)]) == 0
    return [*words, "--vocabulary", str(tmp_path / "sample/bin")]


CASES = (
    ("a shard is missing", "the number of the shard", [], "of 2 shards, shard 2 is missing"),
    ("a shard is given twice", "both directories", ["--shard", "1"], "shard1 and {0}/second are both shard 1"),
    ("a shard has another option", "the option, both values", ["--limit", "9"], "shard1 and {0}/second do not belong"),
    ("a shard is of another vocabulary", "its file", ["--vocabulary", "{0}/other/bin"], "together: --vocabulary (bin/"),
    ("a shard is of another number of shards", "both numbers", ["--of", "3"], "together: --of is 2 and 3"),
    ("the input has changed", "the file", ["new"], "do not belong together: input 0 (raw.txt) is "),
    ("a file of a shard was cut off", "the file", ["cut"], "{0}/second/text/train.source is missing or was changed"),
    ("no finished shard", "the directory", ["sample"], "{0}/sample has no shard.json"),
    ("an id is in two shards", "the id", ["twice"], "reader, train: document '0' occurs twice"),
)


@pytest.mark.parametrize(
    ("flags", "message"),
    [pytest.param(*c[2:], id=c[0], marks=fault(f"`hat merge`: {c[0]}", f"exit 2, {c[1]}")) for c in CASES],
)
def test_shards_that_do_not_fit_are_named(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    def make(number: str, name: str, *flags: str) -> str:
        own = ["--shard", number, "--of", "2", "--out", str(tmp_path / name), *flags]
        assert cli.main(["preprocess", *words, *own]) == 0
        return str(tmp_path / name)

    case = " ".join(flags)
    if case == "twice":
        (tmp_path / "twice").touch()
    given = [make("1", "shard1")]
    if case == "sample":
        given += [str(tmp_path / "sample")]
    elif case == "new":
        (tmp_path / "raw.txt").write_text("new")
    if flags and case != "sample":
        options = [word.format(tmp_path) for word in flags] if case.startswith("--") else []
        given += [make("2", "second", *options)]
    if case == "cut":
        with open(tmp_path / "second/text/train.source", "r+") as file:
            file.truncate(10)
    capsys.readouterr()
    assert cli.main(["merge", *given, "--out", str(tmp_path / "merged")]) == 2
    error = capsys.readouterr().err
    assert message.format(tmp_path) in error and error.count("\n") == 1 and not list(tmp_path.glob("*merged*"))


@fault("`hat preprocess --shard`: kill -9", "nothing under its name; the same command makes it, the result is whole")
def test_a_killed_shard_is_made_again(words: list[str], tmp_path: Path) -> None:
    """What a reader counts in all records counts once."""
    assert cli.main(["preprocess", *words, "--out", str(tmp_path / "one")]) == 0
    (tmp_path / "slow").touch()
    second = ["preprocess", *words, "--shard", "2", "--of", "2", "--out", str(tmp_path / "shard2")]
    process = subprocess.Popen([sys.executable, "-m", "hat_fairseq.cli", *second], cwd=REPOSITORY)
    while not (tmp_path / "reading").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    (tmp_path / "slow").unlink()
    assert not (tmp_path / "shard2").exists()
    assert cli.main(["merge", *shards_of(words, tmp_path, 2), "--out", str(tmp_path / "merged")]) == 0
    assert content(tmp_path / "merged") == content(tmp_path / "one")


def test_datatrove_runs_the_shards(words: list[str], tmp_path: Path) -> None:
    pytest.importorskip("datatrove", reason="pip install hat_fairseq[datatrove]")
    assert cli.main(["preprocess", *words, "--out", str(tmp_path / "one")]) == 0
    command = [sys.executable, REPOSITORY / "examples/datatrove_preprocess.py", tmp_path / "mine", "3", "2", *words]
    subprocess.run(command, check=True, cwd=REPOSITORY)
    assert content(tmp_path / "mine") == content(tmp_path / "one")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shard", "3", "--of", "2"], "K is from 1 to N"),
        (["--of", "2"], "--shard K and --of N go together"),
        (["--shard", "1", "--of", "2"], "--shard needs a dictionary for all shards"),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert cli.main(["preprocess", *words[:-2], "--out", str(tmp_path / "out"), *flags]) == 2
    assert message in capsys.readouterr().err
