"""The table of calls in docs/transformers.md is what the calls give."""

import pytest
from commands import REPOSITORY


@pytest.mark.slow
def test_the_table_of_calls() -> None:
    for name in ("transformers", "peft"):
        pytest.importorskip(name, reason="make setup")
    import transformers_calls

    table = transformers_calls.table()
    assert table in (REPOSITORY / "docs/transformers.md").read_text(encoding="utf-8") and table.count("\n") > 40
