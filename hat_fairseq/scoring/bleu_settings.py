"""The settings that decide a BLEU score, and sacrebleu's metric made of them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BleuSettings:
    """Everything besides the texts that the figures depend on.

    Attributes:
        tokenize: sacrebleu's name of a tokenizer, e.g. 13a, zh, intl, char.
        lowercase: compare in lower case.
        bootstrap_samples: resampled test sets (of whole documents) behind intervals and p-values; 0 for neither.
        seed: of the resampling.

    Raises:
        ValueError: negative samples, or a seed that sacrebleu would not use.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    bootstrap_samples: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        if self.bootstrap_samples < 0:
            raise ValueError(f"the number of bootstrap samples must not be negative: {self.bootstrap_samples}")
        if self.seed < 1:  # sacrebleu's paired test takes 0 for "no seed"
            raise ValueError(f"the seed must be at least 1, not {self.seed}")


def make_bleu(settings: BleuSettings, force: bool = False) -> Any:
    """sacrebleu's metric BLEU.

    Args:
        force: take text that looks tokenised without a warning.

    Raises:
        ValueError: a tokenizer that sacrebleu does not know, or that needs another package.
    """
    from sacrebleu.metrics import BLEU

    if settings.tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"unknown tokenizer {settings.tokenize!r} (sacrebleu's are: {', '.join(BLEU.TOKENIZERS)})")
    try:
        return BLEU(tokenize=settings.tokenize, lowercase=settings.lowercase, force=force)
    except (RuntimeError, ImportError) as error:
        raise ValueError(f"the tokenizer {settings.tokenize!r} cannot be used here: {error}") from error
