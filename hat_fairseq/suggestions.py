"""Suggest the name that somebody may have meant: of a verb, a flag, a reader, a metric, a kind or a recipe."""

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence

_CHOICES = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)$")  # argparse's words
_MEANT = {"summarize": "generate", "summarise": "generate", "translate": "generate", "version": "--version"}
_FLAGS = ("the following arguments are required", "unrecognized arguments")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns `; did you mean X?` with the name that is most similar, or nothing."""
    close = [_MEANT[name]] if name in _MEANT else difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def did_you_mean_some(name: str, names: Iterable[str], otherwise: str) -> str:
    """Returns `; did you mean X, Y or Z?` with similar names and those that contain this one, or `otherwise`."""
    names = list(names)
    close = [*difflib.get_close_matches(name, names, n=3), *(each for each in names if name in each)]
    close = list(dict.fromkeys(close))[:5]
    return f"; did you mean {' or '.join(filter(None, [', '.join(close[:-1]), close[-1]]))}?" if close else otherwise


def with_suggestion(message: str, parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Returns an error of argparse with the choice or the flag that may have been meant by the words it parsed."""
    if match := _CHOICES.search(message):
        return message + did_you_mean(match[1], [name.strip("'") for name in match[2].split(", ")])
    if not message.startswith(_FLAGS):
        return message
    return message + unknown_flag(words, parser)


def unknown_flag(words: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Returns which flag may have been meant by the first one among `words` that a parser does not have, or nothing."""
    flags = [flag for flag in parser._option_string_actions if flag.startswith("--")]
    written = (word.partition("=")[0] for word in words if word.startswith("--") and len(word) > len("--"))
    unknown = next((flag for flag in written if flag not in flags), "")
    meant = did_you_mean(unknown, flags)
    return f"{meant.removesuffix('?')} instead of {unknown}?" if meant else ""
