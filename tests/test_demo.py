"""`hat demo` refuses what it cannot do before anything starts."""

from pathlib import Path

import pytest
from commands import refusal

from hat_fairseq import demo


def test_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "hat demo has no part 'nonsense': choose one of ask, summaries" in refusal("demo", "nonsense")
    monkeypatch.setitem(demo.NEEDED, "ask", ("gt-of-nobody", "minilm"))
    for words in (["demo"], ["demo", "ask", "--max-update", "2"]):
        message = refusal(*words)
        assert "pip install 'hat_fairseq[minilm]'" in message and "hat demo summaries" in message
    assert not list(tmp_path.iterdir())
