"""Settings that decide a ROUGE score: presets of other tools, sentence splitting, signature."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BACKENDS = ("rouge-score", "perl")
SEVERAL = ("best", "mean")

#: given: the items of a list, or the lines of a text; punctuation, library: as in `hat_fairseq.data.text`;
#: files2rouge: that tool's rule, a sentence ends only at a full stop after a space; none: one sentence.
SENTENCE_METHODS = ("given", "punctuation", "library", "files2rouge", "none")

#: How other tools treat their input when called without options. files2rouge reads one line per document and runs
#: ROUGE-1.5.5 with stemming; rouge-score (and Hugging Face's `evaluate`) takes lines as sentences and does not stem.
PRESETS: dict[str | None, dict[str, Any]] = {
    "files2rouge": {"stem": True, "hypothesis_sentences": "files2rouge", "reference_sentences": "files2rouge"},
    "rouge-score": {"stem": False, "hypothesis_sentences": "given", "reference_sentences": "given"},
}


@dataclass(frozen=True)
class RougeSettings:
    """Settings of ROUGE."""

    backend: str = "rouge-score"  # `rouge-score` (Python) or `perl` (ROUGE-1.5.5)
    stem: bool = True  # compare Porter stems instead of words
    hypothesis_sentences: str = "punctuation"  # one of `SENTENCE_METHODS`
    reference_sentences: str = "given"
    several_references: str = "best"  # a document's score is the best one against its references, or their mean
    bootstrap_samples: int = 1000  # resampled test sets behind the intervals; 0 for none
    seed: int = 0  # of the resampling (the Perl script has its own, fixed)

    def signature(self, backend: str, documents: int, references: int) -> str:
        """The line that makes a score comparable; `backend`: name and version of what computed it."""
        seed = "its own" if self.backend == "perl" else self.seed
        parts = {
            "backend": backend,
            "stem": "yes" if self.stem else "no",
            "hypothesis-sentences": self.hypothesis_sentences,
            "reference-sentences": self.reference_sentences,
            "bootstrap": f"{self.bootstrap_samples} (95 %, seed {seed})" if self.bootstrap_samples else "none",
            "documents": documents,
        }
        if references > documents:
            parts["references"] = f"{references} ({self.several_references} of each document)"
        return " | ".join(f"{key}: {value}" for key, value in parts.items())


def split_summary(summary: str | Sequence[str], method: str) -> list[str]:
    """The sentences of a summary, without line breaks and empty ones; the split moves ROUGE-L by up to 7 points.

    `summary`: a text, or its sentences, which every method (of `SENTENCE_METHODS`) but `given` joins by a space first.
    """
    given = summary.split("\n") if isinstance(summary, str) else list(summary)
    text = " ".join(" ".join(given).split())
    if method == "given":
        sentences = given
    elif method == "none":
        sentences = [text]
    elif method == "files2rouge":  # its --eos at the default: every " ." ends a line, so detokenised text is one line
        *ended, rest = text.split(" .")
        sentences = [sentence + " ." for sentence in ended] + [rest]
    else:
        from hat_fairseq.data.text import split_sentences

        sentences = split_sentences(text, method) if text else []  # ValueError for an unknown method
    lines = (" ".join(sentence.split()) for sentence in sentences)
    return [line for line in lines if line]
