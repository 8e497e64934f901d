"""Generation options given as JSON; unlike in fairseq, an unknown name is an error."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from fairseq.dataclass.configs import GenerationConfig


def parse_generation_options(text: str, flag: str) -> dict[str, Any]:
    """Options such as beam or lenpen from the JSON object that was given to `flag`.

    Raises:
        ValueError: not a JSON object, or a name that fairseq's generation options do not have.
    """
    try:
        options = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{flag} {text}: not JSON ({error})") from None
    if not isinstance(options, dict):
        raise ValueError(f'{flag} {text}: expected a JSON object such as {{"beam": 4}}')
    known = {field.name for field in fields(GenerationConfig)}
    if unknown := sorted(options.keys() - known):
        raise ValueError(f"{flag}: unknown generation option {unknown[0]!r}; known are {', '.join(sorted(known))}")
    return options
