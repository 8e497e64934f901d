"""Codes of languages, scripts, words and ends of sentences: `hat_fairseq.data.language` and what asks it."""

import json
import unicodedata
from pathlib import Path

import pytest
import regex
from commands import hat, refusal, write_lines
from drawn import draws
from hypothesis import given, strategies

from hat_fairseq.data.language import (
    UNSPACED,
    base_language,
    has_space_after_sentence,
    has_spaces,
    language_of_texts,
    parse_code,
    pattern,
    sentence_ends,
    words_of,
)
from hat_fairseq.data.text import PARAGRAPH_BREAKS, count_words, join_sentences, split_lines, split_sentences


@pytest.mark.parametrize(
    ("code", "tag", "base"),
    [
        ("deu", "de", "de"), ("DE_at", "de-AT", "de"), ("jpn", "ja", "ja"), ("JA", "ja", "ja"), ("cmn", "zh", "zh"),
        ("zh_hant_HK", "zh-Hant-HK", "zh"), ("iw", "he", "he"), ("pt-pt", "pt-PT", "pt"), ("en-US", "en-US", "en"),
        ("sr-Cyrl", "sr-Cyrl", "sr"), ("yue", "yue", "yue"), ("nob", "nb", "nb"),
    ],
)  # fmt: skip
def test_codes_mean_what_they_say(code: str, tag: str, base: str) -> None:
    assert (parse_code(code), base_language(code)) == (tag, base)


@pytest.mark.parametrize("code", ["", "e", "xx", "german", "zh-", "de-zz-zz", "12", "und", "中文"])
def test_unknown_codes_are_refused_and_read_from_earlier_data(code: str) -> None:
    with pytest.raises(ValueError, match="unknown language .* BCP 47"):
        parse_code(code)
    assert base_language(code) == code
    assert has_spaces(code)
    assert has_space_after_sentence(code)


def test_words_without_spaces_are_told_by_the_script_of_a_language() -> None:
    without = [
        code for code in ("zh", "zh-TW", "yue", "wuu", "ja", "th", "lo", "my", "km", "bo", "dz") if not has_spaces(code)
    ]
    assert len(without) == 11
    assert all(map(has_spaces, ["en", "ko", "vi", "ar", "hi", "tr", "ru", "el", "am", "jv"]))
    assert [
        code for code in ("zh-Hant", "yue", "ja-JP", "th", "km", "bo", "ko") if not has_space_after_sentence(code)
    ] == [
        "zh-Hant",
        "yue",
        "ja-JP",
    ]


def test_the_language_of_texts() -> None:
    texts = {
        "zh": "会议在星期一举行, 参加者有 Anna", "ja": "会議は月曜日にあります", "ko": "회의는 월요일에 있습니다",
    }  # fmt: skip
    for code, text in texts.items():
        written = language_of_texts([text])
        assert written
        assert written.code == code
        assert 0.5 < written.share <= 1
    for text, name in (("ປະຊຸມວັນຈັນ", "script Lao"), ("རྒྱལ་པོ།", "script Tibetan"), ("ကောင်စီ", "script Myanmar")):
        written = language_of_texts([text])
        assert written
        assert (written.code, written.name) == ("", name)
    mixed = language_of_texts(["ฉันไปโรงเรียนวันนี้", "他说你好然后走了价格是三元谢谢再见吧好的" * 2])
    assert mixed
    assert mixed.code == "zh"
    assert mixed.share < 0.8, "the share is that of the named language"
    for text in ("Rat am Montag", "совет", "परिषद", "المجلس", "1 2 3", "", "one 中 word in many letters of another"):
        assert language_of_texts([text]) is None


