import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hat_fairseq.data.text import CONTROL_TOKENS, count_words, escape_control_tokens, restore_control_tokens
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "language", "words", "text"),
    [
        ("moses", "en", 'I can \'t ( really ) say : " no " , sorry .', 'I can\'t (really) say: "no", sorry.'),
        ("moses", "de", "„ Ja “ , sagte sie .", "„Ja“, sagte sie."),
        (
            "moses",
            "de",
            'anzuwenden " , sagt er , 28 % der (SDK) -Ikonen',
            'anzuwenden", sagt er, 28 % der (SDK) -Ikonen',
        ),
        ("moses", "de", "Mach ' das , 1 : 300 und 1858 / 59", "Mach' das, 1:300 und 1858/59"),
        ("moses", "de", "ich hab ' s bei Chris O ' Hare", "ich hab's bei Chris O'Hare"),
        ("moses", "en", "“ I don ’ t , ” said the boys ’ teacher", "“I don’t,” said the boys’ teacher"),
        ("moses", "en", 'inmates , " says Hermann on 9 / 11 , # 1', 'inmates," says Hermann on 9/11, #1'),
        ("moses", "en", 'Liberty . "', 'Liberty."'),
        ("moses", "en", "a \"' b", "a \"'b"),  # Moses writes two words, but a model may write one
        ("moses", "en", '" the dogs ’ toys " he said', '"the dogs’ toys" he said'),
        (
            "moses",
            "en",
            "in the ' 80s , at 38 ° C , he said , \" My friend",
            "in the '80s, at 38 °C, he said, \"My friend",
        ),
        ("moses", "cs", "V roce 1990 jich bylo 15 .", "V roce 1990 jich bylo 15."),
        ("jieba", "zh", "他 用 Microsoft Word 2010 写 书 。", "他用Microsoft Word 2010写书。"),
    ],
)
def test_running_text(name: str, language: str, words: str, text: str) -> None:
    assert word_tokenizer(name, language).detokenize(words) == text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "language"), KINDS[1:4])
def test_hostile_text_takes_no_longer_than_its_length_deserves(name: str, language: str) -> None:
    for text in [
        "remotecontrol" * 4000,
        "word " * 50_000,
        "U.S. " * 12_000,
        "." * 50_000,
        "齉" * 50_000,
        '"' * 50_000,
    ]:
        tokenizer = word_tokenizer(name, language)
        begin = time.process_time()
        words = tokenizer.tokenize(text.strip())
        assert letters(tokenizer.detokenize(words)) == letters(words) == letters(text)
        assert time.process_time() - begin < 8  # at most one second on an idle machine


def test_words_of_chinese_are_counted_by_characters() -> None:
    assert count_words("Two words, three.", "en") == 3
    assert count_words("我们 去 LA。", "zh") == 6


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
