"""What encoding and decoding change in targets, and so the score that a perfect model would get."""

from itertools import islice
from pathlib import Path
from typing import Any

from hat_fairseq.data.clean import clean_target
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import read_records

SEGMENTS = 5000  # of a split, at most


def round_trip(pipeline: TextPipeline, path: Path) -> dict[str, Any]:
    """Encodes and decodes the first target segments of prepared records.

    Returns:
        `segments`, how many; `changed`, how many of them come back differently (white space, mostly); `bleu`, the BLEU
        of what comes back. Empty where nothing can change, for lack of a word tokenizer and of a BPE that normalises,
        or there are no targets.
    """
    if pipeline.settings.target_tokenizer == "none" and pipeline.bpe.kind != "sentencepiece":
        return {}
    import sacrebleu

    language, encoder = pipeline.settings.target_language, pipeline.encoder()
    texts = list(islice((text for record in read_records(path) for text in clean_target(record)), SEGMENTS))
    if not texts:
        return {}
    back = [pipeline.decode(" ".join(encoder.pieces([text], "target")[1][0])) for text in texts]
    changed = sum(text != other for text, other in zip(texts, back, strict=True))
    bleu = sacrebleu.corpus_bleu(back, [texts], tokenize="zh" if language == "zh" else "13a", force=True).score
    return {"segments": len(texts), "changed": changed, "bleu": round(bleu, 2)}
