"""The table of goals gives the measured values, and says whether they meet the bounds."""

from __future__ import annotations

from typing import Any

import pytest
import render
from goals import GOALS, Goal, row


def record(seconds: dict[str, list[float]], **more: Any) -> dict[str, Any]:
    """One setting, "s": the seconds of each contender's rounds; peaks of 3 bytes for "ours" and 4 for others."""
    runs = [
        {"contender": name, "setting": "s", "round": number, "seconds": value}
        for name, values in seconds.items()
        for number, value in enumerate(values)
    ]
    ends = [{"contender": name, "setting": "s", "peak_bytes": 3 if name == "ours" else 4} for name in seconds]
    return {"device": "CPU", "settings": [{"name": "s", "source": 512}], "runs": runs, "processes": ends, **more}


TWICE = {"ours": [1.0, 2.0, 4.0], "fairseq": [3.0, 5.0, 8.0]}  # ratios 3, 2.5 and 2


@pytest.mark.parametrize(
    ("quantity", "bound", "more", "expected"),
    [
        ("speed", 2.5, {}, ["2.50 (s)", "yes"]),
        ("speed", 2.6, {}, ["2.50 (s)", "no"]),
        ("time", 0.4, {}, ["0.40 (s)", "yes"]),
        ("time", 0.39, {}, ["0.40 (s)", "no"]),
        ("memory", 0.75, {}, ["0.75 (s)", "yes"]),
        ("memory", 0.74, {}, ["0.75 (s)", "no"]),
        ("speed", 2.5, {"where": {"source": 512}}, ["2.50 (s)", "yes"]),
        ("speed", 2.5, {"where": {"source": 3072}}, ["not measured", ""]),
        ("speed", 2.5, {"gpu": True}, ["not measured", ""]),
        ("speed", 2.5, {"peers": ("absent",)}, ["not measured", ""]),
    ],
)
def test_a_bound_is_met_or_not(quantity: str, bound: float, more: dict[str, Any], expected: list[str]) -> None:
    assert row(Goal("q", quantity, bound, "ours", **more), [record(TWICE)])[3:] == expected


def test_the_best_peer_counts() -> None:
    goal = Goal("q", "speed", 2.2, "ours", ("fairseq", "faster"))
    cells = row(goal, [record({**TWICE, "faster": [2.0, 4.0, 8.0]})])
    assert cells == ["q", "ours / fairseq or faster", "speed ≥ 2.2×", "2.00 (s)", "no"]


def test_speed_is_work_per_second_if_runs_tell_their_work() -> None:
    measured = record(TWICE)
    for run in measured["runs"]:
        run["tokens"] = 10 if run["contender"] == "ours" else 20
    assert row(Goal("q", "speed", 1.0, "ours"), [measured])[3] == "1.25 (s)"


def test_quality_is_a_difference() -> None:
    measured = record({"fast": [1.0], "exact": [2.0]})
    for end, quality in zip(measured["processes"], (40.0, 40.2), strict=True):
        end["quality"] = quality
    cells = row(Goal("q", "quality", 0.1, "fast", ("exact",)), [measured])
    assert cells[2:] == ["quality ≤ 0.1 points worse", "0.20 (s)", "no"]


def test_every_goal_has_a_row_and_names_a_question() -> None:
    assert render.goals([]).count("| not measured |") == len(GOALS)
    assert {goal.question for goal in GOALS} <= render.LABELS.keys()
