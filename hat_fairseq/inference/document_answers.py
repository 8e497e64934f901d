"""Finds the paragraph and the answer of a question on a document, from the scores of three heads in all its windows.

All scores are relative to "none" in the same window, so that those of several windows can be compared:

    short answer   start + end logit, minus the two of "none", plus type logit `span` minus type logit `none`
    paragraph      its logit (that of "none" is 0), plus log-sum-exp of all types but `none`, minus type logit `none`

The best of all windows count. If `yes` or `no` is the likeliest type, `none` left out, in the window with the best
paragraph, it is the answer, with the logit of this paragraph plus its type logit minus that of `none`. The paper (Zhang
et al. 2021) does not say how it combines the heads; thresholds are tuned on a development part.

Legend: T tokens of a row (window), N paragraphs in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.labels import ANSWER_TYPES
from .answers import AnswerOptions, WindowAnswers, window_answers

NONE, SPAN, YES, NO = (ANSWER_TYPES.index(name) for name in ("none", "span", "yes", "no"))


@dataclass(frozen=True)
class DocumentWindow:
    """Scores of one window: of short answers, of paragraphs by their numbers, and of `ANSWER_TYPES`."""

    answers: WindowAnswers
    paragraphs: dict[int, float]
    types: list[float]

    def best_paragraph(self) -> tuple[float, int]:
        """The score and the number of the best paragraph."""
        any_type = torch.tensor(self.types)[1:].logsumexp(0).item() - self.types[NONE]
        number = max(self.paragraphs, key=self.paragraphs.__getitem__)
        return self.paragraphs[number] + any_type, number

    def best_answer(self) -> float:
        """The score of the best short answer; there is one."""
        return self.answers.spans[0].score - self.answers.no_answer + self.types[SPAN] - self.types[NONE]


def document_window(logits: Mapping[str, Tensor], spans: Sequence[Any], options: AnswerOptions) -> DocumentWindow:
    """The scores of a window.

    `logits`: `span` (T, 2), `paragraph` (1 + N,), `type`; padded at the end. `spans`: what each token stands for.
    """
    numbers = [span for span in spans[:-1] if isinstance(span, int)]  # truncation may leave a marker at the end
    scores = logits["paragraph"][1 : 1 + len(numbers)].tolist()
    paragraphs = dict(zip(numbers, scores, strict=True))  # a paragraph has one piece in a window
    answers = window_answers(logits["span"], spans, options.n_best, options.max_length)
    return DocumentWindow(answers, paragraphs, logits["type"].tolist())


def answer_document(
    windows: Sequence[DocumentWindow], texts: Sequence[str], options: AnswerOptions
) -> tuple[dict[str, Any], list[tuple[str, float]]]:
    """Joins the windows of a document, at least one of which has a short answer; `texts`: the paragraphs as given.

    Returns:
        The prediction without its id (see `assemble.py`); and the best short answers with their scores, all different.
    """
    windows = [window for window in windows if window.answers.spans]
    chosen = max(windows, key=lambda window: window.best_paragraph()[0])
    paragraph_score, paragraph = chosen.best_paragraph()
    found = []
    for window in windows:
        relative = window.best_answer() - window.answers.spans[0].score
        found += [(span.score + relative, span) for span in window.answers.spans]
    found.sort(key=lambda pair: -pair[0])
    answer_score, span = found[0]
    kind = max(range(1, len(ANSWER_TYPES)), key=chosen.types.__getitem__)
    record: dict[str, Any] = {"type": "none", "paragraph": None, "paragraph_score": paragraph_score}
    if paragraph_score >= options.paragraph_threshold:
        record |= {"type": "paragraph", "paragraph": paragraph}
    record |= {"answer": "", "answer_paragraph": None, "start": None, "answer_score": answer_score}
    if kind in (YES, NO):
        record["answer_score"] = chosen.paragraphs[paragraph] + chosen.types[kind] - chosen.types[NONE]
        if record["answer_score"] >= options.answer_threshold:
            record |= {"type": ANSWER_TYPES[kind], "answer": ANSWER_TYPES[kind]}
    elif answer_score >= options.answer_threshold:
        text = texts[span.paragraph][span.begin : span.end]
        record |= {"type": "span", "answer": text, "answer_paragraph": span.paragraph, "start": span.begin}
    best: dict[str, float] = {}
    for score, each in found:
        best.setdefault(texts[each.paragraph][each.begin : each.end], score)
    return record, list(best.items())[: options.n_best]
