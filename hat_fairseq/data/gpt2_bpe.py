"""GPT-2's byte-level BPE as fairseq's BART and RoBERTa use it; tokens are fairseq's numeric ids, written as strings."""

import json
import os
import shutil
from collections.abc import Iterable
from itertools import chain, groupby
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from hat_fairseq.data.bpe import Lossless, WordCache
from hat_fairseq.data.files import read_lines, sha256_of

# The three files that come with fairseq's BART and RoBERTa.
SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "dict.txt": "2c31c5b236661067fe8626775eb995ef5fe808ac87d2ad4a6ddbef68550f5cc6",
}
OWN_HASHES = "SHA256SUMS"
ENVIRONMENT_VARIABLE = "HAT_GPT2_BPE"
CACHE = Path("~/.cache/hat_fairseq/gpt2_bpe")

# GPT-2 writes bytes as characters: Latin-1 where it is printable, from U+0100 on for the others, in their order. In
# UTF-8 a byte from 0x80 to 0xBF goes on with a character that another byte began.
_SPACE = "\u0120"
_CONTINUATION_BYTES = frozenset(map(chr, [*range(0x122, 0x143), *range(0xA1, 0xAD), 0x143, *range(0xAE, 0xC0)]))


class Gpt2Bpe(Lossless):
    """Byte-level BPE of fairseq's `encoder.json` and `vocab.bpe`: every text can be encoded, and decodes to itself."""

    kind = "gpt2"
    separator = " "  # a word's symbol includes the space before it

    def __init__(self, encoder_json: str | Path, vocab_bpe: str | Path):
        self.encoder_json = Path(encoder_json)
        self.vocab_bpe = Path(vocab_bpe)
        vocabulary = json.loads(self.encoder_json.read_text(encoding="utf-8"))
        # The first line is no merge: fairseq leaves it out, whatever it says.
        merges = [_merge(self.vocab_bpe, number, line) for number, line in read_lines(vocab_bpe) if number > 1 and line]
        self._tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        self._tokenizer.decoder = decoders.ByteLevel()
        self._after_space = WordCache(self._encode_after_space)

    def save(self, encoder_json: Path, vocab_bpe: Path) -> None:
        shutil.copyfile(self.encoder_json, encoder_json)
        shutil.copyfile(self.vocab_bpe, vocab_bpe)

    def encode(self, text: str) -> list[str]:
        """Returns the ids of fairseq's own GPT-2 BPE as strings. A leading space matters."""
        if not text.isprintable() or "  " in text or text.endswith(" "):  # white space other than one space
            return self._encode(text)
        # GPT-2's expression ends a piece before each such space, so words can be encoded on their own.
        first, *others = text.split(" ")
        tokens = self._encode(first) if first else []
        tokens.extend(chain.from_iterable(map(self._after_space.__getitem__, others)))
        return tokens

    def _encode(self, text: str) -> list[str]:
        return [str(index) for index in self._tokenizer.encode(text, add_special_tokens=False).ids]

    def _encode_after_space(self, word: str) -> list[str]:
        return self._encode(" " + word)

    def decode(self, tokens: Iterable[str]) -> str:
        """Returns the text of the ids; broken UTF-8 becomes U+FFFD, a token that is no id (`<unk>`) stays as it is."""
        text = ""
        for are_ids, run in groupby(tokens, str.isdecimal):
            if are_ids:
                text += self._tokenizer.decode(list(map(int, run)), skip_special_tokens=False)
            else:
                text += "".join(run)
        return text

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        """Implements `bpe.Bpe.extents`.

        A symbol of a token stands for a byte, and a character has one to four of them.
        """
        extents = []
        characters = 0  # begun so far
        for token in tokens:
            symbol_string = self._tokenizer.id_to_token(int(token))
            assert symbol_string is not None, token
            symbols = symbol_string.replace(_SPACE, "")
            begun = sum(symbol not in _CONTINUATION_BYTES for symbol in symbols)
            # The first character is one that the token before began, if its first byte is no beginning.
            first = characters - (bool(symbols) and symbols[0] in _CONTINUATION_BYTES)
            characters += begun
            extents.append((first, characters))
        return extents


def find_gpt2_files(directory: str | Path | None = None) -> Path:
    """Returns the directory with `encoder.json`, `vocab.bpe` and `dict.txt`; ValueError for a missing or other file.

    It is `directory`, else `$HAT_GPT2_BPE`, else `~/.cache/hat_fairseq/gpt2_bpe`. The hashes are those of fairseq's
    files, or those in the directory's `SHA256SUMS` (as `sha256sum encoder.json vocab.bpe dict.txt` writes it): for a
    BART with another BPE of this kind.
    """
    folder = Path(directory or os.environ.get(ENVIRONMENT_VARIABLE) or CACHE).expanduser()
    if missing := [name for name in SHA256 if not (folder / name).is_file()]:
        raise ValueError(
            f"{folder} lacks {', '.join(missing)}. Put encoder.json, vocab.bpe and dict.txt of fairseq's BART or "
            f"RoBERTa into one directory and give it with --bpe-dir or ${ENVIRONMENT_VARIABLE}, or copy them to {CACHE}"
        )
    hashes, whose = SHA256, "fairseq's file"
    if (folder / OWN_HASHES).is_file():
        rows = [line.split() for _, line in read_lines(folder / OWN_HASHES)]
        hashes, whose = {row[1].lstrip("*"): row[0] for row in rows if len(row) == 2}, f"the file of {OWN_HASHES}"
    for name in SHA256:
        if (actual := sha256_of(folder / name)) != hashes.get(name):
            raise ValueError(f"{folder / name} is not {whose}: sha256 is {actual}, expected {hashes.get(name)}")
    return folder


def _merge(path: Path, number: int, line: str) -> tuple[str, str]:
    if len(symbols := line.split(" ")) != 2:
        raise ValueError(f"{path}:{number}: expected two symbols separated by a space, found {line!r:.60}")
    return symbols[0], symbols[1]
