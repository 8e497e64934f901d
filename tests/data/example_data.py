"""How the tests preprocess each kind of example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

OPTIONS = {
    "classification": ["--segments", "packed", "--segment-length", "32"],
    "choice": ["--max-source-tokens", "100", "--long-source", "truncate-sentences"],
    "segments": [],
    "tokens": ["--max-source-tokens", "200", "--long-source", "truncate"],
    "qa": ["--splitter", "library", "--max-source-tokens", "80", "--long-source", "chunk", "--window-overlap", "20"],
    "mlm": ["--splitter", "punctuation", "--source-tokenizer", "moses", "--max-source-tokens", "120"],
}
BINARIZED = ("classification", "segments", "qa", "mlm")  # each takes fairseq-preprocess some seconds to start
Preprocess = Callable[[str], Path]
