#!/usr/bin/env python3
"""Write the figures of our results into README and the pages of docs.

    python studies/figures.py

What stands in a page between `<!-- figure NAME -->` and `<!-- /figure -->` is what `FIGURES[NAME]` computes from the
rows in `studies/results` and `benchmarks/results`. The sentences around it are free.
"""

import json
import re
import statistics
from argparse import ArgumentParser
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `page`
import numpy as np
from ask import drawn, read
from intervals import Figure, figure_of
from page import table
from render_studies import compared, in_bits, records

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKED = re.compile(r"(<!-- figure ([\w-]+) -->)(.*?)(<!-- /figure -->)", re.DOTALL)
AP, F1, LINES, ACCURACY = "average precision", "F1", "lines, average precision", "accuracy"
GROUPS = {"AMI": "ami", "ICSI": "icsi", "committees": "committee", "all": "all"}


@cache
def task_of(name: str) -> dict[str, Any]:
    return next(record for record in records() if record.get("task") == name)


@cache
def differences(task: str, metric: str) -> dict[str, Figure]:
    """The differences of a task by the names of studies/tables.md, such as `HAT (upper) - chunks (upper)`."""
    return {pair: figures[metric] for pair, (_, figures) in compared(task_of(task), [metric])[0].items()}


@cache
def arm(task: str, metric: str, name: str) -> Figure:
    """An arm with what is trained, such as `HAT (upper)`."""
    arm, _, train = name.removesuffix(")").rpartition(" (")
    runs = [run for run in task_of(task)["runs"] if (run["train"], run["arm"]) == (train, arm)]
    return figure_of(runs, metric, bits=in_bits(task_of(task)))


@cache
def draws_of_ask(figure: str, system: str, group: str) -> np.ndarray:
    seeds = list(read([ROOT / "studies/results/ask.csv.gz"])[figure][system].values())
    names = sorted({key for each in seeds for key in each if group in ("all", key[0])})
    return drawn(seeds, names, np.random.default_rng(0))


@cache
def asked(figure: str, group: str, systems: str) -> Figure:
    """A figure of a system of the study `ask`, or `ONE - OTHER`."""
    one, _, other = systems.partition(" - ")
    draws = draws_of_ask(figure, one, group) - (draws_of_ask(figure, other, group) if other else 0)
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    return Figure(draws[0], low, high, 0.0 if other else None)


def plain(figure: Figure) -> str:
    """Without signs, for a sentence that says what is better."""
    return f"{figure.mean:.1f} [{figure.low:.1f}, {figure.high:.1f}]"


def gain(task: str, metric: str, pair: str) -> str:
    return plain(differences(task, metric)[pair])


def asked_gain(figure: str, group: str, systems: str) -> str:
    return plain(asked(figure, group, systems))


def auroc(system: str = "trained") -> str:
    return f"{asked('answers, AUROC', 'all', system).mean / 100:.2f}"


def article(row: str) -> str:
    """A figure of the study `pretrained_articles`, whose result has texts."""
    result = json.loads((ROOT / "studies/results/pretrained_articles.json").read_text("utf-8"))
    return rounded(result["rows"][row]["all"])


def rounded(text: str) -> str:
    """A mean and its interval with one digit."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", text)


def in_table(heading: str, rows: dict[str, str], **columns: Callable[[str], Any]) -> str:
    """A table with a cell of each column for the key of each row."""
    cells = [[name, *(make(key) for make in columns.values())] for name, key in rows.items()]
    return "\n" + table([heading, *(name.replace("_", " ") for name in columns)], cells)


def mean_asked(figure: str, group: str) -> Callable[[str], str]:
    return lambda system: f"{asked(figure, group, system).mean:.1f}"


def passages(rows: dict[str, str]) -> str:
    """Means by domain: each has few meetings, ICSI's nine are of three groups."""
    domains = {name: mean_asked(AP, group) for name, group in GROUPS.items() if group != "all"}
    in_all = {"all": lambda system: asked(AP, "all", system), "all,_F1": lambda system: asked(F1, "all", system)}
    return in_table("what scores a turn", rows, **domains, **in_all)


def lines(rows: dict[str, str]) -> str:
    domains = {name: mean_asked(LINES, group) for name, group in GROUPS.items() if group != "all"}
    return in_table("what scores a turn", rows, **domains, all=lambda system: asked(LINES, "all", system))


def beside_rules() -> str:
    rows = {name: f"trained - {rule}" for name, rule in RULES.items() if "bm25" in rule or rule == "hybrid"}
    columns = {name: partial(asked, figure, "all") for name, figure in (("passages", AP), ("F1", F1), ("lines", LINES))}
    return in_table("the network minus", rows, **columns)


