"""Options: fields of dataclasses that are flags of a command, arguments in Python and settings in a file.

A field says once what its option is called, what it does, which values it may have, and without what it has no effect.
The standard library alone: the networks import it, and so do commands before torch.
"""

import argparse
import logging
import math
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

logger = logging.getLogger(__name__)

Declared = TypeVar("Declared")
DECLARED = "option"  # the key of a field's metadata; fairseq reads `help` there
TYPES: dict[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a string"),
    tuple: ((tuple, list), "a list"),
}


BOUNDS = {"more than": ("above", operator.gt), "at least": ("least", operator.ge), "at most": ("most", operator.le)}
FLAGS = {"most_passages": "--passages"}  # that are called in another way than in Python


class OptionError(ValueError):
    """A mistake in options, which are flags on the command line and arguments in Python.

    `text` has a field such as `{splitter}` for each of the `options`, which stands for its name, and its value if that
    is not None; and `{}` for each of the `texts`, which stay as they are.
    """

    def __init__(self, text: str, *texts: object, **options: Any) -> None:
        flags = {name: typed(name) if value is None else f"{typed(name)} {value}" for name, value in options.items()}
        arguments = {
            name: name if value is None else f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"
            for name, value in options.items()
        }
        super().__init__(text.format(*texts, **flags))
        self.in_python = text.format(*texts, **arguments)

    def at(self, where: object, way_out: str = "") -> "OptionError":
        """Returns the same with a place before it, and what to do after it."""
        error = OptionError("{}: {}{}", where, self, way_out)
        error.in_python = f"{where}: {self.in_python}{way_out}"
        return error

    def __reduce__(self) -> Any:
        return ValueError, self.args  # between processes


@contextmanager
def as_in_python() -> Iterator[None]:
    """Has an error of options, raised in the block, name arguments instead of flags."""
    try:
        yield
    except OptionError as error:
        error.args = (error.in_python,)
        raise


