"""Words that are remembered are encoded as they are in their text, and clean text is known by a look."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path

import pytest

from hat_fairseq.data import word_cache
from hat_fairseq.data.gpt2_bpe import Gpt2Bpe
from hat_fairseq.data.learned_bpe import CONTINUATION, LearnedBpe
from hat_fairseq.data.text import _TREATMENTS, escape_control_tokens, normalise
from hat_fairseq.data.word_cache import WordCache

ALPHABET = [
    "  ",
    " ",
    " ",
    "a",
    "b",
    "'s",
    "'",
    "t",
    "12",
    ",",
    ".",
    "é",
    "北",
    "e\u0301",
    "²",
    "\U0001f600",
    "@@",
    "@",
]
ALPHABET += ["<s>", "<\\s>", "<", "\u00a0", "\t", "\r\n", "\u200b", "\u3000", "\x1f", "\ud800", "\ufeff"]


def noise(number: int) -> list[str]:
    generator = random.Random(5)
    return ["".join(generator.choices(ALPHABET, k=generator.randrange(9))) for _ in range(number)]


def test_gpt2_as_a_whole_and_by_words(gpt2_files: tuple[Path, Path], lines: list[str]) -> None:
    bpe = Gpt2Bpe(*gpt2_files)
    texts = [text.replace("\ud800", "") for text in noise(3000)] + lines[:500]
    for text in [*texts, *(f" {text}" for text in texts[:500])]:
        whole = bpe._tokenizer.encode(text, add_special_tokens=False).ids
        assert bpe.encode(text) == list(map(str, whole))
    assert len(bpe._after_space) > 100


def test_learned_codes_as_a_whole_and_by_words(lines: list[str]) -> None:
    bpe = LearnedBpe.learn(lines[:300], 300)
    for text in [*(text.replace("\ud800", "") for text in noise(3000)), *lines[:500]]:
        words = text.split()
        encoding = bpe._tokenizer.encode(words, is_pretokenized=True)
        pieces = []
        for index, (begin, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
            piece = words[index][begin:end]
            if end == len(words[index]) and piece.endswith(CONTINUATION):
                pieces += [f"{piece[:-1]}{CONTINUATION}", piece[-1]]
            else:
                pieces.append(piece + CONTINUATION * (end < len(words[index])))
        assert bpe.encode(text) == pieces
        assert bpe.decode(pieces) == " ".join(words)


def test_a_full_cache_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MOST", 2)
    cache = WordCache(list)
    assert [cache[word] for word in ("ab", "c", "de", "ab", "de")] == [["a", "b"], ["c"], ["d", "e"]] + [
        ["a", "b"],
        ["d", "e"],
    ]
    assert cache.keys() == {"ab", "c"}


def test_a_cache_stays_behind(gpt2_files: tuple[Path, Path], lines: list[str]) -> None:
    for bpe in (Gpt2Bpe(*gpt2_files), LearnedBpe.learn(lines[:300], 100)):
        tokens = bpe.encode(lines[0])
        size = len(pickle.dumps(bpe))
        for line in lines[:500]:
            bpe.encode(line)
        copy = pickle.loads(pickle.dumps(bpe))
        assert len(pickle.dumps(bpe)) <= size + 100
        assert copy.encode(lines[0]) == tokens


def test_clean_text_is_left_as_the_treatments_leave_it() -> None:
    for text in noise(5000):
        counts: Counter[str] = Counter()
        expected: Counter[str] = Counter()
        treated = text
        for name, pattern, replacement in _TREATMENTS:
            treated, number = pattern.subn(replacement, treated)
            expected[name] += number
        assert normalise(text, counts) == treated.strip(" ")
        assert counts == +expected
        assert ("<\\s>" in escape_control_tokens(treated)) == ("<s>" in treated)