def label_tasks() -> str:
    """Accuracy of each arm, and differences, where a key is of one."""

    def cell(task: str, key: str) -> str:
        known = differences(task, ACCURACY)
        return str(known[key] if key in known else arm(task, ACCURACY, key))

    tasks = {name: partial(cell, name) for name in ("drawn", "hyperpartisan", "imdb")}
    return in_table("accuracy", LABELS, **tasks)


def distance_of_answers() -> str:
    columns = {"all_distances": "all", "below_128_tokens": "0 to 128", "2,048_to_4,096": "2,048 to 4,096"}
    first, *others = columns.items()
    cells = {name: lambda key, at=at: f"{arm('far answers', at, key).mean:.1f}" for name, at in others}
    return in_table("finds the paragraph", FAR, **{first[0]: lambda key: arm("far answers", first[1], key)}, **cells)


def by_length() -> str:
    """Figures of the first tokens of a meeting, and what each length gains over the one before it."""

    def name(length: str) -> str:
        return f"chunks, N|D{length} (head)"

    lengths = {"1,024": ", 1024 tokens", "2,048": ", 2048 tokens", "4,096": ", 4096 tokens", "8,192": ", 8192 tokens"}
    lengths["all"] = ""
    before = dict(zip(list(lengths.values())[1:], lengths.values(), strict=False))
    rows = {
        f"gain in {metric}": lambda length, own=metric: (
            differences("evidence", own)[f"{name(length)} - {name(before[length])}"] if length in before else ""
        )
        for metric in (AP, F1)
    }
    return in_table("tokens that are read", lengths, **{key.replace(" ", "_"): make for key, make in rows.items()})


RULES = {
    "random": "random",
    "the turn alone, cosine": "alone",
    "its chunk of 512 tokens, cosine": "chunk",
    "its surroundings in context, cosine": "late",
    "BM25, smoothed, with weights of question words": "bm25",
    "passages + BM25 + the best turn nearby": "hybrid",
    "passages + BM25": "passages_bm25",
    "surroundings in context + BM25": "late_bm25",
    "**the network of `hat ask`**, mean of five seeds": "trained",
}
SHORT = {name: key for name, key in RULES.items() if key in ("bm25", "late_bm25", "trained")}
RECIPE, SECOND = "alone, tokens (head)", "chunks, N|D (head) - chunks (head)"
LABELS = {
    "the label that most documents have": "majority (rules)",
    "words and pairs of words": "words (rules)",
    "tokens and pairs of tokens": "tokens (rules)",
    "mean of the vectors, logistic regression": "mean of vectors (rules)",
    "gated attention over the vectors": "alone (head)",
    "**gated attention and tokens, as in the recipe**": RECIPE,
    "the recipe minus words": f"{RECIPE} - words (rules)",
    "the recipe minus tokens": f"{RECIPE} - tokens (rules)",
}
SENTENCES = {
    "the most frequent role of its place": "place (rules)",
    "words of the sentence and of its neighbours, and its place": "words with neighbours (rules)",
    "the layers on vectors of sentences alone": "alone (head)",
    "**the layers beside words, as in the recipe**": RECIPE,
}
FAR = {
    "BM25": "BM25 (rules)",
    "cosine of question and paragraph, frozen MiniLM": "cosine (rules)",
    "full attention": "full (upper)",
    "windows of 192 tokens, global question": "windows, global question (upper)",
    "windows of 192 tokens": "windows (upper)",
    "Poolingformer's two levels, as many keys": "two levels (upper)",
}
PARTS = {
    "text beyond the first 512 tokens": "chunks (head) - first 512 (head)",
    "layers that read 24 neighbours, on turns alone": "alone (head) - alone, no neighbours (head)",
    "a second layer that reads the whole document, not neighbours": SECOND,
    "two upper layers of MiniLM trained, not frozen": "chunks (upper) - chunks (head)",
    "windows, not chunks of 512 tokens": "window (upper) - chunks (upper)",
    "segments of 128 tokens, not chunks": "S (upper) - chunks (upper)",
    "HAT's attention to sentences, not chunks": "HAT (upper) - chunks (upper)",
    "cross-segment layers, not segments alone": "SD (upper) - S (upper)",
    "HAT's attention, not a third trained layer": "HAT (upper) - chunks, three layers (upper)",
    "Poolingformer's two levels, not windows of equal keys": "two levels (upper) - window (upper)",
    "representatives of ERNIE-Sparse, not its blocks alone": "representatives (upper) - blocks (upper)",
    "chunks, not a bag of words": "chunks (head) - bag of words (rules)",
}


