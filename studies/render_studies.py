#!/usr/bin/env python3
"""Render the results in `studies/results/` as `studies/tables.md`.

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
from intervals import Figure, figure_of, holm
from page import Record, begin, caption, escaped, machine, records_of, table
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
FINISHED = {  # studies whose programs have left: heading, and what their rows are
    "pretrained_articles": (
        "Do frozen vectors of an encoder label long articles better than words?",
        "Hyperpartisan, 645 articles, each tested in one of ten folds; a logistic regression on frozen vectors.",
    ),
    "pretrained_hierarchy": (
        "What does hierarchy buy from a pre-trained start, on real documents?",
        """All start from all-MiniLM-L6-v2, whose embeddings and four lower layers are frozen and read chunks of 512
tokens. The two upper layers have the attention of the arm, over the whole document. In a head that follows, layers N
read 24 neighbours, layers D all vectors of the document. `head`: MiniLM is frozen, and the head trained;
`upper`: the two upper layers are trained with it. In `alone` each turn or sentence is encoded by itself.

`evidence`: which turns of a meeting answer a question (QMSum; 162, 35 and 35 meetings, 1,095, 237 and 244 questions).
`roles`: is a sentence of a paper background, result or conclusion (SumPubmed; 400, 130 and 170 papers). `articles`: is
an article hyperpartisan (SemEval-2019 Task 4, 645 articles, each tested once by five seeds; long ones have more than
512 tokens). `papers`: the group of organisms that a paper studies (951 papers of SumPubmed, cut at 4,096 tokens; 317
are tested; the labels are words of the abstract, which no model reads).""",
    ),
    "continued_pretraining": (
        "Does the marker of a sentence learn faster after continued pre-training, with or without a loss of its own?",
        """2,000 updates of a masked LM (`MLM`), or with a loss of the marker (`MLM and markers`), then a head on frozen
states of markers, which learns the roles of sentences from 80 papers; 100 are tested.""",
    ),
    "convergence": (
        "Does a masked LM converge faster with the hierarchy of HAT?",
        "Bits a masked token after so many updates, from random weights; less is better.",
    ),
    "copied_words": (
        "Which long attention carries words from afar, and which only topics?",
        """Bits a masked piece of a rare word, by the distance in tokens to its nearest occurrence that is not masked
(`none`: it occurs nowhere else); less is better.""",
    ),
    "shift": (
        "Does self-attention regularization keep a prediction where it is when a document moves by some tokens?",
        """`changed`: the share of labels that change when 1, 8 or 64 full stops stand before an article; `divergence`:
half of KL in both directions, in 0.01 nats.""",
    ),
    "far_answers": (
        "How far from its question does an attention find an answer, with equally many keys?",
        """Which of about 40 paragraphs of Natural Questions answers the question, by the tokens between question and
answer. The two upper layers of MiniLM are trained; 100 test questions.""",
    ),
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
    return INTRODUCTION + "".join(section(question, make) for question, make in TABLES.items())


def section(question: str, make: Any) -> str:
    """One question with all its results; the program says what it is, or a finished study's entry above."""
    heading, introduction = FINISHED.get(question) or caption(FOLDER / f"{question}.py")
    own = [record for record in records() if record["question"] == question]
    return f"\n## {heading}\n\n{introduction}\n" + "".join(map(make, own))


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


TABLES = {"pretrained_articles": pretrained_articles, "retrieval": retrieval, **dict.fromkeys(WITH_ARMS, arms)}


if __name__ == "__main__":
    ArgumentParser(description=__doc__).parse_args()
    (FOLDER / "tables.md").write_text(page(), encoding="utf-8")
