#!/usr/bin/env python3
"""Render the results in `studies/results/` as `studies/tables.md`, with the figure docs/pretrained_length.svg.

python studies/render_studies.py
"""

import csv
import gzip
import statistics
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `page`
import numpy as np
from cost import cost
from intervals import Figure, figure_of, holm
from page import (
    INTERLEAVED,
    Record,
    begin,
    escaped,
    interleaved,
    machine,
    pyplot_of,
    records_of,
    sections,
    stated,
    table,
)
from study_table import read_runs

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Tables of the studies

[The list of the studies](README.md) says what each asks, and where its answer is. Its results are in `results/`: a JSON
file, or one table `.csv.gz` for a study with many runs (`study_table.py`). `python studies/render_studies.py` renders
this page from them.

Tables of differences have intervals of 95 % over test documents and trainings, where meetings of a series are drawn
together, and beside each figure p: of a two-sided test that the difference is 0, by the same draws, adjusted by Holm's
method for the differences of the table in that figure. With 2,000 draws p is at least 0.001 times their number.
"""
ABLATION = {  # what a contender replaces -> by what
    "as it is": "the package",
    "query blocks": "full attention in blocks of queries -> SDPA",
    "attention dropout": "the same with attention dropout -> SDPA for chunks of queries under `checkpoint`",
    "chunked loss": "chunked loss -> logits of a chunk under `checkpoint`",
    "packed maps": "weights in oneDNN's layout -> `Linear`",
    "oneDNN": "weights in oneDNN's layout and oneDNN's product -> `nn.Linear`",
    "step": "attention of a step in two products -> SDPA",
    "mask of hypotheses": "cache that does not move -> `index_select` at each step",
    "top-k": "top-k by blocks -> `topk`",
    "search": "our search -> fairseq's loop",
    "search, one memory": "our search -> fairseq's loop, a row of the encoder's output for each document",
    "windows": "windows with a backward pass of our own -> chunks under `checkpoint`",
    "short attention": "attention of few keys or narrow heads in fp32 -> bf16",
    "blocks": "blocks with a backward pass of our own -> chunks under `checkpoint`",
    "waiting": "OpenMP's waiting -> `GOMP_SPINCOUNT=3000`",
}
WITH_ARMS = ("pretrained_hierarchy", "continued_pretraining", "summaries", "labels", "convergence", "copied_words")
WITH_ARMS += ("shift", "far_answers")
WITH_ROWS = ("retrieval", "ask")  # a row for each document, which their scripts read themselves
IN_BITS = ("convergence", "copied_words")  # whose figures are bits, not shares; and tasks called so
ORDER = ("rules", "head", "upper", "all")  # what is trained
PAIRS = {  # of an arm and what it is compared with, each with what is trained
    "evidence": [
        ("head", "chunks", "head", "first 512"),
        ("head", "chunks", "rules", "cosine, best of its chunk"),
        ("head", "alone", "head", "alone, no neighbours"),
        ("head", "chunks, no neighbours", "head", "alone, no neighbours"),
        ("head", "chunks", "head", "alone"),
        ("head", "alone, N|D", "head", "alone"),
        ("head", "chunks, N|D", "head", "chunks"),
        ("head", "window", "head", "chunks"),
        ("head", "S", "head", "chunks"),
        ("upper", "chunks", "head", "chunks"),
        ("upper", "chunks", "upper", "first 512"),
        ("upper", "chunks, N|D", "upper", "chunks"),
        ("upper", "window", "upper", "chunks"),
        ("upper", "window, global question", "upper", "window"),
        ("upper", "S", "upper", "chunks"),
        ("upper", "SD", "upper", "S"),
        ("upper", "HAT", "upper", "window"),
        ("upper", "HAT", "upper", "chunks"),
        ("upper", "representatives", "upper", "blocks"),
        ("upper", "two levels", "upper", "window"),
    ],
    "roles": [
        ("head", "alone, no neighbours", "rules", "most frequent of its twentieth"),
        ("head", "alone", "head", "alone, no neighbours"),
        ("head", "alone, N|D", "head", "alone"),
        ("head", "alone, D|D", "head", "alone, N|D"),
        ("head", "chunks, no neighbours", "head", "alone, no neighbours"),
        ("head", "chunks", "head", "alone"),
        ("head", "chunks, N|D", "head", "chunks"),
        ("upper", "chunks", "head", "chunks"),
        ("upper", "chunks, N|D", "upper", "chunks"),
        ("upper", "window", "upper", "chunks"),
        ("upper", "S", "upper", "chunks"),
        ("upper", "SD", "upper", "S"),
        ("upper", "HAT", "upper", "window"),
        ("upper", "HAT", "upper", "chunks"),
        ("upper", "chunks, three layers", "upper", "chunks"),
        ("upper", "HAT", "upper", "chunks, three layers"),
    ],
    "markers": [
        ("head", "untrained", "head", "no hierarchy"),
        ("head", "MLM", "head", "untrained"),
        ("head", "MLM and markers", "head", "MLM"),
        ("head", "MLM and markers", "head", "no hierarchy"),
        ("head", "blocks, SAR", "head", "blocks"),
    ],
    **dict.fromkeys(
        ("summaries, xsum", "summaries, pubmed"),
        [
            ("all", "HAT", "all", "baseline"),
            ("all", "HAT", "rules", "lead"),
            ("all", "HAT", "rules", "constant"),
            ("all", "baseline", "rules", "constant"),
        ],
    ),
    **dict.fromkeys(("summaries, xsum, bits", "summaries, pubmed, bits"), [("all", "HAT", "all", "baseline")]),
    "shift": [
        ("upper", "ERNIE-Sparse, alpha 5", "upper", "ERNIE-Sparse, alpha 0"),
        ("upper", "ERNIE-Sparse, alpha 5", "upper", "full"),
        ("upper", "ERNIE-Sparse, alpha 0", "upper", "full"),
        ("upper", "windows", "upper", "full"),
        ("upper", "chunks", "upper", "full"),
        ("upper", "ERNIE-Sparse, alpha 5", "rules", "bag of words"),
        ("upper", "full", "rules", "bag of words"),
    ],
    "far answers": [
        ("upper", "two levels", "upper", "windows"),
        ("upper", "two levels", "upper", "windows, global question"),
        ("upper", "two levels", "upper", "full"),
        ("upper", "windows, global question", "upper", "windows"),
        ("upper", "windows, global question", "upper", "full"),
        ("upper", "full", "rules", "BM25"),
        ("rules", "cosine", "rules", "BM25"),
    ],
    **dict.fromkeys(
        ("drawn", "hyperpartisan", "imdb"),
        [
            ("head", "alone, tokens", "rules", "words"),
            ("head", "alone, tokens", "rules", "tokens"),
            ("head", "alone, tokens", "rules", "mean of vectors"),
            ("head", "alone, tokens", "head", "alone"),
            ("head", "alone", "rules", "words"),
            ("head", "alone", "rules", "mean of vectors"),
            ("head", "both, tokens", "head", "alone, tokens"),
            ("head", "context", "head", "alone"),
            ("rules", "tokens", "rules", "words"),
            ("rules", "words", "rules", "words, first 512 tokens"),
        ],
    ),
    "sentences": [
        ("head", "alone, tokens", "rules", "words with neighbours"),
        ("head", "alone, tokens", "rules", "tokens"),
        ("head", "alone, tokens", "head", "alone"),
        ("head", "both, tokens", "head", "alone, tokens"),
        ("head", "both", "head", "alone"),
        ("rules", "words with neighbours", "rules", "words of the segment"),
        ("rules", "words with neighbours", "rules", "place"),
    ],
    **dict.fromkeys(
        ("articles", "papers"),
        [
            ("head", "chunks", "head", "first 512"),
            ("head", "chunks, N|D", "head", "chunks"),
            ("head", "alone", "head", "chunks"),
            ("head", "alone, N|D", "head", "alone"),
            ("head", "window", "head", "chunks"),
            ("head", "S", "head", "chunks"),
            ("rules", "bag of words", "rules", "bag of words, first 512"),
            ("head", "chunks", "rules", "bag of words"),
            ("head", "mean of chunks", "head", "first 512"),
            ("head", "chunks", "head", "mean of chunks"),
            ("upper", "chunks", "head", "chunks"),
            ("upper", "chunks", "upper", "first 512"),
            ("upper", "window", "upper", "chunks"),
            ("upper", "S", "upper", "chunks"),
            ("upper", "SD", "upper", "S"),
            ("upper", "HAT", "upper", "window"),
            ("upper", "HAT", "upper", "chunks"),
            ("upper", "chunks, N|D", "upper", "chunks"),
            ("upper", "representatives", "upper", "blocks"),
            ("upper", "two levels", "upper", "window"),
        ],
    ),
}
for size in ("small", "full"):
    PAIRS[f"convergence, {size}"] = [
        ("all", "hierarchy", "all", "six layers"),
        ("all", "hierarchy", "all", "eight layers"),
        ("all", "eight layers", "all", "six layers"),
    ]
    PAIRS[f"copying, {size}"] = [
        *(("upper", arm, "upper", "chunks") for arm in ("full", "window", "HAT", "S", "SD", "two levels")),
        *(("upper", arm, "upper", "chunks") for arm in ("blocks", "representatives")),
        ("upper", "HAT", "upper", "window"),
        ("upper", "SD", "upper", "S"),
        ("upper", "two levels", "upper", "window"),
        ("upper", "representatives", "upper", "blocks"),
        ("upper", "chunks", "rules", "frequencies"),
    ]
LENGTHS = (1024, 2048, 4096, 8192)  # tokens of `--longest`
for shorter, longer in zip(LENGTHS, (*LENGTHS[1:], None), strict=True):
    for arm in ("chunks, N|D", "window"):
        one = f"{arm}, {longer} tokens" if longer else arm
        PAIRS["evidence"].append(("head", one, "head", f"{arm}, {shorter} tokens"))
for length in LENGTHS:
    PAIRS["evidence"].append(("head", f"window, {length} tokens", "head", f"chunks, N|D, {length} tokens"))
PAIRS["evidence"].append(("head", "window", "head", "chunks, N|D"))
Cell = tuple[str, str]
Pair = tuple[str, str, str, str]


def page() -> str:
    """The whole page."""
    results = records()
    return (
        INTRODUCTION
        + cost(results)
        + sections(FOLDER, results, OWN_TABLES)
        + INTERLEAVED
        + sections(FOLDER, results, TIMED)
    )


@cache
def records() -> list[Record]:
    """All results; the runs in the table of each of `WITH_ARMS` are a result for each task."""
    results = records_of(FOLDER)
    for question in WITH_ARMS:
        runs = read_runs(FOLDER / f"results/{question}.csv.gz")
        for task in dict.fromkeys(run["task"] for run in runs):
            own = [run for run in runs if run["task"] == task]
            results.append({"question": question, "task": task, "runs": own})
    for question in WITH_ROWS:
        with gzip.open(FOLDER / f"results/{question}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            results.append({"question": question, "rows": list(csv.DictReader(file))})
    return results


def seeds(record: Record) -> str:
    return f"seeds {', '.join(map(str, sorted({run['seed'] for run in record['runs']})))}"


def lra(record: Record) -> str:
    """Accuracy of baselines, and of each model from scratch and after self-pretraining, the mean and seed by seed."""
    starts = list(dict.fromkeys(run["start"] for run in record["runs"]))
    rows = [
        [f"baseline: {name}"] + [f"{value:.2f}"] * len(starts) for name, value in record.get("baselines", {}).items()
    ]
    most = max(len(cell["seeds"]) for cell in record["summary"].values())
    for model in dict.fromkeys(run["model"] for run in record["runs"]):
        cells = []
        for start in starts:
            if (figures := record["summary"].get(f"{model}, {start}")) is None:
                cells.append("not run")
                continue
            by_seed = ", ".join(f"{value:.1f}" for value in figures["seeds"])
            if len(figures["seeds"]) < most:
                by_seed += f"; {len(figures['seeds'])} of {most} seeds"
            cells.append(f"{figures['mean']:.1f} ({by_seed})")
        rows.append([model, *cells])
    text = f"\n### {record['recipe']}\n" + begin(record, stated(record), machine(record))
    text += "Accuracy in percent on the test part of the reduced task: mean (seed by seed).\n\n"
    return text + table(["model", *starts], rows)


def amp(record: Record) -> str:
    """A row for each recipe: scores seed by seed, and the difference."""
    rows = []
    for recipe in dict.fromkeys(run["recipe"] for run in record["runs"]):
        scores: dict[str, list[float]] = {"fp32": [], "amp": []}
        for run in record["runs"]:
            if run["recipe"] == recipe:
                scores[run["precision"]].append(run["score"])
        differences = [two - one for one, two in zip(*scores.values(), strict=True)]
        columns = [f"{np.mean(each):.2f} ({', '.join(f'{x:.2f}' for x in each)})" for each in scores.values()]
        rows.append([recipe, *columns, ", ".join(f"{each:+.2f}" for each in differences)])
    columns = ["recipe", "fp32: mean (seed by seed)", "`--amp`", "difference, seed by seed"]
    return begin(record, seeds(record), machine(record)) + table(columns, rows)


def pretrained_articles(record: Record) -> str:
    """A row for each contender and difference, a column for all, long and short articles."""
    columns = ["", *(f"{part}, {number} articles" for part, number in record["articles"].items())]
    rows = [[name, *values.values()] for name, values in record["rows"].items()]
    return begin(record, seeds(record), machine(record)) + table(columns, rows)


def cells_of(record: Record) -> dict[Cell, list[Record]]:
    """The runs of each arm, by what is trained and its name."""
    cells: dict[Cell, list[Record]] = {}
    for run in sorted(record["runs"], key=lambda run: (ORDER.index(run["train"]), run["arm"], run["seed"])):
        cells.setdefault((run["train"], run["arm"]), []).append(run)
    return cells


def arms(record: Record) -> str:
    """A row for each arm, and for each difference."""
    cells, figure_in = cells_of(record), partial(figure_of, bits=in_bits(record))
    names = names_of(record)
    rows: list[Sequence[Any]] = []
    for (trained, arm), runs in cells.items():
        values = [figure_in(runs, name) for name in names]
        spent = [run["cpu_seconds"] for run in runs if "cpu_seconds" in run and run["device"].startswith("CPU")]
        minutes = f"{sum(spent) / 60 / len(spent):.1f}" if spent else ""
        size = f"{runs[0]['parameters']:,}" if "parameters" in runs[0] else ""
        seeds = ", ".join(str(run["seed"]) for run in runs) if len(runs) < 8 else f"{len(runs)} runs"
        rows.append([trained, escaped(arm), size, seeds, *values, minutes])
    text = f"\n### {record['task']}\n\n" + ", ".join(sorted({machine(run) for run in record["runs"]})) + ".\n\n"
    text += table(["trained", "arm", "parameters trained", "seeds", *names, "CPU minutes of a run"], rows)
    differences, missing = compared(record, names)
    if differences:
        tests = [holm([figures[name].p or 1.0 for _, figures in differences.values()]) for name in names]
        rows = [
            [
                escaped(pair),
                n,
                *(cell for name, p in zip(names, own, strict=True) for cell in (figures[name], f"{p:.3f}")),
            ]
            for (pair, (n, figures)), *own in zip(differences.items(), *tests, strict=True)
        ]
        text += "\n" + table(["difference", "runs", *(cell for name in names for cell in (name, "p"))], rows)
    text += learning_curves(cells) + by_time(cells) + different_texts(cells)
    return text + (f"\nNot run yet: {'; '.join(map(escaped, missing))}.\n" if missing else "")


def in_bits(record: Record) -> bool:
    return record["question"] in IN_BITS or record["task"].endswith(", bits")


def names_of(record: Record) -> list[str]:
    """The figures that some document has."""
    documents = record["runs"][0]["scores"].values()
    return [name for name in next(iter(documents)) if any(each[name][1] for each in documents)]


def compared(record: Record, names: Sequence[str]) -> tuple[dict[str, tuple[int, dict[str, Figure]]], list[str]]:
    """Runs and figures of each difference of the task's pairs, and the pairs that have not been run."""
    cells, differences, missing = cells_of(record), {}, []
    for pair in PAIRS[record["task"]]:
        one, other = sides(cells, pair)
        if one and other:
            figures = {name: figure_of(one, name, other, in_bits(record)) for name in names}
            differences[difference_of(pair)] = len(one), figures
        else:
            missing.append(difference_of(pair))
    return differences, missing


