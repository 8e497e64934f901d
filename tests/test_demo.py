"""`hat demo` refuses what it cannot do before anything starts."""

import sys
from pathlib import Path

import pytest
from commands import refusal, run_command

from hat_fairseq import demo


def test_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "hat demo has no part 'nonsense': choose one of ask, summaries" in refusal("demo", "nonsense")
    monkeypatch.setitem(demo.NEEDED, "ask", ("gt-of-nobody", "minilm"))
    for words in (["demo"], ["demo", "ask", "--max-update", "2"]):
        message = refusal(*words)
        assert "pip install 'hat_fairseq[minilm]'" in message and "hat demo summaries" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", [[], ["summaries"]])
def test_a_flag_that_no_training_has(part: list[str], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hat_fairseq.cli", "demo", *part, "--max-updte", "2"]
    run = run_command(*words, cwd=tmp_path, check=False)
    assert run.returncode == 2 and "unrecognized arguments: --max-updte 2" in run.stderr
    assert not run.stdout and not list(tmp_path.iterdir())
