"""The tokenizer of BLEU that the script of the references asks for, where nobody has stated a language.

Chinese, Japanese and Korean need a tokenizer of their own: 13a takes a Chinese sentence for one word.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec

from .bleu import BleuSettings

LETTERS = re.compile(r"[^\W\d_]")
HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]")
HANGUL = re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")
LEAST = 0.25  # of all letters: a character of these scripts stands for several letters of an alphabet
LEAST_KANA = 0.1  # of Han and kana: Chinese texts quote single Japanese names
#: The tokenizers by language: sacrebleu's name, and the module that it needs.
TOKENIZERS = {"zh": ("zh", "sacrebleu"), "ja": ("ja-mecab", "MeCab"), "ko": ("ko-mecab", "mecab_ko")}


def settings_by_script(settings: BleuSettings, references: Iterable[str]) -> tuple[BleuSettings, str]:
    """Returns the settings with the tokenizer of the references' script, and a line that says why.

    Both stay as they are, and the line is empty, where a tokenizer or a language other than the default `en` is stated,
    and for scripts other than Han, kana and Hangul. Without the package of a tokenizer it is `char`.
    """
    if settings.tokenize or settings.language != BleuSettings.language:
        return settings, ""
    texts = list(references)
    letters, han, kana, hangul = (sum(len(p.findall(t)) for t in texts) for p in (LETTERS, HAN, KANA, HANGUL))
    if han + kana + hangul <= LEAST * letters:
        return settings, ""
    language = "ko" if hangul > han + kana else "ja" if kana > LEAST_KANA * (han + kana) else "zh"
    name, module = TOKENIZERS[language]
    is_missing = find_spec(module) is None
    chosen, share = "char" if is_missing else name, (han + kana + hangul) / letters
    reason = f"tokenizer {chosen}: {share:.0%} of the references' letters are of the language {language!r}"
    reason += f", and sacrebleu[{language}] is not installed" if is_missing else ""
    return replace(settings, tokenize=chosen, language=language), reason
