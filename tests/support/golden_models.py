"""The small models of `golden/predictions`, one for each kind of data, with the data that `hat preprocess` makes."""

import gzip
import shlex
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commands import REPOSITORY, hat

GOLDEN = REPOSITORY / "tests/golden/predictions"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@dataclass(frozen=True)
class GoldenModel:
    """A copy of a folder of `golden/predictions`, whose `data` is made when it is asked for first."""

    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "model.pt"

    @property
    def raw(self) -> Path:
        return self.folder / "raw/test.jsonl"

    @cached_property
    def data(self) -> Path:
        command = (self.folder / "transcript.txt").read_text(encoding="utf-8").partition("\n")[0]
        words = shlex.split(command.removeprefix("$ hat ").removesuffix(" > log"))
        words[words.index("raw")], words[words.index("data")] = str(self.folder / "raw"), str(self.folder / "data")
        assert hat(*words) == 0
        return self.folder / "data"


def copied(name: str, folder: Path) -> GoldenModel:
    """Copies a model of `NAMES` into a folder."""
    shutil.copytree(GOLDEN / name, folder, dirs_exist_ok=True)
    for path in folder.glob("*.pt.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    return GoldenModel(folder)