# One text a script: its sentences, joined by what stands between them.
SENTENCES = {
    "Hebrew": ("המועצה נפגשה.", "מה קרה?", "כן!"),
    "Hindi": ("यह पुल बंद है।", "वह नदी है॥", "हाँ!"),
    "Urdu": ("ریلوے بند ہے۔", "بی۔بی۔سی نے کہا۔", "کیوں؟"),
    "Armenian": ("Կամուրջը փակ է։", "Գինը 3.5 է։"),
    "Amharic": ("ድልድዩ ተዘጋ።", "ለምን፧", "አናውቅም።"),
    "Burmese": ("တံတားပိတ်ထားသည်။", "မြစ်ငြိမ်သည်။"),
    "Khmer": ("ស្ពានបិទ។", "ហេតុអ្វី?"),
    "Tibetan": ("ཟམ་པ་བཀག་འདུག།", "རྒྱུ་མཚན་ཅི་ཡིན།"),
    "Mongolian": ("ᠮᠣᠩᠭᠣᠯ᠃", "ᠬᠡᠯᠡ᠃"),
    "French": ("Le pont est fermé !", "« Pourquoi ? »", "Non."),
    "German": ("„Die Brücke ist zu.“", "Er ging.", "Am 3. Mai."),
    "Bullets": ("One…", "two‽", "three⁉", "four"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences_end_at_the_marks_of_every_script(name: str) -> None:
    sentences = SENTENCES[name]
    text = " ".join(sentences)
    expected = {"German": ["„Die Brücke ist zu.“", "Er ging.", "Am 3.", "Mai."]}.get(name, list(sentences))
    assert split_sentences(text, "punctuation") == expected
    assert "".join(split_sentences(text, "punctuation")).replace(" ", "") == text.replace(" ", "")


def test_wide_marks_need_no_space_but_full_stops_in_numbers_are_none() -> None:
    text = "価格は３．５です．次は｢はい｡｣と言う｡終わり。」２０２０年！"
    assert split_sentences(text, "punctuation") == [
        "価格は３．５です．", "次は｢はい｡｣", "と言う｡", "終わり。」", "２０２０年！",
    ]  # fmt: skip
    assert split_sentences("U.S. v1.2 is out.See x.y! ok", "punctuation") == ["U.S.", "v1.2 is out.See x.y!", "ok"]


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "我们去公园！“真的吗？”他问。": ["我们去公园！", "“真的吗？”", "他问。"],
        "他说：‘走吧。’“好。”": ["他说：‘走吧。’", "“好。”"],
        "वह गया।“कहाँ?” उसने पूछा।": ["वह गया।", "“कहाँ?”", "उसने पूछा।"],
        "Er sagt: „是。“ Sie geht.": ["Er sagt: „是。“", "Sie geht."],
        "行く。«Oui.» 是。“": ["行く。", "«Oui.»", "是。“"],
    }.items(),
)
def test_quotation_marks_that_open_a_sentence_without_a_space_before_it(text: str, expected: list[str]) -> None:
    """What closes in German opens in Chinese."""
    assert split_sentences(text, "punctuation") == expected


def test_greek_asks_with_a_semicolon() -> None:
    text = "Τι έγινε; Τίποτα. Γιατί\u037e Δεν ξέρω."
    assert len(split_sentences(text, "punctuation", "el")) == len(split_sentences(text, "punctuation", "el-CY")) == 4
    assert split_sentences("one; two", "punctuation", "en") == ["one; two"]


TERMINALS = regex.findall(r"\p{Sentence_Terminal}", "".join(map(chr, [*range(0xD800), *range(0xE000, 0x20000)])))


def test_every_sentence_terminal_ends_a_sentence() -> None:
    wrong = [mark for mark in TERMINALS if split_sentences(f"aa{mark} bb", "punctuation") != [f"aa{mark}", "bb"]]
    assert wrong == []
    assert len(TERMINALS) > 120


@pytest.mark.slow
@draws
@given(strategies.text(alphabet="ab1 ." + "".join(TERMINALS[:40]) + "»”'\")」。", max_size=40))
def test_no_character_is_lost(text: str) -> None:
    assert "".join("".join(split_sentences(text, "punctuation")).split()) == "".join(text.split())


@pytest.mark.parametrize("marks", [".", "。", '."', "।", "．", "…", "।.", "。“"])
def test_long_runs_of_marks_take_linear_time(marks: str) -> None:
    for text in (50_000 * marks, 50_000 * marks + "5", 50_000 * marks + "a"):
        assert len("".join(split_sentences(text, "punctuation"))) == len(text)


@draws
@given(strategies.text(alphabet="ab1 .!?…;)”»", max_size=40))
def test_frequent_marks_are_found_as_among_rare_ones(text: str) -> None:
    for code in ("en", "el"):
        ends = list(sentence_ends(text + " ।", code))
        assert [end for end in ends if end < len(text)] == [end for end in sentence_ends(text, code) if end < len(text)]


def test_line_breaks() -> None:
    text = "Title\n\nHard\nwrapped text.\n - item\n * other\n2) third\n\n## Head\nBody\u200b\r\n\ufeff \r\nEnd"
    assert split_lines(text, "space") == [text]
    assert [" ".join(piece.strip("\u200b").split()) for piece in split_lines(text, "paragraphs")] == [
        "Title", "Hard wrapped text.", "- item", "* other", "2) third", "## Head", "Body", "End",
    ]  # fmt: skip
    assert len(split_lines(text, "sentences")) == text.count("\n") + 1
    assert split_lines("minus\n-5 degrees\n#tag", "paragraphs") == ["minus\n-5 degrees\n#tag"]


