"""Generation options given as JSON are checked; fairseq would ignore a misspelt one."""

from __future__ import annotations

import pytest
from fairseq.dataclass.configs import GenerationConfig

from hat_fairseq.generation.options import DEFAULTS, check_ranges, parse_generation_options


def test_options_are_those_of_fairseq() -> None:
    assert parse_generation_options('{"beam": 4, "max_len_b": 30}', "--generation") == {"beam": 4, "max_len_b": 30}
    assert vars(GenerationConfig()) == {"_name": None, **DEFAULTS}


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


def test_numbers_without_a_meaning_are_refused() -> None:
    check_ranges({"beam": 1, "min_len": 0, "lenpen": -1.0})
    for options, message in (({"beam": 0}, "beam must be at least 1, not 0"), ({"min_len": -1}, "min_len must be at")):
        with pytest.raises(ValueError, match=message):
            check_ranges(options)
