"""Texts and their languages: characters, words, sentences, lines, labels."""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairseq.data import Dictionary
from golden_lines import cases, check

from hat_fairseq.data.dictionary import Dictionary as Symbols
from hat_fairseq.data.dictionary import label_of, label_token, read_labels
from hat_fairseq.data.language import (
    base_language,
    has_space_after_sentence,
    has_spaces,
    language_of_texts,
    parse_code,
    words_of,
)
from hat_fairseq.data.options import SPLITTERS
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import (
    CONTROL_TOKENS,
    count_words,
    join_sentences,
    normalise,
    split_lines,
    split_segments,
    split_sentences,
)


def normalised(text: str) -> tuple[str, Counter[str]]:
    counts: Counter[str] = Counter()
    return normalise(text, counts), counts


def language(code: str) -> list[Any]:
    """Tag or error, and what is known of the base language, also of codes of earlier data that are none."""
    try:
        tag = parse_code(code)
    except ValueError as error:
        tag = str(error)
    return [tag, base_language(code), has_spaces(code), has_space_after_sentence(code)]


def language_of(*texts: str) -> list[Any]:
    known = language_of_texts(texts)
    return [known.code, known.name, round(known.share, 3)] if known else []


CALLS: dict[str, Callable[..., Any]] = {"normalise": normalised, "language": language, "language_of_texts": language_of}
CALLS |= {
    each.__name__: each
    for each in (count_words, join_sentences, split_lines, split_segments, split_sentences, words_of)
}


@cases("texts")
def test_what_is_made_of_a_text(case: dict[str, Any]) -> None:
    check("texts", case, CALLS[case["call"]](*case["in"]))


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
    assert tokens[8] == "中%20文"  # readable where it can be
    Symbols.of(tokens).save(tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert [dictionary.index(token) - dictionary.nspecial for token in tokens] == list(range(len(LABELS)))
    assert read_labels(tmp_path / "dict.txt") == LABELS


SPLITTING = SPLITTERS[1:]


@pytest.mark.parametrize("method", SPLITTING)
def test_nothing_is_lost(method: str, meetings: list[Record]) -> None:
    texts = [" ".join(meeting.elements or ()) for meeting in meetings[:3]]
    generator = random.Random(2)
    texts += ["".join(generator.choices("aB .!?…。”'\")(1é日 \u2028", k=80)) for _ in range(300)]
    for text in texts:
        sentences = split_sentences(text, method)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        assert all(sentence == sentence.strip() and sentence for sentence in sentences)


@pytest.mark.parametrize(
    "text",
    ["w " * 50_000, "." * 50_000 + " A", "." * 200_000 + "A", '."' * 25_000 + " A", "x" * 50_000, ". " * 25_000],
    ids=lambda text: text[:9],
)
@pytest.mark.slow
@pytest.mark.parametrize("method", SPLITTING)
def test_hostile_text_takes_no_longer_than_its_length_deserves(text: str, method: str) -> None:
    begin = time.process_time()
    assert len("".join(split_sentences(text, method)).replace(" ", "")) == len(text.replace(" ", ""))
    assert time.process_time() - begin < 5  # about 0.2 on an idle machine; quadratic ones take minutes


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="has no given sentences; give sentences or turns, or --splitter"):
        split_sentences("a b", "given")
    with pytest.raises(ValueError, match="does not know the language 'xx'"):
        split_sentences("a b", "library", language="xx")