def difference_of(pair: Pair) -> str:
    trained, arm, other_trained, other = pair
    return f"{arm} ({trained}) - {other} ({other_trained})"


def sides(cells: dict[Cell, list[Record]], pair: Pair) -> tuple[list[Record], list[Record]]:
    """The runs of an arm and of what it is compared with, of the seeds that both have."""
    one, other = cells.get(pair[:2], []), cells.get(pair[2:], [])
    if pair[2] == "rules":  # which have no seeds, but one run for each fold
        return one, other
    common = {run["seed"] for run in one} & {run["seed"] for run in other}
    return [run for run in one if run["seed"] in common], [run for run in other if run["seed"] in common]


def learning_curves(cells: dict[Cell, list[Record]]) -> str:
    """The first figure on the test part after each epoch, if the runs have it."""
    runs_of = {arm: runs for (_, arm), runs in cells.items() if "test" in runs[0]}
    if not runs_of:
        return ""
    rows = [
        [escaped(arm), *(f"{value:.1f}" for value in np.mean([run["test"] for run in runs], axis=0))]
        for arm, runs in runs_of.items()
    ]
    return "\nAccuracy on the test part after each epoch, mean over the seeds:\n\n" + table(
        ["arm", *map(str, range(1, len(rows[0])))], rows
    )


