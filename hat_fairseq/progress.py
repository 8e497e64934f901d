"""Shows how far a step of several minutes is: a bar in a terminal, and in a file marks on one line.

What the step prints is in a log, of which the last count is read: "12 of 40 documents", or the updates of a training.
Without a count the seconds move alone.
"""

import re
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self, TextIO

WIDTH = 24  # of the bar
EVERY = 2.0  # seconds between two marks in a file, and later a thirtieth of the seconds so far
TAIL = 20_000  # bytes of the log that are read
TRAINED = re.compile(rb'"update": ([\d.]+), .*"num_updates": "(\d+)"')
COUNTED = re.compile(rb"([\d,]+) of ([\d,]+) (\w+)")


class Count(NamedTuple):
    """How many updates, epochs or documents of how many there were."""

    done: float
    all: float
    unit: str

    def __str__(self) -> str:
        return f"{self.done:,.0f} of {self.all:,.0f} {self.unit}"


def count_of(text: bytes, command: Sequence[str]) -> Count | None:
    """Returns the last count in the output of a command; None if it has none."""
    if trained := TRAINED.findall(text):
        epochs, updates = (float(each) for each in trained[-1])
        limits = dict(zip(command, command[1:], strict=False))
        if limits.get("--max-update", "0") != "0":
            return Count(updates, float(limits["--max-update"]), "updates")
        return Count(epochs, float(limits["--max-epoch"]), "epochs") if "--max-epoch" in limits else None
    if counted := COUNTED.findall(text):
        done, every, unit = (each.decode().replace(",", "") for each in counted[-1])
        return Count(float(done), max(1.0, float(every)), unit)
    return None


class Bar:
    """The line of a step. Inside of `with` it moves each second, by a thread; `end` says how long the step was.

    Args:
        title: of the step, as the user reads it.
        command: its words, of which the limits of a training are read.
        log: what it prints, from its present end on; None without counts.
        out: where the line is shown (default: the standard output).
    """

    def __init__(
        self, title: str, command: Sequence[str] = (), log: Path | None = None, out: TextIO | None = None
    ) -> None:
        self.title, self.command, self.log, self.out = title, command, log, out or sys.stdout
        self.offset = log.stat().st_size if log is not None and log.exists() else 0
        self.start = self.marked = time.monotonic()
        self.tenths, self.line = 0, ""
        self.is_terminal = self.out.isatty()
        if not self.is_terminal:
            self._write(f"  {title} ")

    def __enter__(self) -> Self:
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._tick, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()
        self.thread.join()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    @property
    def text(self) -> bytes:
        """Returns the end of what the step has printed."""
        if self.log is None or not self.log.exists():
            return b""
        with self.log.open("rb") as file:
            file.seek(max(self.offset, self.log.stat().st_size - TAIL))
            return file.read()

    def end(self, result: str = "") -> None:
        """Ends the line with the seconds, and what came out."""
        words = f"{self.seconds:.0f} s" + (f"  {result}" if result else "")
        self._write(f"\r\033[K  {self.title}  {words}\n" if self.is_terminal else f" {words}\n")

    def show(self) -> None:
        """Draws the bar anew, or adds a mark: each tenth of the way is a number."""
        count = count_of(self.text, self.command)
        share = 0.0 if count is None else min(1.0, count.done / count.all)
        if self.is_terminal:
            filled = int(share * WIDTH)
            bar = "" if count is None else f"[{'#' * filled}{'.' * (WIDTH - filled)}]  {count}, "
            line = f"  {self.title}  {bar}{self.seconds:.0f} s"
            self._write(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}")
            return
        if (tenths := int(share * 10)) > self.tenths:
            self.tenths = tenths
            self._write(f"{tenths * 10}%")
        elif time.monotonic() - self.marked >= max(EVERY, self.seconds / 30) - 0.5:
            self._write(".")
        else:
            return
        self.marked = time.monotonic()

    def _tick(self) -> None:
        while not self.stop.wait(1.0):
            self.show()

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()
