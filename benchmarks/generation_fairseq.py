#!/usr/bin/env python3
"""Is generation faster than fairseq's? Beam search beside stock models with the weights of our plain twin.

    python benchmarks/generation_fairseq.py --threads 2

`hat` and `plain` are ours with our generator. `fairseq transformer` is what a translation user runs: it keeps a copy of
every document's states for each of its hypotheses. `fairseq bart` shares them (fairseq's `set_beam_size`). Both with
fairseq's generator, prepared for inference as fairseq-generate prepares them. Beam 4, an exact number of new tokens,
fp32 (bfloat16 on a GPU), 2+2 layers of 768, vocabulary 50265; 1+1 layers for eight long documents, which take fairseq's
transformer minutes. The last setting is there to see that short inputs are not slower.
"""

from __future__ import annotations

from generation import fairseq_job, same_hypotheses, same_parameters, same_search, setting
from harness import Facts, Setting, run

CONTENDERS = ("hat", "plain", "fairseq transformer", "fairseq bart")
SETTINGS = [
    setting(3072, 1),
    setting(3072, 8, layers=1, rounds=2),
    setting(512, 4),
    setting(64, 8, new=32),
]


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    return [
        same_parameters(ends, CONTENDERS[1:]),
        same_hypotheses(ends, CONTENDERS[1:]),
        same_search(chosen),
    ]


if __name__ == "__main__":
    run(
        "generation_fairseq",
        __doc__ or "",
        fairseq_job,
        contenders=CONTENDERS,
        settings=SETTINGS,
        reference="hat",
        check=check,
        rounds=3,
    )
