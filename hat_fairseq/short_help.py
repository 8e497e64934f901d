"""What `-h` prints of a verb with many options: those that most people need. `--help` lists all."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any

INDENT = 24  # of the texts beside the options


def add_help(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Declares `-h`, which prints the options with these names, and `--help`, which prints all."""
    parser.add_argument("-h", action=ShortHelp, names=names, help="show the options that most people need, and exit")
    parser.add_argument("--help", action="help", help="show this list of all options, and exit")


class ShortHelp(argparse.Action):
    """Prints some of the options and ends the process."""

    def __init__(self, option_strings: Sequence[str], dest: str, names: Sequence[str], help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)
        self.names = names

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(short_help(parser, self.names))
        parser.exit()


def short_help(parser: argparse.ArgumentParser, names: Sequence[str]) -> str:
    """Returns the usage, the positional arguments, the options with these names, and how to see the others."""
    options = [parser._option_string_actions[name] for name in names]
    positional = [action for action in parser._actions if not action.option_strings]
    needed = [action for action in options if action.required]
    usage = " ".join(f"[{_name(each)}]" if each.nargs == "?" else _name(each) for each in (*positional, *needed))
    rows = [line for action in (*positional, *options) for line in _row(parser, action)]
    last = f"`{parser.prog} --help` lists all options."
    said = textwrap.wrap(str(parser.description), _width())
    return "\n".join([f"usage: {parser.prog} {usage} [options]", "", *said, "", *rows, "", last])


def _width() -> int:
    return max(shutil.get_terminal_size().columns - 2, 2 * INDENT)


def _name(action: argparse.Action) -> str:
    """Returns an argument with the name of its value, as it is typed."""
    is_switch = action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction)
    value = "|".join(map(str, action.choices or [action.dest.upper()])) if action.metavar is None else action.metavar
    return " ".join([*action.option_strings[:1], *([] if is_switch or not value else [str(value)])])


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> list[str]:
    """Returns an argument and the beginning of its help in one line, as wide as the terminal; in two if it is long."""
    text = _beginning(parser._get_formatter()._expand_help(action), _width() - INDENT)
    begin = f"  {_name(action)} "
    return [f"{begin:<{INDENT}}{text}"] if len(begin) <= INDENT else [begin.rstrip(), " " * INDENT + text]


def _beginning(text: str, width: int) -> str:
    """Returns a text to the last end of a clause that `width` holds; else to the last word."""
    ends = [len(text), *(match.start() for match in re.finditer(r"; |: | \(default", text))]
    fitting = [end for end in ends if end <= width and text.count("(", 0, end) == text.count(")", 0, end)]
    return text[: max(fitting)] if fitting else textwrap.shorten(text, width, placeholder=" ...")
