"""Examples as JSON objects, and back: what users write, and what ``text/SPLIT.examples.jsonl`` holds.

``classification``  id, text or segments, second (text or list; may be missing), label
``choice``          id, text or segments, question (may be missing), choices, label (a number from 0)
``segments``        id, segments, labels
``tokens``          id, words, labels
``qa``              id, question, text, answers (a list of objects with text and start; empty: there is none)
``mlm``             id, text or segments

Without ``label``, ``labels`` or ``answers`` an example is unlabelled.
"""

from collections.abc import Mapping
from typing import Any

from hat_fairseq.data.example import KINDS, Answer, Example, Text

_KEYS = {
    "classification": {"id", "text", "segments", "second", "label"},
    "choice": {"id", "text", "segments", "question", "choices", "label"},
    "segments": {"id", "segments", "labels"},
    "tokens": {"id", "words", "labels"},
    "qa": {"id", "question", "text", "answers"},
    "mlm": {"id", "text", "segments"},
}


def example_from_json(record: Any, kind: str, where: str) -> Example:
    """Build an example; ``where`` is its origin.

    Raises:
        ValueError: unknown kind or key, a key missing or of another type, anything ``Example`` refuses.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; choose one of {', '.join(KINDS)}")
    try:
        return _from_json(record, kind, where)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def example_to_json(example: Example, kind: str) -> dict[str, Any]:
    """The object from which ``example_from_json`` makes the same example.

    Raises:
        ValueError: it is not of this kind.
    """
    record: dict[str, Any] = {"id": example.id}
    first = example.inputs[0]
    if kind == "qa":
        record |= {"question": _only_text(example, first[0]), "text": _only_text(example, first[-1])}
        if example.answers is not None:
            record["answers"] = [{"text": answer.text, "start": answer.start} for answer in example.answers]
    elif kind == "tokens":
        record["words"] = list(first[0])
    else:
        record["text" if isinstance(first[0], str) else "segments"] = _plain(first[0])
    if kind == "classification" and len(first) == 2:
        record["second"] = _plain(first[1])
    if kind == "choice":
        record["choices"] = [_only_text(example, parts[1]) for parts in example.inputs]
    if example.label is not None:
        record["label"] = int(example.label) if kind == "choice" else example.label
    if example.labels is not None:
        record["labels"] = list(example.labels)
    return record


def check_kind(example: Example, kind: str) -> None:
    """Refuse an example, from a reader or a file, that is not of this kind.

    Raises:
        ValueError: with the example's name.
    """
    first = example.inputs[0]
    two_parts = {"choice": (2,), "qa": (2,), "classification": (1, 2)}.get(kind, (1,))
    labels = {"classification": "label", "choice": "label", "segments": "labels", "tokens": "labels", "qa": "answers"}
    problem = None
    if any(len(parts) not in two_parts for parts in example.inputs):
        problem = f"its inputs have {len(first)} parts, not {' or '.join(map(str, two_parts))}"
    elif (len(example.inputs) < 2) if kind == "choice" else (len(example.inputs) > 1):
        problem = f"it has {len(example.inputs)} inputs; only choices have several, and at least two"
    elif kind in ("segments", "tokens") and (isinstance(first[0], str) or not first[0]):
        problem = f"it has no {'segments' if kind == 'segments' else 'words'}"
    elif kind == "qa" and not all(isinstance(part, str) for part in first):
        problem = "question and text must be running text"
    elif kind == "choice" and len({parts[0] for parts in example.inputs}) > 1:
        problem = "its choices have different contexts"
    elif kind == "choice" and not all(isinstance(parts[1], str) for parts in example.inputs):
        problem = "a choice must be running text"
    for name in ("label", "labels", "answers"):
        if getattr(example, name) is not None and labels.get(kind) != name:
            problem = f"it has {name}"
    if kind == "choice" and example.label is not None and example.label not in map(str, range(len(example.inputs))):
        problem = f"its label {example.label!r} is no number of a choice, from 0 to {len(example.inputs) - 1}"
    if problem:
        raise ValueError(f"{example.name} is not of the kind {kind}: {problem}")


def _from_json(record: Any, kind: str, origin: str) -> Example:
    if not isinstance(record, Mapping):
        raise ValueError(f"expected a JSON object, found {record!r:.60}")
    if unknown := sorted(record.keys() - _KEYS[kind]):
        raise ValueError(f"unknown key {unknown[0]!r} for {kind}; known are {', '.join(sorted(_KEYS[kind]))}")
    if "id" not in record:
        raise ValueError("the example has no id")
    labels = [_label(label, kind) for label in _list(record["labels"], "labels")] if "labels" in record else None
    example = Example(
        id=_string(record["id"], "id"),
        inputs=_inputs(record, kind),
        label=_label(record["label"], kind) if "label" in record else None,
        labels=None if labels is None else tuple(labels),
        answers=tuple(_answer(a) for a in _list(record["answers"], "answers")) if "answers" in record else None,
        origin=origin,
    )
    check_kind(example, kind)
    return example


def _inputs(record: Mapping[str, Any], kind: str) -> tuple[tuple[Text, ...], ...]:
    if kind == "tokens":
        return ((_strings(_needed(record, "words"), "words"),),)
    if kind == "qa":
        return (tuple(_string(_needed(record, key), key) for key in ("question", "text")),)
    main = _main(record)
    if kind == "choice":
        question = _string(record.get("question", ""), "question").strip()
        choices = _strings(_needed(record, "choices"), "choices")
        return tuple((main, f"{question} {choice}" if question else choice) for choice in choices)
    if "second" not in record:
        return ((main,),)
    second = record["second"]
    return ((main, second if isinstance(second, str) else _strings(second, "second")),)


def _main(record: Mapping[str, Any]) -> Text:
    given = [key for key in ("text", "segments") if key in record]
    if len(given) != 1:
        raise ValueError(f"give exactly one of text and segments, not {' and '.join(given) or 'none'}")
    if given == ["text"]:
        return _string(record["text"], "text")
    return _strings(record["segments"], "segments")


def _label(value: Any, kind: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int if kind == "choice" else int | str):
        raise ValueError(f"a label must be {'a number' if kind == 'choice' else 'a string'}, not {value!r:.60}")
    return str(value)


def _answer(value: Any) -> Answer:
    if not isinstance(value, Mapping) or value.keys() != {"text", "start"} or isinstance(value["start"], bool):
        raise ValueError(f"an answer must be an object with text and start, not {value!r:.60}")
    if not isinstance(value["start"], int):
        raise ValueError(f"the start of an answer must be a number, not {value['start']!r:.60}")
    return Answer(_string(value["text"], "text of an answer"), value["start"])


def _needed(record: Mapping[str, Any], key: str) -> Any:
    if key not in record:
        raise ValueError(f"the example has no {key}")
    return record[key]


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a string, not {value!r:.60}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} must be a list, not {value!r:.60}")
    return value


def _strings(value: Any, what: str) -> tuple[str, ...]:
    return tuple(_string(item, what) for item in _list(value, what))


def _plain(text: Text) -> str | list[str]:
    return text if isinstance(text, str) else list(text)


def _only_text(example: Example, text: Text) -> str:
    if not isinstance(text, str):
        raise ValueError(f"{example.name}: a question, a choice and the text of a question must be running text")
    return text
