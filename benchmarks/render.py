#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`.

python benchmarks/render.py
"""

import ast
import csv
import gzip
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from study_table import read_runs, series_of

Record = dict[str, Any]
FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

Each question has one script. Its result is in `results/`, with commands, versions and device: a JSON file, or one
table `.csv.gz` for a study with many runs (`study_table.py`). `python benchmarks/render.py` renders this page from the
results. `make bench` runs the timed benchmarks and renders the page; `make bench BENCH="generation training"` runs only
these two. Some results are older than their script: their command measures the same today. `results/gpu_h100.txt` is
the log of a run on a GPU that was ended early.

The experiments of version 0.5, with models from random weights, are finished: the commit 4fe126c0 has their page
`benchmarks/experiments_0.5.md` with results and figures, the commit 0e4b36db7eb6 their scripts.

Tables of differences have intervals of 95 % over test documents and trainings, where meetings of a series are drawn
together, and beside each figure p: of a two-sided test that the difference is 0, by the same draws, adjusted by Holm's
method for the differences of the table in that figure. With 2,000 draws p is at least 0.001 times their number.
"""
INTERLEAVED = """
In the questions below, the contenders run in turns, each in its own process. Seconds are the median [least, most] over
the rounds; *times* is the median [least, most] of the ratio, within a round, to the contender whose times are 1.00
(more than 1: slower); peak memory is that of the process, weights included.
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
# Labels that replace names of contenders, for each question. A label may refer to entries of the setting, as in
# "layout {layout}".
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
    "long_training": {
        "kept": "`hierarchical_transformer`",
        "recomputed": "the same with `--checkpoint-activations`",
        "ModernBERT, recomputed": "ModernBERT (`transformers`), SDPA, gradient checkpointing",
    },
    "ablation": {
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
    return INTRODUCTION + "".join(map(section, OWN_TABLES)) + INTERLEAVED + "".join(map(section, TIMED))


def labelled(question: str, name: str) -> str:
    """The label of a contender or model, or its name if it has none; `NAME, amp` is `NAME` with autocast."""
    labels, plain = LABELS.get(question, {}), name.removesuffix(", amp")
    return labels.get(name) or labels.get(plain, plain) + ", autocast to bf16" * (plain != name)


def section(name: str) -> str:
    """One question with all its results, and its figure if it has one; empty if there is no result."""
    answers = [record for record in records() if record["question"] == name]
    if not answers:
        return ""
    heading, introduction = caption(name)
    text = f"\n## {heading}\n\n{introduction}\n" + "".join(map(OWN_TABLES.get(name, interleaved), answers))
    if (FOLDER.parent / "docs" / f"{name}.svg").is_file():
        text += f"\n![{heading}](../docs/{name}.svg)\n"
    return text


@cache
def records() -> list[Record]:
    """All results; the runs in the table of each of `WITH_ARMS` are a result for each task."""
    results = [json.loads(path.read_text("utf-8")) for path in sorted((FOLDER / "results").glob("*.json"))]
    for question in WITH_ARMS:
        runs = read_runs(FOLDER / f"results/{question}.csv.gz")
        for task in dict.fromkeys(run["task"] for run in runs):
            own = [run for run in runs if run["task"] == task]
            results.append({"question": question, "task": task, "runs": own})
    if (path := FOLDER / "results/retrieval.csv.gz").is_file():
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            results.append({"question": "retrieval", "rows": list(csv.DictReader(file))})
    return results


def caption(question: str) -> tuple[str, str]:
    """Heading and introduction of a question: the docstring of its script, without the lines that show commands."""
    script = (FOLDER / f"{question}.py").read_text(encoding="utf-8")
    heading, mark, rest = (ast.get_docstring(ast.parse(script)) or "").partition("?")
    paragraphs = [part.strip() for part in rest.split("\n\n") if part and not part.startswith("    ")]
    return heading + mark, "\n\n".join(paragraphs)


def begin(record: Record, *facts: str) -> str:
    """The command of a result, and what is said of it."""
    return f"\n`{record['command']}`: {'; '.join(facts)}.\n\n"


def machine(record: Record) -> str:
    threads = f"{record['threads']} thread{'s' * (record['threads'] > 1)}"
    return f"{record['device']}, {threads}, torch {record['versions']['torch']}"


def seeds(record: Record) -> str:
    return f"seeds {', '.join(map(str, sorted({run['seed'] for run in record['runs']})))}"


def stated(record: Record, form: str = "") -> str:
    """The entries of the settings, each with its name."""
    return ", ".join(f"{name} {value:{form}}" for name, value in record["settings"].items())


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]) + "\n"


def plan(record: Record) -> str:
    """Estimates of memory beside measured peaks."""
    rows = []
    for run in record["runs"]:
        sizes = (f"{run[name] / 1e9:.2f}" for name in ("estimated", "measured"))
        difference = f"{100 * (run['estimated'] / run['measured'] - 1):+.1f} %"
        rows.append([run["case"], f"{run['parameters'] / 1e6:.1f}M", *sizes, difference])
    columns = ["recipe", "parameters", "estimate, GB", "measured, GB", "difference"]
    return begin(record, machine(record)) + table(columns, rows)


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


def pretrained_articles(record: Record) -> str:
    """A row for each contender and difference, a column for all, long and short articles."""
    columns = ["", *(f"{part}, {number} articles" for part, number in record["articles"].items())]
    rows = [[name, *values.values()] for name, values in record["rows"].items()]
    return begin(record, seeds(record), machine(record)) + table(columns, rows)


WITH_ARMS = ("pretrained_hierarchy", "continued_pretraining", "bert_summaries", "labels")
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
    ],
    "markers": [
        ("head", "untrained", "head", "no hierarchy"),
        ("head", "MLM", "head", "untrained"),
        ("head", "MLM and markers", "head", "MLM"),
        ("head", "MLM and markers", "head", "no hierarchy"),
        ("head", "blocks, SAR", "head", "blocks"),
    ],
    "summaries": [
        ("all", "HAT", "all", "baseline"),
        ("all", "HAT", "rules", "lead"),
        ("all", "HAT", "rules", "constant"),
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
LENGTHS = (1024, 2048, 4096, 8192)  # tokens of `--longest`
for shorter, longer in zip(LENGTHS, (*LENGTHS[1:], None), strict=True):
    for arm in ("chunks, N|D", "window"):
        one = f"{arm}, {longer} tokens" if longer else arm
        PAIRS["evidence"].append(("head", one, "head", f"{arm}, {shorter} tokens"))
for length in LENGTHS:
    PAIRS["evidence"].append(("head", f"window, {length} tokens", "head", f"chunks, N|D, {length} tokens"))
PAIRS["evidence"].append(("head", "window", "head", "chunks, N|D"))
Cell = tuple[str, str]
DRAWS = 2000  # of documents and trainings, for an interval


def cells_of(record: Record) -> dict[Cell, list[Record]]:
    """The runs of each arm, by what is trained and its name."""
    cells: dict[Cell, list[Record]] = {}
    for run in sorted(record["runs"], key=lambda run: (ORDER.index(run["train"]), run["arm"], run["seed"])):
        cells.setdefault((run["train"], run["arm"]), []).append(run)
    return cells


@dataclass(frozen=True)
class Figure:
    """A mean in percent, or a difference, with its interval and, of a difference, the p of a two-sided test of 0."""

    mean: float
    low: float
    high: float
    p: float | None = None

    def __str__(self) -> str:
        sign = "" if self.p is None else "+"
        return f"{self.mean:{sign}.1f} [{self.low:{sign}.1f}, {self.high:{sign}.1f}]"


def figure_of(runs: Sequence[Record], figure: str, others: Sequence[Record] = ()) -> Figure:
    """The mean of a figure over the trainings in percent, with its interval; or the difference from those of others.

    `others` have the same seeds; or they are rules, which have one run for each set of tested documents. The interval
    has the 2.5 and 97.5 % quantiles of `DRAWS` draws of test documents and of trainings. Documents of one series, such
    as the meetings of one team, are drawn together. Of n trainings that tested the same documents each draw has n - 1,
    with replacement: with n, the variance would be too small by (n - 1) / n.
    """

    def values(run: Record) -> np.ndarray:
        """Sum and count of each document."""
        return np.array([run["scores"][name][figure] for name in sorted(run["scores"])], dtype=float)

    trainings: dict[tuple[str, ...], list[np.ndarray]] = {}  # by the documents that they tested
    for run in runs:
        rows = values(run)
        if others:
            tested = [other for other in others if other["scores"].keys() == run["scores"].keys()]
            (other,) = [each for each in tested if each["seed"] == run["seed"]] or tested
            rows -= values(other) * [1, 0]
        trainings.setdefault(tuple(sorted(run["scores"])), []).append(rows * [100, 1])
    folds = {names: np.stack(each) for names, each in trainings.items()}
    total = sum(fold.mean(axis=0).sum(axis=0) for fold in folds.values())
    drawn, random = np.zeros((DRAWS, 2)), np.random.default_rng(1)
    place = {name: number for number, name in enumerate(dict.fromkeys(series_of(n) for names in folds for n in names))}
    chosen = draws_of(len(place))
    for names, fold in folds.items():
        count = len(fold)
        times = random.multinomial(size := max(1, count - 1), [1 / count] * count, DRAWS) / size
        weights = chosen[:, [place[series_of(name)] for name in names]]
        drawn += np.stack([((times @ fold[:, :, part]) * weights).sum(axis=1) for part in (0, 1)], axis=1)
    means = drawn[:, 0] / drawn[:, 1]
    low, high = np.percentile(means, [2.5, 97.5])
    rarer = min(int((means <= 0).sum()), int((means >= 0).sum()))
    return Figure(total[0] / total[1], low, high, min(1.0, 2 * (rarer + 1) / (DRAWS + 1)) if others else None)


def holm(values: Sequence[float]) -> list[float]:
    """The p of several tests adjusted by Holm's method (1979)."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = largest
    return adjusted


