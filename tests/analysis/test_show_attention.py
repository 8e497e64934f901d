"""`hat show-attention`: the picture has a cell for every pair of tokens that attend to each other."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from hat_fairseq import cli
from hat_fairseq.networks.config import ATTENTIONS

PAGES = (
    "segments --tokens 24 --segment-length 6",
    "block-sparse --tokens 64 --sparse-block 4 --sparse-random 1",
    "pooling --attention-window 3 --pooling-window 16 --pooling-kernel 5 --pooling-stride 4",
)


def cells(path: Path) -> set[tuple[int, int]]:
    group = ElementTree.parse(path).getroot()[1]
    return {(int(cell.attrib["y"]) // 8, int(cell.attrib["x"]) // 8) for cell in group}


def test_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "segments.svg"
    command = ["show-attention", "segments", "--tokens", "7", "--segment-length", "3", "--out", str(out)]
    assert cli.main(command) == 0
    assert cells(out) == {(q, k) for q in range(7) for k in range(7) if q // 3 == k // 3}
    assert "7 tokens, each attends to 39% of them on average" in capsys.readouterr().out
    assert cli.main(command) == 2 and "exists" in capsys.readouterr().err
    for words in (["sliding"], ["full", "--tokens", "0"]):
        assert cli.main(["show-attention", *words]) == 2
    assert "choose one of full, segments" in capsys.readouterr().err


def test_pictures_of_the_pages_and_of_every_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in PAGES:
        name = words.split()[0]
        page = Path(__file__).parents[2] / f"docs/attention_{name.replace('-', '_')}.svg"
        assert cli.main(["show-attention", *words.split(), "--out", str(tmp_path / f"page-{name}.svg")]) == 0
        assert (tmp_path / f"page-{name}.svg").read_bytes() == page.read_bytes()
    monkeypatch.chdir(tmp_path)
    for name in ATTENTIONS:
        assert cli.main(["show-attention", name]) == 0
        assert {(i, i) for i in range(48)} <= cells(tmp_path / f"{name}.svg")
