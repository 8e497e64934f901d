"""What each question about speed is meant to reach, and whether the results say so.

The bounds are the only figures here; what is measured is computed from the records of `harness.py`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
AT_MOST = {"time", "memory", "quality"}  # less is better; of the other quantities, more


@dataclass(frozen=True)
class Part:
    """One bound: `ours` against the best of `peers`, in every setting that has the entries of `where`.

    `time` and `memory` are quotients ours / peer; `speed` is the quotient of the work done in a second (tokens,
    documents or repetitions); `quality` is by how many points of "quality" ours is worse. `exponent` has no bound: the
    slope of log seconds over log "source" of each side. `gpu`: of the result of a GPU, not of the CPU.
    """

    quantity: str
    bound: float
    ours: str = "ours"
    peers: tuple[str, ...] = ("fairseq",)
    where: dict[str, Any] = field(default_factory=dict)
    gpu: bool = False


@dataclass(frozen=True)
class Goal:
    """A row of the table; `result` is the "question" of the records."""

    question: str
    peer: str
    result: str
    parts: tuple[Part, ...]


FAIRSEQ = ("fairseq transformer", "fairseq bart")
LONG = {"source": 3072}
PRECISION = (("speed", 1.5), ("quality", 0.1))
HIERARCHY = {"ours": "hat", "peers": ("plain",)}
GOALS = (
    Goal(
        "training step, HAT and its plain twin, 3072 to 512 tokens",
        "ourselves",
        "training_hierarchy",
        tuple(Part(what, 1.05, **HIERARCHY, where={"source": 3072}) for what in ("time", "memory")),
    ),
    Goal(
        "the same, 512 to 512 tokens",
        "ourselves",
        "training_hierarchy",
        (Part("time", 1.1, **HIERARCHY, where={"source": 512}),),
    ),
    Goal(
        "training step of HAT-BART",
        "fairseq",
        "training_fairseq",
        (Part("time", 0.9), Part("memory", 0.75, where={"source": 3072})),
    ),
    Goal(
        "generation, beam 4, 3072-token sources",
        "fairseq",
        "generation_fairseq",
        (
            Part("speed", 2.5, "hat", ("fairseq transformer",), LONG),
            Part("speed", 1.3, "hat", ("fairseq bart",), LONG),
            Part("speed", 3.0, "hat", ("fairseq transformer", "fairseq bart"), LONG, gpu=True),
        ),
    ),
    Goal(
        "generation, beam 4",
        "transformers",
        "generation_transformers",
        (
            Part("speed", 4.0, "hat", ("transformers", "transformers, static cache"), LONG),
            Part("speed", 2.0, "hat", ("transformers", "transformers, static cache"), {"source": 512}),
        ),
    ),
    Goal(
        "generation, beam 4, fp32 on the CPU",
        "CTranslate2",
        "generation_ctranslate2",
        (Part("speed", 1.0, "hat", ("ctranslate2", "ctranslate2 split"), LONG),),
    ),
    Goal(
        "reduced precision on the CPU",
        "ourselves in fp32",
        "precision",
        tuple(Part(*limit, ours, ("fp32",)) for ours in ("bf16", "int8") for limit in PRECISION),
    ),
    Goal("cost as the source grows", "fairseq", "source_length", (Part("exponent", math.inf),)),
    Goal("preprocessing, 1 and 2 workers", "fairseq", "preprocessing", (Part("speed", 5.0, ours="hat"),)),
    Goal("start of `fairseq-generate`", "fairseq", "start_up", (Part("time", 1.0, ours="hat"),)),
)


def bounds(goal: Goal) -> str:
    """The bounds of a goal in words."""
    return "; ".join(dict.fromkeys(bound(part) for part in goal.parts))


def bound(part: Part) -> str:
    if part.quantity == "exponent":
        return "a curve and its exponent"
    place = ", ".join(f"{key} {value}" for key, value in part.where.items())
    place = ", ".join(filter(None, [place, "GPU" if part.gpu else ""]))
    sign = "≤" if part.quantity in AT_MOST else "≥"
    unit = " points worse" if part.quantity == "quality" else "×"
    return f"{subject(part)} {sign} {part.bound:g}{unit}{f' ({place})' if place else ''}"


def subject(part: Part) -> str:
    """The quantity, with the sides where they are not the obvious ones."""
    ours = "" if part.ours in ("ours", "hat") else f"{part.ours}: "
    peers = f" over {' / '.join(part.peers)}" if len(part.peers) > 1 or " " in part.peers[0] else ""
    return f"{ours}{part.quantity}{peers}"


def outcome(goal: Goal, records: Sequence[Record]) -> tuple[str, str]:
    """What was measured, and `yes`, `no` or `not measured`; a part that was not measured is said so."""
    told, verdicts = [], []
    for part in goal.parts:
        found = [one for record in records if on_gpu(record) == part.gpu for one in values(part, record)]
        told += [sentence for sentence, _ in found] or [f"not measured: {bound(part)}"]
        verdicts += [met for _, met in found] or [None]
    if not any(verdict is not None for verdict in verdicts):
        return "not measured", ""
    return "; ".join(told), "no" if False in verdicts else "in part" if None in verdicts else "yes"


def on_gpu(record: Record) -> bool:
    return not record["device"].startswith("CPU")


def values(part: Part, record: Record) -> list[tuple[str, bool]]:
    """For each setting of a record that a bound is about: the measured value in words, and whether it is met."""
    if part.quantity == "exponent":
        return [(exponents(part, record), True)]
    result = []
    for setting in record["settings"]:
        if any(setting.get(key) != value for key, value in part.where.items()):
            continue
        name = setting["name"]
        ends = [end for end in record["processes"] if end["setting"] == name]
        present = {end["contender"] for end in ends if part.quantity != "quality" or "quality" in end}
        if part.ours not in present or not present & set(part.peers):
            continue
        figures = [quantity(part, record, name, peer) for peer in part.peers if peer in present]
        value, less = (max, True) if part.quantity in AT_MOST else (min, False)
        figure = value(figures)
        result.append(
            (f"{subject(part)} {figure:.2f} ({name})", figure <= part.bound if less else figure >= part.bound)
        )
    return result


def quantity(part: Part, record: Record, setting: str, peer: str) -> float:
    if part.quantity in ("memory", "quality"):
        key = {"memory": "peak_bytes", "quality": "quality"}[part.quantity]
        ends = {end["contender"]: end[key] for end in record["processes"] if end["setting"] == setting}
        return ends[part.ours] / ends[peer] if part.quantity == "memory" else ends[peer] - ends[part.ours]
    sides = [
        {run["round"]: run for run in record["runs"] if (run["setting"], run["contender"]) == (setting, name)}
        for name in (part.ours, peer)
    ]
    times = [(ours, sides[1][number]) for number, ours in sides[0].items() if number in sides[1]]
    if part.quantity == "time":
        return statistics.median(ours["seconds"] / theirs["seconds"] for ours, theirs in times)
    return statistics.median(rate(ours) / rate(theirs) for ours, theirs in times)


def rate(run: dict[str, Any]) -> float:
    """Work in a second: tokens, else documents, else repetitions."""
    return run.get("tokens", run.get("documents", 1)) / run["seconds"]


def exponents(part: Part, record: Record) -> str:
    """The slope of log seconds over log source tokens, least squares, of each side."""
    told = []
    lengths = {setting["name"]: setting["source"] for setting in record["settings"]}
    for name in (part.ours, *part.peers):
        points = [
            (math.log(lengths[setting]), math.log(rows[name]["median"]))
            for setting, rows in record["summary"].items()
            if name in rows
        ]
        if len(points) > 1:
            slope = statistics.linear_regression(*zip(*points, strict=True)).slope
            told.append(f"{name}: seconds grow with length to the power of {slope:.2f}")
    return ", ".join(told)