def by_time(cells: dict[Cell, list[Record]]) -> str:
    """Figures after equal seconds, between those that were measured, if the runs say when these were."""
    runs_of = {arm: {run["seed"]: np.array(run["curve"]).T for run in runs} for (_, arm), runs in cells.items()
               if "curve" in runs[0]}  # fmt: skip
    if not runs_of:
        return ""
    common = sorted(set.intersection(*map(set, runs_of.values())))
    ends = {seed: min(curves[seed][1, -1] for curves in runs_of.values()) for seed in common}
    rows = []
    for arm, curves in runs_of.items():
        cells_of_arm = [f"{np.mean([1000 * curve[1, -1] / curve[0, -1] for curve in curves.values()]):.0f}"]
        for share in (0.5, 1):
            values = [np.interp(share * ends[seed], *curves[seed][1:]) for seed in common]
            cells_of_arm.append(f"{np.mean(values):.2f} ({', '.join(f'{value:.2f}' for value in values)})")
        rows.append([escaped(arm), *cells_of_arm])
    text = (
        "\nAfter as many seconds as the fastest arm needs for half of its updates and for all, mean (seed by seed):\n\n"
    )
    return text + table(["arm", "milliseconds an update", "half", "all"], rows)


def different_texts(cells: dict[Cell, list[Record]]) -> str:
    """How many different texts each arm wrote, seed by seed, if the runs say it."""
    written = {arm: [run["different_texts"] for run in runs] for (_, arm), runs in cells.items()
               if "different_texts" in runs[0]}  # fmt: skip
    told = "; ".join(f"{arm} {', '.join(map(str, numbers))}" for arm, numbers in written.items())
    return f"\nDifferent texts that each wrote, seed by seed: {told}.\n" if told else ""


