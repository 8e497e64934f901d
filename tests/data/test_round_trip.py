"""`hat preprocess` measures what the word tokenizers of the target lose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hat_fairseq import cli

SEGMENTS = ["A cat runs .", "A cat runs.", "It is 5 %.", 'He said: "yes", twice.', "One more, for the score."]


@pytest.mark.parametrize("tokenizer", ["moses", "none"])
def test_segments_that_come_back_changed_are_counted(
    tokenizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moses writes the first as the second, and the third as `5%`."""
    (tmp_path / "mine").mkdir()
    for side in ("source", "target"):
        (tmp_path / f"mine/train.{side}").write_text("\n".join(SEGMENTS) + "\n")
    words = ["--num-codes", "20", "--target-tokenizer", tokenizer, "--no-binarize", "--out", str(tmp_path / "out")]
    assert cli.main(["preprocess", str(tmp_path / "mine"), *words]) == 0
    split = json.loads((tmp_path / "out/manifest.json").read_text())["splits"]["train"]
    output = capsys.readouterr().out
    if tokenizer == "none":  # a target without word tokenizer comes back as it was
        assert "round_trip" not in split
        return
    found = split["round_trip"]
    assert (found["segments"], found["changed"]) == (5, 2) and 50 < found["bleu"] <= 100
    assert f"{found['bleu']}" in output
