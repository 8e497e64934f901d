"""The benchmarks of generation run, and end where their contenders generate different things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from generation import TOLERANCE, same_hypotheses, same_parameters, same_search, setting
from one_round import one_round
from precision import scores

SMALL = {"width": 48, "heads": 4, "vocabulary": 500, "source": 64, "batch": 2, "new": 8}


@pytest.mark.parametrize(("peer", "index"), [("fairseq", 0), ("transformers", 1), ("ctranslate2", 2)])
def test_all_find_the_same_hypotheses(peer: str, index: int) -> None:
    pytest.importorskip(peer, reason="pip install 'hat_fairseq[bench]'")
    runs, verified = one_round(f"generation_{peer}", index, **SMALL)
    assert any("the same 4 hypotheses of every document" in sentence for sentence in verified)
    assert {run["tokens"] for run in runs} == {16}
    assert {"hat", "plain"} < {run["contender"] for run in runs}


def test_precisions_are_measured() -> None:
    runs, _ = one_round("precision", 0, ["fp32", "int8"], **SMALL)  # not every CPU has bf16
    assert [run["tokens"] for run in runs] == [16, 16]


def test_heads_that_share_keys_are_measured() -> None:
    runs, verified = one_round("kv_heads", 0, **SMALL | {"heads": 12})
    assert [run["tokens"] for run in runs] == [16, 16, 16] and verified[2].endswith("1 heads: 0.0 MB in fp32")


def told(rows: list[list[list[int]]], score: float = -1.0) -> dict[str, Any]:
    return {"_hypotheses": rows, "_scores": [[score - i for i in range(len(beams))] for beams in rows], "parameters": 7}


def test_different_hypotheses_end_the_benchmark() -> None:
    rows = [[[5, 6], [5, 7]]]
    assert "same 4" in same_hypotheses({"a": told(rows), "b": told(rows, -1 + TOLERANCE / 2)}, ["a", "b"])
    with pytest.raises(SystemExit, match="a and b found different"):
        same_hypotheses({"a": told(rows), "b": told([[[5, 6], [5, 8]]])}, ["a", "b"])
    with pytest.raises(SystemExit, match="scores of a and b differ by"):
        same_hypotheses({"a": told(rows), "b": told(rows, -1 + TOLERANCE * 2)}, ["a", "b"])


def test_different_sizes_end_the_benchmark() -> None:
    ends = {"a": told([]), "b": told([])}
    assert "the same" in same_parameters(ends, ["a", "b"])
    ends["b"]["parameters"] = 8
    with pytest.raises(SystemExit, match="numbers of parameters"):
        same_parameters(ends, ["a", "b"])


def test_hat_generates_alike_with_both_generators() -> None:
    torch.manual_seed(1)
    assert "the same hypotheses" in same_search(setting(64, 2))


@pytest.mark.parametrize(("metric", "target"), [("rouge", "a b c d."), ("bleu", ["a b c d.", "e f g h."])])
def test_quality_is_what_hat_score_says(metric: str, target: Any, tmp_path: Path) -> None:
    references = tmp_path / "references.jsonl"
    references.write_text(json.dumps({"id": "1", "source": ["x"], "target": target}) + "\n", encoding="utf-8")
    whole = target if isinstance(target, str) else "\n".join(target)
    right = {"id": "1", "text": whole, "segments": [target] if isinstance(target, str) else target}
    assert scores([right], references, metric)["quality"] == pytest.approx(100)
    assert scores([{**right, "text": "z z", "segments": ["z", "z"]}], references, metric)["quality"] < 1
