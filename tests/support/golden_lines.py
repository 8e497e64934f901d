"""Cases as lines of `golden/NAME.jsonl`: `why`, what goes in, and what comes `out`; HAT_GOLDEN=1 writes that anew."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def read(name: str) -> list[dict[str, Any]]:
    with open(GOLDEN / f"{name}.jsonl", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def cases(name: str) -> pytest.MarkDecorator:
    """A test for each line, which it gets as `case`; `slow` ones are marked."""
    rows = [
        pytest.param(row, id=f"{row['why']}-{number}", marks=[pytest.mark.slow] * ("slow" in row))
        for number, row in enumerate(read(name), 1)
    ]
    return pytest.mark.parametrize("case", rows)


def check(name: str, case: dict[str, Any], out: Any) -> None:
    """Compares what came out of a case, as JSON has it, with its line."""
    out = json.loads(json.dumps(out))
    if "HAT_GOLDEN" in os.environ:
        rows = [row | {"out": out} if row == case else row for row in read(name)]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (GOLDEN / f"{name}.jsonl").write_bytes("".join(lines).encode(errors="backslashreplace"))
    else:
        assert out == case["out"]
