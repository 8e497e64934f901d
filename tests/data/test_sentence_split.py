from __future__ import annotations

import random
import time

import pytest

from hat_fairseq.data.record import Record
from hat_fairseq.data.text import SPLITTERS, split_sentences

SPLITTING = SPLITTERS[1:]
PARAGRAPH = 'Mr. Smith paid $3.50. "Why?" asked Ann... Nobody knew! It cost e.g. more'


def test_punctuation_is_simple() -> None:
    assert split_sentences(PARAGRAPH, "punctuation") == [
        "Mr.",
        "Smith paid $3.50.",
        '"Why?"',
        "asked Ann...",
        "Nobody knew!",
        "It cost e.g.",
        "more",
    ]


def test_library_knows_abbreviations() -> None:
    assert split_sentences(PARAGRAPH, "library") == [
        "Mr. Smith paid $3.50.",
        '"Why?" asked Ann...',
        "Nobody knew!",
        "It cost e.g. more",
    ]


def test_full_width_marks_need_no_space() -> None:
    assert split_sentences("今天很好。“你好！”他说？", "punctuation") == ["今天很好。", "“你好！”", "他说？"]


@pytest.mark.parametrize("method", SPLITTING)
def test_text_without_sentence_end_is_one_sentence(method: str) -> None:
    assert split_sentences("no end in sight", method) == ["no end in sight"]
    assert split_sentences("", method) == []
    assert split_sentences("  ", method) == []


@pytest.mark.parametrize("method", SPLITTING)
def test_nothing_is_lost(method: str, meetings: list[Record]) -> None:
    texts = [" ".join(meeting.sentences or ()) for meeting in meetings[:3]]
    generator = random.Random(2)
    texts += ["".join(generator.choices("aB .!?…。”'\")(1é日 \u2028", k=80)) for _ in range(300)]
    for text in texts:
        sentences = split_sentences(text, method)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        assert all(sentence == sentence.strip() and sentence for sentence in sentences)


@pytest.mark.parametrize("method", SPLITTING)
@pytest.mark.parametrize(
    "text", ["w " * 50_000, "." * 50_000 + " A", "." * 200_000 + "A", '."' * 25_000 + " A", "x" * 50_000, ". " * 25_000]
)
def test_hostile_text_takes_no_longer_than_its_length_deserves(method: str, text: str) -> None:
    begin = time.perf_counter()
    assert len("".join(split_sentences(text, method)).replace(" ", "")) == len(text.replace(" ", ""))
    assert time.perf_counter() - begin < 5  # about 0.2 on an idle machine; quadratic ones take minutes


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="has no given sentences; give sentences or turns, or --splitter"):
        split_sentences("a b", "given")
    with pytest.raises(ValueError, match="unknown sentence splitter 'nltk'"):
        split_sentences("a b", "nltk")
    with pytest.raises(ValueError, match="does not know the language 'xx'"):
        split_sentences("a b", "library", language="xx")
