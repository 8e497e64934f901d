"""Words that a tokenizer separates are written together again as each language writes them."""

import random
import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from drawn import draws
from golden_lines import cases, check, read
from hypothesis import given
from hypothesis import strategies as st

from hat_fairseq.data.text import CONTROL_TOKENS, escape_control_tokens, restore_control_tokens
from hat_fairseq.data.word_tokenizer import word_tokenizer

PACKAGE = Path(__file__).resolve().parents[2] / "hat_fairseq"
KINDS = [("moses", "en"), ("moses", "de"), ("moses", "cs"), ("jieba", "zh"), ("none", "en")]
AWKWARD = [
    'He said: "Don\'t!" (really...) at 5.30 p.m., i.e. 50 % off; see http://a.org/b?c=d&e=f#g or mail x.y@z.org.',
    "&amp; &lt; &#124; | [a] {b} <c> @-@ a @-@ b x@-@y @@ a@@",
    "DOTMULTI ... DOTDOTMULTI. a..b THISISPROTECTED000 _ELLIPSIS_",
    "„Ja“, sagte sie. »Nein«, ‚so‘. Rhodes' Buch – 1990–1995 – 3,5 Mio. €",
    "e' - mail , tu' – li",
    "Za 15 let, v roce 1990, bylo jich 15.",
    "他说：“Windows 10 很好。”（100%）《红楼梦》1.5米 don't　",
    "日本語のテキスト 한국어 텍스트 naïve e\u0301 🙂👩‍👩‍👧 \u200b x",
    "the <s> tag, <pad> <mask> </s> <unk> <sep> and <\\s> in x<s>y, < s > < \\ s >",
]


def letters(text: str) -> str:
    return text.replace(" ", "")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "language"), KINDS)
def test_nothing_but_spaces_changes(name: str, language: str, pages: list[dict[str, list[str]]]) -> None:
    tokenizer = word_tokenizer(name, language)
    real = [text for page in pages for texts in page.values() for text in texts]
    generator = random.Random(5)
    alphabet = [*"a.,-%\"'&\\中文。1  ", "Tel", "...", "<s>", "<sep>"]
    noise = ["".join(generator.choices(alphabet, k=15)) for _ in range(500)]
    for text in (" ".join(text.split()) for text in [*real, *AWKWARD, *noise]):
        escaped = escape_control_tokens(text)
        words = tokenizer.tokenize(escaped)
        assert words == " ".join(words.split())
        assert letters(words) == letters(escaped)
        assert not set(CONTROL_TOKENS) & set(words.split())
        assert letters(tokenizer.detokenize(restore_control_tokens(words))) == letters(text)


@pytest.mark.parametrize(
    "text",
    ["remotecontrol" * 4000, "word " * 50_000, "U.S. " * 12_000, "." * 50_000, "齉" * 50_000, '"' * 50_000],
    ids=lambda text: text[:9],
)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "language"), KINDS[1:4])
def test_hostile_text_takes_no_longer_than_its_length_deserves(text: str, name: str, language: str) -> None:
    tokenizer = word_tokenizer(name, language)
    begin = time.process_time()
    words = tokenizer.tokenize(text.strip())
    assert letters(tokenizer.detokenize(words)) == letters(words) == letters(text)
    assert time.process_time() - begin < 8  # at most one second on an idle machine


def come_back(text: str, language: str) -> str:
    words = word_tokenizer("moses", language)
    separated = words.tokenize(escape_control_tokens(text))
    assert separated.replace(" ", "") == escape_control_tokens(text).replace(" ", "")
    return words.detokenize(restore_control_tokens(separated))


def there_and_back(language: str, text: str) -> str:
    """Accents that are characters of their own, as in the normalisation form NFD, come back, too."""
    back = come_back(text, language)
    decomposed = unicodedata.normalize("NFD", text)
    assert back != text or come_back(decomposed, language) == decomposed
    return back


def detokenize(name: str, language: str, words: str) -> str:
    return word_tokenizer(name, language).detokenize(words)


CALLS = {"there_and_back": there_and_back, "detokenize": detokenize}


@cases("words")
def test_what_is_written_together(case: dict[str, Any]) -> None:
    check("words", case, CALLS[case["call"]](*case["in"]))


@pytest.mark.parametrize("language", ["cs", "de", "en", "es", "fr"])
def test_sentences_come_back_together(language: str) -> None:
    known = [
        case["in"][1] for case in read("words") if case["why"] == "sentences come back" and case["in"][0] == language
    ]
    assert come_back(" ".join(known), language) == " ".join(known)
    assert len(known) > 3


