#!/usr/bin/env python3
"""How do time and memory grow with the source? An update of HAT-BART and of fairseq's own BART.

    python benchmarks/source_length.py

Sources of 1,024 to 16,384 tokens, targets of 512, 1 + 1 layers of the width of BART-base, attention dropout 0.1.
Attention is quadratic in both, but fairseq stores its matrices: at 16,384 tokens four of them (weights, weights after
dropout, and two gradients) are 52 GB, so fairseq is not run.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from harness import RESULTS, Facts, Job, Setting, run
from peers import fairseq_bart, ours
from train_step import OURS, SIZES, THEIRS, checked_parameters, model_sizes, update_job

COMMON = {"documents": 1, "target": 512, **SIZES[768], "layers": 1, "vocabulary": 50265, "attention_dropout": 0.1}
CONTENDERS = ("ours", "fairseq")
SETTINGS = [
    {
        "name": "{source:,} tokens",
        "source": source,
        **COMMON,
        "contenders": list(CONTENDERS[: 2 if source < 16384 else 1]),
    }
    for source in (1024, 2048, 4096, 8192, 16384)
]


def main() -> None:
    run(
        "source_length",
        __doc__ or "",
        build,
        contenders=CONTENDERS,
        settings=SETTINGS,
        reference="ours",
        check=check,
        rounds=2,
    )
    if "--child" not in sys.argv:
        out = Path(sys.argv[sys.argv.index("--out") + 1]) if "--out" in sys.argv else RESULTS / "source_length.json"
        draw(json.loads(out.read_text(encoding="utf-8")), out.with_suffix(".png"))


def build(name: str, setting: Setting) -> Job:
    if name == "fairseq":
        return update_job(fairseq_bart(**model_sizes(setting)), THEIRS, setting)
    return update_job(ours("hat_bart_base", **model_sizes(setting)), OURS, setting)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    if "fairseq" in ends:
        return [checked_parameters(setting, ends["ours"], ends["fairseq"])]
    matrix = 4 * setting["heads"] * setting["source"] ** 2
    return [f"fairseq: out of memory, not started: one matrix of attention weights is {matrix / 1e9:.1f} GB, of four"]


def draw(record: dict[str, Any], path: Path) -> None:
    """Seconds and gigabytes over source tokens, both axes logarithmic."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq has made everything talk
    matplotlib.use("agg")
    from matplotlib import pyplot, ticker

    lengths = {setting["name"]: setting["source"] for setting in record["settings"]}
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), dpi=100, layout="constrained")
    for name, label in zip(CONTENDERS, ("HAT-BART", "fairseq's BART"), strict=True):
        seconds = [(lengths[key], rows[name]["median"]) for key, rows in record["summary"].items() if name in rows]
        ends = [end for end in record["processes"] if end["contender"] == name]
        memory = [(lengths[end["setting"]], end["peak_bytes"] / 1e9) for end in ends]
        for axis, points in zip(axes, (seconds, memory), strict=True):
            axis.plot(*zip(*sorted(points), strict=True), marker="o", label=label)
    for axis, title in zip(axes, ("seconds an update", "peak memory, GB"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="source tokens", title=title)
        axis.set_xticks(sorted(lengths.values()), [f"{length // 1024}k" for length in sorted(lengths.values())])
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.yaxis.set_minor_formatter(ticker.FormatStrFormatter("%g"))
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, metadata={"Software": None})


if __name__ == "__main__":
    main()
