"""ROUGE and BLEU of the texts that a model generates during validation, as sums over batches and processes.

BLEU is fairseq's `--eval-bleu` with the text of this package's pipeline and the tokenizer of its language. It scores
rows, so a document that was cut into chunks counts as several; `hat generate --score bleu` scores whole documents.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from fairseq import utils
from fairseq.logging import metrics

from ..scoring.rouge import score_documents, split_summary

logger = logging.getLogger(__name__)

ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeLsum": "rougeL"}  # names of rouge-score -> in the log
MAX_SHORT = 0.5  # of all hypotheses; more are a warning
UNKNOWN_REFERENCE = "\u2047"  # for <unk> in a reference: an unknown word that is generated as <unk> is no match


def texts_of(task: Any, hypotheses: list[list[dict[str, Any]]], targets: Iterable[Any]) -> list[tuple[str, str]]:
    """Returns the best hypothesis and the reference of each row of a batch, as text on one line."""
    dictionary = task.tgt_dict

    def text(tokens: Any, **options: str) -> str:
        tokens = utils.strip_pad(tokens, dictionary.pad()).int().cpu()
        return " ".join(task.decode(dictionary.string(tokens, **options)).split())

    pairs = zip(hypotheses, targets, strict=True)
    return [(text(beams[0]["tokens"]), text(target, unk_string=UNKNOWN_REFERENCE)) for beams, target in pairs]


def rouge_sums(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Sums of F x 100 over the rows of a batch: stemmed, both sides split at punctuation."""
    generated, references = ([split_summary(pair[side], "punctuation") for pair in pairs] for side in (0, 1))
    scores = score_documents(generated, references, stem=True)
    return {f"_{log}_sum": 100 * float(scores[name].sum()) for name, log in ROUGE.items()}


def counts_of(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Returns how many rows of a batch were generated, and how many of these texts have at most one word."""
    return {"_hypotheses": len(pairs), "_short_hypotheses": sum(_is_short(*pair) for pair in pairs)}


def reduce(logging_outputs: list[dict[str, Any]]) -> None:
    """Logs the mean of each ROUGE and the share of short hypotheses; nothing when nothing was generated."""
    number = sum(log.get("_hypotheses", 0) for log in logging_outputs)
    for name in ROUGE.values() if number else ():
        if any(f"_{name}_sum" in log for log in logging_outputs):
            mean = float(sum(log.get(f"_{name}_sum", 0) for log in logging_outputs)) / number
            metrics.log_scalar(name, mean, number, round=2)
    if number:
        short = sum(log.get("_short_hypotheses", 0) for log in logging_outputs)
        metrics.log_scalar("_short_hypotheses", short / number, number)


def warn_of_short(meters: Mapping[str, Any]) -> None:
    """Warns if most hypotheses of a validation subset are empty or one word, which no score shows."""
    share = meters["_short_hypotheses"].avg if "_short_hypotheses" in meters else 0.0
    if share > MAX_SHORT:
        logger.warning(
            "%.0f%% of the generated texts are empty or one word, so their scores say nothing; if this stays so, "
            "look at min_len, max_len_b and lenpen of the generation, and at the learning rate", 100 * share,
        )  # fmt: skip


def _is_short(hypothesis: str, reference: str) -> bool:
    """Whether it is at most one word, or one character where words are not separated, and the reference is longer."""
    return len(hypothesis.split()) <= 1 < len(reference.split()) or len(hypothesis) <= 1 < len(reference)
