"""The settings that decide a BLEU score, and sacrebleu's metric made of them."""

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BleuSettings:
    """Everything besides the texts that the figures depend on.

    Attributes:
        tokenize: sacrebleu's name of a tokenizer, e.g. 13a, zh, intl, char; None for that of the language.
        lowercase: compare in lower case.
        bootstrap_samples: resampled test sets (of whole documents) behind intervals and p-values; 0 for neither.
        seed: of the resampling; sacrebleu takes 0 for "no seed".
        language: ISO 639-1 code of the texts.
    """

    tokenize: str | None = None
    lowercase: bool = False
    bootstrap_samples: int = 1000
    seed: int = 12345
    language: str = "en"


def make_bleu(settings: BleuSettings, force: bool = False) -> Any:
    """sacrebleu's metric BLEU.

    Args:
        force: take text that looks tokenised without a warning.

    Raises:
        ValueError: a tokenizer that sacrebleu does not know, or that needs another package.
    """
    from sacrebleu.metrics import BLEU

    if settings.tokenize not in (None, *BLEU.TOKENIZERS):
        raise ValueError(f"unknown tokenizer {settings.tokenize!r} (sacrebleu's are: {', '.join(BLEU.TOKENIZERS)})")
    try:
        language = "" if settings.tokenize else settings.language  # with both it warns
        return BLEU(tokenize=settings.tokenize, trg_lang=language, lowercase=settings.lowercase, force=force)
    except (RuntimeError, ImportError) as error:
        package = re.search(r"pip install (\S+)", str(error))
        name = f"{settings.tokenize!r}" if settings.tokenize else f"of the language {settings.language!r}"
        needed = f"the package {package[1]}: pip install '{package[1]}'" if package else " ".join(str(error).split())
        raise ValueError(f"sacrebleu's tokenizer {name} needs {needed}, or choose another with --tokenize") from error
