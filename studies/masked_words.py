"""Masks for `copied_words.py`: which rare words of a paper are masked, and how far the nearest other occurrence is."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pretrained_tasks import Document
from torch import Tensor

CHUNK, PROBABILITY, RARE, SHORTEST = 512, 0.15, 0.05, 3
BINS = {"below 128": 128, "128 to 512": 512, "512 to 2,048": 2048, "more": 10**9, "none": 0}  # tokens, exclusive
Span, Word = tuple[int, int], tuple[int, ...]


class Words:
    """The words of papers as tuples of pieces, and which of them are rare."""

    def __init__(self, symbols: Sequence[str], papers: Sequence[Tensor]) -> None:
        self.symbols, self.most = [each.removeprefix("##") for each in symbols], RARE * len(papers)
        self.begins = torch.tensor([not each.startswith("##") for each in symbols])
        self.counts = Counter(word for tokens in papers for word in {word for _, word in self.placed(tokens)})

    def placed(self, tokens: Tensor) -> list[tuple[Span, Word]]:
        """The words with their places; of the last one that is what the tokens have of it."""
        starts, ids = self.begins[tokens].nonzero().flatten().tolist(), tokens.tolist()
        return [((a, b), tuple(ids[a:b])) for a, b in zip(starts, [*starts[1:], len(ids)], strict=True)]

    def is_rare(self, word: Word) -> bool:
        text = "".join(self.symbols[piece] for piece in word)
        return self.counts[word] < self.most and text.isalpha() and len(text) >= SHORTEST


@dataclass
class Masked:
    """A paper with masks (`document`), its own tokens, the masked places, the bin of each, and the words it shows."""

    document: Document
    tokens: Tensor
    places: Tensor
    bins: list[str]
    shown: Counter[int]

    @property
    def targets(self) -> Tensor:
        return self.tokens[self.places]


def masked(name: str, tokens: Tensor, rare: Sequence[tuple[Span, Word]], mask: int, number: int) -> Masked:
    """The paper with the masks of this number, from its rare words with their places."""
    draw, covered = random.Random(f"{name} {number}"), tokens.clone()
    whole: dict[tuple[Word, int], bool] = {}  # whether a word is masked in all of a chunk
    shown: dict[Word, list[int]] = {}
    hidden: list[tuple[Span, Word]] = []
    places: list[int] = []
    bins: list[str] = []
    for span, word in rare:
        in_chunk = whole.setdefault((word, span[0] // CHUNK), draw.random() < PROBABILITY)
        if draw.random() < PROBABILITY or in_chunk:
            hidden.append((span, word))
        else:
            shown.setdefault(word, []).append(span[0])
    for (first, end), word in hidden:
        covered[first:end] = mask
        places += range(first, end)
        bins += [bin_of(first, shown.get(word, []))] * (end - first)
    pieces = Counter(piece for word, own in shown.items() for piece in word for _ in own)
    document = Document(f"{name}.{number}", covered, [], tokens.new_zeros(0))
    return Masked(document, tokens, torch.tensor(places, dtype=torch.long), bins, pieces)


def bin_of(place: int, others: Sequence[int]) -> str:
    """The name of the bin of the distance to the nearest of the other places."""
    if not others:
        return "none"
    nearest = min(abs(place - other) for other in others)
    return next(name for name, below in BINS.items() if nearest < below)
