"""What README, docs/when.md and docs/results.md say of our experiments is what the rows of results give.

A claim is words that stand once on a page, and what each number in them is. A table is found by its section and the
first cells of its rows. Numbers are compared as the page rounds them.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import claims
import pytest
from claims import ROOT, adjusted, arm, article, asked, counted, difference, mean_of, runs, runs_of, size_of, times
from intervals import Figure, figure_of
from study_table import series_of

README, WHEN, RESULTS = "README.md", "docs/when.md", "docs/results.md"
NAMES = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
NUMBER = re.compile(
    rf"(?<![\w.,-])[-+]?\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(NAMES)})(?= (?:run|training|seed))", re.IGNORECASE
)
INTERVAL = re.compile(r"\[[-+]?[\d.]+, [-+]?[\d.]+\]")
AP, LINES, ACCURACY, LAST = "average precision", "lines, average precision", "accuracy", "after 120 updates"
Source = float | Callable[[], Any]  # of a number, of several, or of a figure with its interval


class Claim(NamedTuple):
    page: str
    words: str
    sources: tuple[Source, ...]


class Table(NamedTuple):
    page: str
    section: str
    columns: tuple[Callable[[str], Any] | None, ...]  # of the cells after the first; None is not of our rows
    rows: dict[str, str]  # what the columns get for each first cell


def claim(page: str, words: str, *sources: Source) -> Claim:
    return Claim(page, words, sources)


def significant(task: str, metric: str, *pairs: str) -> Callable[[], list[float]]:
    """No number: the differences hold after Holm's correction."""
    return partial(corrected, task, metric, pairs, True)


def chance(task: str, metric: str, *pairs: str) -> Callable[[], list[float]]:
    """No number: the differences do not hold after Holm's correction."""
    return partial(corrected, task, metric, pairs, False)


def corrected(task: str, metric: str, pairs: Sequence[str], hold: bool) -> list[float]:
    assert all((adjusted(task, metric, pair) < 0.05) is hold for pair in pairs), pairs
    return []


def mean(source: Callable[..., Figure], *args: str) -> Callable[[], float]:
    return lambda: source(*args).mean


def seeds_of(figure: str) -> list[float]:
    """The least and the most of the network's figures, training by training."""
    sums = claims.table_of_ask()[figure]["trained"].values()
    means = [100 * sum(a for a, _ in each.values()) / sum(b for _, b in each.values()) for each in sums]
    return [min(means), max(means)]


def auroc(*parts: int) -> list[float]:
    figure = asked("answers, AUROC", "all", "trained")
    return [(figure.mean, figure.low, figure.high)[part] / 100 for part in parts or (0,)]


def by_epoch(number: int) -> list[float]:
    """The gains of the loss of the marker after an epoch, seed by seed."""
    own, other = (runs_of("markers", f"{name} (head)") for name in ("MLM and markers", "MLM"))
    return [one["test"][number] - two["test"][number] for one, two in zip(own, other, strict=True)]


def least_and_most(source: Callable[..., Figure], *args: str, last: Sequence[str]) -> list[float]:
    """The least and the most of several figures."""
    means = [source(*args, each).mean for each in last]
    return [min(means), max(means)]


def windows_of_one_training() -> list[float]:
    """How far below chunks they are with one training a fold, and the interval of the difference."""
    one, other = (runs_of("articles", f"{name} (head)") for name in ("window", "chunks"))
    first = [[run for run in each if run["seed"] <= 5] for each in (one, other)]
    figure = figure_of(first[0], "accuracy, long", first[1])
    return [-figure.mean, figure.low, figure.high]


def bits_of_words() -> list[float]:
    """The least and the most that the words of the paper are better than chunks where the word occurs elsewhere."""
    distances = ("below 128", "128 to 512", "512 to 2,048")
    gains = [mean_of(COPYING, name, "chunks (upper)") - mean_of(COPYING, name, SHOWN) for name in distances]
    return [min(gains), max(gains)]


def rouge_of_the_demo(name: str) -> list[float]:
    """A score of the model card, with its interval."""
    card = (ROOT / "hat_fairseq/demo_model/README.md").read_text("utf-8")
    return [float(each) for each in re.findall(r"[\d.]+", card.partition(f"| {name} | ")[2].partition("|")[0])]


def meetings() -> list[int]:
    """How many test meetings each domain has."""
    domains = Counter(domain for domain, _ in claims.table_of_ask()[AP]["trained"]["1"])
    return [domains[name] for name in DOMAINS]


def most_gained_by_reading() -> float:
    """The bits of a token that a model gains, the most of both kinds and tasks."""
    arms = [(task, name) for task in ("xsum", "pubmed") for name in ("HAT (all)", "baseline (all)")]
    return max(mean_of(f"summaries, {task}, bits", "gained by reading", name) for task, name in arms)


def parameters(task: str, name: str, unit: float = 1) -> float:
    return runs_of(task, name)[0]["parameters"] / unit


def minutes(task: str) -> float:
    return sum(run.get("cpu_seconds", 0) for run in claims.task_of(task)["runs"]) / 60


