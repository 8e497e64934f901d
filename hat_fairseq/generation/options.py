"""Generation options: names and ranges. fairseq ignores unknown names and numbers that make no sense."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from hat_fairseq.data.files import parse_json
from hat_fairseq.data.package import GENERATION, is_package

MINIMUM = {"beam": 1, "nbest": 1, "min_len": 0, "max_len_a": 0, "max_len_b": 0, "no_repeat_ngram_size": 0}


def check_ranges(options: Mapping[str, Any]) -> None:
    """Raises ValueError for a number below the least one that makes sense."""
    for name, least in MINIMUM.items():
        if (value := options.get(name)) is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")


def check_generation_options(options: Mapping[str, Any], source: str) -> None:
    """Raises ValueError for an option that fairseq's generation does not have; `source`: who gives it."""
    from fairseq.dataclass.configs import GenerationConfig

    known = sorted(name for name in get_type_hints(GenerationConfig) if not name.startswith("_"))
    for name in options:
        if name not in known:
            raise ValueError(f"{source}: unknown generation option {name!r}; known are {', '.join(known)}")


def parse_generation_options(text: str, flag: str) -> dict[str, Any]:
    """Parses options such as beam or lenpen from the value of `flag`; ValueError if it is no JSON object of them."""
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
