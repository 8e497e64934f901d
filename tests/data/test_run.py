"""A run of `hat preprocess` in blocks: the bytes of the result do not depend on them, and a killed run goes on."""

import errno
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import pytest
from commands import environment, read_lines, write_lines

from hat_fairseq import cli
from hat_fairseq.data import blocks
from hat_fairseq.data.blocks import Block, Blocks, Task
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.rows import Row
from hat_fairseq.data.run import append
from hat_fairseq.data.stages import lines_of_rows
from hat_fairseq.workers import progress

SMALL = 2000  # characters of a block
# `hat` with small blocks, which writes a line to the file `calls` for each block that a process computes.
SCRIPT = f"""
import os, sys, time
from hat_fairseq import cli
from hat_fairseq.data import binarize, blocks, stages
blocks.SIZE = {SMALL}

def counted(function):
    def count(*arguments):
        log = os.open(os.environ["CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, b"call\\n")
        time.sleep(0.02)
        return function(*arguments)
    return count

for module in (stages, binarize):
    for name in ("clean_block", "encode_block", "binarize_block"):
        if hasattr(module, name):
            setattr(module, name, counted(getattr(module, name)))
sys.exit(cli.main())
"""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for split, number in (("train", 60), ("valid", 6)):
        texts = [f"One {n}, e.g. two. Three {n % 7} four! " * 8 for n in range(number)]
        rows = [{"id": str(n), "text": text, "target": f"{n}."} for n, text in enumerate(texts)]
        write_lines(folder / f"{split}.jsonl", rows)
    return folder


def words(documents: Path, out: Path, *flags: str) -> list[str]:
    return f"preprocess {documents} --splitter punctuation --num-codes 30 --out {out}".split() + list(flags)