def test_words_of_any_script() -> None:
    assert words_of("Don't stop, 3.5!") == ["don", "t", "stop", "3", "5"]
    assert words_of("می\u200cخواهم") == ["میخواهم"]
    assert words_of("Cafe\u0301 CAFÉ") == ["café", "café"]
    assert words_of("日本語 한국어") == ["日", "本", "語", "한국어"]
    thai = words_of("กำลัง")
    assert "".join(thai) == "กำลัง"
    assert all(not unicodedata.combining(word[0]) for word in thai)
    assert regex.fullmatch(rf"{UNSPACED}+", "漢字かなカナ々ไทยລາວမြန်မာខ្មែរབོད", regex.V1)
    assert not regex.search(UNSPACED, "한글ЖاहAé9", regex.V1)


def test_words_are_counted_and_sentences_joined_as_the_language_does() -> None:
    assert [count_words("สวัสดี โลก", code) for code in ("th", "th-TH", "en")] == [9, 9, 2]
    assert join_sentences(["你好。", "再见。"], "zh-CN") == "你好。再见。"
    assert join_sentences(["สวัสดี", "ลาก่อน"], "th") == "สวัสดี ลาก่อน"
    assert join_sentences(["안녕.", "잘 가."], "ko") == "안녕. 잘 가."


def rows(text: str) -> list[dict[str, str]]:
    return [{"id": str(number), "text": text, "target": "a b"} for number in range(3)]


def preprocess(folder: Path, text: str, *flags: object) -> tuple[object, ...]:
    for split in ("train", "valid"):
        write_lines(folder / f"raw/{split}.jsonl", rows(text))
    return ("preprocess", folder / "raw", "--out", folder / "out", "--num-codes", 100, "--overwrite", *flags)


def test_a_long_text_of_one_sentence_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "a" + " b" * 150
    assert hat(*preprocess(tmp_path, text, "--splitter", "punctuation")) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "one sentence" in line]
    assert line.split() == ["texts", "of", "one", "sentence", "over", "100", "tokens", "3", "3"]
    for words, flags in (
        (f"{text}. end", ["--splitter", "punctuation"]),
        ("short text", ["--splitter", "punctuation"]),
    ):
        assert hat(*preprocess(tmp_path, words, *flags)) == 0
        assert "one sentence" not in capsys.readouterr().out


def test_options_of_languages_and_line_breaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "Erste Zeile\nzweite Zeile.\n\nDritte"
    words = preprocess(tmp_path, text, "--splitter", "punctuation")
    for choice, number in (("space", 2), ("paragraphs", 2), ("sentences", 3)):
        assert hat(*words, "--line-breaks", choice, "--source-language", "DEU_at") == 0
        stored = json.loads((tmp_path / "out/text/train.jsonl").read_text().splitlines()[0])
        assert len(stored["sentences"]) == number
        settings = json.loads((tmp_path / "out/bin/pipeline.json").read_text())["settings"]
        assert settings["source_language"] == "de-AT"
        assert settings.get("line_breaks", "space") == choice
    capsys.readouterr()
    assert "--target-language: unknown language 'deutsch'" in refusal(*words, "--target-language", "deutsch")
    given = preprocess(tmp_path, text)
    assert "--line-breaks sentences has no effect without --splitter punctuation or library" in refusal(
        *given, "--line-breaks", "sentences"
    )


def test_the_tokenizer_of_bleu_by_language_and_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"lo": "ສະພາປະຊຸມໃນວັນຈັນ ແລະຕົກລົງສ້ອມຂົວ", "bo": "ཚོགས་འདུ་གཟའ་ཟླ་བར་ཚོགས།"}
    for code, text in texts.items():
        write_lines(tmp_path / "r.jsonl", [{"id": "1", "target": text}])
        write_lines(tmp_path / "h.jsonl", [{"id": "1", "text": text[:-2]}])
        files = (tmp_path / "h.jsonl", "--references", tmp_path / "r.jsonl", "--bootstrap-samples", 0)
        for flags in ((), ("--language", code), ("--language", f"{code}-x-private")):
            assert hat("score", "bleu", *files, *flags) == 0
            printed = capsys.readouterr().out
            assert "tok:char" in printed
            assert float(printed.splitlines()[1].split()[1]) > 50


@given(strategies.lists(strategies.sampled_from([*"\n\n#a\t\u3000\u200b\x85-", " ", "# ", "## x", "- ", "1. ", "b."])))
@draws
def test_line_breaks_are_those_that_the_expression_finds(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert split_lines(text, "paragraphs") == pattern(PARAGRAPH_BREAKS).split(text)