gain, of_ask, seeds, size = (partial(partial, source) for source in (difference, asked, runs, size_of))
SECOND, ON_UPPER = "chunks, N|D (head) - chunks (head)", "chunks, N|D (upper) - chunks (upper)"
ON_SENTENCES, NEIGHBOURS = "alone, N|D (head) - alone (head)", "alone (head) - alone, no neighbours (head)"
PATTERNS = [f"{name} (upper) - chunks (upper)" for name in ("window", "S", "HAT")]
FROZEN = [f"{name} (head) - chunks (head)" for name in ("window", "S")]
HAT, THIRD = PATTERNS[2], "HAT (upper) - chunks, three layers (upper)"
TRAINED, BEYOND = "chunks (upper) - chunks (head)", "chunks (head) - first 512 (head)"
BAG, MORE_WORDS = "chunks (head) - bag of words (rules)", "bag of words (rules) - bag of words, first 512 (rules)"
LABELLED, WORDS = ("drawn", "hyperpartisan", "imdb"), "alone, tokens (head) - words (rules)"
SENTENCES, SAR = "alone, tokens (head) - words with neighbours (rules)", "blocks, SAR (head) - blocks (head)"
HYBRID, IN_CONTEXT = "trained - hybrid", "trained - late_bm25"
DOMAINS = ("ami", "icsi", "committee")
BEST_RULES, MARKERS = ("hybrid", "passages_bm25", "late_bm25"), "MLM and markers (head) - MLM (head)"
LENGTHS = ("1024", "2048", "4096", "8192")
STEPS = [f"chunks, N|D, {more} tokens (head) - chunks, N|D, {less} tokens (head)" for less, more in pairwise(LENGTHS)]
STEPS.append("chunks, N|D (head) - chunks, N|D, 8192 tokens (head)")
ARTICLES = [f"{name} (upper) - chunks (upper)" for name in ("window", "S", "HAT", "chunks, N|D")] + FROZEN
ALPHA = "ERNIE-Sparse, alpha 5 (upper) - ERNIE-Sparse, alpha 0 (upper)"
SEVEN = [
    f"{name} (upper) - chunks (upper)"
    for name in ("window", "HAT", "S", "SD", "two levels", "blocks", "representatives")
]
ON_BASELINE, BITS = "HAT (all) - baseline (all)", "bits of a token"
FAR, GLOBAL, LEVELS = "far answers", "windows, global question (upper)", "two levels (upper) - windows (upper)"
COPYING, SHOWN, CONVERGENCE = "copying, small", "frequencies and words of the paper (rules)", "convergence, small"
# fmt: off
CLAIMS = [
    claim(README, "gains 40.6 points [34.7, 46.5] on 300 generated documents", gain("drawn", ACCURACY, WORDS),
          size("drawn"), significant("drawn", ACCURACY, WORDS)),
    claim(README, "On 3,000 reviews of IMDB it gains 2.4 [1.3, 3.4]", size("imdb"),
          gain("imdb", ACCURACY, WORDS), significant("imdb", ACCURACY, WORDS)),
    claim(README, "and on Hyperpartisan 2.5 [-0.5, 5.4], which may be chance",
          gain("hyperpartisan", ACCURACY, WORDS), chance("hyperpartisan", ACCURACY, WORDS)),
    claim(README, "(35 test meetings, 244 questions; a random order has 11.6;", size("evidence"),
          partial(counted, "evidence", "F1", "random (rules)"), mean(asked, AP, "all", "random")),
    claim(README, "not significantly better (+0.2 [-1.9, 2.0])", of_ask(AP, "all", IN_CONTEXT)),
    claim(README, "the network is 5.1 points worse [3.4, 7.6]", of_ask(AP, "icsi", "late_bm25 - trained")),
    claim(README, "and up to 6 on kinds of meetings that it was not trained on",
          lambda: max(asked(AP, name, f"late_bm25 - trained without {name}").mean for name in DOMAINS)),
    claim(README, "Its F1 is 3.1 higher [0.0, 5.4]", of_ask("F1", "all", IN_CONTEXT)),
    claim(README, "better lines (+9.6 [5.5, 13.5])", of_ask(LINES, "all", IN_CONTEXT)),
    claim(README, "knows when nothing answers (AUROC 0.948)", auroc),
    claim(README, "gains 2.1 points of accuracy [1.0, 3.3] in the roles of sentences",
          gain("roles", ACCURACY, SECOND), significant("roles", ACCURACY, SECOND)),
    claim(README, "(170 papers, 5 seeds)", size("roles"), seeds("roles", ACCURACY, SECOND)),
    claim(README, "For labels of whole documents we measured no significant gain.",
          *(chance(task, ACCURACY, SECOND) for task in ("articles", "papers"))),
    claim(README, "helped, in one: +0.9 [0.5, 1.3].", gain("roles", ACCURACY, HAT),
          significant("roles", ACCURACY, HAT), chance("roles", ACCURACY, *PATTERNS[:2]),
          chance("evidence", AP, *PATTERNS), *(chance(task, ACCURACY, *PATTERNS) for task in ("articles", "papers"))),
    claim(README, "gain as much (-0.1 [-0.8, 0.6])", gain("roles", ACCURACY, THIRD)),
    claim(README, "only with a global question, +49.0 points [39.8, 58.8]",
          gain(FAR, "all", f"{GLOBAL} - windows (upper)"),
          significant(FAR, "all", f"{GLOBAL} - windows (upper)")),
    claim(WHEN, "49.0 points more often than windows of as many keys [39.8, 58.8] (one training",
          gain(FAR, "all", f"{GLOBAL} - windows (upper)"), seeds(FAR, "all", f"{GLOBAL} - windows (upper)")),
    claim(README, "79.5 % on Hyperpartisan [76.5, 82.4], vectors of MiniLM 77.0 to 78.7",
          partial(article, "bag of words"),
          partial(least_and_most, article, last=("sentences alone", "chunks", "windows"))),
    claim(README, "46.8 ROUGE-1 [44.2, 49.3]", partial(rouge_of_the_demo, "rouge1")),
    claim(README, "1.1 to 1.7 times as fast as with fairseq's BART", partial(times, "fairseq bart", 3072)),

    claim(WHEN, "in the order of passages (+0.2 average precision [-1.9, 2.0])", of_ask(AP, "all", IN_CONTEXT)),
    claim(WHEN, "(+9.6 average precision [5.5, 13.5] over this rule)", of_ask(LINES, "all", IN_CONTEXT)),
    claim(WHEN, "whether anything answers (AUROC 0.948)", auroc),
    claim(WHEN, "Its F1 is 3.1 points higher [0.0, 5.4]", of_ask("F1", "all", IN_CONTEXT)),
    claim(WHEN, "beside another rule it is +2.6 [-0.0, 5.2]", of_ask("F1", "all", HYBRID)),
    claim(WHEN, "gains 19.5 points of average precision [15.4, 23.6]", gain("evidence", AP, BEYOND),
          significant("evidence", AP, BEYOND)),
    claim(WHEN, "of the 244 questions", partial(counted, "evidence", "F1", "random (rules)")),
    claim(WHEN, "It gains 40.6 points of accuracy over words [34.7, 46.5]", gain("drawn", ACCURACY, WORDS),
          significant("drawn", ACCURACY, WORDS)),
    claim(WHEN, "and 2.4 [1.3, 3.4] on film reviews", gain("imdb", ACCURACY, WORDS),
          significant("imdb", ACCURACY, WORDS)),
    claim(WHEN, "the gain may be chance (+2.5 [-0.5, 5.4])", gain("hyperpartisan", ACCURACY, WORDS),
          chance("hyperpartisan", ACCURACY, WORDS)),
    claim(WHEN, "gains 2.1 points of accuracy [1.0, 3.3] on the roles of sentences",
          gain("roles", ACCURACY, SECOND), significant("roles", ACCURACY, SECOND)),
    claim(WHEN, "and 1.8 [0.8, 2.8] with the two upper layers of MiniLM trained as well",
          gain("roles", ACCURACY, ON_UPPER), significant("roles", ACCURACY, ON_UPPER)),
    claim(WHEN, "For one label of an article or a paper we found no significant difference.",
          *(chance(task, ACCURACY, SECOND) for task in ("articles", "papers")), chance("articles", ACCURACY, ON_UPPER)),
    claim(WHEN, "+0.9 points of accuracy in roles [0.5, 1.3]", gain("roles", ACCURACY, HAT),
          significant("roles", ACCURACY, HAT)),
    claim(WHEN, "(difference -0.1 [-0.8, 0.6], three trainings)", gain("roles", ACCURACY, THIRD),
          seeds("roles", ACCURACY, THIRD)),
    claim(WHEN, "[about 46 average precision]", mean(asked, AP, "all", "bm25")),
    claim(WHEN, "(results.md#does-anything-answer) (AUROC 0.948)", auroc),
    claim(WHEN, "[+40.6 accuracy]", mean(difference, "drawn", ACCURACY, WORDS)),
    claim(WHEN, "[+2.4 accuracy]", mean(difference, "imdb", ACCURACY, WORDS)),
    claim(WHEN, "[+2.5 accuracy]", mean(difference, "hyperpartisan", ACCURACY, WORDS)),
    claim(WHEN, "[+3.3 accuracy]", mean(article, "beyond 512, MiniLM")),
    claim(WHEN, "[+3.0 accuracy]", mean(difference, "sentences", ACCURACY, SENTENCES)),
    claim(WHEN, "[no significant gain](results.md#a-label-for-each-article), except HAT in roles",
          chance("articles", ACCURACY, *PATTERNS)),
    claim(WHEN, "| [+0.0 accuracy](results.md#smaller-experiments) [-0.3, 0.4] |", gain("markers", ACCURACY, SAR)),

    claim(RESULTS, "the network of `hat ask` does not differ significantly from the best rules without training;",
          lambda: [] if min(asked(AP, "all", f"trained - {name}").p or 0 for name in BEST_RULES) > 0.05 else [0.0]),
    claim(RESULTS, "so 35 test meetings are 14 independent units", size("evidence"),
          lambda: len({series_of(name) for name in runs_of("evidence", "random (rules)")[0]["scores"]})),
    claim(RESULTS,
          "trained as well, 3.6M parameters. With HAT's attention they have 4.8M, with cross-segment layers 5.4M.",
          *(partial(parameters, "roles", f"{name} (upper)", 1e6) for name in ("chunks", "HAT", "SD"))),
    claim(RESULTS, "42,113 parameters", partial(parameters, "evidence", "chunks (head)")),
    claim(RESULTS, "92,163 parameters", partial(parameters, "roles", "chunks (head)")),
    claim(RESULTS, "QMSum has 20 test meetings of AMI, 9 of ICSI and 6 of committees, with 244 questions.", meetings,
          partial(counted, "evidence", "F1", "random (rules)")),
    claim(RESULTS, "n = 35 test meetings with 244 questions", size("evidence"),
          partial(counted, "evidence", "F1", "random (rules)")),
    claim(RESULTS, "n = 170 test papers", size("roles")),
    claim(RESULTS, "951 papers of SumPubmed with more than 2,000 tokens, cut at 4,096; 317 are tested", 951, 2000, 4096,
          size("papers")),
    claim(RESULTS, "The five trainings of the network have 48.5 to 49.1 average precision and 37.7 to 38.9 F1.",
          lambda: len(claims.table_of_ask()[AP]["trained"]), partial(seeds_of, AP), partial(seeds_of, "F1")),
    claim(RESULTS,
          "has +0.2 [-3.3, 3.3] on AMI, -3.3 [-5.2, -2.4] on ICSI and -3.2 [-8.3, 2.5] on committees. One training",
          *(of_ask(AP, name, f"trained without {name} - hybrid") for name in DOMAINS), 1),
    claim(RESULTS, "Minus surroundings in context + BM25 it has +0.8, -6.3 and -5.3.",
          *(mean(asked, AP, name, f"trained without {name} - late_bm25") for name in DOMAINS)),
    claim(RESULTS,
          "The network minus the best of these rules, the hybrid: +9.4 [+5.5, +12.8]; minus surroundings in context + "
          "BM25: +9.6 [+5.5, +13.5]; minus BM25: +11.3 [+7.7, +14.3].",
          *(of_ask(LINES, "all", f"trained - {name}") for name in ("hybrid", "late_bm25", "bm25"))),
    claim(RESULTS, "network's probability is 0.948 [0.944, 0.951] over five trainings", partial(auroc, 0, 1, 2), 5),
    claim(RESULTS, "get a passage, 17 % of the others do", mean(asked, "answers, false alarms", "all", "trained")),
    claim(RESULTS, "asked questions of other AMI meetings, has 0.72",
          lambda: asked("answers, AUROC", "all", "trained without ami").mean / 100),
    claim(RESULTS,
          "No attention in the upper layers of MiniLM differs significantly from chunks after Holm's correction.",
          *(chance("evidence", metric, *PATTERNS) for metric in (AP, "F1"))),
    claim(RESULTS,
          "A layer that reads neighbouring turns raises average precision; a second layer over the whole meeting "
          "raises F1, mostly through its threshold, and not average precision.", significant("evidence", AP,
          NEIGHBOURS),
          significant("evidence", "F1", SECOND, ON_SENTENCES, ON_UPPER),
          chance("evidence", AP, SECOND, ON_SENTENCES, ON_UPPER)),
    claim(RESULTS, "each gain 1.6 to 3.6 points of accuracy",
          partial(least_and_most, difference, "roles", ACCURACY, last=(NEIGHBOURS, SECOND, ON_SENTENCES, ON_UPPER,
          TRAINED)),
          significant("roles", ACCURACY, NEIGHBOURS, SECOND, ON_SENTENCES, ON_UPPER, TRAINED)),
    claim(RESULTS, "HAT's attention to sentences was significantly better than chunks (+0.9)",
          mean(difference, "roles", ACCURACY, HAT), significant("roles", ACCURACY, HAT)),
    claim(RESULTS, "(-0.1 [-0.8, +0.6], three trainings)", gain("roles", ACCURACY, THIRD),
          seeds("roles", ACCURACY, THIRD), chance("roles", ACCURACY, THIRD)),
    claim(RESULTS, "raises F1, also after Holm's correction.", significant("evidence", "F1", *STEPS)),
    claim(RESULTS, "after the correction only that from 2,048 to 4,096 tokens is significant.", 2048, 4096,
          significant("evidence", AP, STEPS[1]), chance("evidence", AP, STEPS[0], *STEPS[2:])),
    claim(RESULTS, "is better than words alone where few sentences decide, and in film reviews.",
          *(significant(task, ACCURACY, WORDS) for task in ("drawn", "imdb"))),
    claim(RESULTS, "where the words name the label, the gain is not significant.", chance("hyperpartisan", ACCURACY,
          WORDS)),
    claim(RESULTS, "in the drawn task (-31.9 [-37.2, -26.5]) and in reviews (-4.4 [-5.6, -3.2])",
          *(gain(task, ACCURACY, "context (head) - alone (head)") for task in ("drawn", "imdb"))),
    claim(RESULTS, "layers over vectors of sentences are 3.0 points of accuracy better than words",
          mean(difference, "sentences", ACCURACY, SENTENCES), significant("sentences", ACCURACY, SENTENCES)),
    claim(RESULTS, "Words add 0.6 [+0.0, +1.3] to the layers, vectors in context another 0.6 [-0.4, +2.0].",
          *(gain("sentences", ACCURACY, pair)
            for pair in ("alone, tokens (head) - alone (head)", "both, tokens (head) - alone, tokens (head)"))),
    claim(RESULTS,
          "no attention and no second layer is significantly better than chunks of 512 tokens, nor are chunks better "
          "than a bag of words.", 512, chance("articles", ACCURACY, *ARTICLES, SECOND, BAG)),
    claim(RESULTS, "What the bag of words gains from all tokens is not significant after Holm's correction, either.",
          chance("articles", ACCURACY, MORE_WORDS)),
    claim(RESULTS, "n = 645, each tested in one of five folds; 350 of them", size("articles"),
          partial(counted, "articles", "accuracy, long", "majority (rules)")),
    claim(RESULTS, "windows were 5.7 points below chunks in long articles, [-9.2, -2.4] over documents",
          windows_of_one_training),
    claim(RESULTS, "After Holm's correction no difference is significant.",
          lambda: corrected("papers", ACCURACY, list(claims.compared("papers", ACCURACY)), False)),
    claim(RESULTS, "are at +0.0 [-2.5, +2.4] and +1.1 [-1.4, +3.6] from chunks",
          *(gain("papers", ACCURACY, pair) for pair in FROZEN)),
    claim(RESULTS, "The linear layer has 85.0, the bag of words 84.2, the most frequent group 34.7.",
          *(partial(mean_of, "papers", ACCURACY, name) for name in ("mean of chunks (head)", "bag of words (rules)",
          "majority (rules)"))),
    claim(RESULTS, "A bag of the paper's own words is 4 to 5 bits better where the word occurs elsewhere.",
          bits_of_words),
    claim(RESULTS, "of the two upper layers of MiniLM, one seed, 5 CPU minutes", seeds(COPYING, "none", SEVEN[0]),
          partial(minutes, COPYING)),
    claim(RESULTS, "no network gets more than 0.08 bits below the frequencies",
          lambda: mean_of(CONVERGENCE, LAST, "frequencies (rules)") - mean_of(CONVERGENCE, LAST, "six layers (all)")),
    claim(RESULTS, "24 papers, three seeds, 4 CPU minutes", size(CONVERGENCE),
          seeds(CONVERGENCE, LAST, "hierarchy (all) - six layers (all)"), partial(minutes, CONVERGENCE)),
    claim(RESULTS,
          "self-attention regularization does not change significantly how many labels change, and neither does the "
          "attention.", lambda: corrected("shift", "changed", [pair for pair in claims.compared("shift", "changed")
                                                             if "(rules)" not in pair], False)),
    claim(RESULTS, "2 seeds, 23 CPU minutes; alpha 5 - alpha 0: changed +0.0 [-1.6, +1.2]", seeds("shift", ACCURACY,
          ALPHA),
          partial(minutes, "shift"), 5, 0, gain("shift", "changed", ALPHA)),
    claim(RESULTS, "`far answers` in [studies](../studies/tables.md): 100 questions", size(FAR)),
    claim(RESULTS, "Two levels - windows: -1.0 [-4.0, +2.2]", gain(FAR, "all", LEVELS), chance(FAR, "all", LEVELS)),
    claim(RESULTS, "global question - full: +0.4 [-6.2, +7.0]", gain(FAR, "all", f"{GLOBAL} - full (upper)"),
          chance(FAR, "all", f"{GLOBAL} - full (upper)"), significant(FAR, "all", f"{GLOBAL} - windows (upper)")),
    claim(RESULTS, "(`markers`: n = 100, 3 seeds of the head", size("markers"),
          seeds("markers", ACCURACY, "MLM (head) - untrained (head)"),
          chance("markers", ACCURACY, "MLM (head) - untrained (head)", MARKERS)),
    claim(RESULTS, "Untrained markers against no hierarchy: +1.0 [-0.1, +2.1].",
          gain("markers", ACCURACY, "untrained (head) - no hierarchy (head)")),
    claim(RESULTS, "a head is 0.5, 3.2 and 0.3 points better after its first epoch, and -0.1 [-1.1, +0.9] after eight.",
          partial(by_epoch, 0), gain("markers", ACCURACY, MARKERS)),
    claim(RESULTS, "+0.0 accuracy [-0.3, +0.4] (`markers`: n = 100, 3 seeds)", gain("markers", ACCURACY, SAR),
          size("markers"), seeds("markers", ACCURACY, SAR)),
    claim(RESULTS, "(`summaries`: 240 articles of XSum,", size("summaries, xsum")),
    claim(RESULTS, "170 papers of PubMed, from random weights;", size("summaries, pubmed")),
    claim(RESULTS, "3 seeds each, 57 CPU minutes)", seeds("summaries, xsum", "ROUGE-1", ON_BASELINE),
          lambda: minutes("summaries, xsum") + minutes("summaries, pubmed")),
    claim(RESULTS, "gains 0.00 bits a token by its own source", most_gained_by_reading),
    claim(RESULTS, "ROUGE-1 +2.4 [-1.7, +4.8] and -2.8 [-4.6, +0.1], not significant;",
          gain("summaries, xsum", "ROUGE-1", ON_BASELINE), gain("summaries, pubmed", "ROUGE-1", ON_BASELINE),
          chance("summaries, xsum", "ROUGE-1", ON_BASELINE), chance("summaries, pubmed", "ROUGE-1", ON_BASELINE)),
    claim(RESULTS, "bits -0.07 [-0.09, -0.05] and +0.49 [+0.37, +0.60].",
          gain("summaries, xsum, bits", BITS, ON_BASELINE), gain("summaries, pubmed, bits", BITS, ON_BASELINE)),
]
# fmt: on


