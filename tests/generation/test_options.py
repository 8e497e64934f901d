"""Generation options given as JSON are checked; fairseq would ignore a misspelt one."""

from __future__ import annotations

import pytest

from hat_fairseq.generation.options import check_generation_flags, parse_generation_options


def test_options_are_those_of_fairseq() -> None:
    assert parse_generation_options('{"beam": 4, "max_len_b": 30}', "--generation") == {"beam": 4, "max_len_b": 30}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"beem": 2}', "--generation: unknown generation option 'beem'; known are .*beam"),
        ("{beam: 2}", "--generation {beam: 2}: not JSON"),
        ("[4]", "--generation .4.: expected a JSON object"),
        ('{"beam": 0}', "--generation: beam must be at least 1, not 0"),
        ('{"beam": -1}', "--generation: beam must be at least 1, not -1"),
        ('{"beam": "4"}', "--generation: beam must be a whole number, not '4'"),
        ('{"beam": 2.5}', "--generation: beam must be a whole number, not 2.5"),
        ('{"beam": true}', "--generation: beam must be a whole number, not True"),
        ('{"no_repeat_ngram_size": -1}', "--generation: no_repeat_ngram_size must be at least 0, not -1"),
        ('{"temperature": 0}', "--generation: temperature must be greater than 0, not 0"),
        ('{"sampling": 1}', "--generation: sampling must be true or false, not 1"),
    ],
)
def test_what_is_no_option_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_generation_options(text, "--generation")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"--beam": ["0"]}, "--beam: beam must be at least 1, not 0"),
        ({"--no-repeat-ngram-size": ["-1"]}, "--no-repeat-ngram-size: no_repeat_ngram_size must be at least 0, not -1"),
        ({"--temperature": ["0"]}, "--temperature: temperature must be greater than 0, not 0"),
        ({"--min-len": ["short"]}, "--min-len must be a number, not 'short'"),
    ],
)
def test_flags_of_fairseq_generate_are_checked(flags, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_generation_flags(flags)
    check_generation_flags({"--beam": ["4"], "--temperature": ["0.5"], "--bf16": []})
