"""ROUGE during validation, as sums over batches and processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.logging import metrics
from torch import Tensor

from ..scoring.rouge import score_documents
from ..scoring.splitting import split_summary

NAMES = {
    "rouge1": "rouge1",
    "rouge2": "rouge2",
    "rougeLsum": "rougeL",
}  # rouge-score's names and ours in fairseq's logs


class RougeMeter:
    """Scores generated summaries: stemmed, both sides split at punctuation (the target has no other sentence ends
    left).

    Args:
        generator: fairseq's sequence generator.
        dictionary: of the target.
        decode: BPE tokens to text.
    """

    def __init__(self, generator: Any, dictionary: Dictionary, decode: Callable[[str], str]) -> None:
        self.generator, self._dictionary, self._decode = generator, dictionary, decode

    def score(self, hypotheses: list[list[dict[str, Any]]], sample: dict[str, Any]) -> dict[str, float]:
        """Sums of F x 100 over a batch's documents, for its logging output."""
        pairs = zip(hypotheses, sample["target"], strict=True)
        texts = [(self._sentences(beams[0]["tokens"]), self._sentences(target)) for beams, target in pairs]
        scores = score_documents([text[0] for text in texts], [text[1] for text in texts], stem=True)
        sums = {f"_{ours}_sum": 100 * float(scores[theirs].sum()) for theirs, ours in NAMES.items()}
        return {**sums, "_rouge_documents": len(texts)}

    @staticmethod
    def reduce(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean of each metric; nothing when nothing was generated."""
        documents = int(sum(log.get("_rouge_documents", 0) for log in logging_outputs))
        for name in NAMES.values() if documents else ():
            mean = float(sum(log.get(f"_{name}_sum", 0) for log in logging_outputs)) / documents
            metrics.log_scalar(name, mean, documents, round=2)

    def _sentences(self, tokens: Tensor) -> list[str]:
        tokens = utils.strip_pad(tokens, self._dictionary.pad()).int().cpu()
        return split_summary(self._decode(self._dictionary.string(tokens)), "punctuation")
