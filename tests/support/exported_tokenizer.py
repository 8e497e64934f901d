"""The tokenizer of a text pipeline, in a folder as `hat export` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline
from hat_fairseq.data.text import escape_control_tokens

TEXT = "Dr. No – naïve – said: “naïf”. It's 5 % of <s> and <\\pad>! 会議は終わった。次は?  \u2028 x@@ y@@z @@ end"
SENTENCES = ["Good\tmorning , all .", "  ", "Let's start: 1/2 <sep> of it …", "🙂 fine@@", TEXT]


def exported(folder: Path, pipeline: TextPipeline, limit: int | None = None) -> tuple[Any, Dictionary]:
    """The tokenizer in FOLDER/out, and its dictionary: two thirds of the tokens of the texts."""
    from transformers import AutoTokenizer

    from hat_fairseq.hf import HatTokenizer

    out = folder / "out"
    out.mkdir()
    pipeline.save(out)
    texts = [escape_control_tokens(text) for text in (TEXT, *SENTENCES, "One . Two . Who spoke ?")]
    tokens = sorted({token for text in texts for token in pipeline.bpe.encode(text)})
    dictionary = Dictionary((token, 1) for token in tokens[: len(tokens) * 2 // 3])
    dictionary.save(out / "dict.source.txt")
    HatTokenizer(str(out / FILE_NAME), limit=limit).save_pretrained(out)
    return AutoTokenizer.from_pretrained(out, trust_remote_code=True), dictionary
