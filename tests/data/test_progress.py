"""Without a terminal, long steps say once in a while how far they are."""

from __future__ import annotations

import re
import time

import pytest

from hat_fairseq.data.blocks import progress


def test_lines_with_totals_and_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    def slow():
        for number in range(10):
            time.sleep(0.02)
            yield number

    assert list(progress(slow(), "train: BPE", 10, every=0.1)) == list(range(10))
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 2
    assert re.fullmatch(r"train: BPE: \d of 10 documents in 0 min, about 0 min left", lines[0])
    assert list(progress(slow(), "count", every=0.15)) == list(range(10))
    assert re.fullmatch(r"count: \d documents in 0 min", capsys.readouterr().err.splitlines()[0])
    assert list(progress(range(5), "fast", 5)) == list(range(5)) and not capsys.readouterr().err
