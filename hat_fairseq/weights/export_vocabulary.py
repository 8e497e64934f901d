"""Labels and vocabulary of a training, in the files that Hugging Face's classes read.

fairseq's dictionary gives the rows of the embedding. A vocabulary can be written where the BPE is GPT-2's, which
Hugging Face's RobertaTokenizer applies; for learned codes there is no such class.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.labels import read_label_dictionary
from .gpt2_dictionary import MASK, token_rows


def labels_of(data: Path | None, state: dict[str, Tensor], num_classes: int) -> list[str]:
    """Names of the classes in order: those of `data`, or numbered ones.

    Raises:
        ValueError: `data` has other labels than the checkpoint's head, or another number of them.
    """
    from fairseq.data import Dictionary

    from ..models.fingerprint import fingerprint
    from ..models.loading.heads import LABELS

    path = None if data is None else data / "label" / "dict.txt"
    if path is None or not path.is_file():
        return [f"LABEL_{number}" for number in range(num_classes)]
    labels = [label for label in read_label_dictionary(path) if not label.startswith("madeupword")]
    if len(labels) != num_classes:
        raise ValueError(f"{path} has {len(labels)} labels, the head {num_classes} classes")
    expected = next((tensor for name, tensor in state.items() if name.endswith(LABELS)), None)
    if expected is not None and not torch.equal(expected, fingerprint(Dictionary.load(str(path)))):
        raise ValueError(f"{path} has other labels than the checkpoint, or in another order")
    return labels


def read_dictionary(data: Path, state: dict[str, Tensor]) -> list[str]:
    """Entries in order of the embedding's rows; ValueError where `data` has none, or not those of the checkpoint."""
    from fairseq.data import Dictionary

    from ..models.fingerprint import fingerprint

    paths = [path for path in (data / "input0" / "dict.txt", data / "dict.txt") if path.is_file()]
    if not paths:
        raise ValueError(f"{data} has no dict.txt: give the bin directory of the training")
    dictionary = Dictionary.load(str(paths[0]))
    dictionary.add_symbol(MASK)  # as the tasks do
    rows = len(state["encoder.embed_tokens.weight"])
    expected = state.get("encoder.dictionary_fingerprint")  # converted weights have none
    if len(dictionary) != rows or (expected is not None and not torch.equal(expected, fingerprint(dictionary))):
        raise ValueError(
            f"{paths[0]} with <mask> has {len(dictionary)} entries and is another dictionary than that of the "
            f"checkpoint, which has {rows} rows"
        )
    return list(dictionary.symbols)


def vocabulary_files(data: Path | None, state: dict[str, Tensor], max_length: int) -> tuple[dict[str, str], str]:
    """Names and texts of the vocabulary files, and a line that says which are written or why none."""
    if data is None:
        return {}, "vocabulary: not written, --data was not given"
    symbols = read_dictionary(data, state)
    encoder, merges = data / "encoder.json", data / "vocab.bpe"
    if not (encoder.is_file() and merges.is_file()):
        return {}, f"vocabulary: not written, the BPE of {data} is not GPT-2's and Hugging Face has no class for it"
    tokens = dict(zip(("bos", "pad", "eos", "unk"), symbols, strict=False)) | {"mask": MASK}
    settings: dict[str, Any] = {f"{name}_token": token for name, token in tokens.items()}
    settings |= {"cls_token": tokens["bos"], "sep_token": tokens["eos"], "add_prefix_space": False}
    settings |= {"tokenizer_class": "RobertaTokenizer", "model_max_length": max_length}
    rows = token_rows(symbols, json.loads(encoder.read_text(encoding="utf-8")))
    files = {
        "vocab.json": json.dumps(rows, ensure_ascii=False),
        "merges.txt": merges.read_text(encoding="utf-8"),
        "tokenizer_config.json": json.dumps(settings, indent=2) + "\n",
    }
    return files, f"vocabulary: {', '.join(files)} (RobertaTokenizer; the caller lays out segments and their <s>)"