@cache
def draws_of(units: int) -> np.ndarray:
    """How often each document or series is in each of 2,000 test sets, drawn as `hat score` draws them with seed 1."""
    random = np.random.default_rng(1)
    return np.stack([np.bincount(random.integers(0, units, units), minlength=units) for _ in range(DRAWS)])


def arms(record: Record) -> str:
    """A row for each arm, and for each difference."""
    cells = cells_of(record)
    names = list(next(iter(record["runs"][0]["scores"].values())))
    rows: list[Sequence[Any]] = []
    for (trained, arm), runs in cells.items():
        values = [figure_of(runs, name) for name in names]
        spent = [run["cpu_seconds"] for run in runs if "cpu_seconds" in run and run["device"].startswith("CPU")]
        minutes = f"{sum(spent) / 60 / len(spent):.1f}" if spent else ""
        size = f"{runs[0]['parameters']:,}" if "parameters" in runs[0] else ""
        seeds = ", ".join(str(run["seed"]) for run in runs) if len(runs) < 8 else f"{len(runs)} runs"
        rows.append([trained, escaped(arm), size, seeds, *values, minutes])
    text = f"\n### {record['task']}\n\n" + ", ".join(sorted({machine(run) for run in record["runs"]})) + ".\n\n"
    text += table(["trained", "arm", "parameters trained", "seeds", *names, "CPU minutes of a run"], rows)
    differences: list[tuple[str, int, list[Figure]]] = []
    missing = []
    for *minuend, trained, arm in PAIRS[record["task"]]:
        one, other = cells.get((minuend[0], minuend[1]), []), cells.get((trained, arm), [])
        if trained != "rules":  # which have no seeds, but one run for each fold
            common = {run["seed"] for run in one} & {run["seed"] for run in other}
            one, other = ([run for run in runs if run["seed"] in common] for runs in (one, other))
        name = escaped(f"{minuend[1]} ({minuend[0]}) - {arm} ({trained})")
        if one and other:
            differences.append((name, len(one), [figure_of(one, figure, other) for figure in names]))
        else:
            missing.append(name)
    if differences:
        tests = [holm([figures[place].p or 1.0 for *_, figures in differences]) for place in range(len(names))]
        rows = [
            [name, n, *(cell for pair in zip(figures, (f"{p:.3f}" for p in own), strict=True) for cell in pair)]
            for (name, n, figures), *own in zip(differences, *tests, strict=True)
        ]
        text += "\n" + table(["difference", "runs", *(cell for name in names for cell in (name, "p"))], rows)
    text += learning_curves(cells) + different_texts(cells)
    return text + (f"\nNot run yet: {'; '.join(missing)}.\n" if missing else "")


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


