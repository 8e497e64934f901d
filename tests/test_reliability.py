"""tests/FAULTS.md is what the tests that are marked `fault` say."""

from __future__ import annotations

import sys

import pytest
from commands import REPOSITORY, run_command


@pytest.mark.slow
def test_the_page_is_rendered_from_the_tests() -> None:
    run_command(sys.executable, REPOSITORY / "tests/support/reliability.py", "--check")
