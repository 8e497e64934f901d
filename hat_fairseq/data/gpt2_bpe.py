"""GPT-2's byte-level BPE as fairseq's BART and RoBERTa use it; tokens are fairseq's numeric ids, written as strings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from hat_fairseq.data.files import read_lines, sha256_of

# The three files that come with fairseq's BART and RoBERTa.
SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "dict.txt": "2c31c5b236661067fe8626775eb995ef5fe808ac87d2ad4a6ddbef68550f5cc6",
}
# A directory with this file is not GPT-2's on purpose: a BART with a byte-level BPE of its own.
OWN_HASHES = "SHA256SUMS"
ENVIRONMENT_VARIABLE = "HAT_GPT2_BPE"
CACHE = Path("~/.cache/hat_fairseq/gpt2_bpe")


class Gpt2Bpe:
    """Byte-level BPE: every text can be encoded, and decodes to itself.

    Args:
        encoder_json: maps each symbol to its id.
        vocab_bpe: a version line, then one merge on each line, the first learned first.
    """

    kind = "gpt2"
    separator = " "  # goes before a sentence that is not the first: a word's symbol includes the space before it

    def __init__(self, encoder_json: str | Path, vocab_bpe: str | Path):
        self.encoder_json = Path(encoder_json)
        self.vocab_bpe = Path(vocab_bpe)
        vocabulary = json.loads(self.encoder_json.read_text(encoding="utf-8"))
        merges = [_merge(self.vocab_bpe, number, line) for number, line in read_lines(vocab_bpe) if number > 1 and line]
        self._tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        self._tokenizer.decoder = decoders.ByteLevel()

    def encode(self, text: str) -> list[str]:
        """The ids fairseq's own GPT-2 BPE gives, as strings. A leading space matters."""
        return [str(index) for index in self._tokenizer.encode(text, add_special_tokens=False).ids]

    def decode(self, tokens: Iterable[str]) -> str:
        """Text of the ids; broken UTF-8 becomes U+FFFD, a token that is no id (``<unk>``) stays as it is."""
        text = ""
        run: list[int] = []
        for token in [*tokens, None]:
            if token is not None and token.isdecimal():
                run.append(int(token))
                continue
            text += self._tokenizer.decode(run, skip_special_tokens=False)
            text += token or ""
            run = []
        return text


def find_gpt2_files(directory: str | Path | None = None) -> Path:
    """Find the directory with ``encoder.json``, ``vocab.bpe`` and ``dict.txt`` and check their hashes.

    Looks in ``directory`` if given, else in ``$HAT_GPT2_BPE`` if set, else in ``~/.cache/hat_fairseq/gpt2_bpe``. The
    hashes are those of fairseq's files, or where there is one those in the directory's own ``SHA256SUMS`` (as
    ``sha256sum encoder.json vocab.bpe dict.txt`` writes it): for a BART with another BPE of this kind.

    Raises:
        ValueError: a file is missing or is not the one that fairseq's models were trained with.
    """
    found = Path(directory or os.environ.get(ENVIRONMENT_VARIABLE) or CACHE).expanduser()
    missing = [name for name in SHA256 if not (found / name).is_file()]
    if missing:
        raise ValueError(
            f"{found} lacks {', '.join(missing)}. The GPT-2 BPE consists of {', '.join(SHA256)}, "
            "the files fairseq's BART and RoBERTa examples download (names there: gpt2_bpe/encoder.json, "
            f"gpt2_bpe/vocab.bpe, gpt2_bpe/dict.txt); put all three into one directory and give it with --bpe-dir or "
            f"${ENVIRONMENT_VARIABLE}, or copy them to {CACHE}"
        )
    hashes, whose = SHA256, "fairseq's file"
    if (found / OWN_HASHES).is_file():
        rows = [line.split() for _, line in read_lines(found / OWN_HASHES)]
        hashes, whose = {row[1].lstrip("*"): row[0] for row in rows if len(row) == 2}, f"the file of {OWN_HASHES}"
    for name in SHA256:
        if (actual := sha256_of(found / name)) != hashes.get(name):
            raise ValueError(f"{found / name} is not {whose}: sha256 is {actual}, expected {hashes.get(name)}")
    return found


def _merge(path: Path, number: int, line: str) -> tuple[str, str]:
    symbols = line.split(" ")
    if len(symbols) != 2:
        raise ValueError(f"{path}:{number}: expected two symbols separated by a space, found {line!r:.60}")
    return symbols[0], symbols[1]
