#!/usr/bin/env python3
"""Is generation faster than fairseq's? Beam search beside fairseq's models with the weights of the baseline.

    python benchmarks/generation_fairseq.py --threads 2

Beam 4, an exact number of new tokens, random weights, fp32 (bfloat16 on a GPU), and the sizes of BART-base (width 768,
6 + 6 layers) and BART-large (width 1024, 12 + 12 layers, fewer new tokens). The baseline without hierarchy and both
models of fairseq have the same weights. fairseq's `transformer` keeps the states of a document once per hypothesis, its
`bart` once per document (fairseq's `set_beam_size`). Both use fairseq's generator as fairseq-generate prepares it.
Seconds are those of a whole batch. The last setting but one checks that short inputs are not slower.
"""

from __future__ import annotations

from generation import LARGE, fairseq_job, same_hypotheses, same_parameters, same_search, setting
from harness import Facts, Setting, run

CONTENDERS = ("hat", "plain", "fairseq transformer", "fairseq bart")
SETTINGS = [
    setting(3072, 1),
    setting(3072, 4, contenders=("hat", "plain", "fairseq bart"), rounds=2),
    setting(512, 4),
    setting(64, 8, new=32),
    setting(3072, 1, new=16, **LARGE, contenders=("hat", "plain", "fairseq bart"), rounds=2),
]


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    peers = [name for name in CONTENDERS[1:] if name in ends]
    return [same_parameters(ends, peers), same_hypotheses(ends, peers), same_search(chosen)]


if __name__ == "__main__":
    run(fairseq_job, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=3)
