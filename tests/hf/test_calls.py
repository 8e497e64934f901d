"""The table of calls in docs/using.md is what the calls give."""

import subprocess
import sys

import pytest
from commands import REPOSITORY, environment


def test_the_table_of_calls() -> None:
    for name in ("transformers", "peft"):
        pytest.importorskip(name, reason="pip install 'hat_fairseq[test]'")
    words = [sys.executable, REPOSITORY / "docs/transformers_calls.py"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    table = done.stdout.strip()
    assert table in (REPOSITORY / "docs/using.md").read_text(encoding="utf-8") and table.count("\n") > 40
