"""The settings that decide a ROUGE score, the presets of other tools, and the signature that goes with every figure."""

from __future__ import annotations

from dataclasses import dataclass

from hat_fairseq.scoring.splitting import SENTENCE_METHODS

BACKENDS = ("rouge-score", "perl")


@dataclass(frozen=True)
class RougeSettings:
    """Everything besides the summaries themselves that a ROUGE score depends on.

    Attributes:
        backend: ``rouge-score`` (Python) or ``perl`` (ROUGE-1.5.5).
        stem: compare Porter stems instead of words.
        hypothesis_sentences, reference_sentences: one of ``SENTENCE_METHODS`` each.
        bootstrap_samples: resampled test sets behind the intervals; 0 for none.
        seed: of the resampling (the Perl script has its own, fixed).

    Raises:
        ValueError: a value that is not known.
    """

    backend: str = "rouge-score"
    stem: bool = True
    hypothesis_sentences: str = "punctuation"
    reference_sentences: str = "given"
    bootstrap_samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"unknown ROUGE backend {self.backend!r} (known: {', '.join(BACKENDS)})")
        for method in (self.hypothesis_sentences, self.reference_sentences):
            if method not in SENTENCE_METHODS:
                raise ValueError(
                    f"unknown way of splitting sentences {method!r} (known: {', '.join(SENTENCE_METHODS)})"
                )


#: How other tools treat their input when called without options. files2rouge reads one line per document and runs
#: ROUGE-1.5.5 with stemming; rouge-score (and Hugging Face's `evaluate`) takes lines as sentences and does not stem.
PRESETS: dict[str, dict[str, object]] = {
    "files2rouge": {"stem": True, "hypothesis_sentences": "files2rouge", "reference_sentences": "files2rouge"},
    "rouge-score": {"stem": False, "hypothesis_sentences": "given", "reference_sentences": "given"},
}


def signature(settings: RougeSettings, backend: str, documents: int) -> str:
    """Return the one-line description that makes a score comparable.

    Args:
        settings: what the score was computed with.
        backend: name, version and, for a program, options of what computed it.
        documents: how many were scored.
    """
    seed = "its own" if settings.backend == "perl" else settings.seed
    parts = {
        "backend": backend,
        "stem": "yes" if settings.stem else "no",
        "hypothesis-sentences": settings.hypothesis_sentences,
        "reference-sentences": settings.reference_sentences,
        "bootstrap": f"{settings.bootstrap_samples} (95 %, seed {seed})" if settings.bootstrap_samples else "none",
        "documents": documents,
    }
    return " | ".join(f"{key}: {value}" for key, value in parts.items())
