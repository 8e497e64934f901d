"""Options: fields of dataclasses that are flags of fairseq-train and settings of a transformers model at the same time.

A field says once what it is called, what it does and which values it may have.
"""

import math
from argparse import ArgumentError, ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import Field, field, fields
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

Options = TypeVar("Options")


def option(
    default: Any,
    text: str,
    choices: Sequence[str] | None = None,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Makes a field that is an option.

    Args:
        text: for the help.
        choices: the only values.
        least, most: bounds of the value, inclusive; `most` requires `least`.
    """
    metadata = {"help": text, "choices": choices, "least": least, "most": most}
    return field(default=default, metadata=metadata)


def unstated(default: Any, text: str, **limits: Any) -> Any:
    """Makes an option that is None unless it is stated; `default` is what then takes its place, for the help."""
    return option(None, f"{text} (default: {default})", **limits)


def changed(base: type, name: str, default: Any, text: str | None = None) -> Any:
    """Copies the option `name` of the dataclass `base` and its bounds, with another default, or also another help."""
    metadata = dict(base.__dataclass_fields__[name].metadata)  # type: ignore[attr-defined]
    return field(default=default, metadata=metadata | ({} if text is None else {"help": text}))


def options_of(kind: type) -> Iterator[tuple[str, Field[Any], type]]:
    """Yields the name of each option of a dataclass, its field and the type of its value."""
    hints = get_type_hints(kind)
    for each in fields(kind):
        if "help" in each.metadata:
            types = [part for part in get_args(hints[each.name]) if part is not NoneType] or [hints[each.name]]
            yield each.name, each, types[0]


def read(kind: type[Options], values: Any) -> Options:
    """Builds the dataclass with its options from `values`; what is absent there, or None, has its default.

    Raises:
        ValueError: a value that the option cannot have.
    """
    arguments = dict[str, Any]()
    for name, each, _ in options_of(kind):
        if (value := getattr(values, name, None)) is not None:
            check(name, value, each)
            arguments[name] = value
    return kind(**arguments)


def stated(**values: Any) -> dict[str, Any]:
    """Returns the arguments that an option states; those that are None have the default of what takes them."""
    return {name: value for name, value in values.items() if value is not None}


def check(name: str, value: Any, each: Field[Any]) -> None:
    """Raises ValueError for a value that the option cannot have."""
    flag, meta = f"--{name.replace('_', '-')} {value}", each.metadata
    if meta["choices"] is not None and value not in meta["choices"]:
        raise ValueError(f"{flag}: choose one of {', '.join(meta['choices'])}")
    if meta["most"] is not None and not meta["least"] <= value <= meta["most"]:
        raise ValueError(f"{flag}: it must be from {meta['least']} to {meta['most']}")
    if meta["least"] is not None and value < meta["least"]:
        raise ValueError(f"{flag}: it must be at least {meta['least']}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{flag}: it must be a finite number")


def add_options(parser: ArgumentParser, kind: type) -> None:
    """Adds a flag for each option; without defaults, so that an architecture can tell what the user has set."""
    for name, each, value_type in options_of(kind):
        settings: dict[str, Any] = {"action": "store_true"}
        if value_type is not bool:
            settings = {"type": value_type, "choices": each.metadata["choices"]}
        with suppress(ArgumentError):  # a flag that the task has, too, such as --max-positions
            parser.add_argument(f"--{name.replace('_', '-')}", help=each.metadata["help"], **settings)
