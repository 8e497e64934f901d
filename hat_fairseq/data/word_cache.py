"""Cache of BPE encodings by word: a text has few distinct words, and repeats most of them."""

from collections.abc import Callable

MOST = 200_000  # words; some 60 MB


class WordCache(dict[str, list[str]]):
    """`cache[word]` is `encode(word)`, computed once unless the cache is full; pickling leaves the entries out."""

    def __init__(self, encode: Callable[[str], list[str]]):
        super().__init__()
        self._encode = encode

    def __missing__(self, word: str) -> list[str]:
        tokens = self._encode(word)
        if len(self) < MOST:
            self[word] = tokens
        return tokens

    def __reduce__(self) -> tuple[type, tuple[Callable[[str], list[str]]]]:
        return WordCache, (self._encode,)
