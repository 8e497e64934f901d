"""Generation options: names, types and ranges. fairseq ignores unknown names and fails late on wrong values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from hat_fairseq.data.files import parse_json
from hat_fairseq.data.package import GENERATION, is_package

MINIMUM = {"beam": 1, "nbest": 1, "min_len": 0, "max_len_a": 0, "max_len_b": 0, "no_repeat_ngram_size": 0}
MINIMUM |= {"batch_size": 1, "max_tokens": 1}
POSITIVE = ("temperature",)
_TYPES: dict[Any, tuple[Any, str]] = {
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    bool: (bool, "true or false"),
}


def check_ranges(options: Mapping[str, Any], prefix: str = "") -> None:
    """Raises ValueError for a number below the least one that makes sense; messages begin with `prefix`."""
    for name, value in options.items():
        if value is None:
            continue
        if name in MINIMUM and value < MINIMUM[name]:
            raise ValueError(f"{prefix}{name} must be at least {MINIMUM[name]}, not {value}")
        if name in POSITIVE and value <= 0:
            raise ValueError(f"{prefix}{name} must be greater than 0, not {value}")


def check_generation_options(options: Mapping[str, Any], source: str) -> None:
    """Refuses options that fairseq's generation does not have or cannot use.

    Args:
        options: e.g. beam=4, lenpen=1.0.
        source: where they were given, for messages.

    Raises:
        ValueError: naming the first that is unknown, of another type, or out of range.
    """
    from fairseq.dataclass.configs import GenerationConfig

    types = get_type_hints(GenerationConfig)
    known = sorted(name for name in types if not name.startswith("_"))
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"{source}: unknown generation option {name!r}; known are {', '.join(known)}")
        accepted, description = _TYPES.get(types[name], (object, ""))
        if not isinstance(value, accepted) or (isinstance(value, bool) and types[name] in (int, float)):
            raise ValueError(f"{source}: {name} must be {description}, not {value!r}")
    check_ranges(options, f"{source}: ")


def parse_generation_options(text: str, flag: str) -> dict[str, Any]:
    """Parses options such as beam or lenpen from the JSON object that was given to `flag`.

    Raises:
        ValueError: not a JSON object, or see `check_generation_options`.
    """
    try:
        options = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{flag} {text}: not JSON ({error})") from None
    if not isinstance(options, dict):
        raise ValueError(f'{flag} {text}: expected a JSON object such as {{"beam": 4}}')
    check_generation_options(options, flag)
    return options


def packaged_options(checkpoints: str | Path) -> dict[str, Any]:
    """The generation options of a package, the first of several checkpoints; none of other checkpoints."""
    path = Path(str(checkpoints).split(":")[0], GENERATION)
    return parse_generation_options(path.read_text(encoding="utf-8"), str(path)) if is_package(path.parent) else {}


def check_generation_flags(flags: Mapping[str, Sequence[str]]) -> None:
    """Raises ValueError for flags of fairseq-generate, with their values, that are out of range."""
    for name in (*MINIMUM, *POSITIVE):
        flag = "--" + name.replace("_", "-")
        for value in flags.get(flag, ())[:1]:
            try:
                number = float(value)
            except ValueError:
                raise ValueError(f"{flag} must be a number, not {value!r}") from None
            check_ranges({name: int(number) if number.is_integer() else number}, f"{flag}: ")
