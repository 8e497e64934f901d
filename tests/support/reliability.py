#!/usr/bin/env python3
"""The tables of faults in tests/FAULTS.md, from the tests that are marked with them.

    .venv/bin/python tests/support/reliability.py           # writes the page
    .venv/bin/python tests/support/reliability.py --check   # fails if the page says something else

A test states its row: `@pytest.mark.fault("Training", "a process is killed", "the others end within seconds, exit 1")`.
Each row is a real command in that test. A parametrized test may have one row, or a row for each parameter
(`pytest.param(..., marks=pytest.mark.fault(...))`).
"""

import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "tests/FAULTS.md"
AREAS = (
    "Input",
    "Preprocessing",
    "Preprocessed data",
    "Checkpoints",
    "Training",
    "Several processes and machines",
    "Generation and prediction",
    "Scoring",
    "Installation",
    "Security",
)
BEGIN, END = "<!-- faults -->\n", "<!-- end of faults -->\n"
Row = tuple[str, str, str]  # area, fault, what happens


class Rows:
    """A plugin of pytest that takes the rows of the collected tests."""

    def __init__(self) -> None:
        self.tests: dict[Row, set[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("fault"):
                area, fault, outcome = mark.args
                self.tests.setdefault((area, fault, outcome), set()).add(item.nodeid.split("[")[0])


def collect() -> dict[Row, set[str]]:
    """Rows and the tests that show them; ValueError for an empty cell, an unknown area, a fault with two outcomes."""
    rows = Rows()
    sys.path.insert(0, str(REPOSITORY))  # as `python -m pytest` does
    files = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    marked = [str(path) for path in files if "mark.fault" in path.read_text(encoding="utf-8")]
    with redirect_stdout(StringIO()) as output:
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *marked], [rows])
    if status != pytest.ExitCode.OK:
        raise ValueError(f"the tests could not be collected\n{output.getvalue()[-2000:]}")
    for row in rows.tests:
        if row[0] not in AREAS or not all(cell.strip() for cell in row) or any("\n" in cell for cell in row):
            raise ValueError(f"{row}: the area must be one of {', '.join(AREAS)}, and each cell one line of text")
    faults = [row[:2] for row in rows.tests]
    if twice := {fault for fault in faults if faults.count(fault) > 1}:
        raise ValueError(f"these faults have two outcomes: {sorted(twice)}")
    return rows.tests


def tables(tests: dict[Row, set[str]]) -> str:
    """A table for each area, its rows in the order of their faults."""
    parts = [f"{len(tests)} faults.\n"]
    for area in AREAS:
        rows = sorted(row for row in tests if row[0] == area)
        if rows:
            parts.append(f"\n## {area}\n\n| fault | what happens | test |\n|---|---|---|\n")
            parts += [f"| {fault} | {outcome} | {links(tests[area, fault, outcome])} |\n" for _, fault, outcome in rows]
    return "".join(parts)


def links(tests: set[str]) -> str:
    """The tests, with links to their files."""
    named = [name.partition("::") for name in sorted(tests)]
    return ", ".join(f"[`{test.split('::')[-1]}`]({path.removeprefix('tests/')})" for path, _, test in named)


if __name__ == "__main__":
    old = PAGE.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    new = head + BEGIN + tables(collect()) + END + rest.partition(END)[2]
    if "--check" in sys.argv:
        sys.exit(f"{PAGE} is not what the tests say: write it anew" if old != new else 0)
    PAGE.write_text(new, encoding="utf-8")