def retrieval(record: Record) -> str:
    """Figures of each system on the test documents; widths are those with the best figure on the validation ones."""
    facts = {row["figure"]: row["sum"] for row in record["rows"] if row["system"] == "run"}
    text = f"\n{facts['device']}, torch {facts['torch']}, figures in {facts['precision of figures']}.\n"
    figures = dict.fromkeys(row["figure"] for row in record["rows"] if row["seed"] == "test")
    for figure in figures:
        sums = {split: sums_of(record["rows"], figure, split) for split in ("valid", "test")}
        means = {name: own[:, 0].sum() / own[:, 1].sum() for name, own in sums["valid"].items()}
        families = dict.fromkeys(name.rstrip("0123456789") for name in means)  # `windowed 256` is one of `windowed `
        best = [max((name for name in means if name.rstrip("0123456789") == each), key=means.get) for each in families]
        chunks, rows = drawn_means(sums["test"]["chunks"]), []
        for name in best:
            own = drawn_means(sums["test"][name])
            rows.append([name, with_interval(own), "" if name == "chunks" else with_interval(own - chunks, "+")])
        documents = len(next(iter(sums["test"].values())))
        text += f"\n{figure}, n = {documents}\n\n" + table(["vectors", "x 100", "minus *chunks*"], rows)
        every = ", ".join(f"{name} {100 * mean:.1f}" for name, mean in means.items() if "windowed" in name)
        text += f"\nOn the validation documents: {every}.\n"
    return text + speed_and_memory(record["rows"])


