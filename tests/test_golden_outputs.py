"""Scores, predictions and generated texts stay as they are: transcripts in `golden/scores` and `golden/predictions`.

A line `$ hat ...` of `transcript.txt` runs that command in a copy of the folder. The lines below it are its output, and
after `!` its notes on stderr. `$ cat FILE` shows a file that a command has written, and
`$ scores FILE` the hypotheses of fairseq-generate. What a command with `> log` prints is of no interest. Decimal
numbers are compared to 1e-4, and answers that are about as good in any order. `HAT_GOLDEN=1` rewrites the transcripts.
"""

import difflib
import gzip
import json
import math
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from commands import REPOSITORY, USER_DIR
from fairseq_cli import generate

from hat_fairseq import cli
from hat_fairseq.register import register
from hat_fairseq.scoring import perl

FOLDER = REPOSITORY / "tests/golden"
SCORED = re.compile("[HDP]-")  # tokens, text and scores of a hypothesis in the output of fairseq-generate
PROGRESS = re.compile(r"\r|\| (INFO|WARNING) \|")
DECIMAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e-\d+")
TOLERANCE = 1e-4


def check_transcript(folder: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the commands of the transcript in `work`, the current directory, and compares."""
    path = folder / "transcript.txt"
    recorded = path.read_text(encoding="utf-8")
    shutil.copytree(folder, work, dirs_exist_ok=True)
    for model in work.glob("*.pt.gz"):
        model.with_suffix("").write_bytes(gzip.decompress(model.read_bytes()))
    printed = [f"$ {line[2:]}\n{run(line[2:], capsys)}" for line in recorded.splitlines() if line.startswith("$ ")]
    text = with_recorded_numbers(with_recorded_order("\n".join(printed), recorded), recorded)
    if os.environ.get("HAT_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def run(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints; notes, but no progress, of stderr."""
    command, hidden, _ = command.partition(" > log")
    program, *words = shlex.split(command)
    if program in ("cat", "scores"):
        lines = "".join(Path(word).read_text(encoding="utf-8") for word in words).splitlines(keepends=True)
        return "".join(sorted(filter(SCORED.match, lines)) if program == "scores" else lines)
    capsys.readouterr()
    if program == "hat":
        status = cli.main(words)
    else:
        assert program == "fairseq-generate"
        register()  # a package that was imported before fairseq has registered nothing
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", [program, *words, "--user-dir", str(USER_DIR)])
            status = generate.cli_main() or 0
    output, errors = capsys.readouterr()
    assert status == 0, errors
    notes = (line for line in errors.splitlines() if not PROGRESS.search(line))
    return "" if hidden else output + "".join(f"! {line}\n" for line in notes)


def with_recorded_order(text: str, recorded: str) -> str:
    """The text with the recorded best answers of a line, if it has the same scores: some are as good as others."""
    lines, old_lines = text.split("\n"), recorded.split("\n")
    for number, (line, old) in enumerate(zip(lines, old_lines, strict=False)):
        if line == old or not (line.startswith("{") and '"n_best"' in line):
            continue
        answers, known = json.loads(line), json.loads(old)["n_best"]
        scores = [[each["score"] for each in one] for one in (answers["n_best"], known)]
        as_good = len(scores[0]) == len(scores[1]) and all(abs(a - b) < TOLERANCE for a, b in zip(*scores, strict=True))
        texts = {each["text"] for each in known}
        if as_good and all(a["text"] in texts or a["score"] < scores[1][-1] + TOLERANCE for a in answers["n_best"]):
            lines[number] = json.dumps(answers | {"n_best": known}, ensure_ascii=False)
    return "\n".join(lines)


def with_recorded_numbers(text: str, recorded: str) -> str:
    """The text with five decimals, and the recorded spelling where a number is within the tolerance of it."""
    text = DECIMAL.sub(shortened, text)
    lines, old_lines = text.split("\n"), recorded.split("\n")
    plain = ([DECIMAL.sub("0.0", line) for line in each] for each in (lines, old_lines))
    for first, other, size in difflib.SequenceMatcher(None, *plain, autojunk=False).get_matching_blocks():
        for offset in range(size):
            old = old_lines[other + offset]
            lines[first + offset] = old if near(lines[first + offset], old) else lines[first + offset]
    return "\n".join(lines)


def near(line: str, other: str) -> bool:
    numbers = [[float(number) for number in DECIMAL.findall(each)] for each in (line, other)]
    return all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(*numbers, strict=True))


def shortened(number: re.Match[str]) -> str:
    text = number.group()
    return f"{float(text):.5f}" if len(text.partition(".")[2]) > 5 or "e" in text else text


FOLDERS = [Path(part, path.name) for part in ("scores", "predictions") for path in sorted((FOLDER / part).iterdir())]
LACKING = perl.missing()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_printed_and_written(folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    if folder.name == "rouge_perl" and LACKING:
        pytest.skip(f"lacks {', '.join(LACKING)}: {perl.INSTALL}")
    monkeypatch.chdir(tmp_path)
    check_transcript(FOLDER / folder, tmp_path, capsys)
