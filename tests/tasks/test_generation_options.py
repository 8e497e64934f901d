"""Generation options given as JSON are checked; fairseq would ignore a misspelt one."""

from __future__ import annotations

import pytest

from hat_fairseq.tasks.generation_options import parse_generation_options


def test_options_are_those_of_fairseq() -> None:
    assert parse_generation_options('{"beam": 4, "max_len_b": 30}', "--generation") == {"beam": 4, "max_len_b": 30}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"beem": 2}', "--generation: unknown generation option 'beem'; known are .*beam"),
        ("{beam: 2}", "--generation {beam: 2}: not JSON"),
        ("[4]", "--generation .4.: expected a JSON object"),
    ],
)
def test_what_is_no_option_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_generation_options(text, "--generation")
