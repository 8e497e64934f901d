"""Cases as lines of `golden/NAME.jsonl`: `why`, what goes in, and what comes `out`; HAT_GOLDEN=1 writes that anew."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def cases(name: str) -> pytest.MarkDecorator:
    """A test for each line, which it gets as `case`."""
    rows = read(name)
    return pytest.mark.parametrize("case", rows, ids=[f"{row['why']}-{number}" for number, row in enumerate(rows, 1)])


def check(name: str, case: dict[str, Any], out: Any) -> None:
    """Compares what came out of a case, as JSON has it, with its line."""
    out = json.loads(json.dumps(out))
    if "HAT_GOLDEN" in os.environ:
        rows = [row | {"out": out} if row == case else row for row in read(name)]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (GOLDEN / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    else:
        assert out == case["out"]
