"""Skipped tests where everything is installed: with `HAT_NO_SKIPS=1` a skip fails, as in continuous integration.

What no package can give a machine stays a skip: a GPU, instructions of its processor, rights in its kernel.
"""

import os
from collections.abc import Generator
from typing import Any

import pytest

MACHINE = ("GPU", "CPU", "oneDNN", "no right to make namespaces", "mounting is not allowed")  # in the reasons


def _failed_if_skipped(report: Any) -> Any:
    if report.outcome == "skipped" and os.environ.get("HAT_NO_SKIPS") and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        if not any(word in reason for word in MACHINE):
            report.outcome = "failed"
            report.longrepr = f"HAT_NO_SKIPS: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return _failed_if_skipped((yield))
