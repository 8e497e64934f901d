"""What a call of the tokenizer gives, as records: strings, sentences, turns, pairs of texts, and our own dictionaries.

A string is one document, and a list is a batch. In a batch a string is running text, a list is a document in pieces
(sentences, segments, words or turns), a tuple of two a text and its pair, where the kind reads two, and a dictionary a
record. With `is_split_into_words` a list of pieces is one document, and a list of such lists a batch.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..data.kinds import Kind
from ..data.options import Settings

WORDS = {"words", "tokens"}  # lists that white space divides in a string
CHOICES, QUESTIONS = "choices", "questions"
Warn = Callable[[str, str], None]  # takes the name of a warning that is given once, and its text


@dataclass
class GivenDocument:
    """A document of a call.

    Attributes:
        record: the object as a file of JSON lines has it, without its id.
        begins: of a string that was divided into elements, the place of the first character of each; else None.
        only_first: of the rows that the record becomes the first one is meant.
    """

    record: dict[str, Any]
    begins: list[int] | None = None
    only_first: bool = False


def batch_of(text: Any, in_pieces: bool, name: str) -> tuple[list[Any], bool]:
    """Returns the documents of an argument, and whether it is one document rather than a batch.

    Args:
        in_pieces: `is_split_into_words`.
        name: of the argument, for messages.
    Raises:
        ValueError: a string in pieces, or something that is no text.
    """
    if isinstance(text, str | Mapping):
        if in_pieces and isinstance(text, str):
            raise ValueError(
                f"is_split_into_words=True: {name} is a string; give a list of sentences, segments or words"
            )
        return [text], True
    if isinstance(text, bytes) or not isinstance(text, Iterable):
        raise ValueError(f"{name} is {type(text).__name__}: give a string, a list or a dictionary")
    items = list(text)
    if in_pieces and items and all(isinstance(item, str | Mapping) for item in items):
        return [items], True
    return items, False


def given_document(kind: Kind, settings: Settings, text: Any, pair: Any, warn: Warn) -> GivenDocument:
    """Returns a document of a call; ValueError for a pair where the kind reads one text."""
    if isinstance(text, Mapping):
        if pair is not None:
            raise ValueError("text_pair: a dictionary has all texts of its document")
        if is_turn(text) and not is_turn(dict.fromkeys(names_of(kind))):
            raise ValueError("a turn is no document: give a list of turns for each, or is_split_into_words=True")
        return GivenDocument(dict(text))
    parts = parts_of(kind)
    if pair is None:
        return part(kind, settings, parts[-1] if len(parts) == 1 else long_part(parts), text, warn)
    if len(parts) == 1 and CHOICES in names_of(kind):  # a row has one choice, and a record at least two
        first = part(kind, settings, parts[0], text, warn)
        return GivenDocument(first.record | {CHOICES: [pair, pair]}, first.begins, only_first=True)
    if len(parts) == 1:
        raise ValueError(f"text_pair: the kind {kind.name} reads one text")
    if any(keys[0] in optional_of(kind) for keys in parts if len(keys) == 1):
        message = "text_pair: a model that was trained on single texts has not learned to read two"
        warn("text_pair", message)
    first, second = (part(kind, settings, keys, each, warn) for keys, each in zip(parts, (text, pair), strict=True))
    return GivenDocument(first.record | second.record)


def is_turn(text: Mapping[str, Any]) -> bool:
    return "text" in text and bool({"role", "speaker"} & text.keys())


def names_of(kind: Kind) -> set[str]:
    return {each.name for each in fields(kind.record)}


def optional_of(kind: Kind) -> set[str]:
    return {each.name for each in fields(kind.record) if each.default is None}


def parts_of(kind: Kind) -> list[tuple[str, ...]]:
    """Returns for each part of a row, in order, the keys of its forms."""
    forms = kind.record.one_of  # of turns or sentences, which a record reads as its elements
    return list(dict.fromkeys(forms if name in (*forms, "elements") else (name,) for name in kind.record.reads))


def has_pair(kind: Kind, record: Mapping[str, Any]) -> bool:
    """Tells whether a record has two texts."""
    return CHOICES in record or sum(any(key in record for key in keys) for keys in parts_of(kind)) > 1


def cut_part(kind: Kind, pair: bool) -> str:
    """Returns which text of a row is cut, as transformers names it; `pair`: there are two."""
    if not pair or CHOICES in names_of(kind):
        return "only_first"
    return "only_second" if parts_of(kind)[0][0] in ("question", QUESTIONS) else "longest_first"


def long_part(parts: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the part that a document without a pair is: the one with several forms, else the last one."""
    return max(reversed(parts), key=len)


def part(kind: Kind, settings: Settings, keys: tuple[str, ...], value: Any, warn: Warn) -> GivenDocument:
    """Returns a part under the key of its form."""
    if not isinstance(value, str):
        items = list(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else value
        turns = isinstance(items, list) and any(isinstance(item, Mapping) for item in items)
        return GivenDocument({("turns" if turns else keys[-1]): items})
    if keys[-1] in WORDS:
        warn(keys[-1], f"the {keys[-1]} of a string are taken between white space; give lists of {keys[-1]}")
        words = list(re.finditer(r"\S+", value))
        return GivenDocument({keys[-1]: [word.group() for word in words]}, [word.start() for word in words])
    if len(keys) > 1 and settings.splitter == "given" and kind.divides_text(settings):
        warn("sentences", f"a string is taken as one sentence: the training had given {keys[-1]}; give lists of them")
        return GivenDocument({keys[-1]: [value]}, [0])
    return GivenDocument({keys[0]: value})