def sums_of(rows: Sequence[Record], figure: str, split: str) -> dict[str, np.ndarray]:
    """(documents, 2) sums and counts of each system."""
    own: dict[str, list[list[float]]] = {}
    for row in rows:
        if (row["figure"], row["seed"]) == (figure, split):
            own.setdefault(row["system"], []).append([float(row["sum"]), float(row["count"])])
    return {name: np.array(each) for name, each in own.items()}


def drawn_means(sums: np.ndarray, draws: int = 10_000) -> np.ndarray:
    """(draws + 1,) means in percent: of all documents, then of drawn ones, which are the same for each system."""
    picks = np.random.default_rng(0).integers(len(sums), size=(draws, len(sums)))
    totals = np.concatenate([sums.sum(axis=0, keepdims=True), sums[picks].sum(axis=1)])
    return 100 * totals[:, 0] / totals[:, 1]


def with_interval(means: np.ndarray, sign: str = "") -> str:
    low, high = np.percentile(means[1:], [2.5, 97.5])
    return f"{means[0]:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def speed_and_memory(rows: Sequence[Record]) -> str:
    """Seconds of each contender, with ratios within a round, and the peak memory by length."""
    seconds: dict[str, list[float]] = {}
    for row in rows:
        if row["figure"].startswith("CPU seconds"):
            seconds.setdefault(row["system"], []).append(float(row["sum"]))
    if not seconds:
        return ""
    base = list(seconds.values())[-1]
    cells = [
        [
            name,
            f"{statistics.median(own):.1f} [{min(own):.1f}, {max(own):.1f}]",
            f"{statistics.median(a / b for a, b in zip(own, base, strict=True)):.2f}",
        ]
        for name, own in seconds.items()
    ]
    text = "\nOne thread, fp32; *times*: the median of the ratio within a round\n\n"
    text += table(["contender", "CPU seconds per 100,000 tokens", "times"], cells)
    peaks = [
        [f"{int(row['document']):,}", f"{int(row['sum']) / 1e9:.2f}"]
        for row in rows
        if row["figure"].startswith("peak")
    ]
    return text + "\n" + table(["tokens of the document", "peak memory of `--context 256`, GB"], peaks)


