"""The table of targets says what was measured, and whether it was enough."""

from __future__ import annotations

from typing import Any

import pytest
import render
from goals import GOALS, Goal, Part, bounds, outcome
from harness import summary


def record(seconds: dict[str, list[float]], peaks: dict[str, int] | None = None, **said: Any) -> dict[str, Any]:
    """One setting, "s": the seconds of each contender's rounds."""
    runs = [
        {"contender": name, "setting": "s", "round": number, "seconds": value, "cpu_seconds": value}
        for name, values in seconds.items()
        for number, value in enumerate(values)
    ]
    processes = [
        {
            "contender": name,
            "setting": "s",
            "peak_bytes": (peaks or {}).get(name, 1),
            "quality": {"fast": 40.0}.get(name, 40.2),
        }
        for name in seconds
    ]
    settings = [{"name": "s", "source": 512}]
    return {"device": "CPU", "settings": settings, "runs": runs, "processes": processes} | {
        "summary": summary(runs, "ours"),
        **said,
    }


TWICE = {"ours": [1.0, 2.0, 4.0], "fairseq": [3.0, 5.0, 8.0]}  # quotients 3, 2.5 and 2


@pytest.mark.parametrize(
    ("part", "told", "met"),
    [
        (Part("speed", 2.5), "speed 2.50 (s)", "yes"),
        (Part("speed", 2.6), "speed 2.50 (s)", "no"),
        (Part("time", 0.4), "time 0.40 (s)", "yes"),
        (Part("time", 0.39), "time 0.40 (s)", "no"),
        (Part("memory", 0.75), "memory 0.75 (s)", "yes"),
        (Part("memory", 0.74), "memory 0.75 (s)", "no"),
        (Part("speed", 2.5, where={"source": 512}), "speed 2.50 (s)", "yes"),
        (Part("speed", 2.5, where={"source": 3072}), "not measured", ""),
        (Part("speed", 2.5, gpu=True), "not measured", ""),
        (Part("speed", 2.5, peers=("absent",)), "not measured", ""),
        (Part("speed", 2.5, ours="absent"), "not measured", ""),
    ],
)
def test_a_bound_is_met_or_not(part: Part, told: str, met: str) -> None:
    found = outcome(Goal("q", "p", "r", (part,)), [record(TWICE, {"ours": 3, "fairseq": 4})])
    assert found == (told, met)


def test_the_best_peer_counts_and_a_part_may_be_missing() -> None:
    measured = record({**TWICE, "faster": [2.0, 4.0, 8.0]})
    best = Part("speed", 2.2, peers=("fairseq", "faster"))
    assert outcome(Goal("q", "p", "r", (best,)), [measured]) == ("speed over fairseq / faster 2.00 (s)", "no")
    both = Goal("q", "p", "r", (Part("speed", 2.5), Part("speed", 3.0, gpu=True)))
    assert outcome(both, [measured]) == ("speed 2.50 (s); not measured: speed ≥ 3× (GPU)", "in part")
    assert outcome(both, [measured, measured | {"device": "NVIDIA"}])[1] == "no"
    assert bounds(both) == "speed ≥ 2.5×; speed ≥ 3× (GPU)"
    assert outcome(both, []) == ("not measured", "")


def test_speed_is_work_in_a_second_where_it_is_said() -> None:
    measured = record(TWICE)
    for run in measured["runs"]:
        run["tokens"] = 10 if run["contender"] == "ours" else 20
    assert outcome(Goal("q", "p", "r", (Part("speed", 1.0),)), [measured])[0] == "speed 1.25 (s)"


def test_quality_is_a_difference() -> None:
    part = Part("quality", 0.1, ours="fast", peers=("exact",))
    assert outcome(Goal("q", "p", "r", (part,)), [record({"fast": [1.0], "exact": [2.0]})]) == (
        "fast: quality 0.20 (s)",
        "no",
    )


def test_exponents_are_slopes() -> None:
    measured = record({"ours": [1.0]})
    lengths = {"a": 1000, "b": 2000, "c": 4000}
    measured["settings"] = [{"name": name, "source": length} for name, length in lengths.items()]
    measured["summary"] = {
        name: {"ours": {"median": 5 * length}, "fairseq": {"median": length**2 / 7}} for name, length in lengths.items()
    }
    told, met = outcome(Goal("q", "p", "r", (Part("exponent", 0),)), [measured])
    assert "ours: seconds grow with length to the power of 1.00" in told and "fairseq: " in told and "2.00" in told
    assert met == "yes"


def test_every_target_has_a_row_and_names_a_question() -> None:
    table = render.goals([])
    assert table.count("| not measured |") == len(GOALS) == 10
    assert {goal.result for goal in GOALS} <= render.CAPTIONS.keys()
