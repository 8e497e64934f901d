"""Options of every command, setting and argument: values, flags, and what has no effect."""

import json
import logging
import math
from argparse import SUPPRESS, ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import hat, write_lines

from hat_fairseq.hf import HatConfig
from hat_fairseq.options import OptionError, as_in_python, changed, check_effects, option, options_of, read_options

INFINITE = math.inf


@dataclass
class Some:
    whole: int = option(5, "", least=1)
    share: float | None = option(None, "", least=0, most=1)
    positive: float = option(1.0, "", above=0)
    top: float = option(-1.0, "", above=0, most=1, needs="drawn")
    drawn: bool = option(False, "")
    penalty: float = option(0.0, "", most=INFINITE)
    threshold: float = option(0.0, "", least=-INFINITE, most=INFINITE)
    name: str = option("a", "", ("a", "b", "c"))
    length: int = option(128, "", needs="name=b|c or share")
    chunk: int | None = option(None, "", needs="drawn and name=b")
    width: float = option(1.0, "", excludes="drawn")
    policy: str = option("error", "", ("error", "drop"), needs="drawn")
    layers: int = option(1, "", excludes="name=c", tolerated=True)
    columns: tuple[str, ...] = option((), "")
    no_option: int = 0


@dataclass
class Other(Some):
    whole: int = changed(Some, "whole", 7, "another help")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("whole", 0, "at least 1"),
        ("whole", -3, "at least 1"),
        ("whole", True, "a whole number"),
        ("whole", "512", "a whole number"),
        ("whole", 5.0, "a whole number"),
        ("whole", math.nan, "a whole number"),
        ("whole", INFINITE, "a whole number"),
        ("whole", None, "a whole number"),
        ("share", math.nan, "a number"),
        ("share", INFINITE, "a finite number"),
        ("share", 10**400, "a finite number"),
        ("share", "0.1", "a number"),
        ("share", False, "a number"),
        ("share", -0.001, "from 0 to 1"),
        ("share", [0.5], "a number"),
        ("positive", 0, "more than 0"),
        ("positive", -INFINITE, "a finite number"),
        ("top", 0.0, "more than 0 and at most 1, or -1.0"),
        ("top", -0.5, "more than 0 and at most 1, or -1.0"),
        ("penalty", -INFINITE, "a finite number"),
        ("threshold", math.nan, "a number"),
        ("drawn", 1, "true or false"),
        ("drawn", "yes", "true or false"),
        ("name", "d", "one of a, b, c"),
        ("name", ["a"], "a string"),
        ("columns", "a=b", "a list"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused_by_name(name: str, value: Any, expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        options_of(Some)[name].check(value)
    assert str(caught.value) == f"--{name} must be {expected}, not {value!r:.60}"
    assert caught.value.in_python == f"{name} must be {expected}, not {value!r:.60}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("whole", 1),
        ("whole", np.int64(3)),
        ("share", None),
        ("share", 1),
        ("share", np.float32(0.5)),
        ("top", -1),
        ("penalty", INFINITE),
        ("threshold", -INFINITE),
        ("columns", ["a=b"]),
    ],
)
def test_a_value_that_an_option_can_have(name: str, value: Any) -> None:
    options_of(Some)[name].check(value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"top": 0.5}, "--top 0.5 has no effect without --drawn: remove it, or add that"),
        ({"top": -1.0}, ""),  # its default
        ({"top": 0.5, "drawn": True}, ""),
        ({"length": 9}, "--length 9 has no effect without --name b or c or --share: remove it, or add that"),
        ({"length": 9, "share": 0.0}, ""),
        ({"length": 9, "name": "c"}, ""),
        ({"chunk": 3}, "--chunk 3 has no effect without --drawn: remove it, or add that"),
        ({"chunk": 3, "drawn": True}, "--chunk 3 has no effect without --name b: remove it, or add that"),
        ({"chunk": 3, "drawn": True, "name": "b"}, ""),
        ({"width": 2.0, "drawn": True}, "--width 2.0 has no effect with --drawn: remove it"),
        ({"width": 2.0, "drawn": False}, ""),
        ({"drawn": False, "share": None}, ""),
        ({"policy": "drop"}, "--policy drop has no effect without --drawn: remove it, or add that"),
        ({"policy": "error"}, ""),  # what happens anyway
    ],
)
def test_a_stated_option_without_effect_is_refused(values: dict[str, Any], message: str) -> None:
    if not message:
        return check_effects(Some, values, values)
    with pytest.raises(OptionError) as caught:
        check_effects(Some, values, values)
    assert str(caught.value) == message
    return None


def test_what_recipes_and_older_checkpoints_have_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_effects(Some, {"name": "c"}, {"layers": 2})
    assert caplog.messages == ["--layers 2 has no effect with --name c: remove it"]


def test_an_argument_in_python() -> None:
    with pytest.raises(OptionError, match='^length=3 has no effect without name="b or c" or share: '), as_in_python():
        check_effects(Some, {}, {"length": 3})


@pytest.mark.parametrize(("default", "expected"), [(None, dict.fromkeys(options_of(Some))), (SUPPRESS, {})])
def test_what_is_not_stated_is_told_apart(default: Any, expected: Any) -> None:
    """None in a command; in fairseq's parsers absent, so that an architecture chooses."""
    parser = ArgumentParser(argument_default=default)
    for each in options_of(Some).values():
        each.add_to(parser)
    assert vars(parser.parse_args([])) == expected
    words = ["--whole", "3", "--drawn", "--columns", "a=b", "--columns", "c=d"]
    stated = vars(parser.parse_args(words))
    assert stated == expected | {"whole": 3, "drawn": True, "columns": ["a=b", "c=d"]}


def test_absent_values_have_their_defaults() -> None:
    assert read_options(Other, SimpleNamespace(share=0.5, name=None)) == Other(share=0.5)
    assert Other().whole == 7
    assert options_of(Other)["whole"].help == "another help"
    with pytest.raises(OptionError, match="--whole must be at least 1, not 0"):
        read_options(Other, SimpleNamespace(whole=0))


@pytest.mark.parametrize(
    "words",
    [["--long-source", "error"], ["--kind", "evidence", "--target-language", "en"], ["--source-tokenizer", "none"]],
)
def test_words_that_are_the_default_ask_for_nothing(words: list[str], tmp_path: Path) -> None:
    """Scripts state them; a number or another word without effect is refused."""
    evidence = {"sentences": ["A b."], "questions": ["c?"], "evidence": [[0]]}
    record = evidence if "evidence" in words else {"text": "A b.", "target": "c"}
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [{"id": "a", **record}])
    others = ["--splitter", "given" if "evidence" in words else "punctuation", "--num-codes", 10]
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "out", *others, *words) == 0


@pytest.mark.parametrize("value", [1.0, "1", True, np.int64(1)])
def test_sizes_of_a_folder_are_whole_numbers(value: Any) -> None:
    """Those of numpy become Python's, which JSON has; others are refused by name."""
    sizes = {"vocab_size": 20, "num_roles": value}
    if not isinstance(value, np.integer):
        with pytest.raises(ValueError, match="num_roles must be a whole number"):
            HatConfig(network="hat_transformer", **sizes)
        return
    config = HatConfig(network="hat_transformer", settings={"encoder_layers": np.int64(2)}, **sizes)
    assert json.loads(config.to_json_string())["num_roles"] == 1
    assert type(config.settings["encoder_layers"]) is int
