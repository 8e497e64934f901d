"""The interface `Bpe` of all BPEs, and byte pair encoding learned from the training text (Sennrich et al. 2016).

A learned BPE has fastBPE's file format. Words are separated by spaces; a piece that does not end its word carries the
continuation mark `@@`, so fairseq's own `--post-process subword_nmt` undoes it too. Learning and applying are done by
Hugging Face `tokenizers`.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache, partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from shutil import copyfile
from typing import Self

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.long_input import cut
from hat_fairseq.workers import Workers

CONTINUATION = "@@"
MOST_WORDS = 200_000  # of a cache; some 60 MB
_WORD_END = "</w>"
_UNKNOWN = "<unk>"
ONE_TEXT = 1000  # words given to the library at a time; a text for each occurrence takes 1.7 times as long
_LONGEST = 10_000  # characters of a word to learn from: the time for one grows with the square of its length

Merge = tuple[str, str]


class Bpe(ABC):
    """From text to tokens without white space, and back.

    `separator` goes before each sentence but the first, so that the tokens of the sentences, put one after the
    other, decode to the sentences joined by single spaces. `loses` names what `decode` cannot give back; `files` are
    those that it was read from.
    """

    kind: str
    separator: str = ""
    loses: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @abstractmethod
    def encode(self, text: str) -> list[str]: ...

    @abstractmethod
    def decode(self, tokens: Iterable[str]) -> str: ...

    @abstractmethod
    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        """Returns for each token that `encode` made of `text` the range of its non-space characters that it covers.

        The end is exclusive. Tokens that are part of the same character all stand for it.
        """

    def losses(self, text: str) -> Counter[str]:
        """Counts what of a text is lost."""
        return Counter()

    def save(self, *paths: str | Path) -> None:
        """Writes the files of this kind (`pipeline.BPE_FILES`) to their paths."""
        for own, path in zip(self.files, paths, strict=True):
            copyfile(own, path)


class NoBpe(Bpe):
    """Splits at white space, for sequences of symbols; there is no BPE."""

    kind, separator = "none", " "

    def encode(self, text: str) -> list[str]:
        return text.split()

    def decode(self, tokens: Iterable[str]) -> str:
        return " ".join(tokens)

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        return list(pairwise(accumulate(map(len, tokens), initial=0)))


class LearnedBpe(Bpe):
    """Applies merges, pairs of symbols, the first learned first; a symbol that ends a word has `</w>` appended."""

    kind = "learned"

    def __init__(self, merges: list[Merge]):
        self.merges = merges
        self._pieces = lru_cache(MOST_WORDS)(self._encode_word)
        symbols = dict.fromkeys([_UNKNOWN])
        for left, right in merges:
            symbols.update(dict.fromkeys((left, right, left + right)))
        vocabulary = {symbol: index for index, symbol in enumerate(symbols)}
        model = models.BPE(
            vocab=vocabulary, merges=merges, unk_token=_UNKNOWN, end_of_word_suffix=_WORD_END, fuse_unk=False
        )
        self._tokenizer = Tokenizer(model)

    def __reduce__(self) -> tuple[type, tuple[list[Merge]]]:
        return type(self), (self.merges,)  # without the words of the cache

    @classmethod
    def learn(cls, texts: Iterable[str] | Counter[str], num_codes: int) -> Self:
        """Learns at most `num_codes` merges, each seen at least twice, from lines, or from words with their counts.

        The result does not depend on the order of the words. ValueError if there are none.
        """
        words = texts if isinstance(texts, Counter) else Counter(word for line in texts for word in line.split())
        if not words:
            raise ValueError("no words to learn BPE codes from")
        if any(len(word) > _LONGEST for word in words):
            words = Counter(piece for word in words.elements() for piece in map(str, cut(word, _LONGEST)))
        # The library may end the process at once where memory does not suffice.
        (merges,) = Workers(apart=True).map(partial(_learn_merges, words), [num_codes])
        return cls(merges)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a code file, `left right count` on each line; ValueError for a line of another form."""
        merges = []
        for number, line in read_lines(path):
            if len(columns := line.split(" ")) != 3:
                raise ValueError(f"{path}:{number}: expected 'left right count', found {line!r:.60}")
            merges.append((columns[0], columns[1]))
        return cls(merges)

    def save(self, *paths: str | Path) -> None:
        """Writes the code file that `load` and fastBPE read. Both ignore the third column, the count."""
        (path,) = paths
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{left} {right} 0\n" for left, right in self.merges)

    def encode(self, text: str) -> list[str]:
        """Splits every word into pieces. Characters never seen in training stay as they are: nothing is lost."""
        return list(chain.from_iterable(map(self._pieces, text.split())))

    def decode(self, tokens: Iterable[str]) -> str:
        """Joins pieces to words and words by spaces; a continuation mark at the very end is removed."""
        words = (t.removesuffix(CONTINUATION) if t.endswith(CONTINUATION) else f"{t} " for t in tokens)
        return "".join(words).rstrip(" ")

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        lengths = (len(token.removesuffix(CONTINUATION)) for token in tokens)
        return list(pairwise(accumulate(lengths, initial=0)))

    def _encode_word(self, word: str) -> list[str]:
        encoding = self._tokenizer.encode([word], is_pretokenized=True)
        pieces = []
        for begin, end in encoding.offsets:  # an unseen character has a piece, but no symbol of its own
            piece = word[begin:end]
            if end < len(word):
                pieces.append(piece + CONTINUATION)
            elif piece.endswith(CONTINUATION):  # the text's own "@@" at the end of a word is no continuation mark
                pieces += [piece[:-1] + CONTINUATION, piece[-1]]
            else:
                pieces.append(piece)
        return pieces


def letters_without_symbol(counts: Iterable[tuple[str, int]]) -> float:
    """Returns the share of the letters of a text that are no symbol of its dictionary; words apart from it need them.

    `counts`: how often each symbol of a learned BPE occurs in the text.
    """
    letters = Counter[str]()
    for symbol, number in (symbols := dict(counts)).items():
        word = symbol.removesuffix(CONTINUATION)
        end = CONTINUATION if symbol.endswith(CONTINUATION) else ""
        for letter in [*(f"{each}{CONTINUATION}" for each in word[:-1]), f"{word[-1:]}{end}"]:
            letters[letter] += number
    return sum(number for letter, number in letters.items() if letter not in symbols) / max(1, letters.total())


def _learn_merges(words: Counter[str], num_codes: int) -> list[Merge]:
    letters = sorted({letter for word in words for letter in word})
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix=_WORD_END))
    trainer = trainers.BpeTrainer(
        # An upper bound: surplus merges are cut below. There cannot be more merges than characters.
        vocab_size=min(num_codes, sum(map(len, words))) + 2 * len(letters),
        min_frequency=2,
        initial_alphabet=letters,
        # Ties between merges are broken by symbol number, and final letters are numbered in the order of a hash table
        # unless they are declared beforehand: without this line two runs learn different codes.
        special_tokens=[letter + _WORD_END for letter in letters],
        end_of_word_suffix=_WORD_END,
        show_progress=False,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    counted = ((word, min(ONE_TEXT, n - done)) for word, n in words.items() for done in range(0, n, ONE_TEXT))
    tokenizer.train_from_iterator((" ".join([word] * number) for word, number in counted), trainer)
    learned = json.loads(tokenizer.to_str())["model"]["merges"][:num_codes]
    return [(left, right) for left, right in learned]