def difference_in(task: str, *metrics: str) -> tuple[Callable[[str], Any], ...]:
    """Columns of differences, the first with the number of runs."""
    return (seeds(task, metrics[0]), *(gain(task, metric) for metric in metrics))


def arm_in(task: str, *metrics: str) -> tuple[Callable[[str], Any], ...]:
    return tuple(partial(mean_of, task, metric) for metric in metrics)


def written(task: str, figure: str, name: str) -> Figure | None:
    """A figure of summaries; rules have no bits."""
    return None if "bits" in task and "rules" in name else arm(f"summaries, {task}", figure, name)


def trainings_of_a_fold(pair: str) -> float:
    return runs("articles", ACCURACY, pair) / 5


def step(metric: str, length: str) -> Figure | None:
    """The gain over the next shorter length."""
    pair = next((each for each in STEPS if each.startswith(f"chunks, N|D{length} (head) - ")), None)
    return difference("evidence", metric, pair) if pair else None


def of_length(metric: str, length: str) -> float:
    """Of the three seeds that each length has."""
    return figure_of(runs_of("evidence", f"chunks, N|D{length} (head)")[:3], metric).mean


def windows_of_length(metric: str, length: str) -> Figure:
    return difference("evidence", metric, f"window{length} (head) - chunks, N|D{length} (head)")