def typed(name: str) -> str:
    """Returns the name of an option as a flag."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


@dataclass(frozen=True)
class Option:
    """An option: a field of a dataclass that `option` made.

    Attributes:
        type: of its values.
        default: a value, even out of bounds, or None for an option that need not be stated.
        choices: the only values; empty for any.
        least, most, above: bounds, the last one exclusive. A number is finite unless it is such a bound.
        needs: without which it has no effect: NAME, another option that has another value than its default, or
            NAME=VALUE or NAME=VALUE|VALUE; several with ` or ` between them, and ` and ` between these.
        excludes: with which it has no effect, likewise, without ` and `.
        tolerated: without effect it is logged, not refused, because recipes and checkpoints of older versions have it.
        metavar: the name of its value in the help; by default the choices, N for whole numbers and X for others.
        group: of the options of a command.
        flags: what stands for True and for False on the command line where another flag decides it.
    """

    name: str
    type: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    needs: str = ""
    excludes: str = ""
    tolerated: bool = False
    metavar: str | None = None
    group: str = ""
    flags: tuple[str, ...] = ()

    def check(self, value: Any) -> None:
        """Raises OptionError for a value that it cannot have."""
        if expected := self.fault(value):
            raise OptionError(f"{{{self.name}}} must be {{}}, not {{!r:.60}}", expected, value, **{self.name: None})

    def fault(self, value: Any) -> str:
        """Returns what a value must be and is not; an empty string for one that it can have."""
        allowed, called = TYPES[self.type]
        if value is None is self.default:
            return ""
        if not isinstance(value, allowed) or (isinstance(value, bool) and self.type is not bool) or value != value:
            return called
        if self.choices:
            return "" if value in self.choices else f"one of {', '.join(self.choices)}"
        if value == self.default or self.type not in (int, float):
            return ""
        is_large = abs(value) == math.inf or (type(value) is int and abs(value) > sys.float_info.max)
        if self.type is float and is_large and value not in (self.least, self.most):
            return "a finite number"
        return "" if self.contains(value) else self.bounds

    def contains(self, number: Any) -> bool:
        """Returns whether a number is within the bounds."""
        bounds = ((getattr(self, name), compare) for name, compare in BOUNDS.values())
        return all(bound is None or compare(number, bound) for bound, compare in bounds)

    @property
    def bounds(self) -> str:
        """Returns the bounds in words, with a default that is outside."""
        bounds = {words: getattr(self, name) for words, (name, _) in BOUNDS.items()}
        text = " and ".join(f"{words} {bound:,}" for words, bound in bounds.items() if bound is not None)
        if None not in (self.least, self.most):
            text = f"from {self.least:,} to {self.most:,}"
        return text if self.default is None or self.contains(self.default) else f"{text}, or {self.default}"

    def is_set(self, value: Any) -> bool:
        """Returns whether a value is another one than the default."""
        return value is not None and value != self.default

    def typed(self, value: Any) -> str:
        """Returns the option with a value as it is typed: `--splitter given`, `--no-aligned`."""
        if not isinstance(value, bool):
            return f"{typed(self.name)} {value}"
        return self.flags[not value] if self.flags else typed(self.name if value else f"no_{self.name}")

    def add_to(self, parser: argparse._ActionsContainer, **words: Any) -> None:
        """Declares its flag; `words`: of argparse, instead of those that follow from the option.

        What is not given has the parser's default: None in a command; none in fairseq's parsers, so that an
        architecture can tell what the user has set.
        """
        own: dict[str, Any] = {"help": self.help, "default": parser.argument_default, "dest": self.name}
        if self.type is bool:
            own["action"] = "store_true"
        elif self.type is tuple:
            own |= {"action": "append", "metavar": self.metavar}
        else:
            metavar = self.metavar or "|".join(self.choices) or {int: "N", float: "X"}.get(self.type)
            own |= {"type": self.type, "choices": self.choices or None, "metavar": metavar}
        parser.add_argument(typed(self.name), **own | words)

    @property
    def help_with_default(self) -> str:
        """Returns the help with the default, if it is a value that one would type."""
        shown = self.default in (None, ()) or isinstance(self.default, bool)
        return self.help if shown else f"{self.help} (default: {self.default})"


def option(default: Any, text: str, choices: Sequence[str] = (), **more: Any) -> Any:
    """Makes a field that is an option with this help text; `more`: attributes of `Option`."""
    return field(default=default, metadata={"help": text, DECLARED: {"choices": tuple(choices), **more}})


def unstated(default: Any, text: str, choices: Sequence[str] = (), **more: Any) -> Any:
    """Makes an option that is None unless it is stated; `default` is what then takes its place, for the help."""
    return option(None, f"{text} (default: {default})", choices, **more)


def changed(base: type, name: str, default: Any, text: str | None = None, **more: Any) -> Any:
    """Copies the option `name` of the dataclass `base` with another default, or also another help, or `more`."""
    metadata = base.__dataclass_fields__[name].metadata  # type: ignore[attr-defined]
    return option(default, metadata["help"] if text is None else text, **metadata[DECLARED] | more)


@cache
def options_of(declared: type) -> dict[str, Option]:
    """Returns the options of a dataclass by name."""
    hints, options = get_type_hints(declared), {}
    for each in fields(declared):
        if DECLARED in each.metadata:
            hint, more = hints[each.name], {"help": each.metadata["help"], **each.metadata[DECLARED]}
            kind = next(part for part in get_args(hint) if part is not NoneType) if each.default is None else hint
            options[each.name] = Option(each.name, get_origin(kind) or kind, each.default, **more)
    return options


def check_values(declared: type, values: Any) -> None:
    """Raises OptionError for an attribute of `values` that its option cannot have."""
    for name, each in options_of(declared).items():
        each.check(getattr(values, name))


def read_options(declared: type[Declared], values: Any) -> Declared:
    """Builds the dataclass with its options from attributes of `values`; what is absent or None has its default.

    Raises:
        OptionError: a value that the option cannot have.
    """
    kind: type = declared
    arguments = stated(**{name: getattr(values, name, None) for name in options_of(kind)})
    for name, value in arguments.items():
        options_of(kind)[name].check(value)
    return declared(**arguments)


def stated(**values: Any) -> dict[str, Any]:
    """Returns the arguments that an option states; those that are None have the default of what takes them."""
    return {name: value for name, value in values.items() if value is not None}


def check_effects(declared: type, values: Mapping[str, Any], stated: Mapping[str, Any] | None = None) -> None:
    """Raises OptionError for a stated option that has no effect, for what it needs or excludes, or logs it.

    A value that is the default asks for nothing. `values`: those that are absent have their defaults. `stated`: those
    that are checked; None for all.
    """
    options = options_of(declared)
    for name, each in options.items():
        value = (values if stated is None else stated).get(name)
        if not each.is_set(value):
            continue
        others = {need: "without" for need in each.needs.split(" and ") if need and not holds(options, values, need)}
        others |= {each.excludes: "with"} if each.excludes and holds(options, values, each.excludes) else {}
        for other, word in others.items():
            error = no_effect(name, word, other, value)
            if not each.tolerated:
                raise error
            logger.warning("%s", error)


def holds(options: Mapping[str, Option], values: Mapping[str, Any], condition: str) -> bool:
    """Returns whether values meet a condition of `Option.needs`."""
    for name, _, wanted in (each.partition("=") for each in condition.split(" or ")):
        value = values.get(name, options[name].default)
        if str(value) in wanted.split("|") if wanted else options[name].is_set(value):
            return True
    return False


def no_effect(name: str, word: str, other: str, value: Any = None) -> OptionError:
    """Returns the error of an option that has no effect with or `without` others, a condition of `Option.needs`."""
    others = dict(each.partition("=")[::2] for each in other.split(" or "))
    text = " or ".join(f"{{{each}}}" for each in others)
    way_out = "remove it, or add that" if word == "without" else "remove it"
    values = {each: " or ".join(wanted.split("|")) or None for each, wanted in others.items()}
    shown = {name: None if value is True else value}
    return OptionError(f"{{{name}}} has no effect {word} {text}: {way_out}", **values, **shown)
