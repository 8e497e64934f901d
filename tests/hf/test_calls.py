"""The table of calls in docs/transformers.md has those that do not work alike."""

import pytest
from commands import REPOSITORY


@pytest.mark.slow
def test_the_table_of_calls() -> None:
    for name in ("transformers", "peft"):
        pytest.importorskip(name, reason="make setup")
    import transformers_calls

    rows = transformers_calls.table().splitlines()[2:]
    differing = [row for row in rows if not {cell.strip() for cell in row.split("|")[2:-1]} <= {"yes", "-"}]
    page = (REPOSITORY / "docs/transformers.md").read_text(encoding="utf-8")
    section = page.partition("## What differs from other models")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| ")][1:] == differing
    assert len(rows) == 41
