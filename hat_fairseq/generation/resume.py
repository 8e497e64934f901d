"""State of an interrupted `hat generate`, and the settings that it was started with."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..data.files import sha256_of
from ..data.outputs import atomic_file, lock
from ..package_files import MANIFEST, is_package

RECORD = "run.json"
LONGEST_WAIT = 10.0  # seconds for the lock: the data loaders of a killed shard look for it every 5 seconds
# Flags that do not change the texts: a run may go on with other values.
SPEED = {"batch-size", "max-tokens", "num-workers", "data-buffer-size", "cpu", "log-format", "log-interval"}
_DONE = re.compile(rb"^D-(\d+)\t.*\n", re.MULTILINE)

Setup = dict[str, Any]
Machine = tuple[int, int]


@dataclass
class PartialResults:
    """The folder with the output of all calls, `N.shard-I-of-K/generate-{subset}.txt` of call N.

    One call at a time, or one of each machine; the calls of machine M have names that begin with `M-`.

    Args:
        folder: the folder.
        locks: files, locked as long as this process or one of its shards lives.
        machine: number of this machine, from 1, and number of machines; None: there is one only.
    """

    folder: Path
    locks: Sequence[BinaryIO]
    machine: Machine | None = None

    @classmethod
    @contextmanager
    def open(
        cls, folder: Path, overwrite: bool, machine: Machine | None = None, results: Iterable[Path] = ()
    ) -> Iterator[PartialResults]:
        """Locks the folder, or the part of this machine, and empties the folder if `overwrite`.

        Raises:
            ValueError: another process has locked it, or `hat generate` wrote neither it nor the `results`.
        """
        replaced = [folder, *results] if overwrite else results
        if not (folder / RECORD).is_file() and (foreign := [path for path in replaced if path.exists()]):
            why = f"it was not written by hat generate ({folder} has no {RECORD})"
            raise ValueError(f"{foreign[0]} exists, and {why}: choose another --results-path")
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as files:
            names = ["lock"] if machine is None else ["lock", f"lock-{machine[0]}"]
            locks = [files.enter_context((folder / name).open("ab")) for name in names]
            for file in locks:
                shared = machine is not None and file is locks[0]
                _wait_for_lock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, folder)
            if overwrite:
                for path in folder.iterdir():
                    if path.is_dir():
                        shutil.rmtree(path)
            yield cls(folder, locks, machine)

    def check(self, setup: Setup) -> None:
        """Compares `setup` with the settings of the texts that exist, or records it if there are none.

        Raises:
            ValueError: the texts were generated, or another machine generates them, with other settings.
        """
        path = self.folder / RECORD
        if path.is_file() and (self.finished() or not self._alone()):
            if difference := first_difference(json.loads(path.read_text(encoding="utf-8")), setup):
                raise ValueError(
                    f"{self.folder} was made with {difference}: choose another --results-path, or start again with "
                    "--overwrite"
                )
            return
        with atomic_file(path) as file:
            file.write(json.dumps(setup, indent=2).encode())

    def _alone(self) -> bool:
        """Whether no other machine is at work, which only locks tell."""
        if self.machine is None:
            return True
        try:
            return lock(self.locks[0], self.folder)
        except BlockingIOError:
            return False
        finally:
            _wait_for_lock(self.locks[0], fcntl.LOCK_SH, self.folder)

    @property
    def prefix(self) -> str:
        return f"{self.machine[0]}-" if self.machine else ""

    def share(self, samples: Iterable[int]) -> set[int]:
        """The samples of this machine: every N-th."""
        number, of = self.machine or (1, 1)
        return {sample for sample in samples if sample % of == number - 1}

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.shard-*-of-*/generate-*.txt"))

    def finished(self) -> set[int]:
        """The samples with a complete text; cuts off the incomplete last line that a killed process leaves."""
        samples: set[int] = set()
        for path in self.files():
            content = path.read_bytes()
            whole = content.rfind(b"\n") + 1
            is_own = self.machine is None or path.parent.name.startswith(self.prefix)  # others may be writing
            if whole < len(content) and is_own:
                os.truncate(path, whole)
            samples |= {int(number) for number in _DONE.findall(content[:whole])}
        return samples


def _wait_for_lock(file: BinaryIO, kind: int, folder: Path) -> bool:
    give_up = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            return lock(file, folder, kind)
        except BlockingIOError:
            if time.monotonic() > give_up:
                message = f"{folder} is in use by another hat generate, or by shards that are still running"
                raise ValueError(message) from None
        time.sleep(0.2)


def describe_setup(data: Path, subset: str, path: str, flags: Sequence[str], machine: Machine | None = None) -> Setup:
    """Everything that determines the texts: the files of the split, the checkpoints, the flags, the number of machines.

    Raises:
        ValueError: a checkpoint does not exist.
    """
    used = [*data.glob(f"{subset}.*"), *data.glob("dict.*"), data / "pipeline.json"]
    checkpoints = path.split(os.pathsep)
    if absent := [checkpoint for checkpoint in checkpoints if not Path(checkpoint).exists()]:
        raise ValueError(f"--path {absent[0]} does not exist: has it been trained?")
    hashes = [{"path": p, "sha256": sha256_of(Path(p, MANIFEST) if is_package(p) else p)} for p in checkpoints]
    ignored = {*SPEED, "path", "user-dir", "document-pipeline"}  # the last three are compared by content
    decisive = {flag: values for flag, values in named_flags(flags).items() if flag[2:] not in ignored}
    files = {file.name: sha256_of(file) for file in sorted(used)}
    return {"data": files, "checkpoints": hashes, "flags": decisive, "machines": machine and machine[1]}


def named_flags(words: Sequence[str]) -> dict[str, list[str]]:
    """The values of each flag of a command line, `--flag=value` included; the last occurrence of a flag counts."""
    flags: dict[str, list[str]] = {}
    values: list[str] = []
    for word in words:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            values = flags[flag] = [value] if equals else []
        else:
            values.append(word)
    return flags


def first_difference(old: Setup, new: Setup) -> str | None:
    """The first difference as "A, now it is B"; None if there is none."""
    machines = [setup.get("machines") for setup in (old, new)]
    if None not in machines and machines[0] != machines[1]:
        return f"--of {machines[0]}, now it is --of {machines[1]}"
    for name in {**old["data"], **new["data"]}:
        if old["data"].get(name) != new["data"].get(name):
            return f"other data: {name} has changed"
    for flag in {**old["flags"], **new["flags"]}:
        if old["flags"].get(flag) != new["flags"].get(flag):
            values = [setup["flags"].get(flag) for setup in (old, new)]
            shown = [f"no {flag}" if words is None else " ".join([flag, *words]) for words in values]
            return ", now it is ".join(shown)
    if len(old["checkpoints"]) != len(new["checkpoints"]):
        return f"{len(old['checkpoints'])} checkpoints, now it is {len(new['checkpoints'])}"
    for before, now in zip(old["checkpoints"], new["checkpoints"], strict=True):
        if before["sha256"] != now["sha256"]:
            return f"another content of {now['path']}"
    return None
