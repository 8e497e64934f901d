"""Mismatched references: the same summaries scored against the references of other documents.

Where documents are alike, a summary that fits any of them scores well. The drop against mismatched references shows
how much of the score is specific to the document.
"""

from __future__ import annotations

from collections.abc import Sequence

from hat_fairseq.scoring.rouge import METRICS, Summary, score_documents
from hat_fairseq.scoring.signature import RougeSettings
from hat_fairseq.scoring.splitting import split_summary

OTHERS = 19  # references for each summary: enough for a steady mean, and linear in the number of documents


def score_against_others(
    hypotheses: Sequence[Summary], references: Sequence[Summary], settings: RougeSettings
) -> dict[str, float]:
    """Mean F x 100 of every hypothesis against the references of the next `OTHERS` documents (going round), by metric.

    Raises:
        ValueError: a single document has no others.
    """
    if len(references) < 2:
        raise ValueError("one document alone cannot be scored against others")
    own = [split_summary(summary, settings.hypothesis_sentences) for summary in hypotheses]
    lines = [split_summary(summary, settings.reference_sentences) for summary in references]
    shifts = range(1, min(OTHERS, len(lines) - 1) + 1)
    rotated = [reference for shift in shifts for reference in (*lines[shift:], *lines[:shift])]
    scores = score_documents(own * len(shifts), rotated, settings.stem)
    return {metric: 100 * float(scores[metric].mean()) for metric in METRICS}