def different_texts(cells: dict[Cell, list[Record]]) -> str:
    """How many different texts each arm wrote, seed by seed, if the runs say it."""
    written = {arm: [run["different_texts"] for run in runs] for (_, arm), runs in cells.items()
               if "different_texts" in runs[0]}  # fmt: skip
    told = "; ".join(f"{arm} {', '.join(map(str, numbers))}" for arm, numbers in written.items())
    return f"\nDifferent texts that each wrote, seed by seed: {told}.\n" if told else ""


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def draw_pretrained_hierarchy() -> None:
    """The first figure of each arm and seed, a panel for each task, as docs/pretrained_hierarchy.svg."""
    pyplot = pyplot_of("pretrained_hierarchy")
    answers = [record for record in records() if record["question"] == "pretrained_hierarchy"]
    heights = [len(cells_of(record)) for record in answers]
    figure, axes = pyplot.subplots(
        len(answers), figsize=(8, 1 + 0.25 * sum(heights)), height_ratios=heights, squeeze=False, layout="constrained"
    )
    for axis, record in zip(axes[:, 0], answers, strict=True):
        name = next(iter(next(iter(record["runs"][0]["scores"].values()))))
        for place, ((trained, _), runs) in enumerate(cells_of(record).items()):
            interval = figure_of(runs, name)
            axis.plot([interval.low, interval.high], [-place, -place], color=f"C{ORDER.index(trained)}")
            axis.plot([interval.mean], [-place], "o", color=f"C{ORDER.index(trained)}")
        labels = [arm if trained == "rules" else f"{arm} ({trained})" for trained, arm in cells_of(record)]
        axis.set_yticks([-place for place in range(len(labels))], labels)
        axis.set(xlabel=f"{record['task']}: {name}, %, with intervals over documents and trainings")
        axis.grid(alpha=0.3)
    figure.savefig(FOLDER.parent / "docs/pretrained_hierarchy.svg", metadata={"Date": None})


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


