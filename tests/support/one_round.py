"""The contenders of one benchmark in this process; `benchmarks/harness.py` runs each in a process of its own."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

Facts = dict[str, Any]


def one_round(
    script: str, index: int, contenders: Sequence[str] | None = None, **changes: Any
) -> tuple[list[Facts], list[str]]:
    """Builds the contenders of a setting, lets each warm up and run once, and compares them if all are there.

    Returns:
        What each one said of its run, and what was verified.
    """
    module = importlib.import_module(script)
    setting = {**module.SETTINGS[index], **changes}
    setting["name"] = setting["name"].format(**setting)
    everyone = setting.get("contenders", module.CONTENDERS)
    told, ends = [], {}
    for name in contenders or everyone:
        job = module.build(name, setting)
        job.step()
        told.append({"contender": name, **job.step()})
        ends[name] = {**job.facts, **job.finish()}
    return told, module.check(setting, ends) if contenders is None else []
