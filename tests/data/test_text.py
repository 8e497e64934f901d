import random
import time
from collections import Counter
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from hat_fairseq.data.dictionary import Dictionary as Symbols
from hat_fairseq.data.dictionary import label_of, label_token, read_labels
from hat_fairseq.data.options import SPLITTERS
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import (
    CONTROL_TOKENS,
    normalise,
    split_segments,
    split_sentences,
)


@pytest.mark.parametrize(
    ("text", "clean", "counted"),
    [
        ("a\r\nb\nc", "a b c", {"line_breaks_to_space": 2}),
        ("a\rb", "a b", {"carriage_returns_to_space": 1}),
        ("a\tb", "a b", {"tabs_to_space": 1}),
        ("a\x0bb\x0cc\x85d\u2028e\u3000f\x1cg", "a b c d e f g", {"other_whitespace_to_space": 6}),
        ("a\x00b\x07c\x9fd", "abcd", {"control_characters_removed": 3}),
        ("a\ud800b", "a\ufffdb", {"lone_surrogates_replaced": 1}),
        (" a   b    c ", "a b c", {"runs_of_spaces_shortened": 2}),
        ("naïve e\u0301 日本 🙂", "naïve e\u0301 日本 🙂", {}),
        ("\r\n\x00 ", "", {"line_breaks_to_space": 1, "control_characters_removed": 1, "runs_of_spaces_shortened": 1}),
    ],
)
def test_every_kind_of_replacement_is_counted(text: str, clean: str, counted: dict[str, int]) -> None:
    counts: Counter[str] = Counter()
    assert normalise(text, counts) == clean
    assert counts == counted


def test_any_text_ends_on_one_line_that_python_and_fairseq_split_alike() -> None:
    counts: Counter[str] = Counter()
    everything = "".join(f"x{chr(code)}" for code in range(0x11000))
    clean = normalise(everything, counts)
    assert clean.splitlines() == [clean]
    assert clean.split() == clean.split(" ")
    assert clean.encode()
    again: Counter[str] = Counter()
    assert normalise(clean, again) == clean
    assert not again


def test_segments_are_split_at_tabs() -> None:
    assert split_segments("One.\tTwo. \t\tFour.") == ["One.", "Two.", "", "Four."]
    assert split_segments("") == [""]


LABELS = [
    "true",
    "not hyper%partisan",
    "a%20b",
    "<pad>",
    "%3Cpad>",
    "x\u3000y\u00a0",
    "\n",
    "\ud800",
    "中 文",
    "#",
    "0",
]


def test_every_label_is_one_token_and_back(tmp_path: Path) -> None:
    tokens = list(map(label_token, LABELS))
    assert list(map(label_of, tokens)) == LABELS
    assert all([token] == token.split() for token in tokens)
    assert len({*tokens, *CONTROL_TOKENS}) == len(LABELS) + len(CONTROL_TOKENS)
    assert tokens[0] == "true"
    assert tokens[8] == "中%20文"
    Symbols.of(tokens).save(tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert [dictionary.index(token) - dictionary.nspecial for token in tokens] == list(range(len(LABELS)))
    assert read_labels(tmp_path / "dict.txt") == LABELS


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


def test_long_words_do_not_move_the_ends_of_sentences() -> None:
    """The library sees both ends of a word only."""
    word = "x" * 200
    assert split_sentences(f"One {word} two. Three {word}. Four", "library") == [
        f"One {word} two.",
        f"Three {word}.",
        "Four",
    ]


@pytest.mark.parametrize("method", SPLITTING)
def test_nothing_is_lost(method: str, meetings: list[Record]) -> None:
    texts = [" ".join(meeting.elements or ()) for meeting in meetings[:3]]
    generator = random.Random(2)
    texts += ["".join(generator.choices("aB .!?…。”'\")(1é日 \u2028", k=80)) for _ in range(300)]
    for text in texts:
        sentences = split_sentences(text, method)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        assert all(sentence == sentence.strip() and sentence for sentence in sentences)


@pytest.mark.slow
@pytest.mark.parametrize("method", SPLITTING)
def test_hostile_text_takes_no_longer_than_its_length_deserves(method: str) -> None:
    for text in [
        "w " * 50_000,
        "." * 50_000 + " A",
        "." * 200_000 + "A",
        '."' * 25_000 + " A",
        "x" * 50_000,
        ". " * 25_000,
    ]:
        begin = time.process_time()
        assert len("".join(split_sentences(text, method)).replace(" ", "")) == len(text.replace(" ", ""))
        assert time.process_time() - begin < 5  # about 0.2 on an idle machine; quadratic ones take minutes


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="has no given sentences; give sentences or turns, or --splitter"):
        split_sentences("a b", "given")
    with pytest.raises(ValueError, match="does not know the language 'xx'"):
        split_sentences("a b", "library", language="xx")
