"""Ends of sentences in every script, and options of languages; `golden/texts.jsonl` has more texts."""

import json
from pathlib import Path

import pytest
import regex
from commands import hat, refusal, write_lines
from drawn import draws
from hypothesis import given, strategies

from hat_fairseq.data.language import UNSPACED, pattern, sentence_ends
from hat_fairseq.data.text import PARAGRAPH_BREAKS, split_lines, split_sentences

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


def test_scripts_without_spaces_between_words() -> None:
    assert regex.fullmatch(rf"{UNSPACED}+", "漢字かなカナ々ไทยລາວမြန်မာខ្មែརབོད", regex.V1)
    assert not regex.search(UNSPACED, "한글ЖاहAé9", regex.V1)


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
