#!/usr/bin/env python3
"""Is decoding faster if heads share keys? Beam search of HAT-BART with 12, 4 and 1 heads of keys and values.

    python benchmarks/kv_heads.py --threads 2

`--decoder-kv-heads` of the attention to the tokens, with 12 heads of queries; beam 4, random weights. Seconds are those
of the search: the source is encoded before it. Quality: `benchmarks/hierarchy.py --against "--decoder-kv-heads 1"`.
"""

from __future__ import annotations

from generation import job, setting, sizes
from harness import Facts, Job, Setting, run
from peers import decisive, ours

from hat_fairseq.generation.beam_search import BeamSearchGenerator

CONTENDERS = ("12", "4", "1")
SETTINGS = [setting(source, 1, new=32, layers=2) for source in (3072, 16384)]


def build(name: str, chosen: Setting) -> Job:
    model = decisive(ours("hat_bart_base", decoder_kv_heads=int(name), **sizes(chosen))).eval()
    return job(model, BeamSearchGenerator, chosen, encoded=True)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    """Other models find other hypotheses; only their sizes can be told."""
    token = 2 * 4 * chosen["layers"] * chosen["width"] // chosen["heads"]
    return [
        f"{name}: {ends[name]['parameters'] / 1e6:.1f}M parameters, keys and values of {name} heads: "
        f"{token * int(name) * chosen['source'] / 1e6:.1f} MB in fp32"
        for name in CONTENDERS
    ]


if __name__ == "__main__":
    run(
        "kv_heads",
        __doc__ or "",
        build,
        contenders=CONTENDERS,
        settings=SETTINGS,
        reference="12",
        check=check,
        rounds=3,
    )
