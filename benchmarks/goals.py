"""The performance goals, and whether the results of `harness.py` meet them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
AT_MOST = {"time", "memory", "quality"}  # less is better; more is better for `speed`


@dataclass(frozen=True)
class Goal:
    """A bound on `ours` against the best of `peers`, in every setting that has the entries of `where`.

    `time` and `memory` are ratios ours / peer; `speed` is the ratio of work per second (tokens, documents or
    repetitions); `quality` is by how many points of "quality" ours is worse. With `gpu` the goal is about results of a
    GPU, else about those of a CPU.
    """

    question: str
    quantity: str
    bound: float
    ours: str = "hat"
    peers: tuple[str, ...] = ("fairseq",)
    where: dict[str, Any] = field(default_factory=dict)
    gpu: bool = False

    def __str__(self) -> str:
        unit = " points worse" if self.quantity == "quality" else "×"
        places = ", ".join([f"{key} {value}" for key, value in self.where.items()] + ["GPU"] * self.gpu)
        sign = "≤" if self.quantity in AT_MOST else "≥"
        return f"{self.quantity} {sign} {self.bound:g}{unit}{f' ({places})' if places else ''}"


FAIRSEQ = ("fairseq transformer", "fairseq bart")
TRANSFORMERS = ("transformers", "transformers, static cache")
CTRANSLATE2, INT8 = ("ctranslate2", "ctranslate2 split"), ("ctranslate2 int8", "ctranslate2 int8 split")
FIXED = {"shares": [1]}
LONG, SHORT = {"source": 3072}, {"source": 512}
GOALS = (
    Goal("training_hierarchy", "time", 1.05, peers=("plain",), where=LONG),
    Goal("training_hierarchy", "memory", 1.05, peers=("plain",), where=LONG),
    Goal("training_hierarchy", "time", 1.1, peers=("plain",), where=SHORT),
    Goal("training_fairseq", "speed", 4.0, "ours", where=LONG | {"attention_dropout": 0.1}),
    Goal("training_fairseq", "speed", 1.6, "ours", where=LONG | {"attention_dropout": 0.0}),
    Goal("training_fairseq", "memory", 0.75, "ours", where=LONG | {"documents": 4}),
    Goal("generation_fairseq", "speed", 2.5, peers=FAIRSEQ[:1], where=LONG),
    Goal("generation_fairseq", "speed", 2.3, peers=FAIRSEQ[1:], where=LONG),
    Goal("generation_fairseq", "speed", 3.0, peers=FAIRSEQ, where=LONG, gpu=True),
    Goal("generation_transformers", "speed", 7.0, peers=TRANSFORMERS, where=LONG),
    Goal("generation_transformers", "speed", 2.0, peers=TRANSFORMERS, where=SHORT),
    Goal("gpu", "speed", 9.0, peers=("transformers",), where=LONG | {"batch": 8}, gpu=True),
    Goal("gpu", "speed", 1.0, peers=("ctranslate2 fp16",), where=LONG | {"batch": 8}, gpu=True),
    Goal("gpu", "time", 1.05, peers=("plain",), where=LONG | {"target": 512}, gpu=True),
    Goal("generation_ctranslate2", "speed", 2.0, "plain", CTRANSLATE2, LONG),
    Goal("generation_ctranslate2", "speed", 1.8, "hat int8", INT8, LONG),
    Goal("generation_ctranslate2", "speed", 3.0, "plain", CTRANSLATE2, SHORT),
    Goal("generation_ctranslate2", "speed", 2.0, "hat int8", INT8, SHORT),
    Goal("precision", "speed", 1.5, "bf16", ("fp32",)),
    Goal("precision", "quality", 0.1, "bf16", ("fp32",)),
    Goal("precision", "speed", 1.5, "int8", ("fp32",)),
    Goal("precision", "quality", 0.1, "int8", ("fp32",)),
    Goal("preprocessing", "speed", 5.0),
    Goal("start_up", "time", 1.0),
    Goal("waiting", "time", 1.03, peers=("default",), where={"busy": 0}),
    Goal("long_attention", "speed", 4.0, "two levels", ("led",), {"part": "core"}),
    Goal("long_attention", "speed", 2.5, "two levels", ("led",), {"part": "layer"}),
    Goal("long_attention", "speed", 1.0, "window", ("lsg",), {"part": "core"}),
    Goal("long_encoders", "speed", 1.5, "poolingformer", ("modernbert",), {"length": 4096} | FIXED),
    Goal("long_encoders", "speed", 3.0, "poolingformer", ("modernbert",), {"length": 8192}),
    Goal("long_encoders", "speed", 3.0, "hierarchical_transformer", ("modernbert",), {"length": 4096} | FIXED),
    Goal("long_encoders", "speed", 5.0, "hierarchical_transformer", ("modernbert",), {"length": 8192}),
    Goal("long_encoders", "memory", 0.5, "poolingformer", ("longformer",), {"length": 4096}),
    Goal("long_encoders", "speed", 1.0, "poolingformer", ("lsg",), FIXED),
    Goal("regularization", "time", 1.03, "regularized", ("two passes",)),
    Goal("long_attention", "speed", 4.0, "block-sparse", ("bigbird",), {"part": "core"}),
    Goal("long_encoders", "speed", 1.7, "ernie_sparse", ("bigbird",), {"length": 4096}),
    Goal("long_encoders", "speed", 1.4, "ernie_sparse", ("modernbert",), {"length": 4096} | FIXED),
    Goal("long_encoders", "speed", 2.5, "ernie_sparse", ("modernbert",), {"length": 8192}),
    Goal("long_encoders", "time", 1.1, "ernie_sparse", ("block-sparse",), FIXED),
    Goal("long_encoders", "memory", 0.5, "ernie_sparse", ("bigbird",), {"length": 4096}),
)


def row(goal: Goal, records: list[Record]) -> list[str]:
    """The cells of a goal: question, sides, bound, measured values by setting, whether all meet the bound."""
    measured = [pair for record in records if on_gpu(record) == goal.gpu for pair in values(goal, record)]
    met = all(value <= goal.bound if goal.quantity in AT_MOST else value >= goal.bound for _, value in measured)
    told = "; ".join(f"{value:.2f} ({name})" for name, value in measured)
    sides = f"{goal.ours} / {' or '.join(goal.peers)}"
    return [goal.question, sides, str(goal), told or "not measured", ("yes" if met else "no") if measured else ""]


def on_gpu(record: Record) -> bool:
    return not record["device"].startswith("CPU")


def values(goal: Goal, record: Record) -> Iterator[tuple[str, float]]:
    """The settings of a record that the goal is about, with the value against the best peer."""
    worst = max if goal.quantity in AT_MOST else min
    for setting in record["settings"]:
        name = setting["name"]
        ends = {end["contender"]: end for end in record["processes"] if end["setting"] == name}
        sides = {side for side, end in ends.items() if goal.quantity != "quality" or "quality" in end}
        peers = [peer for peer in goal.peers if peer in sides]
        if goal.where.items() <= setting.items() and goal.ours in sides and peers:
            yield name, worst(value(goal, record, name, ends, peer) for peer in peers)


def value(goal: Goal, record: Record, setting: str, ends: dict[str, Record], peer: str) -> float:
    """The goal's quantity in one setting; `time` and `speed` are medians over the rounds."""
    if goal.quantity == "memory":
        return ends[goal.ours]["peak_bytes"] / ends[peer]["peak_bytes"]
    if goal.quantity == "quality":
        return ends[peer]["quality"] - ends[goal.ours]["quality"]
    cost = (lambda run: run["seconds"]) if goal.quantity == "time" else work_per_second
    ours, theirs = (
        {run["round"]: cost(run) for run in record["runs"] if (run["setting"], run["contender"]) == (setting, name)}
        for name in (goal.ours, peer)
    )
    return statistics.median(ours[number] / theirs[number] for number in ours.keys() & theirs.keys())


def work_per_second(run: Record) -> float:
    """Tokens, else documents, else repetitions."""
    return run.get("tokens", run.get("documents", 1)) / run["seconds"]
