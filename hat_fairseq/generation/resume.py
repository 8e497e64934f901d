"""What generation has left behind and with what it was made, so that a second call can go on."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hat_fairseq.data.files import sha256_of

RECORD = "run.json"
# Flags that change how fast texts come, not which: after a crash for want of memory a smaller batch may go on.
FREE = {
    "--batch-size",
    "--max-tokens",
    "--num-workers",
    "--data-buffer-size",
    "--cpu",
    "--log-format",
    "--log-interval",
}
_DONE = re.compile(rb"^D-(\d+)\t.*\n", re.MULTILINE)

Setup = dict[str, Any]


@dataclass
class PartialResults:
    """The directory in which the output of every call is kept; one call at a time.

    Args:
        folder: of the parts: N.shard-I-of-K/generate-{subset}.txt of call N.
        lock: held as long as this process or a shard that it started lives.
    """

    folder: Path
    lock: BinaryIO

    @classmethod
    @contextmanager
    def open(cls, folder: Path, overwrite: bool) -> Iterator[PartialResults]:
        """Take the directory for this process.

        Raises:
            ValueError: another process works in it, or it is not ours to overwrite.
        """
        if overwrite and folder.exists() and not (folder / RECORD).is_file():
            raise ValueError(f"{folder} has no {RECORD}, so it was not written by hat generate; not overwriting it")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"{folder}: another hat generate is at work there, or shards that it has left behind"
                ) from None
            if overwrite:
                for path in folder.iterdir():
                    if path.is_dir():
                        shutil.rmtree(path)
                (folder / RECORD).unlink(missing_ok=True)
            yield cls(folder, lock)

    def check(self, setup: Setup) -> None:
        """Compare the settings with those of the texts that are there, or record them if there are none.

        Raises:
            ValueError: the texts were generated with other settings.
        """
        path = self.folder / RECORD
        if path.is_file() and self.finished():
            if difference := first_difference(json.loads(path.read_text(encoding="utf-8")), setup):
                raise ValueError(
                    f"{self.folder} was made with {difference}: choose another --results-path, or generate all anew "
                    "with --overwrite"
                )
            return
        for checkpoint in setup["checkpoints"]:
            checkpoint["sha256"] = sha256_of(checkpoint["path"])
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(setup, indent=2) + "\n", encoding="utf-8")
        partial.replace(path)

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.shard-*-of-*/generate-*.txt"))

    def finished(self) -> set[int]:
        """The samples whose text is there, whole; the half line that a killed process has left is cut off."""
        samples: set[int] = set()
        for path in self.files():
            content = path.read_bytes()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                os.truncate(path, whole)
            samples |= {int(number) for number in _DONE.findall(content[:whole])}
        return samples

    def next_call(self) -> int:
        return 1 + max((int(path.name.partition(".")[0]) for path in self.folder.glob("*.shard-*")), default=0)


def describe_setup(data: Path, subset: str, path: str, flags: Sequence[str]) -> Setup:
    """What decides the texts: the split's files, the checkpoints, the flags.

    Raises:
        ValueError: a checkpoint does not exist.
    """
    used = [*data.glob(f"{subset}.*"), *data.glob("dict.*"), data / "pipeline.json"]
    checkpoints = []
    for checkpoint in map(Path, path.split(os.pathsep)):
        if not checkpoint.is_file():
            raise ValueError(f"--path {checkpoint} does not exist: has it been trained?")
        status = checkpoint.stat()
        checkpoints.append({"path": str(checkpoint), "size": status.st_size, "mtime_ns": status.st_mtime_ns})
    decisive = {flag: values for flag, values in named_flags(flags).items() if flag not in FREE}
    for known_by_content in ("--path", "--user-dir", "--document-pipeline"):
        decisive.pop(known_by_content, None)
    files = {file.name: sha256_of(file) for file in sorted(used)}
    return {"data": files, "checkpoints": checkpoints, "flags": decisive}


def named_flags(words: Sequence[str]) -> dict[str, list[str]]:
    """{flag: its values} of a command line, `--flag=value` split up; of a flag that is given twice the last counts."""
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
    """ "A, now it is B" for the first thing that differs; None if nothing does."""
    for name in {**old["data"], **new["data"]}:
        if old["data"].get(name) != new["data"].get(name):
            return f"other data: {name} has changed"
    for flag in {**old["flags"], **new["flags"]}:
        if old["flags"].get(flag) != new["flags"].get(flag):
            was, is_now = (_shown(flag, setup["flags"].get(flag)) for setup in (old, new))
            return f"{was}, now it is {is_now}"
    if len(old["checkpoints"]) != len(new["checkpoints"]):
        return f"{len(old['checkpoints'])} checkpoints, now it is {len(new['checkpoints'])}"
    for before, now in zip(old["checkpoints"], new["checkpoints"], strict=True):
        # Size and time decide at once; a copy has another time, and the same content.
        same_file = (before["size"], before["mtime_ns"]) == (now["size"], now["mtime_ns"])
        if not same_file and before["sha256"] != sha256_of(now["path"]):
            return f"another checkpoint than {now['path']} is now"
    return None


def _shown(flag: str, values: list[str] | None) -> str:
    return f"no {flag}" if values is None else " ".join([flag, *values])