def parts() -> str:
    """What each part of a model gains in four tasks; empty where it was not tried."""
    tasks = {"evidence": AP, "roles": ACCURACY, "articles": ACCURACY, "papers": ACCURACY}
    columns = {task: lambda pair, own=task, metric=metric: differences(own, metric).get(pair, "")
               for task, metric in tasks.items()}  # fmt: skip
    return in_table("what is added", PARTS, **columns)


# Results that do not state the version of hat_fairseq: that of the commit which added them.
UNSTATED = {"generation_fairseq": "0.5.0", "generation_transformers": "0.5.0", "training_fairseq": "0.5.0"}
LONG, SHORTER = "3,072 tokens x {}, {} new, 6 + 6 layers", "512 tokens x 4, 64 new, 6 + 6 layers"
UPDATE = "{} to 512 tokens x 1, 6 + 6 layers of 768, attention dropout {}"
BART, INT8 = "fairseq's BART", "CTranslate2 int8, ours in int8"
Row = tuple[str, str, str, str, str, str]  # what, peer, file, setting, our contender, the peer's
SPEED: list[Row] = [
    *(("generation, 1 document of 3,072 tokens", BART, f"generation_{name}", LONG.format(1, 64), "hat", "fairseq bart")
      for name in ("fairseq", "bf16_epyc", "fairseq_avx2")),
    *(("generation, 4 of 512 tokens", BART, f"generation_{name}", SHORTER, "hat", "fairseq bart")
      for name in ("fairseq", "bf16_epyc")),
    ("generation, 4 of 3,072 tokens", "`transformers`' BART", "generation_transformers", LONG.format(4, 64), "hat",
     "transformers"),
    *(("generation, 1 of 3,072 tokens", "CTranslate2", f"generation_{name}", LONG.format(1, 128), "hat", "ctranslate2")
      for name in ("ctranslate2", "ctranslate2_avx2")),
    *(("generation, 1 of 3,072 tokens", INT8, f"generation_{name}", LONG.format(1, 128), "hat int8", "ctranslate2 int8")
      for name in ("ctranslate2", "ctranslate2_avx2")),
    *(("generation, 1 of 3,072 tokens", name, "generation_long_epyc", LONG.format(1, 64), "hat", peer)
      for name, peer in (("LED", "led"), ("T5Gemma 2", "t5gemma2"))),
    ("generation, 1 of 3,072 tokens", "ours in fp32, ours in bf16", "generation_bf16_epyc", LONG.format(1, 64),
     "hat bf16", "hat"),
    ("update, 3,072 to 512 tokens", BART, "training_amp_epyc", UPDATE.format("3,072", 0.0), "hat", "fairseq"),
    ("update, 3,072 to 512, attention dropout", BART, "training_fairseq",
     "3,072 to 512 tokens, 6 + 6 layers, attention dropout 0.1", "hat", "fairseq"),
    *((f"`hierarchical_transformer`, {length} tokens", name, "long_encoders", f"{length} tokens",
       "hierarchical_transformer", name.lower())
      for length, name in (("1,024", "ModernBERT"), ("4,096", "ModernBERT"), ("8,192", "ModernBERT"),
                           ("4,096", "Longformer"), ("4,096", "BigBird"))),
    *((f"imported ModernBERT, {length} tokens", "`transformers`", "modern_encoders",
       f"{length} tokens".replace(",", ""), "hat", "transformers") for length in ("512", "2,048", "8,192")),
]  # fmt: skip


@cache
def result(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text("utf-8"))
    return record


def times(name: str, setting: str, ours: str, peer: str) -> list[float]:
    """The peer's seconds by ours, round by round."""
    own = [run for run in result(name)["runs"] if run["setting"] == setting]
    seconds = {(run["contender"], run["round"]): run["seconds"] for run in own}
    return [each / seconds[ours, number] for (contender, number), each in seconds.items() if contender == peer]


def median(*key: str) -> str:
    return f"{statistics.median(times(*key)):.1f}"


def machine_of(name: str) -> str:
    device = result(name)["device"]
    return "Xeon, AMX" if "Xeon" in device else "EPYC, AVX2" if "AVX2" in device else "EPYC, AVX-512"


def speed() -> str:
    cells = []
    for what, peer, name, *key in SPEED:
        own = times(name, *key)
        version = result(name)["versions"].get("hat_fairseq") or UNSTATED[name]
        figure = f"{statistics.median(own):.1f}" + f" [{min(own):.1f}, {max(own):.1f}]" * (len(own) > 1)
        cells.append([what, peer, figure, machine_of(name), version])
    return "\n" + table(["ours", "beside", "times as fast", "machine", "version"], cells)


def beside_bart() -> str:
    """The least and the most of the medians over machines, from 3,072 tokens."""
    files = ("fairseq", "fairseq_epyc", "fairseq_avx2", "bf16_epyc", "bf16_amx")
    own = [statistics.median(times(f"generation_{name}", LONG.format(1, 64), "hat", "fairseq bart")) for name in files]
    return f"{min(own):.1f} to {max(own):.1f}"


