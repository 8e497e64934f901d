"""What a BPE makes of words, remembered: a text has few different ones, and most of them often."""

from __future__ import annotations

from collections.abc import Callable

MOST = 200_000  # words; some 60 MB


class WordCache(dict[str, list[str]]):
    """``cache[word]`` is ``encode(word)``, computed once; words that come when it is full are computed each time.

    It stays behind when its owner is sent to another process.
    """

    def __init__(self, encode: Callable[[str], list[str]]):
        super().__init__()
        self._encode = encode

    def __missing__(self, word: str) -> list[str]:
        tokens = self._encode(word)
        if len(self) < MOST:
            self[word] = tokens
        return tokens

    def __reduce__(self) -> tuple[type[WordCache], tuple[Callable[[str], list[str]]]]:
        return WordCache, (self._encode,)
