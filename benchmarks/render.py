#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`; no figure there is typed by hand.

python benchmarks/render.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

One file for each question; every result is a JSON file in `results/` with its command, versions and device, and
`python benchmarks/render.py` makes this page of them.
"""
HIERARCHY = """
## Does the hierarchy help?

HAT beside its plain twin (`--no-hierarchy`): the same data, settings and number of updates. Mean ± standard deviation
over seeds; the difference is taken seed by seed. A difference that is not several times its standard deviation shows
nothing.
"""
CLASSIFICATION = """
## Do the encoders learn?

Document classification by recipes, beside a bag of words (TF-IDF of words and pairs of words, logistic regression, C
and checkpoints chosen on the validation part). Test accuracy and macro F1: mean ± standard deviation over seeds. The
interval (95 %, bootstrap over the test documents, mean over seeds) says how little so few documents tell.
"""
LONG_ENCODERS = """
## What does a long document cost?

Forward and backward of one document, encoders of the same width and number of token-level layers without heads and
dropout, random weights. Median [least, most] seconds of a step; the steps of all contenders take turns, and *times* is
the median of the quotient to `hierarchical_transformer` within a turn. Peak memory is that of the process, the weights
and their gradients included.
"""
CONTENDERS = {
    "hierarchical_transformer": "`hierarchical_transformer`, {layout}",
    "hat_roberta": "`hat_roberta`, a sentence every 32 tokens",
    "full attention": "`hat_roberta` with `--no-hierarchy`: full attention",
    "longformer": "Longformer (`transformers`), window 512",
    "bigbird": "BigBird (`transformers`), block sparse 64, 3 random",
}


def main() -> None:
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / "results").glob("*.json"))]
    text = INTRODUCTION
    for question, (heading, render) in QUESTIONS.items():
        parts = [render(record) for record in records if record["question"] == question]
        text += (heading if parts else "") + "".join(parts)
    return text


def settings(record: dict[str, Any]) -> str:
    """Device, threads and version, as every result names them."""
    threads = f"{record['threads']} thread{'s' * (record['threads'] > 1)}"
    return f"{record['device']}, {threads}, torch {record['versions']['torch']}"


def hierarchy(record: dict[str, Any]) -> str:
    """One recipe's comparison."""
    seeds = sorted({run["seed"] for run in record["runs"]})
    lines = [
        f"\n### {record['recipe']}\n",
        f"`{record['command']}`: seeds {', '.join(map(str, seeds))}; {settings(record)}.\n",
        "| metric | HAT | plain | difference | seed by seed |",
        "|---|---|---|---|---|",
    ]
    for metric, figures in record["summary"].items():
        by_seed = [
            value["hat"] - value["plain"]
            for seed in seeds
            for value in [{run["kind"]: run["scores"][metric] for run in record["runs"] if run["seed"] == seed}]
        ]
        cells = [f"{figures[f'{kind}_mean']:.2f} ± {figures[f'{kind}_sd']:.2f}" for kind in ("hat", "plain")]
        cells.append(f"{figures['difference_mean']:+.2f} ± {figures['difference_sd']:.2f}")
        lines.append(f"| {metric} | {' | '.join(cells)} | {', '.join(f'{value:+.2f}' for value in by_seed)} |")
    return "\n".join(lines) + "\n"


def classification(record: dict[str, Any]) -> str:
    """One dataset's comparison."""
    seeds = sorted({run["seed"] for run in record["runs"] if run["seed"]})
    documents = " / ".join(str(number) for number in record["documents"].values())
    lines = [
        f"\n`{record['command']}`: seeds {', '.join(map(str, seeds))}; {documents} documents (train / valid / test); "
        f"{settings(record)}.\n",
        "| system | accuracy | interval | macro F1 | accuracy seed by seed |",
        "|---|---|---|---|---|",
    ]
    for system, row in record["summary"].items():
        runs = [run["scores"]["accuracy"] for run in record["runs"] if run["system"] == system]
        cells = [f"`{system}`" if "_" in system else system, f"{row['accuracy_mean']:.1f} ± {row['accuracy_sd']:.1f}"]
        cells.append(f"[{row['low_mean']:.1f}, {row['high_mean']:.1f}]")
        cells.append(f"{row['macro F1_mean']:.1f} ± {row['macro F1_sd']:.1f}")
        cells.append(", ".join(f"{value:.1f}" for value in runs))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def long_encoders(record: dict[str, Any]) -> str:
    """One machine's comparison."""
    shapes = record["shapes"]
    lines = [
        f"\n`{record['command']}`: {record['dtype']}, {settings(record)}, transformers "
        f"{record['versions']['transformers']}; {shapes['layers']} layers of {shapes['width']}, {shapes['heads']} "
        f"heads, vocabulary of {shapes['vocabulary']:,}.\n",
        "| tokens | encoder | parameters without tables | seconds | times | CPU seconds | peak memory, GB |",
        "|---|---|---|---|---|---|---|",
    ]
    processes = {(process["contender"], process["length"]): process for process in record["processes"]}
    for length, rows in record["summary"].items():
        for name, row in rows.items():
            process = processes[name, int(length)]
            cells = [f"{int(length):,}", CONTENDERS[name].format(layout=record["layout"].replace("|", "\\|"))]
            cells.append(f"{(process['parameters'] - process['tables']) / 1e6:.1f}M")
            cells.append(f"{row['median']:.2f} [{row['least']:.2f}, {row['most']:.2f}]")
            times = (row.get(f"times_{name}") for name in ("median", "least", "most"))
            cells.append("{:.2f} [{:.2f}, {:.2f}]".format(*times) if "times_median" in row else "")
            cells += [f"{row['cpu_median']:.2f}", f"{process['peak_bytes'] / 1e9:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


QUESTIONS = {
    "hierarchy": (HIERARCHY, hierarchy),
    "classification": (CLASSIFICATION, classification),
    "long_encoders": (LONG_ENCODERS, long_encoders),
}

if __name__ == "__main__":
    main()
