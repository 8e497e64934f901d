"""Scores, predictions and generated texts stay as they are: transcripts in `golden/scores`, `golden/predictions`."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcripts import FOLDER, check_transcript

from hat_fairseq.scoring import perl

LACKING = perl.missing()
SCORES, PREDICTIONS = (sorted(path.name for path in (FOLDER / part).iterdir()) for part in ("scores", "predictions"))


@pytest.mark.parametrize("name", SCORES)
def test_scores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "rouge_perl" and LACKING:
        pytest.skip(f"lacks {', '.join(LACKING)}: {perl.INSTALL}")
    monkeypatch.chdir(tmp_path)
    check_transcript(FOLDER / "scores" / name, tmp_path, capsys)


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predictions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    check_transcript(FOLDER / "predictions" / name, tmp_path, capsys)
