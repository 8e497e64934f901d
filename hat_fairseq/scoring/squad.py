"""Exact match and F1 of short answers by the definition of SQuAD 2.0, and the threshold below which to answer.

Rajpurkar et al. 2016, section 6.1, and 2018. Answers are compared as bags of words without case, punctuation and
articles; of several gold answers the best one counts; for a question without answer the empty text
is right. The best threshold is the one on the no-answer score that gives the best mean score.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hat_fairseq.scoring.report import Interval, bootstrap_mean, resampling

Answers = Mapping[str, Sequence[str]]  # gold answers of each question; none: it has no answer

ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class SquadReport:
    """`scores` has the names and the order of SQuAD's evaluation (x 100, but counts, and thresholds as they are)."""

    scores: dict[str, float]
    intervals: dict[str, Interval]  # of exact and f1
    signature: str


def normalize(text: str) -> str:
    """Lower case; no punctuation (ASCII), no articles, single spaces; in this order."""
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", text).split())


def exact(answer: str, gold: str) -> float:
    """1 if both are the same after `normalize`, else 0."""
    return float(normalize(answer) == normalize(gold))


def f1(answer: str, gold: str) -> float:
    """F1 of the multisets of words; without words on one side 0, on both sides 1."""
    ours, theirs = normalize(answer).split(), normalize(gold).split()
    return word_f1(ours, theirs) if ours and theirs else float(ours == theirs)


def word_f1(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """F1 of two multisets of words; 0 if they have none in common, also if both have none."""
    common = (Counter(ours) & Counter(theirs)).total()
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def score_answers(
    predictions: Mapping[str, str],
    golds: Answers,
    no_answer_scores: Mapping[str, float] | None = None,
    threshold: float = 1.0,
    samples: int = 1000,
    seed: int = 0,
) -> SquadReport:
    """Score a text for each question.

    Args:
        predictions: the empty string where no answer is thought to exist; the ids are those of `golds`.
        no_answer_scores: for each question, higher where no answer is more likely; any unit. Without them there is no
            search for a threshold.
        threshold: questions with a higher score count as unanswered, whatever the text is (SQuAD's default: 1).
        samples, seed: of the bootstrap over questions.
    """
    raw = _raw_scores(predictions, golds)
    answerable = {identifier: bool(texts) for identifier, texts in golds.items()}
    refused = {identifier for identifier, score in (no_answer_scores or {}).items() if score > threshold}
    final = {
        name: {i: float(not answerable[i]) if i in refused else score for i, score in by_id.items()}
        for name, by_id in raw.items()
    }
    intervals = {name: bootstrap_mean(_percent(by_id, golds), samples, seed) for name, by_id in final.items()}
    scores: dict[str, float] = {name: interval.mean for name, interval in intervals.items()} | {"total": len(golds)}
    for prefix, wanted in (("HasAns", True), ("NoAns", False)):
        if chosen := [identifier for identifier in golds if answerable[identifier] == wanted]:
            means = {f"{prefix}_{name}": float(_percent(by_id, chosen).mean()) for name, by_id in final.items()}
            scores |= means | {f"{prefix}_total": len(chosen)}
    if no_answer_scores is not None:
        for name, by_id in raw.items():
            best, where = best_threshold(predictions, by_id, no_answer_scores, answerable)
            scores |= {f"best_{name}": best, f"best_{name}_thresh": where}
    limit = "" if no_answer_scores is None else f"no-answer-threshold: {threshold:g} | "
    signature = f"SQuAD 2.0 | {limit}bootstrap: {resampling(samples, seed, 'questions')} | questions: {len(golds)}"
    return SquadReport(scores, intervals, signature)


def _raw_scores(predictions: Mapping[str, str], golds: Answers) -> dict[str, dict[str, float]]:
    """Exact and F1 (0 to 1) of each question, before any threshold."""
    raw: dict[str, dict[str, float]] = {"exact": {}, "f1": {}}
    for identifier, texts in golds.items():
        # A gold answer of nothing but articles and punctuation is none; if no other is left, there is no answer.
        accepted = [text for text in texts if normalize(text)] or [""]
        for name, metric in (("exact", exact), ("f1", f1)):
            raw[name][identifier] = max(metric(predictions[identifier], text) for text in accepted)
    return raw


def _percent(by_id: Mapping[str, float], chosen: Iterable[str]) -> np.ndarray:
    return 100 * np.array([by_id[identifier] for identifier in chosen])


def best_threshold(
    predictions: Mapping[str, str],
    scores: Mapping[str, float],
    no_answer_scores: Mapping[str, float],
    answerable: Mapping[str, bool],
) -> tuple[float, float]:
    """The best mean score (x 100) of answering only questions whose no-answer score is at most a threshold, and that
    threshold; 0 if it is best to answer none.

    Questions are taken one by one in the order of their no-answer scores, as SQuAD does it: of equal scores the first
    in `no_answer_scores` comes first, and a threshold may fall between them. `scores`: exact or F1, 0 to 1.
    """
    value = best = float(sum(not has_answer for has_answer in answerable.values()))
    threshold = 0.0
    for identifier in sorted(no_answer_scores, key=no_answer_scores.__getitem__):
        if answerable[identifier]:
            value += scores[identifier]
        elif predictions[identifier]:
            value -= 1
        if value > best:
            best, threshold = value, no_answer_scores[identifier]
    return 100 * best / len(scores), threshold
