#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`.

python benchmarks/render.py
"""

import statistics
from argparse import ArgumentParser
from functools import partial
from pathlib import Path

from longdoc import tables_of
from page import INTERLEAVED, Record, begin, interleaved, machine, records_of, sections, stated, table
from study_table import read_runs

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

Speed and memory of this package and of others. Each question has one script, which is run again on another machine or
version. Its results are in `results/`, with commands, versions and device. `python benchmarks/render.py` renders this
page from the results. `make bench` runs the benchmarks that take time and renders the page;
`make bench BENCH="generation training"` runs only these two. Some results are older than their script: their command
measures the same today. `results/gpu_h100.txt` is the log of a run on a GPU that was ended early. The programs of
`plan_cpu`, `precision`, `long_training`, `workers` and `cleared_pages` have left ([studies](../studies/README.md)).

Experiments that answered a question once are [studies](../studies/README.md).
"""

GENERATION = {
    "hat": "`hat_bart_base`, our generator",
    "hat bf16": "`hat_bart_base` with `--precision bf16`",
    "hat int8": "`hat_bart_base` with `--precision int8`",
    "hat fp16": "`hat_bart_base`, our generator, fp16",
    "plain": "baseline without hierarchy, our generator",
    "fairseq transformer": "fairseq's `transformer`",
    "fairseq bart": "fairseq's `bart`",
    "transformers": "`transformers`, dynamic cache",
    "transformers, static cache": "`transformers`, static cache",
    "ctranslate2": "CTranslate2, fp32",
    "ctranslate2 int8": "CTranslate2, int8",
    "ctranslate2 fp16": "CTranslate2, fp16",
    "ctranslate2 split": "CTranslate2, fp32, batch divided among threads",
    "ctranslate2 int8 split": "CTranslate2, int8, batch divided among threads",
    "led": "LED (`transformers`), window 1,024",
    "longt5": "LongT5 (`transformers`), transient global attention",
    "t5gemma2": "T5Gemma 2, 270M + 270M (`transformers`)",
}
ENCODERS = {
    "hierarchical_transformer": "`hierarchical_transformer`, {layout}",
    "poolingformer": "`hat_roberta`, `--encoder-attention pooling --encoder-attention-layers 2`",
    "modernbert": "ModernBERT (`transformers`), SDPA",
    "ernie_sparse": "`ernie_sparse_base`",
}
LABELS: dict[str, dict[str, str]] = {
    "gpu": {"fairseq": "fairseq's `bart_base`", **GENERATION, **ENCODERS},
    "long_encoders": {
        **ENCODERS,
        "hat_roberta": "`hat_roberta`, a sentence every {sentence} tokens",
        "full attention": "`hat_roberta` with `--no-hierarchy`: full attention",
        "longformer": "Longformer (`transformers`), window 512",
        "bigbird": "BigBird (`transformers`), block sparse 64, 3 random",
        "block-sparse": "`hat_roberta`, `--encoder-attention block-sparse`",
        "lsg": "LSG's local blocks of 128 in the layers of `hat_roberta`",
    },
    "modern_encoders": {
        "transformers": "ModernBERT (`transformers`), SDPA",
        "hat": "`hat_roberta` of `hat import`",
        "transformers bf16": "ModernBERT (`transformers`), SDPA, bf16",
        "hat bf16": "`hat_roberta` of `hat import`, `--precision bf16`",
    },
    "training": {
        "hat": "`hat_bart_base`",
        "hat, amp": "the same with `--amp`: products in bf16",
        "hat, checkpointed": "the same with `--checkpoint-activations`",
        "plain": "`hat_bart_base --no-hierarchy`",
        "fairseq": "fairseq's `bart_base`",
    },
    "generation": GENERATION,
}


def page() -> str:
    """The whole page."""
    records = records_of(FOLDER)
    if runs := read_runs(FOLDER / "results/longdoc.csv.gz"):
        records.append({"question": "longdoc", "runs": runs})
    return INTRODUCTION + sections(FOLDER, records, OWN_TABLES) + INTERLEAVED + sections(FOLDER, records, TIMED)


def load(record: Record) -> str:
    """A row for each command."""
    names = ("run", "amount", "seconds", "peak_mb", "growth_mb")
    columns = ["command", "documents or updates", "seconds", "peak memory, MB", "growth over half of them, MB"]
    rows = ([run[name] for name in names] for run in record["runs"])
    return begin(record, stated(record, ","), machine(record)) + table(columns, rows)


def busy(record: Record) -> str:
    """A row for each work and contender: alone, beside others, and how many times as long that is in a round."""
    columns = ["work", "`GOMP_SPINCOUNT`", "seconds alone", "beside two programs", "times"]
    rows: list[list[str]] = []
    for work, name in dict.fromkeys((run["work"], run["contender"]) for run in record["runs"]):
        own = [run for run in record["runs"] if (run["work"], run["contender"]) == (work, name)]
        times = [(run["quiet"], run["busy"], run["busy"] / run["quiet"]) for run in own]
        figures = (
            f"{statistics.median(each):.2f} [{min(each):.2f}, {max(each):.2f}]" for each in zip(*times, strict=True)
        )
        rows.append([work, "CTranslate2" if name == "ctranslate2" else name, *figures])
    return begin(record, machine(record)) + table(columns, rows)


def longdoc(record: Record) -> str:
    """A table for each task."""
    runs = record["runs"]
    commands = dict.fromkeys(run["command"] for run in runs)
    return "".join(f"\n`{command}`\n" for command in commands) + f"\n{machine(runs[0])}.\n{tables_of(runs)}"


def preprocessing(record: Record) -> str:
    """A row for each contender and number of workers."""
    columns = ["contender", "workers", "seconds", "CPU seconds", "documents/s", "MB/s", "peak memory, MB", "growth, MB"]
    rows = []
    for row in record["summary"]:
        speeds = (f"{record['settings'][name] / row['seconds']:.1f}" for name in ("documents", "megabytes"))
        times = f"{row['seconds']:.1f} [{row['least']:.1f}, {row['most']:.1f}]"
        cells = [row["contender"], row["workers"], times, f"{row['cpu_seconds']:.1f}", *speeds]
        rows.append([*cells, row["peak_mb"], row["growth_mb"]])
    return begin(record, stated(record, ","), machine(record)) + table(columns, rows)


def floor(record: Record) -> str:
    """A row for each part, with the least time that the machine needs, and its rates."""
    columns = ["part", "GFLOP", "GB", "floor, seconds", "seconds: median [least, most]", "least by floor"]
    rows = []
    for run in record["runs"]:
        times = f"{run['seconds']:.3f} [{run['least']:.3f}, {run['most']:.3f}]"
        amounts = f"{run['flop'] / 1e9:,.1f}", f"{run['bytes'] / 1e9:.2f}"
        rows.append([run["part"], *amounts, f"{run['floor']:.3f}", times, f"{run['least'] / run['floor']:.2f}"])
    units = {name: "GB/s" if name == "reading" else "GFLOP/s" for name in record["rates"]}
    rates = ", ".join(f"{name} {rate / 1e9:,.0f} {units[name]}" for name, rate in record["rates"].items())
    return begin(record, machine(record), rates) + table(columns, rows)


OWN_TABLES = {make.__name__: make for make in (load, preprocessing, floor, busy, longdoc)}
QUESTIONS = ("gpu", "long_encoders", "modern_encoders", "training", "generation")
TIMED = {name: partial(interleaved, labels=LABELS.get(name, {})) for name in QUESTIONS}


if __name__ == "__main__":
    ArgumentParser(description=__doc__).parse_args()
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")