DRAWN = ("fr", "en")  # in the fast tests; the others in the slow ones
LETTERS = {  # and marks
    "fr": "abcdeéèêëàâçïîôùûüœ",
    "en": "abcdefghijklmnopqrstuvwxyz",
    "de": "abcdeäöüßnrst",
    "cs": "aábcčdďeéěiínňrřsštťuúůyýzž",
    "es": "aábcdeéiínñoóuúü",
}
# What stands between two words, W for a word and N for a number; of all languages, and of each.
SPACED = [
    "W",
    "W,",
    "W;",
    "W:",
    "(W W)",
    '"W W"',
    "N:N",
    "N,N",
    "[W]",
    "W-W",
    "W?",
    "W!",
    "W. W.",
    "N/N",
    "W – W",
    "W@W",
]
OWN = {
    "fr": ["W'W", "W’W", "« W W »", "N %", "W ?", "W !", "W :", "W ;", "W'« W »", "“W”", "W...", "W_W"],
    "en": ["W's", "W'll", "“W W”", "N%", "£N", "W—W"],
    "de": ["„W W“", "»W W«", "N %", "‚W W‘", "W²"],
    "cs": ["„W W“", "»W W«", "N %", "W..."],
    "es": ["«W W»", "“W W”", "¿W?", "¡W!", "N%", "W'W", "m²"],
}
FRENCH = {"W;", "W:", "W?", "W!"}  # French puts a space there


@st.composite
def texts(draw: st.DrawFn, language: str) -> str:
    patterns = [pattern for pattern in SPACED if language != "fr" or pattern not in FRENCH] + OWN[language]
    letters = LETTERS[language]
    words = st.text(letters, min_size=4, max_size=8).filter(lambda text: unicodedata.category(text[0])[0] == "L")

    def filled(match: re.Match[str]) -> str:
        if match[0] == "N":
            return str(draw(st.integers(10, 9999)))
        word = draw(words)
        if match[0] == "W" and draw(st.booleans()):
            word = word[0].upper() + word[1:] if len(word[0].upper()) == 1 else word
        return unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), word)

    chosen = draw(st.lists(st.sampled_from(patterns), min_size=1, max_size=8))
    return " ".join(re.sub("[WNw]", filled, pattern) for pattern in chosen)


@pytest.mark.parametrize(
    "language", [each if each in DRAWN else pytest.param(each, marks=pytest.mark.slow) for each in LETTERS]
)
def test_drawn_text_comes_back_as_it_was_written(language: str) -> None:
    @draws
    @given(texts(language))
    def check(text: str) -> None:
        assert come_back(text, language) == text

    check()


@pytest.mark.parametrize("language", ["it", "th", "ja"])
def test_other_languages_are_refused(language: str) -> None:
    known = f"moses knows the languages cs, de, en, es, fr, zh, not {language}: use none, or for data and models"
    with pytest.raises(ValueError, match=known):
        word_tokenizer("moses", language)


ISOLATED = """
import sys, types

package = types.ModuleType("hat_fairseq")  # the package itself would import torch and fairseq, which takes long
package.__path__ = [sys.argv[1]]
sys.modules["hat_fairseq"] = package

from hat_fairseq.data.word_tokenizer import word_tokenizer

print(word_tokenizer("jieba", "zh").tokenize("我们在北京"))
"""


@pytest.mark.slow
def test_jieba_leaves_no_file_behind_and_says_nothing(tmp_path: Path) -> None:
    """It would read and write a file in the folder for temporary files, which everybody may write to."""
    (tmp_path / "jieba.cache").write_bytes(b"planted")
    environment = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", ISOLATED, str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, encoding="utf-8")
    assert (done.stdout, done.stderr) == ("我们 在 北京\n", "")
    assert (tmp_path / "jieba.cache").read_bytes() == b"planted"
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]


@pytest.mark.parametrize(("name", "package"), [("moses", "sacremoses"), ("jieba", "jieba")])
def test_a_missing_package_is_named(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # importing it fails as if it were not installed
    with pytest.raises(ValueError) as error:
        word_tokenizer.__wrapped__(name, "en")  # not one made before
    assert f"the word tokenizer {name} needs the package {package}: pip install {package}, " in str(error.value)
    assert 'pip install "hat_fairseq[data]"' in str(error.value)
