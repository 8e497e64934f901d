"""GPT-2's byte-level BPE as fairseq's BART and RoBERTa have it, read into `TokenizerBpe`: tokens are the ids."""

import json
import os
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from hat_fairseq.data.files import read_lines, sha256_of
from hat_fairseq.data.tokenizer_bpe import GPT2, TokenizerBpe

# The three files that come with fairseq's BART and RoBERTa.
SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "dict.txt": "2c31c5b236661067fe8626775eb995ef5fe808ac87d2ad4a6ddbef68550f5cc6",
}
OWN_HASHES = "SHA256SUMS"
ENVIRONMENT_VARIABLE = "HAT_GPT2_BPE"
CACHE = Path("~/.cache/hat_fairseq/gpt2_bpe")


def read_gpt2(encoder_json: str | Path, vocab_bpe: str | Path) -> TokenizerBpe:
    """Reads fairseq's `encoder.json` and `vocab.bpe`; ValueError for a line that is no merge."""
    vocabulary = json.loads(Path(encoder_json).read_text(encoding="utf-8"))
    # The first line is no merge: fairseq leaves it out, whatever it says.
    merges = [_merge(vocab_bpe, number, line) for number, line in read_lines(vocab_bpe) if number > 1 and line]
    return gpt2_bpe(vocabulary, merges, (Path(encoder_json), Path(vocab_bpe)))


def gpt2_bpe(vocabulary: dict[str, int], merges: list[tuple[str, str]], files: tuple[Path, ...] = ()) -> TokenizerBpe:
    """Builds the BPE of these ids and merges; `files`: where they are from."""
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return TokenizerBpe(tokenizer, next(iter(files), "vocab.bpe"), GPT2, files)


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


def _merge(path: str | Path, number: int, line: str) -> tuple[str, str]:
    if len(symbols := line.split(" ")) != 2:
        raise ValueError(f"{path}:{number}: expected two symbols separated by a space, found {line!r:.60}")
    return symbols[0], symbols[1]
