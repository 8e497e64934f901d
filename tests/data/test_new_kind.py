"""A new kind of data in three places, from JSON lines to training and predictions; see `tests/support/similarity`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_command

from hat_fairseq import cli
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.record import Record
from hat_fairseq.inference.assemble import ASSEMBLERS

SUPPORT = Path(__file__).parents[1] / "support" / "similarity"
FLAGS = "--task text_similarity --criterion squared_error --arch hat_roberta_tiny --max-positions 200 --cpu --seed 3 "
FLAGS += "--optimizer adam --lr 1e-3 --batch-size 8 --max-update 60 --num-workers 0 --no-epoch-checkpoints "
FLAGS += "--disable-validation --dropout 0 --attention-dropout 0"


@pytest.fixture
def similarity() -> Iterator[None]:
    import similarity  # noqa: F401

    yield
    # The other tests are about the kinds of the package.
    del KINDS["similarity"], ASSEMBLERS["similarity"]
    del sys.modules["similarity"]


def test_similarity_from_json_lines_to_predictions(similarity: None, meetings: list[Record], tmp_path: Path) -> None:
    words = (turn.split() for turn in meetings[0].sentences or ())
    turns = list(dict.fromkeys(" ".join(turn[:12]) for turn in words if len(turn) > 8))
    pairs = [(turns[n], turns[n + n % 2], 1 - n % 2) for n in range(24)]  # every second one with itself
    (tmp_path / "raw").mkdir()
    for split, part in (("train", pairs[:20]), ("test", pairs[20:])):
        lines = ({"id": f"{split}{n}", "segments": [a], "second": b, "label": s} for n, (a, b, s) in enumerate(part))
        (tmp_path / f"raw/{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    data, model, out = tmp_path / "data", tmp_path / "model", tmp_path / "out.jsonl"
    command = ["preprocess", tmp_path / "raw", "--kind", "similarity", "--out", data, "--num-codes", "100"]
    assert cli.main([str(word) for word in command]) == 0
    run_command("fairseq-train", data / "bin", "--user-dir", SUPPORT, *FLAGS.split(), "--save-dir", model)
    command = ["predict", data / "bin", "--split", "train", "--path", model / "checkpoint_last.pt", "--out", out]
    assert cli.main([str(word) for word in (*command, "--device", "cpu")]) == 0
    scores = [json.loads(line)["score"] for line in out.read_text().splitlines()]
    same, other = scores[::2], scores[1::2]
    assert len(scores) == 20 and sum(same) > sum(other) + 5  # it has learned what it was shown