def draw_pretrained_length() -> None:
    """Quality, seconds and memory of each number of tokens, as docs/pretrained_length.svg."""
    pyplot = pyplot_of("pretrained_length")
    (evidence,) = (record for record in records() if record.get("task") == "evidence")
    (costs,) = (record for record in records() if record["question"] == "pretrained_length")
    cells, most = cells_of(evidence), costs["settings"][-1]["length"]
    peaks = {(row["contender"], row["setting"]): row["peak_bytes"] / 1e9 for row in costs["processes"]}
    lengths = [setting["length"] for setting in costs["settings"]]
    figure, axes = pyplot.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    for color, arm in enumerate(("chunks, N|D", "window")):
        names = {length: f"{arm}, {length} tokens" for length in LENGTHS} | {most: arm}
        for axis, quality in zip(axes[:2], ("average precision", "F1"), strict=True):
            runs = {length: cells[cell] for length, name in names.items() if (cell := ("head", name)) in cells}
            rows = [figure_of(each, quality) for each in runs.values()]
            means, low, high = ([getattr(row, part) for row in rows] for part in ("mean", "low", "high"))
            axis.fill_between(list(runs), low, high, color=f"C{color}", alpha=0.15)
            axis.plot(list(runs), means, "o-", color=f"C{color}", label=arm)
            axis.set(title=f"{quality}, %")
        seconds = [costs["summary"][f"{length} tokens"][arm]["cpu_median"] for length in lengths]
        axes[2].plot(lengths, seconds, "o-", color=f"C{color}", label=arm)
        axes[3].plot(lengths, [peaks[arm, f"{length} tokens"] for length in lengths], "o-", color=f"C{color}")
    axes[2].set(title="CPU seconds, one thread", ylim=0)
    axes[3].set(title="peak memory, GB", ylim=0)
    axes[0].legend()
    for axis in axes:
        axis.set(xlabel="tokens that are read (last: all)")
        axis.grid(alpha=0.3)
    figure.savefig(FOLDER.parent / "docs/pretrained_length.svg", metadata={"Date": None})
    pyplot.close(figure)


OWN_TABLES = {make.__name__: make for make in (lra, amp, pretrained_articles, retrieval)}
OWN_TABLES |= dict.fromkeys(WITH_ARMS, arms)
TIMED = {
    "pretrained_length": partial(interleaved, labels={}),
    "ablation": partial(interleaved, labels=ABLATION),
}


if __name__ == "__main__":
    ArgumentParser(description=__doc__).parse_args()
    draw_pretrained_length()
    (FOLDER / "tables.md").write_text(page(), encoding="utf-8")
