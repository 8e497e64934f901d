"""Sentence splitting of summaries before scoring; it changes summary-level ROUGE-L by up to 7 points."""

from __future__ import annotations

from collections.abc import Sequence

#: given: the items of a list, or the lines of a text; punctuation, library: as in ``hat_fairseq.data.sentence_split``;
#: files2rouge: that tool's rule, a sentence ends only at a full stop after a space; none: one sentence.
SENTENCE_METHODS = ("given", "punctuation", "library", "files2rouge", "none")


def split_summary(summary: str | Sequence[str], method: str) -> list[str]:
    """Split a summary into sentences without line breaks; empty sentences are left out.

    Args:
        summary: a text, or a sequence of sentences (which every method but ``given`` joins by a space first).
        method: one of ``SENTENCE_METHODS``.

    Raises:
        ValueError: unknown method.
    """
    if method not in SENTENCE_METHODS:
        raise ValueError(f"unknown way of splitting sentences {method!r} (known: {', '.join(SENTENCE_METHODS)})")
    given = summary.split("\n") if isinstance(summary, str) else list(summary)
    text = " ".join(" ".join(given).split())
    if method == "given":
        sentences = given
    elif method == "none":
        sentences = [text]
    elif method == "files2rouge":
        sentences = _at_spaced_full_stops(text)
    else:
        from hat_fairseq.data.sentence_split import split_sentences

        sentences = split_sentences(text, method) if text else []
    lines = (" ".join(sentence.split()) for sentence in sentences)
    return [line for line in lines if line]


def _at_spaced_full_stops(text: str) -> list[str]:
    """files2rouge's rule (its ``--eos`` at the default): every " ." ends a line, so detokenised text is one line."""
    *ended, rest = text.split(" .")
    return [sentence + " ." for sentence in ended] + [rest]
