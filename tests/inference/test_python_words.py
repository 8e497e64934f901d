"""A caller of Python reads arguments and methods in a message, and the command line flags and verbs."""

import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from commands import refusal

import hat_fairseq
from hat_fairseq.options import OptionError, as_in_python

SAID = [{"role": "PM", "text": "We begin now ."}, {"role": "ME", "text": "The market is small ."}]


@pytest.fixture(scope="module")
def demo() -> Any:
    return hat_fairseq.load("demo", device="cpu")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda demo: demo.generate("We met."), "give a list of documents"),
        (lambda demo: demo.generate(["We met."]), "no roles, .*: give turns, each with its role"),
        (lambda demo: demo.generate([{"turns": SAID}], no_repeat_ngram_size=1), "no_repeat_ngram_size=1 would allow"),
        (lambda demo: demo.generate([{"turns": SAID}], min_len=900), "min_len=900 is more than the longest"),
        (
            lambda demo: demo.generate([{"turns": SAID}], sampling_topk=3),
            "sampling_topk=3 has no effect without sampling",
        ),
        (lambda demo: demo.generate([{"turns": SAID}], nbest=2), "^nbest has no effect: each document gets its best"),
        (lambda demo: demo.look({"turns": SAID}, temperature=-2.0), "temperature must be more than 0, not -2.0"),
        (lambda demo: demo.generate([{"turns": SAID}], lenpen=float("-inf")), "lenpen must be a finite number"),
        (lambda demo: demo.generate([{"turns": SAID}], splitter="library"), 'splitter="library" has no effect'),
        (lambda demo: demo.generate([{"turns": SAID}], batch_size="2"), "^batch_size must be a whole number, not '2'"),
        (lambda demo: demo.generate([{"turns": SAID}], batch_size=1.5), "^batch_size must be a whole number, not 1.5"),
        (lambda demo: demo.generate([{"turns": SAID}], batch_size=True), "^batch_size must be a whole number, not T"),
        (lambda demo: demo.embed([{"turns": SAID}]), "reads roles beside the text, which embed does not"),
        (lambda demo: demo.embed([{"turns": SAID}], of="page"), "^of must be one of .*, not 'page'"),
        (lambda demo: demo.embed([{"turns": SAID}], of="document", alone=True), "^alone is for sentences"),
        (lambda _: hat_fairseq.load("no.pt", data="no"), "checkpoint no.pt does not exist"),
        (lambda _: hat_fairseq.load(__file__), r"give the bin directory of its training \(data\)"),
    ],
)
def test_messages(demo: Any, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call(demo)
    assert not re.search(r"--[a-z]|\bhat (?!export)[a-z]", str(caught.value))


@pytest.mark.parametrize("identifier", ["hat predict --max-len 5", "{splitter} {}", "--splitter library"])
def test_words_of_the_user_stay(demo: Any, identifier: str) -> None:
    """An id may look like an option, or like a place in a message."""
    with pytest.raises(ValueError, match="has an empty source") as caught:
        demo.generate([{"id": identifier, "turns": [{"role": "PM", "text": " "}]}])
    assert repr(identifier) in str(caught.value)
    error = OptionError("{}: {max_len} is too low", identifier, max_len=5)
    assert str(error) == f"{identifier}: --max-len 5 is too low"
    assert repr(pickle.loads(pickle.dumps(error))) == repr(ValueError(str(error)))
    with pytest.raises(ValueError, match="max_len=5 is too low") as caught, as_in_python():
        raise error
    assert str(caught.value) == f"{identifier}: max_len=5 is too low"


def test_the_command_names_flags(tmp_path: Any) -> None:
    words = ["generate", "demo", tmp_path / "x.jsonl", "--out", tmp_path / "o.jsonl", "--no-repeat-ngram-size", "1"]
    assert "--no-repeat-ngram-size 1 would allow no word twice" in refusal(*words)
