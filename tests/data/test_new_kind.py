"""New kinds of data in a file of one's own, from JSON lines to training, predictions and a score."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from commands import hat, read_lines, write_lines

from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.record import Record

SUPPORT = Path(__file__).parents[1] / "support"
FLAGS = "--arch hat_roberta_tiny --max-positions 200 --cpu --seed 3 --optimizer adam --lr 1e-3 --batch-size 8 "
FLAGS += "--max-update 60 --num-workers 0 --no-epoch-checkpoints --disable-validation --dropout 0 --attention-dropout 0"
PHRASES = ("remote control", "project manager", "user interface", "the marketing expert", "television")


@pytest.fixture
def kind_of_user() -> Iterator[Callable[[str], ModuleType]]:
    before = set(KINDS)
    yield importlib.import_module
    for name in KINDS.keys() - before:  # the other tests are about the kinds of the package
        del KINDS[name]
        del sys.modules[name]


def predictions(run, folder: Path, kind: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a model says of the records that it has learned."""
    for split, part in (("train", records), ("test", records[:4])):
        write_lines(folder / f"raw/{split}.jsonl", part)
    data, model, out = folder / "data", folder / "model", folder / "out.jsonl"
    assert hat("preprocess", folder / "raw", "--kind", kind, "--out", data, "--num-codes", "100") == 0
    flags = ["--user-dir", SUPPORT / kind, "--task", KINDS[kind].task, *FLAGS.split(), "--save-dir", model]
    run("fairseq-train", data / "bin", *flags)
    flags = ["--split", "train", "--out", out, "--device", "cpu"]
    assert hat("predict", model / "checkpoint_last.pt", data, *flags) == 0
    return read_lines(out)


@pytest.mark.slow
def test_numbers(kind_of_user, run, meetings: list[Record], tmp_path: Path) -> None:
    kind_of_user("similarity")
    words = (turn.split() for turn in meetings[0].elements or ())
    turns = list(dict.fromkeys(" ".join(turn[:12]) for turn in words if len(turn) > 8))
    pairs = [(turns[n], turns[n + n % 2], 1 - n % 2) for n in range(20)]  # every second one with itself
    records = [{"id": str(n), "segments": [a], "second": b, "label": s} for n, (a, b, s) in enumerate(pairs)]
    scores = [row["score"] for row in predictions(run, tmp_path, "similarity", records)]
    same, other = scores[::2], scores[1::2]
    assert len(scores) == 20
    assert sum(same) > sum(other) + 5  # it has learned what it was shown


@pytest.mark.slow
def test_sets_of_strings(kind_of_user, run, tmp_path: Path) -> None:
    """From a record to F1: one file."""
    keyphrases = kind_of_user("keyphrases")
    records = []
    for n in range(20):
        chosen = sorted({PHRASES[n % 5], PHRASES[(2 * n + 1) % 5]})
        records.append(
            {"id": str(n), "text": f"so {f' and then {n} of the '.join(chosen)} again", "keyphrases": chosen}
        )
    rows = predictions(run, tmp_path, "keyphrases", records)
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    pairs = [(set(row["keyphrases"]), set(record["keyphrases"])) for row, record in zip(rows, records, strict=True)]
    assert keyphrases.f1(pairs) > 0.9
    assert keyphrases.f1([({"a", "b"}, {"a"}), (set(), {"c"})]) == 0.5
