from __future__ import annotations

from collections import Counter

import pytest

from hat_fairseq.data.text import (
    CONTROL_TOKENS,
    escape_control_tokens,
    normalise,
    restore_control_tokens,
    split_segments,
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
    assert normalise(clean, again) == clean and not again


@pytest.mark.parametrize("token", CONTROL_TOKENS)
def test_control_tokens_are_escaped_and_restored(token: str) -> None:
    text = f"a {token} b{token}{token} <{token}> <\\{token[1:]}"
    counts: Counter[str] = Counter()
    escaped = escape_control_tokens(text, counts)
    assert not any(control in escaped for control in CONTROL_TOKENS)
    assert restore_control_tokens(escaped) == text
    assert counts == {"control_tokens_escaped": 5}


def test_segments_are_split_at_tabs() -> None:
    assert split_segments("One.\tTwo. \t\tFour.") == ["One.", "Two.", "", "Four."]
    assert split_segments("") == [""]
