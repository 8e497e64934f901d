"""Tokenizers of small texts for transformers, as `hat export` writes them."""

from pathlib import Path
from typing import Any

import pytest
from byte_level_bpe import write_byte_level_bpe
from sentencepiece_model import write_model

from hat_fairseq.data.bpe import Bpe, LearnedBpe
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.gpt2_bpe import read_gpt2
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline
from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe
from hat_fairseq.data.text import escape_control_tokens

TEXT = "Dr. No – naïve – said: “naïf”. It's 5 % of <s> and <\\pad>! 会議は終わった。次は?  \u2028 x@@ y@@z @@ end"
SENTENCES = ["Good\tmorning , all .", "  ", "Let's start: 1/2 <sep> of it …", "🙂 fine@@", TEXT]


def exported(folder: Path, pipeline: TextPipeline, limit: int | None = None) -> tuple[Any, Dictionary]:
    """The tokenizer in FOLDER/out, and its dictionary: two thirds of the tokens of the texts."""
    transformers = pytest.importorskip("transformers", reason="make setup")
    from hat_fairseq.hf import HatTokenizer

    out = folder / "out"
    out.mkdir()
    pipeline.save(out)
    texts = [escape_control_tokens(text) for text in (TEXT, *SENTENCES, "One . Two . Who spoke ?")]
    tokens = sorted({token for text in texts for token in pipeline.bpe.encode(text)})
    dictionary = Dictionary((token, 1) for token in tokens[: len(tokens) * 2 // 3])
    dictionary.save(out / "dict.source.txt")
    HatTokenizer(str(out / FILE_NAME), limit=limit).save_pretrained(out)
    return transformers.AutoTokenizer.from_pretrained(out, trust_remote_code=True), dictionary


def bpe_of(kind: str, folder: Path) -> Bpe:
    if kind == "learned":
        return LearnedBpe.learn([TEXT, *SENTENCES, "start starts morning mornings"] * 3, 60)
    if kind == "gpt2":
        write_byte_level_bpe(folder / "gpt2")
        return read_gpt2(folder / "gpt2/encoder.json", folder / "gpt2/vocab.bpe")
    return SentencePieceBpe(write_model(folder, [TEXT, *SENTENCES] * 20, vocab_size=90, character_coverage=1.0))
