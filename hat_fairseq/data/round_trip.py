"""Whether targets come back as they were written: what a perfect model would lose to the words and the BPE.

A word tokenizer does not record where spaces were, and a sentencepiece model normalises. All figures are sums, so those
of blocks add up to those of a split.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from hat_fairseq.data.language import base_language, has_space_after_sentence, has_spaces
from hat_fairseq.data.options import Settings
from hat_fairseq.data.text import SPACE_AFTER_SENTENCE, join_sentences, restore_control_tokens
from hat_fairseq.data.word_tokenizer import word_tokenizer_of

ORDER = 4  # of the longest n-grams of BLEU


def running_text(segments: Iterable[str], settings: Settings, side: str) -> str:
    """Returns segments of words, as the BPE decodes them, as text with a tab between segments.

    `side`: `source` or `target`, whose words they are.
    """
    join, language = word_tokenizer_of(settings, side).detokenize, getattr(settings, f"{side}_language")
    # Restored first: brackets and letters that stand apart as words must not become an escaped token. A model can
    # generate GPT-2's tokens for line breaks and tabs; one would break fairseq's lines, the other means <sep>.
    texts = (join(restore_control_tokens(words)) for words in segments)
    text = "\t".join(" ".join(each.split()) for each in texts)
    return text if has_space_after_sentence(language) else SPACE_AFTER_SENTENCE.sub("", text)


def compare(written: Sequence[str], back: Sequence[str], language: str) -> Counter[str]:
    """Returns figures to add up: how many segments of a document come back changed, and the sums that BLEU needs."""
    score = _bleu(language).corpus_score([join_sentences(back, language)], [[join_sentences(written, language)]])
    figures = Counter(
        segments=len(written),
        changed=sum(text != other for text, other in zip(written, back, strict=True)),
        written_words=score.ref_len,
        back_words=score.sys_len,
    )
    for number, (same, all_) in enumerate(zip(score.counts, score.totals, strict=True), start=1):
        figures[f"same_{number}-grams"], figures[f"{number}-grams"] = same, all_
    return figures


def summary(figures: Mapping[str, int]) -> dict[str, float]:
    """Returns the figures of the manifest from sums of `compare`: segments, changed ones, and document BLEU."""
    if not figures.get("changed"):  # BLEU of a text without n-grams would be 0
        return {"segments": figures["segments"], "changed": 0, "bleu": 100.0}
    from sacrebleu.metrics import BLEU

    same, all_ = (
        [figures[name.format(number)] for number in range(1, ORDER + 1)] for name in ("same_{}-grams", "{}-grams")
    )
    bleu = BLEU.compute_bleu(same, all_, figures["back_words"], figures["written_words"], smooth_method="exp")
    return {"segments": figures["segments"], "changed": figures["changed"], "bleu": round(bleu.score, 2)}


@cache
def _bleu(language: str) -> Any:
    from sacrebleu.metrics import BLEU

    # Japanese and Korean, too, without the packages that their tokenizers need.
    tokenize = "zh" if base_language(language) == "zh" else "13a" if has_spaces(language) else "char"
    return BLEU(tokenize=tokenize, max_ngram_order=ORDER, force=True)