def memory(length: str, contender: str) -> str:
    """Above the weights, in a training on one long document."""
    known = {(each["setting"], each["contender"]): each for each in result("long_training")["processes"]}
    return f"{known[f'{length} tokens', contender]['bytes_above_weights'] / 1e9:.2f} GB"


def busy(spin: str) -> str:
    """How many times as long a generation takes beside two busy programs."""
    runs = [run for run in result("busy")["runs"] if (run["work"], run["contender"]) == ("generation", spin)]
    return f"{statistics.median(run['busy'] / run['quiet'] for run in runs):.1f}"


def errors_of_plans() -> str:
    """The least and the most that estimates of memory are above measured peaks, in percent."""
    errors = [100 * (run["estimated"] / run["measured"] - 1) for run in result("plan_cpu")["runs"]]
    return f"{-min(errors):.0f} % below to {max(errors):.0f} % above the measured peaks of {len(errors)} trainings"


UPPER = "chunks, N|D (upper) - chunks (upper)"
FIGURES: dict[str, Callable[[], str]] = {
    "questions": partial(passages, RULES),
    "questions-short": partial(passages, SHORT),
    "lines": partial(lines, {name: key for name, key in RULES.items() if key in ("random", "alone", *SHORT.values())}),
    "beside-rules": beside_rules,
    "parts": parts,
    "lengths": by_length,
    "labels": label_tasks,
    "sentences": partial(in_table, "", SENTENCES, accuracy=partial(arm, "sentences", ACCURACY)),
    "far-answers": distance_of_answers,
    "speed": speed,
    "ask-passages": partial(asked_gain, AP, "all", "trained - late_bm25"),
    "ask-f1": partial(asked_gain, F1, "all", "trained - late_bm25"),
    "ask-lines": partial(asked_gain, LINES, "all", "trained - late_bm25"),
    "ask-icsi": lambda: f"{asked(AP, 'icsi', 'late_bm25 - trained').mean:.1f}",
    "ask-bm25": lambda: f"{asked(AP, 'all', 'bm25').mean:.0f}",
    "auroc": auroc,
    "auroc-same-series": partial(auroc, "trained without ami"),
    "false-alarms": lambda: f"{asked('answers, false alarms', 'all', 'trained').mean:.0f} %",
    **{f"unseen-{name}": lambda name=name: f"{asked(AP, name, f'trained without {name} - hybrid').mean:+.1f}"
       for name in ("ami", "icsi", "committee")},
    "beyond-512": partial(gain, "evidence", AP, PARTS["text beyond the first 512 tokens"]),
    "second-layer-f1": partial(gain, "evidence", F1, SECOND),
    "second-layer": partial(gain, "roles", ACCURACY, SECOND),
    "second-layer-upper": partial(gain, "roles", ACCURACY, UPPER),
    "hat-roles": partial(gain, "roles", ACCURACY, PARTS["HAT's attention to sentences, not chunks"]),
    "hat-third-layer": partial(gain, "roles", ACCURACY, PARTS["HAT's attention, not a third trained layer"]),
    "global-question": partial(gain, "far answers", "all", "windows, global question (upper) - windows (upper)"),
    **{f"{name}-{beside}": partial(gain, name, ACCURACY, f"{RECIPE} - {beside} (rules)")
       for name in ("drawn", "hyperpartisan", "imdb") for beside in ("words", "tokens")},
    "sentences-words": partial(gain, "sentences", ACCURACY, f"{RECIPE} - words with neighbours (rules)"),
    "articles-words": partial(article, "bag of words"),
    "articles-beyond-512": partial(article, "beyond 512, MiniLM"),
    "beside-bart": beside_bart,
    "bf16": partial(median, "generation_bf16_epyc", LONG.format(1, 64), "hat bf16", "hat"),
    "memory-kept": partial(memory, "16,384", "kept"),
    "memory-recomputed": partial(memory, "16,384", "recomputed"),
    "memory-longest": partial(memory, "65,536", "recomputed"),
    "time-recomputed": partial(median, "long_training", "16,384 tokens", "kept", "recomputed"),
    "busy-3000": partial(busy, "3000"),
    "busy-default": partial(busy, "default"),
    "plans": errors_of_plans,
}  # fmt: skip


def filled(text: str) -> str:
    """A page with all its figures; KeyError for a name that does not exist."""
    return MARKED.sub(lambda match: match[1] + FIGURES[match[2]]() + match[4], text)


if __name__ == "__main__":
    ArgumentParser(description=__doc__).parse_args()
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