def cost(name: str, length: str) -> float:
    """CPU seconds of a meeting cut at a length, or the peak memory."""
    result = json.loads((ROOT / "studies/results/pretrained_length.json").read_text("utf-8"))
    setting, arm = length.removeprefix(", ") or "12288 tokens", "chunks, N|D"
    (process,) = (each for each in result["processes"] if (each["setting"], each["contender"]) == (setting, arm))
    return process["peak_bytes"] / 1e9 if name == "memory" else result["summary"][setting][arm]["cpu_median"]


LENGTH_COLUMNS = (
    *(partial(make, metric) for make in (of_length, step, windows_of_length) for metric in (AP, "F1")),
    *(partial(cost, name) for name in ("seconds", "memory")),
)
MEETINGS = (*(of_ask(AP, name) for name in ("ami", "icsi", "committee", "all")), of_ask("F1", "all"))
OF_LINES = tuple(of_ask(LINES, name) for name in ("ami", "icsi", "committee", "all"))
RULES = {
    "random": "random",
    "the turn alone, cosine": "alone",
    "the best turn of its chunk of 512 tokens, cosine": "best_of_chunk",
    "its chunk of 512 tokens, cosine": "chunk",
    "passages of 256 tokens that overlap, cosine": "passages",
    "its surroundings in context, cosine": "late",
    "BM25, smoothed, rare question words weigh more": "bm25",
    "passages + BM25 + the best turn nearby": "hybrid",
    "passages + BM25": "passages_bm25",
    "surroundings in context + BM25": "late_bm25",
    "**the network of `hat ask`**, mean of five seeds": "trained",
}
OF_NETWORK = {name: f"trained - {rule}" for name, rule in list(RULES.items())[6:10]}
UPPER, ROLES = ", upper layers trained", "mean F1 of roles"
DISTANCES = ("below 128", "128 to 512", "512 to 2,048", "none")
SEVEN_IN = tuple(lambda _, at=at: least_and_most(difference, COPYING, at, last=SEVEN) for at in DISTANCES)
# fmt: off
TABLES = [
    Table(README, "Ask a meeting", MEETINGS, {
        "BM25, smoothed, with weights of question words": "bm25",
        "MiniLM's vectors of the surroundings, and BM25": "late_bm25",
        "**the network of `hat ask`**, mean of five seeds": "trained"}),
    Table(RESULTS, "what scores a turn | AMI | ICSI | committees | all | all, F1", MEETINGS, RULES),
    Table(RESULTS, "the network minus | AMI", MEETINGS, OF_NETWORK),
    Table(RESULTS, "what scores a turn | AMI | ICSI | committees | all |\n", OF_LINES, RULES),
    Table(RESULTS, "Which parts of the network help on meetings?", difference_in("evidence", AP, "F1"), {
        "text beyond the first 512 tokens: chunks of 512 - first 512": BEYOND,
        "two trained layers, over neighbours - the best rule without training":
            "chunks (head) - cosine, best of its chunk (rules)",
        "layers that read 24 neighbours - the turn alone": NEIGHBOURS,
        "second layer: whole document - neighbours, on chunks, one absolute threshold": SECOND,
        "second layer: whole document - neighbours, on turns alone": ON_SENTENCES,
        f"second layer: whole document - neighbours, on chunks{UPPER}": ON_UPPER,
        f"chunks - first 512{UPPER}": "chunks (upper) - first 512 (upper)",
        "chunks - turns that are encoded alone": "chunks (head) - alone (head)",
        "windows - chunks": FROZEN[0],
        "segments of 128 tokens - chunks": FROZEN[1],
        "upper layers trained - frozen, on chunks": TRAINED,
        f"windows - chunks{UPPER}": PATTERNS[0],
        f"segments of 128 tokens - chunks{UPPER}": PATTERNS[1],
        f"HAT's attention to turns - windows{UPPER}": "HAT (upper) - window (upper)",
        f"HAT's attention to turns - chunks{UPPER}": HAT,
        f"cross-segment layer - segments alone{UPPER}": "SD (upper) - S (upper)",
        "Poolingformer's two levels - windows of equal keys and parameters": "two levels (upper) - window (upper)",
        f"representatives of ERNIE-Sparse - its blocks alone{UPPER}": "representatives (upper) - blocks (upper)"}),
    Table(RESULTS, "one run on both, chunks with seed 1", arm_in("evidence", AP, "F1"), {
        "turns of the chunk with the best turn by cosine": "cosine, best of its chunk (rules)",
        "chunks, second layer over the whole meeting": "chunks, N|D (head)",
        f"chunks, second layer over the whole meeting{UPPER}": "chunks, N|D (upper)"}),
    Table(RESULTS, "Which parts of the network help on the roles of sentences?",
          difference_in("roles", ACCURACY, ROLES), {
        "the sentence alone - the most frequent role of its place":
            "alone, no neighbours (head) - most frequent of its twentieth (rules)",
        "sentences encoded in chunks - alone, no layer reads others":
            "chunks, no neighbours (head) - alone, no neighbours (head)",
        "layers that read 24 neighbours - the sentence alone": NEIGHBOURS,
        "second layer: whole paper - neighbours, on chunks": SECOND,
        "second layer: whole paper - neighbours, on sentences alone": ON_SENTENCES,
        "both layers: whole paper - only the second, on sentences alone": "alone, D|D (head) - alone, N|D (head)",
        f"second layer: whole paper - neighbours, on chunks{UPPER}": ON_UPPER,
        "upper layers trained - frozen, on chunks": TRAINED,
        f"windows - chunks{UPPER}": PATTERNS[0],
        f"segments of 128 tokens - chunks{UPPER}": PATTERNS[1],
        f"cross-segment layers - segments alone{UPPER}": "SD (upper) - S (upper)",
        f"HAT's attention to sentences - windows{UPPER}": "HAT (upper) - window (upper)",
        f"HAT's attention to sentences - chunks{UPPER}": HAT,
        "three trained layers on chunks - two": "chunks, three layers (upper) - chunks (upper)",
        "HAT's attention to sentences - three trained layers on chunks": THIRD}),
    Table(RESULTS, "bf16 on one kind of CPU.", arm_in("roles", ACCURACY, ROLES), {
        "a bag of words of the sentence alone": "bag of words (rules)",
        "the most frequent role of the place": "most frequent of its twentieth (rules)",
        "chunks, second layer over the whole paper": "chunks, N|D (head)",
        f"chunks, second layer over the whole paper{UPPER}": "chunks, N|D (upper)"}),
    Table(RESULTS, "How much of the meeting must be read?", LENGTH_COLUMNS, {
        **{f"{int(length):,}": f", {length} tokens" for length in LENGTHS}, "all": ""}),
    Table(RESULTS, "Labels from sentences with learned weights, and words",
          tuple(partial(mean_of, task, ACCURACY) for task in LABELLED), {
        "the label that most documents have": "majority (rules)",
        "words and pairs of words, first 512 tokens": "words, first 512 tokens (rules)",
        "all words and pairs of words": "words (rules)",
        "tokens and pairs of tokens": "tokens (rules)",
        "mean of the vectors, logistic regression": "mean of vectors (rules)",
        "gated attention": "alone (head)",
        "gated attention and tokens, on vectors in context": "context, tokens (head)"}),
    Table(RESULTS, "Labels from sentences with learned weights, and words",
          tuple(gain(task, ACCURACY) for task in LABELLED), {
        "**the recipe minus words**": WORDS,
        "the recipe minus tokens": "alone, tokens (head) - tokens (rules)"}),
    Table(RESULTS, "Labels from sentences with learned weights, and words",
          tuple(partial(arm, task, ACCURACY) for task in LABELLED), {
        "**gated attention and tokens, as in the recipe**": "alone, tokens (head)"}),
    Table(RESULTS, "A label for each sentence, beside words", (partial(arm, "sentences", ACCURACY),), {
        "the most frequent role of its place": "place (rules)",
        "words of the sentence": "words of the segment (rules)",
        "words of the sentence and of its neighbours, and its place": "words with neighbours (rules)",
        "the layers on vectors of sentences alone": "alone (head)",
        "**the layers beside words, as in the recipe**": "alone, tokens (head)",
        "the layers beside words, with `--unit-vectors both`": "both, tokens (head)"}),
    Table(RESULTS, "A label for each sentence, beside words", (gain("sentences", ACCURACY),), {
        "**the recipe minus words with neighbours**": SENTENCES}),
    Table(RESULTS, "A label for each article",
          (trainings_of_a_fold, *difference_in("articles", ACCURACY, "accuracy, long")[1:]), {
        "bag of words: all tokens - first 512": MORE_WORDS,
        "text beyond the first 512 tokens: chunks of 512 - first 512": BEYOND,
        "second layer: whole article - neighbours, on chunks": SECOND,
        "second layer: whole article - neighbours, on sentences alone": ON_SENTENCES,
        "chunks - bag of words": BAG,
        "mean of sentences in chunks - two layers, first 512": "mean of chunks (head) - first 512 (head)",
        "two upper layers trained - frozen, on chunks": TRAINED,
        "with trained upper layers: chunks of 512 - first 512": "chunks (upper) - first 512 (upper)",
        "segments of 128 tokens - chunks of 512": PATTERNS[1],
        "windows - chunks of 512": PATTERNS[0],
        "cross-segment layers (Chalkidis et al. 2022) - segments alone": "SD (upper) - S (upper)",
        "HAT's attention to sentences - windows": "HAT (upper) - window (upper)",
        "HAT's attention to sentences - chunks of 512": HAT,
        f"second layer: whole article - neighbours, on chunks{UPPER}": ON_UPPER,
        "representatives of ERNIE-Sparse - its blocks alone": "representatives (upper) - blocks (upper)",
        "two levels of Poolingformer - windows of equal keys": "two levels (upper) - window (upper)"}),
    Table(RESULTS, "A label for each paper", (gain("papers", ACCURACY),), {
        "bag of words: all tokens - first 512": MORE_WORDS,
        "mean of sentences in chunks - two layers, first 512": "mean of chunks (head) - first 512 (head)",
        "text beyond the first 512 tokens: chunks of 512 - first 512": BEYOND,
        "two layers - a linear layer on the mean, on chunks": "chunks (head) - mean of chunks (head)",
        "second layer: whole paper - neighbours, on chunks": SECOND,
        "chunks - bag of words": BAG,
        "two upper layers trained - frozen, on chunks": TRAINED,
        "with trained upper layers: chunks of 512 - first 512": "chunks (upper) - first 512 (upper)",
        f"segments of 128 tokens - chunks of 512{UPPER}": PATTERNS[1],
        f"windows - chunks of 512{UPPER}": PATTERNS[0],
        f"cross-segment layers - segments alone{UPPER}": "SD (upper) - S (upper)",
        f"HAT's attention to sentences - windows{UPPER}": "HAT (upper) - window (upper)",
        f"HAT's attention to sentences - chunks of 512{UPPER}": HAT}),
    Table(RESULTS, "Which attention carries words from afar?", arm_in(COPYING, *DISTANCES), {
        "frequencies": "frequencies (rules)",
        "frequencies and words of the paper": SHOWN,
        "chunks of 512": "chunks (upper)"}),
    Table(RESULTS, "Which attention carries words from afar?", difference_in(COPYING, *DISTANCES)[1:], {
        "full attention - chunks": "full (upper) - chunks (upper)"}),
    Table(RESULTS, "Which attention carries words from afar?", SEVEN_IN, {"the seven others - chunks": ""}),
    Table(RESULTS, "bits a masked token after 120 updates", (*arm_in(CONVERGENCE, LAST), None), {
        "frequencies of tokens": "frequencies (rules)",
        "hierarchy, six layers": "hierarchy (all)",
        "no hierarchy, six layers": "six layers (all)",
        "no hierarchy, eight layers, equal parameters": "eight layers (all)"}),
    Table(RESULTS, "bits a masked token after 120 updates", (None, gain(CONVERGENCE, LAST)), {
        "no hierarchy, six layers": "hierarchy (all) - six layers (all)",
        "no hierarchy, eight layers, equal parameters": "hierarchy (all) - eight layers (all)"}),
    Table(RESULTS, "percent of 215 articles",
          arm_in("shift", ACCURACY, "changed by 1", "changed by 8", "changed by 64"), {
        "bag of words": "bag of words (rules)",
        **{f"ERNIE-Sparse, alpha {alpha}": f"ERNIE-Sparse, alpha {alpha} (upper)" for alpha in (0, 5)},
        **{name: f"{name} (upper)" for name in ("full", "windows", "chunks")}}),
    Table(RESULTS, "| | XSum, ROUGE-1 | PubMed, ROUGE-1 |", tuple(partial(written, task, figure) for task, figure in (
        ("xsum", "ROUGE-1"), ("pubmed", "ROUGE-1"), ("xsum, bits", BITS), ("pubmed, bits", BITS))), {
        "the first words of the document": "lead (rules)", "the best constant training summary": "constant (rules)",
        "HAT": "HAT (all)", "no hierarchy": "baseline (all)"}),
    Table(RESULTS, "which of about 40 paragraphs answers the question?",
          (partial(arm, FAR, "all"), *arm_in(FAR, "0 to 128", "512 to 1,024", "2,048 to 4,096")), {
        "BM25": "BM25 (rules)", "cosine of question and paragraph, frozen MiniLM": "cosine (rules)",
        "full attention": "full (upper)", "windows of 192, global question": GLOBAL,
        "windows of 192": "windows (upper)", "windows of 64 and pooled keys of 512": "two levels (upper)"}),
    Table(RESULTS, "| figure | wanted | reached |", (None, lambda source: values(source())), {
        "passages, average precision, over the best rule of validation": of_ask(AP, "all", IN_CONTEXT),
        "passages, F1": of_ask("F1", "all", "trained"),
        "in no domain more than 1 below the hybrid": of_ask(AP, "icsi", HYBRID),
        "lines, average precision, over the best rule": of_ask(LINES, "all", HYBRID),
        "lines, average precision, over BM25": of_ask(LINES, "all", "trained - bm25"),
        "without a domain, over the hybrid there":
            lambda: [asked(AP, name, f"trained without {name} - hybrid").mean for name in DOMAINS],
        'AUROC of "nothing answers"': auroc}),
]
# fmt: on


