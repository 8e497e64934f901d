"""Small tokenizers of Hugging Face `tokenizers`, trained on texts in eleven languages: the folders that a model has."""

import json
from pathlib import Path
from typing import Any

from sentencepiece_model import tydi_lines
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # where BERT has them: not where fairseq has them
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
QUIET: dict[str, Any] = {"vocab_size": 1200, "show_progress": False}


def word_piece(lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(tydi_lines(), trainers.WordPieceTrainer(special_tokens=BERT, **QUIET))
    ends = [(name, BERT.index(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(special_tokens=ROBERTA, initial_alphabet=alphabet, **QUIET)
    tokenizer.train_from_iterator(tydi_lines(), trainer)
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(special_tokens=ROBERTA, unk_token="<unk>", **QUIET)
    tokenizer.train_from_iterator(tydi_lines(), trainer)
    return tokenizer


MAKERS = {
    "uncased WordPiece": lambda: word_piece(True),
    "cased WordPiece": lambda: word_piece(False),
    "byte-level BPE": byte_level,
    "Unigram": unigram,
}


def write_tokenizer(folder: Path, name: str) -> Path:
    """Writes `tokenizer.json` of a tokenizer of `MAKERS` and what transformers needs to read it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = MAKERS[name]()
    tokenizer.enable_truncation(8)  # as in published files, which have the settings of a training
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = BERT if "WordPiece" in name else ROBERTA
    order = ("pad", "unk", "cls", "sep", "mask") if "WordPiece" in name else ("cls", "pad", "sep", "unk", "mask")
    names = {f"{what}_token": token for what, token in zip(order, special, strict=True)}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def write_vocabulary(folder: Path, lowercase: bool) -> Path:
    """Writes `vocab.txt` of a WordPiece, one entry a line."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = word_piece(lowercase).get_vocab()
    lines = "".join(f"{entry}\n" for entry in sorted(entries, key=entries.__getitem__))
    (folder / "vocab.txt").write_text(lines, encoding="utf-8")
    return folder