def pyplot_of(salt: str) -> Any:
    """matplotlib's pyplot, which draws the same bytes each time."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": salt, "svg.fonttype": "none"}
    from matplotlib import pyplot

    return pyplot


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


OWN_TABLES = {
    each.__name__: each for each in (plan, lra, load, preprocessing, floor, amp, busy, pretrained_articles, retrieval)
}
OWN_TABLES |= dict.fromkeys(WITH_ARMS, arms)
# With tables of `interleaved`.
TIMED = ("gpu", "long_encoders", "modern_encoders", "pretrained_length", "ablation", "training", "generation")
TIMED += ("workers", "precision", "long_training")


def interleaved(record: Record) -> str:
    """One machine's comparison in the format of `harness.py`."""
    names = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "torch")
    processes = {(process["setting"], process["contender"]): process for process in record["processes"]}
    rows = []
    for setting in record["settings"]:
        for name, row in record["summary"][setting["name"]].items():
            key = setting["name"], name
            cells = {"setting": setting["name"], "contender": label(record, name, setting)}
            cells |= figures(row, processes[key])
            cells |= rates([run for run in record["runs"] if (run["setting"], run["contender"]) == key])
            rows.append(cells)
    columns = list(dict.fromkeys(column for column in COLUMNS if any(column in cells for cells in rows)))
    cells_of = ([cells.get(column, "").replace("|", "\\|") for column in columns] for cells in rows)
    text = begin(record, f"{record['dtype']}, {machine(record)}, {names}", common(record)) + table(columns, cells_of)
    return text + "".join(f"{line}\n" for line in [*verified(record), *largest_batches(record)])