def value_of(number: str) -> float:
    return NAMES[number.lower()] if number.lower() in NAMES else float(number.replace(",", ""))


def values(value: Any) -> list[float]:
    if isinstance(value, Figure):
        return [value.mean, value.low, value.high]
    return [float(each) for each in value] if isinstance(value, Sequence) else [float(value)]


def assert_numbers(text: str, expected: Sequence[float]) -> None:
    """Each number is the expected one, rounded to its digits."""
    printed = [number.rstrip(",") for number in NUMBER.findall(text)]
    digits = [len(number.partition(".")[2]) for number in printed]
    rounded = [float(f"{value:.{size}f}") for value, size in zip(expected, digits, strict=True)]
    assert [value_of(number) for number in printed] == rounded, text


def assert_cell(cell: str, value: Any) -> None:
    """A cell has a figure with or without its interval; a difference is bold if its interval does not contain 0."""
    assert_numbers(cell, values(value)[: len(NUMBER.findall(cell))])
    if isinstance(value, Figure) and value.p is not None:
        assert ("**" in cell) == (value.low > 0 or value.high < 0), cell


@cache
def words_of(page: str) -> str:
    return " ".join((ROOT / page).read_text("utf-8").split())


def line_of(table: Table, first: str) -> str:
    begin = (ROOT / table.page).read_text("utf-8").partition(table.section)[2]
    return next(line for line in begin.splitlines() if line.startswith(f"| {first} |"))


@pytest.mark.parametrize(("page", "words", "sources"), CLAIMS)
def test_a_claim_is_what_its_rows_give(page: str, words: str, sources: Sequence[Source]) -> None:
    assert words_of(page).count(words) == 1
    computed = [source() if callable(source) else source for source in sources]
    assert_numbers(words, [number for value in computed for number in values(value)])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.page}-{table.section[:40]}")
def test_a_table_is_what_its_rows_give(table: Table) -> None:
    for first, key in table.rows.items():
        cells = line_of(table, first).removeprefix(f"| {first} |").removesuffix("|").split("|")
        for cell, column in zip(cells, table.columns, strict=True):
            value = column(key) if column else None
            if value is not None:
                assert NUMBER.search(cell), first
                assert_cell(cell, value)


@pytest.mark.parametrize("page", [README, WHEN, RESULTS])
def test_every_interval_is_claimed(page: str) -> None:
    text = words_of(page)
    for table in (each for each in TABLES if each.page == page):
        for first in table.rows:
            text = text.replace(line_of(table, first), "")
    for each in (each for each in CLAIMS if each.page == page):
        text = text.replace(each.words, "")
    assert INTERVAL.findall(text) == []
