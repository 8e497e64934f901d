#!/usr/bin/env python3
"""Do representative tokens replace global tokens? ERNIE-Sparse with 32 questions that are not global.

    python benchmarks/needle_global.py

Documents are like those of `needle.py`, with two differences. They begin with 64 tokens of text, so that no question is
in a global block, and they have 32 questions, so that the facts must pass through a few tokens. Keys and values are
numbered words. Blocks have 16 tokens, and attend to the neighbouring blocks; four layers reach 79 tokens. There are 0,
1 or 4 global blocks, of 0, 16 or 64 tokens, each alone (BigBird without random blocks) and with a representative token
for each other block (ERNIE-Sparse, as in figure 3 of the paper).

Prediction, written before the runs: without global blocks and representatives nothing beyond 96 tokens is found. Each
of the two finds most of it, global blocks more than representatives, and more global blocks more. With both, the
representatives add little.
"""

from __future__ import annotations

from typing import Any

import experiments
from fairseq.data import Dictionary
from needle import BLOCKS, LENGTH, NUMBERED, SIZES, Task, experiment

STAGES = ((0.7, 160, 8), (0.85, 256, 16), (1.0, LENGTH, 32))
TASK = Task(stages=STAGES, bins=(48, 64, 96, 128, 160, 192, 320), lead=64, values=NUMBERED)
GLOBAL = (0, 1, 4)
ALONE = {f"blocks, {number} global": {"no_hierarchy": True, "sparse_first": number} for number in GLOBAL}
SEPARATE = {"representative_weights": "separate"}
MODELS: dict[str, dict[str, Any]] = {
    **ALONE,
    **{f"representatives, {number} global": {**SEPARATE, "sparse_first": number} for number in GLOBAL},
}


def build(name: str, words: Dictionary, seed: int) -> Any:
    flags = {"max_positions": LENGTH, **BLOCKS, **MODELS[name]}
    return experiments.build("ernie_sparse_base", seed, SIZES, words, **flags)


if __name__ == "__main__":
    experiment("needle_global", MODELS, 1200, TASK, build)
