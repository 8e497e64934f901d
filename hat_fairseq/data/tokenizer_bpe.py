"""Any tokenizer of Hugging Face `tokenizers` as BPE: `tokenizer.json` or BERT's `vocab.txt`; tokens are its entries.

WordPiece (BERT), byte-level BPE and Unigram. The dictionary has the entries in the order of the model's rows, after
fairseq's special symbols; `SPECIAL_NAMES` says which entries these are. Special entries are never found in a text.

A tokenizer may change text first, for example to lower case without accents. Then `decode` returns the changed text,
and `losses` counts what cannot come back. `extents` refer to the characters of the original text.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Self

from tokenizers import Encoding, Tokenizer

from hat_fairseq.data.bpe import MOST_WORDS, Bpe
from hat_fairseq.data.dictionary import SPECIAL, UNKNOWN
from hat_fairseq.data.tokenizer_files import CONTINUES, TOKENIZER, VOCABULARY, read_files, text_of

KIND, GPT2 = "tokenizer", "gpt2"  # tokens are entries, or as with fairseq their rows
MASK = "<mask>"
#: fairseq's special symbols, and the names of these entries in tokenizers. The first name counts that is a special
#: entry, else the first that is an entry: Gemma's `<s>`, beside its `<bos>`, is a tag of HTML.
SPECIAL_NAMES = {
    "<s>": ("[CLS]", "<s>", "<bos>", "<|begin_of_text|>"),
    "<pad>": ("[PAD]", "<pad>"),
    "</s>": ("[SEP]", "</s>", "<eos>", "<|end_of_text|>"),
    "<unk>": ("[UNK]", "<unk>"),
    MASK: ("[MASK]", MASK, "<|mask|>"),
}
SPACE = "\u2581"  # stands for a space in the entries of Unigram
CASE, ACCENTS = "case", "accents"  # what a tokenizer may lose


class TokenizerBpe(Bpe):
    """Entries of a tokenizer. An unknown word stays in the text as it is where that is possible, else it is `<unk>`.

    Attributes:
        symbols: the lines of the dictionary in order, without the special symbols, which are its first ones, and
            without `<mask>`, which tasks add as the last one.
        rows: the row of the model for each special symbol, each of `symbols`, and `<mask>` if the tokenizer has one;
            None for a special symbol that it has not.
        control: the names of these entries, which are text in a text.
    """

    def __init__(
        self, tokenizer: Tokenizer, where: str | Path = TOKENIZER, kind: str = KIND, files: tuple[Path, ...] = ()
    ):
        self.kind, self.files = kind, files
        self._word = lru_cache(MOST_WORDS)(self._whole)
        entries = tokenizer.get_vocab(with_added_tokens=True)
        marked = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
        named = {symbol: list(filter(entries.__contains__, names)) for symbol, names in SPECIAL_NAMES.items()}
        special = {s: min(names, key=lambda name: name not in marked) for s, names in named.items() if names}
        self.control = {*special.values()}
        self._tokenizer, self._where = text_of(tokenizer, self.control), where
        rest = sorted((row, entry) for entry, row in entries.items() if entry not in special.values())
        self._symbols = {row: str(row) if kind == GPT2 else symbol_of(entry, row) for row, entry in rest}
        self._entries = {self._symbols[row]: entry for row, entry in rest}
        self.symbols = list(self._symbols.values())
        if len(self.symbols) < len(rest) or len(self._entries) < len(rest):
            raise ValueError(f"{where}: two entries have the same row or the same symbol; use another tokenizer")
        self.rows: list[int | None] = [entries[special[symbol]] if symbol in special else None for symbol in SPECIAL]
        self.rows += [row for row, _ in rest] + [entries[special[name]] for name in (MASK,) if name in special]
        self._known = {*self.symbols, *SPECIAL_NAMES}
        self._check()
        self.loses = self._probe_losses()
        self.separator = self._probe_separator()

    def __reduce__(self) -> tuple[object, tuple[str, str, tuple[Path, ...]]]:
        return _restored, (self._tokenizer.to_str(), self.kind, self.files)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a `tokenizer.json` or a `vocab.txt`, and what is beside it; ValueError for any other file."""
        path = Path(path)
        try:
            return cls(read_files(path), path)
        except (ValueError, OSError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library has no class of its own, and its panics are no Exception
            raise ValueError(f"{path} is no tokenizer that the installed tokenizers can read: {error}") from error

    def save(self, *paths: str | Path) -> None:
        """Writes what `load` reads, or copies of the files."""
        if self.files:
            super().save(*paths)
        else:
            self._tokenizer.save(str(*paths), pretty=False)

    def encode(self, text: str) -> list[str]:
        """Returns the entries of a text. A text of which the tokenizer leaves nothing is one `<unk>`."""
        if self.kind != GPT2 or not text.isprintable() or "  " in text or text.endswith(" "):
            return self._whole(text)
        # GPT-2's expression ends a piece before a space between words, so words can be encoded once each.
        first, *others = text.split(" ")
        return list(chain.from_iterable(map(self._word, [first, *(f" {word}" for word in others)])))

    def decode(self, tokens: Iterable[str]) -> str:
        """Returns the text of tokens, as the tokenizer's own decoder writes it; `<unk>` stays as it is.

        What the tokenizer removes from texts is lost, see `loses`; so is the white space around punctuation with
        WordPiece.
        """
        entries = [self._entries.get(token, token) for token in tokens]
        decoder = self._tokenizer.decoder
        return " ".join(entries) if decoder is None else str(decoder.decode(entries))

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        """Implements `bpe.Bpe.extents`. Characters that the tokenizer removes belong to a token beside them."""
        tokens = list(tokens)
        for prefix in dict.fromkeys(("", self.separator)):
            encoding = self._encode(prefix + text)
            if self._tokens(encoding, prefix + text) == tokens:
                return extents_of(letter_offsets(tokens, encoding.offsets), prefix + text)
        raise AssertionError(f"{tokens} are not the tokens of {text!r}")

    def losses(self, text: str) -> Counter[str]:
        """Counts capital letters and accents of a text that the tokenizer removes."""
        if not self.loses:
            return Counter()
        changed = self._tokenizer.normalizer.normalize_str(text)
        capitals = sum(map(str.isupper, text)) - sum(map(str.isupper, changed))
        accents = (
            0
            if text.isascii()
            else sum(map(_is_accent, _decomposed(text))) - sum(map(_is_accent, _decomposed(changed)))
        )
        counts = {"capital_letters_lowered": capitals, "accents_removed": accents}
        return Counter({name: number for name, number in counts.items() if number > 0})

    def _whole(self, text: str) -> list[str]:
        return self._tokens(self._encode(text), text)

    def _encode(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _tokens(self, encoding: Encoding, text: str) -> list[str]:
        if not (symbols := list(map(self._symbols.get, encoding.ids))):
            return [SPECIAL[UNKNOWN]] * bool(text.strip(" "))
        words = encoding.offsets if None in symbols else ()  # making the list takes time
        return [self._unknown(text[slice(*words[n])]) if each is None else each for n, each in enumerate(symbols)]

    def _unknown(self, word: str) -> str:
        word = word.strip(" ")
        fits = word and word not in self._known and not any(map(str.isspace, word)) and not word.startswith(CONTINUES)
        return word if fits else SPECIAL[UNKNOWN]

    def _check(self) -> None:
        """Raises ValueError for a tokenizer that loses unknown characters without a trace; others may panic."""
        try:
            self._encode("a" * 64 + "!")  # panics with an expression such as (a+)+$
            lost = not self._encode("\U00012000").ids  # a letter of Akkadian
        except Exception:
            lost = True
        if lost:
            raise ValueError(f"{self._where} has no entry for unknown words, so they would be lost; use another one")

    def _probe_losses(self) -> tuple[str, ...]:
        if self._tokenizer.normalizer is None:
            return ()
        letter = _decomposed(self._tokenizer.normalizer.normalize_str("É"))
        lost = {CASE: not any(map(str.isupper, letter)), ACCENTS: not any(map(_is_accent, letter))}
        return tuple(name for name, is_lost in lost.items() if is_lost)

    def _probe_separator(self) -> str:
        """Finds what must stand before a sentence for its tokens to decode to a space before it."""
        for letter in "aаα的あ가अا":
            if letter in self.decode(self.encode(letter)):
                first = self.encode(letter)
                for separator in ("", " "):
                    if self.decode(first + self.encode(separator + letter)).strip(" ") == f"{letter} {letter}":
                        return separator
        return ""


def symbol_of(entry: str, row: int) -> str:
    """Returns the symbol of an entry in a dictionary; of one that no dictionary of fairseq can have, a made-up one."""
    unfit = not entry or entry in SPECIAL_NAMES or any(map(str.isspace, entry))
    return f"<row:{row}>" if unfit else entry


def letter_offsets(tokens: list[str], offsets: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields begin and end of each token in the text; of one that is only a space, nothing of the letter after it."""
    for number, token in enumerate(tokens):
        begin, end = offsets[number] if offsets else (0, 0)
        before_letter = number + 1 < len(tokens) and offsets[number + 1][0] == begin
        yield (begin, begin) if before_letter and not token.strip(SPACE) else (begin, end)


def extents_of(offsets: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Turns places in a text into places among its characters without spaces, each of which has a token.

    `offsets`: begin and end of the characters of each token. A character of no token belongs to the token that ends
    before it, or after a space to the next one.
    """
    letters = list(accumulate((character != " " for character in text), initial=0))
    extents: list[tuple[int, int]] = []
    covered = 0  # of the text
    for begin, end in offsets:
        if extents and begin > covered:
            covered += len(text[covered:begin].partition(" ")[0])
            extents[-1] = extents[-1][0], max(extents[-1][1], letters[covered])
        first = min(begin, covered)
        if letters[begin] < letters[end]:
            covered = max(covered, end)
        extents.append((letters[first], letters[covered]) if letters[begin] < letters[end] else (letters[covered],) * 2)
    if extents and letters[covered] < letters[-1]:
        extents[-1] = extents[-1][0], letters[-1]
    return extents


def find_tokenizer(
    directory: str | Path | None, bpe: str = KIND, names: tuple[str, ...] = (TOKENIZER, VOCABULARY)
) -> Path:
    """Returns the first of the files `names` that a directory has; ValueError if there is none."""
    if directory is None:
        raise ValueError(f"--bpe {bpe} needs --bpe-dir DIR, the folder with {' or '.join(names)}")
    folder = Path(directory).expanduser()
    if found := [folder / name for name in names if (folder / name).is_file()]:
        return found[0]
    raise ValueError(f"{folder} has no {' and no '.join(names)}; give the folder of a tokenizer with --bpe-dir")


@lru_cache(maxsize=2)  # a worker gets the same tokenizer with each block of documents
def _restored(json: str, kind: str, files: tuple[Path, ...]) -> TokenizerBpe:
    return TokenizerBpe(Tokenizer.from_str(json), TOKENIZER, kind, files)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def _is_accent(character: str) -> bool:
    return unicodedata.category(character) == "Mn"
