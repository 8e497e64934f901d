from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary

from hat_fairseq.data.labels import label_of, label_token, read_label_dictionary, write_label_dictionary
from hat_fairseq.data.text import CONTROL_TOKENS

LABELS = [
    "true",
    "not hyper%partisan",
    "a%20b",
    "<pad>",
    "%3Cpad>",
    "x\u3000y\u00a0",
    "\n",
    "\ud800",
    "中 文",
    "#",
    "0",
]


def test_every_label_is_one_token_and_back(tmp_path: Path) -> None:
    tokens = list(map(label_token, LABELS))
    assert list(map(label_of, tokens)) == LABELS
    assert all([token] == token.split() for token in tokens)
    assert len({*tokens, *CONTROL_TOKENS}) == len(LABELS) + len(CONTROL_TOKENS)
    assert tokens[0] == "true" and tokens[8] == "中%20文"  # readable where it can be
    write_label_dictionary(tokens, tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert [dictionary.index(token) - dictionary.nspecial for token in tokens] == list(range(len(LABELS)))
    assert read_label_dictionary(tmp_path / "dict.txt") == LABELS


def test_an_empty_label_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        label_token("")
