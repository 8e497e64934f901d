"""Fine-tuned models of every kind, each made once, when it is asked for first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from fine_tuned import FineTuned, fine_tune, write_meetings
from warm import WarmPython


@pytest.fixture(scope="session")
def fine_tuned(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FineTuned]:
    meetings: Path = tmp_path_factory.mktemp("meetings")
    write_meetings(meetings)
    folder = tmp_path_factory.mktemp("fine_tuned")
    return cache(lambda kind: fine_tune(kind, meetings, folder, warm))
