"""Targets of a criterion, made of the labels of a row in `label/{split}`.

A truncated row (see `cut_rows.py`) loses the labels of the removed tokens.

Legend: T tokens of the whole row, final `</s>` included.
"""

from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from ..data.labels import ANSWER_TYPES

IGNORED = -100  # no label here; torch's cross-entropy leaves it out


class RowTargets:
    """A class for each row; the base of the other kinds.

    Args:
        labels: indexed (L,) label ids, each row ending in `</s>`.
        dictionary: of the labels.
        source: dictionary of the tokens.
    """

    def __init__(self, labels: Any, dictionary: Dictionary, source: Dictionary) -> None:
        self.labels, self.dictionary, self.source = labels, dictionary, source

    def __len__(self) -> int:
        return len(self.labels)

    def __call__(self, index: int, tokens: Tensor, keep: np.ndarray) -> Tensor:
        """The target of row `index`: a class.

        Args:
            tokens: (T,) ids of the whole row.
            keep: (T,) bool, which of them are kept.
        Raises:
            ValueError: the labels do not belong to the row.
        """
        return self.classes(index, 1)[0]

    def collate(self, targets: list[Tensor]) -> Tensor:
        """The targets of a batch, padded with `IGNORED`."""
        if targets[0].dim() == 0:
            return torch.stack(targets)
        return data_utils.collate_tokens(targets, IGNORED, left_pad=False)

    def classes(self, index: int, expected: int) -> Tensor:
        """(L,) classes from 0, `IGNORED` for `<pad>`."""
        ids = self.labels[index][:-1].long()
        if len(ids) != expected:
            raise self.error(index, f"{len(ids)} labels where there should be {expected}")
        no_label = ids.eq(self.dictionary.pad())
        known = ids.ge(self.dictionary.nspecial) & ids.lt(len(self.dictionary))
        if not bool((known | no_label).all()):
            raise self.error(index, "a label that is not in label/dict.txt")
        return (ids - self.dictionary.nspecial).masked_fill(no_label, IGNORED)

    def error(self, index: int, problem: str) -> ValueError:
        return ValueError(f"label row {index + 1}: {problem}; preprocess the data again")


class SegmentTargets(RowTargets):
    """A class for each `<s>` of a row."""

    def __call__(self, index: int, tokens: Tensor, keep: np.ndarray) -> Tensor:
        markers = tokens.eq(self.source.bos()).numpy()
        return self.classes(index, int(markers.sum()))[torch.from_numpy(keep[markers])]


class TokenTargets(RowTargets):
    """A class for each token, or none."""

    def __call__(self, index: int, tokens: Tensor, keep: np.ndarray) -> Tensor:
        classes = self.classes(index, len(tokens) - 1)
        return torch.cat([classes, classes.new_tensor([IGNORED])])[torch.from_numpy(keep)]


class SpanTargets(RowTargets):
    """First and last token of each answer, `0 0` for none. A truncated answer counts as none."""

    def __call__(self, index: int, tokens: Tensor, keep: np.ndarray) -> Tensor:
        words = self.dictionary.string(self.labels[index]).split()
        if not words or len(words) % 2 or not all(word.isdigit() for word in words):
            raise self.error(index, f"{' '.join(words)!r:.80} are not the first and the last tokens of answers")
        places = list(map(int, words))
        spans = [self.kept_span(index, tokens, keep, *pair) for pair in zip(places[::2], places[1::2], strict=True)]
        return torch.tensor([span for span in spans if span] or [(0, 0)]).flatten()

    def kept_span(self, index: int, tokens: Tensor, keep: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
        """The span where it stands in the truncated row; None if a part of it is removed.

        Raises:
            ValueError: it is not in the second part.
        """
        possible = answer_positions(tokens[None], self.source)[0]
        if not (start <= end < len(tokens) and possible[start] and possible[end] and (start or not end)):
            raise self.error(index, f"tokens {start} to {end} of {len(tokens)} are not in the text of the question")
        if not keep[start : end + 1].all():
            return None
        before = int(keep[:start].sum())
        return before, before + end - start


class CandidateTargets(RowTargets):
    """The number of the right candidate."""

    def __call__(self, index: int, tokens: Tensor, keep: np.ndarray) -> Tensor:
        word = self.dictionary.string(self.labels[index])
        count = int(candidate_markers(tokens[None], self.source).sum())
        if not word.isdigit() or int(word) >= count:
            raise self.error(index, f"{word!r:.80} is no number of one of {count} candidates")
        return torch.tensor(int(word))


class DocumentAnswerTargets(SpanTargets):
    """Of an answer in a document: first and last token, number of the paragraph's marker, type; zeros for none.

    A truncated short answer counts as none, and so does a paragraph without its first token.
    """

    def __call__(self, index: int, tokens: Tensor, keep: np.ndarray) -> Tensor:
        words = self.dictionary.string(self.labels[index]).split()
        if len(words) != 4 or not all(map(str.isdigit, words[:3])) or words[3] not in ANSWER_TYPES:
            raise self.error(index, f"{' '.join(words)!r} is no answer in a document")
        start, end, number = map(int, words[:3])
        markers, kind = tokens.eq(self.source.bos()).nonzero().flatten().tolist(), words[3]
        if number >= len(markers) or (number > 0) != (kind != "none") or (start > 0) != (kind == "span"):
            raise self.error(index, f"{' '.join(words)!r} is not in a row of {len(markers) - 1} paragraphs")
        span = self.kept_span(index, tokens, keep, start, end)
        if span is None or not keep[markers[number] : markers[number] + 2].all():
            return torch.zeros(4, dtype=torch.long)
        return torch.tensor([*span, number, ANSWER_TYPES.index(kind)])


def candidate_markers(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """(B, T) token ids -> (B, T), True at the markers of candidates: those behind the first `</s>`."""
    return tokens.eq(dictionary.bos()) & tokens.eq(dictionary.eos()).cumsum(dim=1).eq(1)


def answer_positions(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """(B, T) token ids -> (B, T), True where an answer may begin or end: in the second part, or at 0 for none."""
    special = tokens.eq(dictionary.bos()) | tokens.eq(dictionary.eos()) | tokens.eq(dictionary.pad())
    in_text = tokens.eq(dictionary.eos()).cumsum(dim=1) >= 2
    possible = in_text & ~special
    possible[:, 0] = True
    return possible