def contents(out: Path) -> dict[str, bytes]:
    files = (path for path in out.rglob("*") if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def whole(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """The files of a run that nobody kills, and the number of its blocks if they are small."""
    folder = tmp_path_factory.mktemp("whole")
    assert cli.main(words(documents, folder / "out")) == 0
    command = [sys.executable, "-c", SCRIPT, *words(documents, folder / "small")]
    subprocess.run(command, env=environment(CALLS=folder / "calls"), check=True, stdout=subprocess.DEVNULL)
    return contents(folder / "out"), len((folder / "calls").read_text().split())


@pytest.mark.parametrize("size", [1, 700])
@pytest.mark.slow
def test_the_result_does_not_depend_on_blocks(
    size: int, documents: Path, whole: tuple[dict[str, bytes], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "SIZE", size)
    assert cli.main([*words(documents, tmp_path / str(size)), "--workers", "2"]) == 0
    assert contents(tmp_path / str(size)) == whole[0]


def test_rows_are_filled_across_blocks(documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ({"text": row["text"]} for row in read_lines(documents / "train.jsonl"))
    raw = write_lines(tmp_path / "raw/train.jsonl", rows).parent
    outs = []
    for size in (1 << 20, 300):
        monkeypatch.setattr(blocks, "SIZE", size)
        outs.append(tmp_path / str(size))
        assert cli.main(words(raw, outs[-1], "--kind", "mlm", "--max-source-tokens", "500")) == 0
    assert contents(outs[0]) == contents(outs[1])
    assert 1 < len((outs[0] / "text/train.source").read_text().splitlines()) < 60


@pytest.mark.parametrize("at_once", [True, False])
def test_rows_with_other_streams_are_refused(at_once: bool, tmp_path: Path) -> None:
    """Line i of all files is about row i, in a block and from one to the next."""
    rows = [Row("a", 0, 1, {"source": ["x"], "label": ["y"]}), Row("b", 0, 1, {"source": ["x"]})]
    (tmp_path / "text").mkdir()
    (tmp_path / "bin").mkdir()

    def pieces(part: list[Row]) -> dict[str, bytes]:
        return lines_of_rows(part, "train", SplitReport(KINDS["classification"]))

    append(tmp_path, [pieces(rows[:1]), {}, pieces(rows[:1])])
    assert (tmp_path / "text/train.label").read_text() == "y\ny\n"
    with pytest.raises(ValueError, match=r"rows differ in their files: expected .*train\.label.* of every row"):
        append(tmp_path, [pieces(rows)] if at_once else [pieces(rows[:1]), pieces(rows[1:])])


def made_of(text: str) -> Block:
    return Block(
        [[text, None, "\ud800"]], json.dumps(text), {"words": {"\ud800": 2}}, {"text/a": text.encode(), "b": b"\0"}
    )


@pytest.mark.parametrize("damage", ["", "cut", "changed", "gone", "of another layout"])
def test_a_block_there_and_back(damage: str, tmp_path: Path) -> None:
    """What is not as it was written is made anew."""
    stored, calls = Blocks(tmp_path / "blocks"), list[str]()

    def counted(text: str) -> Block:
        calls.append(text)
        return made_of(text)

    tasks = [Task("0" * 32, "One.", "the first"), Task("1" * 32, "Two.", "the second")]
    for _ in range(2):
        made = list(stored.map(counted, tasks))
        assert made == [made_of("One."), made_of("Two.")]
        archives = [block.archive for block in made]
        content = archives[0].read_bytes()
        if damage == "gone":
            archives[0].unlink()
        elif damage == "of another layout":
            with ZipFile(archives[0], "w") as archive:
                archive.writestr("records", "One.")
        elif damage:
            archives[0].write_bytes(content[:-9] if damage == "cut" else content.replace(b"One.", b"Two."))
    assert calls == ["One.", "Two."] + ["One."] * bool(damage)


def test_a_full_disk_leaves_no_piece_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(self: Block, path: Path) -> None:
        path.write_bytes(b"PK")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Block, "save", is_full)
    with pytest.raises(OSError, match="No space left"):
        list(Blocks(tmp_path / "blocks").map(made_of, [Task("0" * 32, "One.", "the first")]))
    assert not list((tmp_path / "blocks").iterdir())


def test_without_a_terminal_progress_is_a_line_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    slow = (time.sleep(0.02) or number for number in range(10))
    assert list(progress(slow, "train: BPE", 10, every=0.1)) == list(range(10))
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 2
    assert re.fullmatch(r"train: BPE: \d of 10 documents in 0 min, about 0 min left", lines[0])
    assert list(progress(range(5), "fast", 5)) == list(range(5))
    assert not capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.fault("Preprocessing", "kill -9 at any moment", "the next run resumes; no finished block is made again")
@pytest.mark.parametrize(("moment", "change"), [(2, ""), (10, "damage"), (10, ""), (16, ""), (10, "library")])
def test_a_killed_run_goes_on(
    moment: int, change: str, documents: Path, whole: tuple[dict[str, bytes], int], tmp_path: Path
) -> None:
    """Results that the crash has damaged, or that another splitter has made, are not used."""
    (expected, blocks_of_run), calls = whole, tmp_path / "calls"
    calls.touch()
    command = [sys.executable, "-c", SCRIPT, *words(documents, tmp_path / "out")]
    killed = [word.replace("punctuation", "library") for word in command] if change == "library" else command
    process = subprocess.Popen(killed, env=environment(CALLS=calls), stdout=subprocess.DEVNULL)
    while len(calls.read_text().split()) < 2 * moment:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    for result in tmp_path.glob(".out.blocks/*.zip") if change == "damage" else ():
        result.write_bytes(result.read_bytes().replace(b"One", b"Two"))
    subprocess.run(command, env=environment(CALLS=calls), check=True, stdout=subprocess.DEVNULL)
    assert contents(tmp_path / "out") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls", "out"]
    assert change or len(calls.read_text().split()) <= blocks_of_run + 1
