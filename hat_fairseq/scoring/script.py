"""The tokenizer of BLEU that the script of the references asks for, where nobody has stated a language.

Chinese, Japanese and Korean need a tokenizer of their own: 13a takes a Chinese sentence for one word.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec

from .bleu import BleuSettings

LETTERS = re.compile(r"[^\W\d_]")
SCRIPTS = {
    "Han": re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
    "kana": re.compile("[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]"),
    "Hangul": re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]"),
}
LEAST = 0.25  # of all letters: a character of these scripts stands for several letters of an alphabet
LEAST_KANA = 0.1  # of Han and kana: Chinese texts quote single Japanese names
#: The tokenizers by language: sacrebleu's name, and the module that it needs.
TOKENIZERS = {"zh": ("zh", None), "ja": ("ja-mecab", "MeCab"), "ko": ("ko-mecab", "mecab_ko")}


def language_of_script(texts: Iterable[str]) -> tuple[str, float] | None:
    """`zh`, `ja` or `ko` and the share of its letters among all letters of the texts; None for other scripts."""
    letters, counts = 0, dict.fromkeys(SCRIPTS, 0)
    for text in texts:
        letters += len(LETTERS.findall(text))
        for name, pattern in SCRIPTS.items():
            counts[name] += len(pattern.findall(text))
    chinese = counts["Han"] + counts["kana"]
    total = chinese + counts["Hangul"]
    if total <= LEAST * letters:
        return None
    if counts["Hangul"] > chinese:
        return "ko", total / letters
    return ("ja" if counts["kana"] > LEAST_KANA * chinese else "zh"), total / letters


def settings_by_script(settings: BleuSettings, references: Iterable[str]) -> tuple[BleuSettings, str]:
    """The settings with the tokenizer of the references' script, and a line that says why.

    Both stay as they are, and the line is empty, where a tokenizer or a language other than the default `en` is stated,
    and for scripts other than Han, kana and Hangul. Without the package of a tokenizer it is `char`.
    """
    default = BleuSettings()
    if settings.tokenize or settings.language != default.language or not (script := language_of_script(references)):
        return settings, ""
    language, share = script
    name, module = TOKENIZERS[language]
    missing = module is not None and find_spec(module) is None
    chosen = "char" if missing else name
    reason = f"tokenizer {chosen}: {share:.0%} of the references' letters are of the language {language!r}"
    if missing:
        reason += f", and sacrebleu[{language}] is not installed"
    return replace(settings, tokenize=chosen, language=language), reason
