"""How the tests preprocess each kind of example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

OPTIONS = {
    "classification": ["--segments", "packed", "--segment-length", "32"],
    "choice": ["--max-source-tokens", "101", "--long-source", "truncate-sentences"],
    "candidates": ["--max-source-tokens", "201", "--long-source", "truncate"],
    "segments": [],
    "tokens": ["--max-source-tokens", "201", "--long-source", "truncate"],
    "qa": ["--splitter", "library", "--max-source-tokens", "81", "--long-source", "chunk", "--window-overlap", "20"],
    "document_qa": ["--max-source-tokens", "201", "--long-source", "chunk", "--window-overlap", "90"],
    "sequence": ["--max-source-tokens", "41", "--long-source", "truncate"],
    "byte_sequence": [],
    "byte_pair": ["--max-source-tokens", "101", "--long-source", "truncate"],
    "mlm": ["--splitter", "punctuation", "--source-tokenizer", "moses", "--max-source-tokens", "121"],
}
BINARIZED = (
    "classification",
    "segments",
    "qa",
    "document_qa",
    "sequence",
    "byte_sequence",
    "byte_pair",
    "mlm",
)  # each takes fairseq-preprocess some seconds to start
Preprocess = Callable[[str], Path]
