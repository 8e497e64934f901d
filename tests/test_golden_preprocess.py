"""Byte goldens of `hat preprocess`: the files it writes have the same bytes as before, for each kind of data.

A folder `tests/golden/preprocess/NAME/` has

    raw/       input files; some folders read those of another one, or the models in `bpe/`
    command    a line for each run: what follows `hat preprocess`; `OUT` stands for the output folder
    hashes     a line for each file below `OUT`: its path, and the SHA-256 of its bytes

`HAT_GOLDEN=1 pytest tests/test_golden_preprocess.py` writes `hashes` anew.

Of a `manifest.json` there is a line for each figure of a split, as JSON, and one for names, sizes and hashes of the
inputs. Its other fields are left out: command, date, versions and paths differ between runs; options, sizes and hashes
of the output repeat what the other lines say; reader and paper are constants.
"""

import os
import shlex
import shutil
from pathlib import Path

import pytest
from commands import REPOSITORY, run_command
from golden_hashes import hashes

from hat_fairseq import cli

FOLDER = REPOSITORY / "tests/golden/preprocess"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/command"))


def commands(name: str, out: Path) -> list[list[str]]:
    """The words of each run of a folder."""
    lines = (FOLDER / name / "command").read_text(encoding="utf-8").splitlines()
    return [["preprocess", *shlex.split(line.replace("OUT", shlex.quote(str(out))))] for line in lines]


def check(name: str, out: Path) -> None:
    """Compares an output folder with `hashes`; with `HAT_GOLDEN` writes them before."""
    actual, path = hashes(out), FOLDER / name / "hashes"
    if os.environ.get("HAT_GOLDEN"):
        path.write_text("".join(f"{file} {value}\n" for file, value in actual.items()), encoding="utf-8")
    recorded = dict(line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines())
    changed = [file for file in recorded if file in actual and recorded[file] != actual[file]]
    problems = {"changed": changed, "missing": list(recorded.keys() - actual), "new": list(actual.keys() - recorded)}
    texts = [f"{what}: {', '.join(sorted(files))}" for what, files in problems.items() if files]
    before = out.with_name("before")
    runs = "; ".join(shlex.join(["hat", *words]) for words in commands(name, before))
    assert not texts, (
        f"golden/preprocess/{name}: {'; '.join(texts)}. To see the difference, run the code before the change and "
        f"compare: (cd {FOLDER / name} && {runs}); diff -r {before} {out}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_same_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER / name)
    for words in commands(name, tmp_path / "out"):
        assert cli.main(words) == 0
    check(name, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lra_listops", "mlm", "aligned_zh_en", "qa"])
def test_same_bytes_elsewhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own with two workers, another working folder, locale, time zone and hashes of strings.

    The first two folders have several batches of records for the workers.
    """
    for variable, value in {"LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PYTHONUTF8": "0"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("HAT_GOLDEN", raising=False)
    shutil.copytree(FOLDER, tmp_path / "goldens")
    for words in commands(name, tmp_path / "out"):
        run_command("hat", *words, "--workers", 2, cwd=tmp_path / "goldens" / name)
    check(name, tmp_path / "out")
