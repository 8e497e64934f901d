"""The line that shows how far a step is: a bar in a terminal, marks in a file."""

import io
import os
import pty
import re
import sys
from pathlib import Path

import pytest

from hat_fairseq import progress
from hat_fairseq.progress import Bar, Count, count_of

TRAINED = b'INFO | train_inner | {"epoch": 2, "update": 1.5, "loss": "9.1", "num_updates": "12", "lr": "0.1"}\n'


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        (TRAINED, ["--max-update", "50"], Count(12, 50, "updates")),
        (TRAINED, ["--max-epoch", "15"], Count(1.5, 15, "epochs")),
        (TRAINED, ["--max-update", "0", "--max-epoch", "15"], Count(1.5, 15, "epochs")),
        (TRAINED, [], None),
        (b'{"valid_num_updates": "12"}', ["--max-update", "50"], None),
        (b"train: 3 of 40 documents in 0 min\ntrain: 1,212 of 4,000 documents", [], Count(1212, 4000, "documents")),
        (b"nothing", ["--max-update", "50"], None),
        (b"", [], None),
    ],
)
def test_the_last_count_of_an_output(text: bytes, command: list[str], expected: Count | None) -> None:
    assert count_of(text, command) == expected


def test_marks_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tenth is a number; where nothing is counted a mark says that time passes."""
    monkeypatch.setattr(progress, "EVERY", 0.5)
    (log := tmp_path / "log").write_text("9 of 10 documents\n")  # of an earlier step
    bar = Bar("read", log=log, out=(out := io.StringIO()))
    bar.show()
    assert out.getvalue() == "  read ."
    log.write_text(log.read_text() + "3 of 10 documents\n")
    bar.show()
    assert out.getvalue() == "  read .30%"
    bar.marked += 60
    bar.show()
    bar.end("all read")
    assert out.getvalue() == "  read .30% 0 s  all read\n"


def test_a_bar_in_a_terminal_moves_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    (log := tmp_path / "log").write_text("")
    ours, theirs = pty.openpty()
    shown = ""
    with open(theirs, "w", closefd=False) as out:
        with Bar("read", log=log, out=out) as bar:
            log.write_text("5 of 10 documents\n")
            while "5 of 10" not in shown:
                shown += os.read(ours, 10_000).decode()
        bar.end()
    while not shown.endswith("\n"):  # a terminal gives what it has so far
        shown += os.read(ours, 10_000).decode()
    assert re.search(rf"\[{'#' * 12}{'[.]' * 12}\]  5 of 10 documents, \d+ s", shown)
    assert re.search(r"  read  \d+ s\r\n$", shown)
    assert all(len(each) < 60 for each in shown.split("\r\033[K"))
    assert Bar("quiet").out is sys.stdout
