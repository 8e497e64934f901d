"""fairseq's dictionary for a Hugging Face byte-level BPE vocabulary.

fairseq's GPT-2 BPE writes numbers: 0-255 are the bytes, in the order in which GPT-2 lists them; 256 + i is what merge i
produces; the next one is `<|endoftext|>`. The line of dict.txt on which a number stands, plus four, is the row of the
embedding. Hugging Face's vocab.json gives that row for the token itself, so tokens have to be turned into numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")  # fairseq's first four entries, not in dict.txt
MASK = "<mask>"


def byte_characters() -> list[str]:
    """The 256 characters that stand for bytes in GPT-2's files, in the order of their numbers.

    Printable Latin-1 characters stand for themselves and come first; the rest are shifted to U+0100 and above.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [chr(byte) for byte in printable] + [chr(0x100 + i) for i in range(256 - len(printable))]


def gpt2_numbers(merges: Iterable[str]) -> dict[str, int]:
    """Number of every token, from the lines of vocab.bpe (merges.txt): what encoder.json holds."""
    pairs = [line for line in merges if line.strip() and not line.startswith("#version")]
    tokens = byte_characters() + [pair.replace(" ", "") for pair in pairs] + ["<|endoftext|>"]
    return {token: number for number, token in enumerate(tokens)}


def dictionary_symbols(ids: Mapping[str, int], merges: Iterable[str], source: str = "vocab.json") -> list[str]:
    """Symbols of dict.txt in order, for token rows `ids` (vocab.json, or what `source` names in errors).

    A final `<mask>` is left out, as in the dict.txt of fairseq's BART: the tasks that use it add it. Tokens that the
    BPE never writes (`madeupword0000`) keep their names. ValueError if no fairseq dictionary can have these rows.
    """
    tokens = sorted(ids, key=lambda token: ids[token])
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"{source}: the {len(tokens)} ids are not 0 to {len(tokens) - 1}, each once")
    if tuple(tokens[:4]) != SPECIALS:
        raise ValueError(f"{source} starts with {tokens[:4]}, fairseq's dictionaries with {list(SPECIALS)}")
    numbers = gpt2_numbers(merges)
    body = tokens[4:-1] if tokens[-1] == MASK else tokens[4:]
    return [str(numbers[token]) if token in numbers else token for token in body]


def token_rows(symbols: Iterable[str], numbers: Mapping[str, int]) -> dict[str, int]:
    """The reverse: vocab.json for the entries of a fairseq dictionary, its first four and `<mask>` included.

    Args:
        numbers: of the tokens, as in encoder.json.
    Raises:
        ValueError: two entries are the same token.
    """
    tokens = {str(number): token for token, number in numbers.items()}
    rows: dict[str, int] = {}
    for row, symbol in enumerate(symbols):
        token = tokens.get(symbol, symbol)
        if token in rows:
            raise ValueError(f"dictionary entries {rows[token]} and {row} are both {token!r}")
        rows[token] = row
    return rows