COLUMNS = ["setting", "contender", "parameters without tables", "parameters", "seconds", "times", "tokens/s"]
COLUMNS += ["documents/s", "MB/s", "CPU seconds", "peak memory, GB", "above the weights, GB"]


def label(record: Record, contender: str, setting: Record) -> str:
    return labelled(record["question"], contender).format(**setting)


def largest_batches(record: Record, memory: float = 16e9) -> list[str]:
    """How many documents fit into `memory`, from the peaks with one and with several of the same length."""
    peaks: dict[tuple[int, str], dict[int, int]] = {}
    for setting in record["settings"]:
        if set(setting.get("shares", [0])) == {1}:
            for process in (p for p in record["processes"] if p["setting"] == setting["name"]):
                by_number = peaks.setdefault((setting["length"], process["contender"]), {})
                by_number[len(setting["shares"])] = process["peak_bytes"]
    fits: dict[int, list[str]] = {}
    for (length, name), by_number in peaks.items():
        if len(by_number) > 1:
            (one, few), (least, most) = sorted(by_number), sorted(by_number.values())
            number = one + int((memory - least) / ((most - least) / (few - one)))
            fits.setdefault(length, []).append(f"{label(record, name, record['settings'][0])}: {number}")
    return [f"\nDocuments of {n:,} tokens in {memory / 1e9:.0f} GB: {'; '.join(told)}." for n, told in fits.items()]


def common(record: Record) -> str:
    """The entries common to all settings."""
    first, *others = record["settings"]
    shared = [key for key, value in first.items() if all(other.get(key) == value for other in others)]
    return ", ".join(f"{key} {first[key]}" for key in shared if key not in ("name", "contenders"))


def figures(row: dict[str, float], process: Record) -> dict[str, str]:
    """Cells of a contender in a setting."""
    cells = {"seconds": f"{row['median']:.2f} [{row['least']:.2f}, {row['most']:.2f}]"}
    if "times_median" in row:
        cells["times"] = "{times_median:.2f} [{times_least:.2f}, {times_most:.2f}]".format(**row)
    cells["CPU seconds"] = f"{row['cpu_median']:.2f}"
    if process["peak_bytes"] is not None:
        cells["peak memory, GB"] = f"{process['peak_bytes'] / 1e9:.2f}"
    if "bytes_above_weights" in process:
        cells["above the weights, GB"] = f"{process['bytes_above_weights'] / 1e9:.2f}"
    if "tables" in process:
        cells["parameters without tables"] = f"{(process['parameters'] - process['tables']) / 1e6:.1f}M"
    elif "parameters" in process:
        cells["parameters"] = f"{process['parameters'] / 1e6:.1f}M"
    return cells


def rates(runs: Sequence[Record]) -> dict[str, str]:
    """Work per second, median over the rounds, if repetitions report their work."""
    cells = {}
    for key, unit, size in (("tokens", "tokens/s", 1), ("documents", "documents/s", 1), ("bytes", "MB/s", 1e6)):
        if key in runs[0]:
            value = statistics.median(run[key] / run["seconds"] for run in runs) / size
            cells[unit] = f"{value:,.{0 if value >= 100 else 2}f}"
    return cells


def verified(record: Record) -> list[str]:
    """The sentences of the checks; once, if all settings have the same."""
    sentences = {check["setting"]: "; ".join(check["verified"]) for check in record["checks"]}
    if len(set(sentences.values())) == 1:
        sentences = {"": next(iter(sentences.values()))}
    return [f"\nVerified{f' ({name})' if name else ''}: {text}." for name, text in sentences.items() if text]


if __name__ == "__main__":
    draw_pretrained_hierarchy()
    draw_pretrained_length()
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")
