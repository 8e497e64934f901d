"""Small tokenizers of Hugging Face `tokenizers`, trained on texts in eleven languages: the folders that a model has."""

import json
from pathlib import Path
from typing import Any

from sentencepiece_model import tydi_lines
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # where BERT has them: not where fairseq has them
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
MODERN = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
LLAMA = ["<|begin_of_text|>", "<|end_of_text|>", "<|mask|>"]
CAMEMBERT = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>", "<mask>"]
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


def byte_level(special: list[str] = ROBERTA) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(special_tokens=special, initial_alphabet=alphabet, **QUIET)
    tokenizer.train_from_iterator(tydi_lines(), trainer)
    return tokenizer


def unigram(special: list[str] = ROBERTA) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(special_tokens=special, unk_token="<unk>", **QUIET)
    tokenizer.train_from_iterator(tydi_lines(), trainer)
    return tokenizer


def gemma() -> Tokenizer:
    """Pieces with bytes for what they lack; `<s>` is a tag of HTML, and no special entry."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tags = [AddedToken(tag, normalized=False) for tag in ("<table>", "<s>", "</s>")]
    numbers = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(special_tokens=[*GEMMA, *numbers], **QUIET)
    tokenizer.train_from_iterator(tydi_lines(), trainer)
    tokenizer.add_tokens(tags)
    return tokenizer


def with_ends(tokenizer: Tokenizer, first: str, last: str) -> Tokenizer:
    ends = [(name, tokenizer.token_to_id(name)) for name in (first, last)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{first} $A {last}", special_tokens=ends)
    return tokenizer


OF_TODAY = {
    "ModernBERT": lambda: with_ends(byte_level(MODERN), "[CLS]", "[SEP]"),
    "mmBERT": lambda: with_ends(gemma(), "<bos>", "<eos>"),
    "EuroBERT": lambda: with_ends(byte_level(LLAMA), "<|begin_of_text|>", "<|end_of_text|>"),
    "CamemBERT": lambda: with_ends(unigram(CAMEMBERT), "<s>", "</s>"),
    "XLM-RoBERTa": lambda: with_ends(unigram(), "<s>", "</s>"),
}
MAKERS = {
    "uncased WordPiece": lambda: word_piece(True),
    "cased WordPiece": lambda: word_piece(False),
    "byte-level BPE": lambda: with_ends(byte_level(), "<s>", "</s>"),
    "Unigram": lambda: with_ends(unigram(), "<s>", "</s>"),
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


def write_modern(folder: Path, name: str) -> Tokenizer:
    """Writes `tokenizer.json`, as `OF_TODAY` or `MAKERS` make it and transformers is to read it, and returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = (OF_TODAY | MAKERS)[name]()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return tokenizer


def write_vocabulary(folder: Path, lowercase: bool) -> Path:
    """Writes `vocab.txt` of a WordPiece, one entry a line."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = word_piece(lowercase).get_vocab()
    lines = "".join(f"{entry}\n" for entry in sorted(entries, key=entries.__getitem__))
    (folder / "vocab.txt").write_text(lines, encoding="utf-8")
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
