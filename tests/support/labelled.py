"""Small labelled data of every kind, cut out of AMI meetings: what `hat preprocess FOLDER --task KIND` reads."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Turn = dict[str, str]
Record = dict[str, Any]
WINDOW = 6  # turns of an example


def windows(documents: Path) -> Iterator[tuple[str, list[Turn]]]:
    """The first pieces of each meeting that is kept as JSON lines: an id, and so many turns."""
    for line in documents.read_text(encoding="utf-8").splitlines():
        meeting = json.loads(line)
        for piece in range(4):
            yield f"{meeting['id']}.{piece}", meeting["turns"][piece * WINDOW : (piece + 1) * WINDOW]


def texts(turns: list[Turn]) -> list[str]:
    return [" ".join(turn["text"].split()[:12]) for turn in turns]


def classification(name: str, turns: list[Turn], number: int) -> Record:
    """Whether the project manager speaks first."""
    return {"id": name, "segments": texts(turns), "label": "yes" if turns[0]["role"] == "PM" else "no"}


def segments(name: str, turns: list[Turn], number: int) -> Record:
    """Who speaks; some meetings have fewer turns."""
    turns = turns[: WINDOW - number % 3]
    return {"id": name, "segments": texts(turns), "labels": [turn["role"] for turn in turns]}


def tokens(name: str, turns: list[Turn], number: int) -> Record:
    """Words and punctuation marks."""
    words = " ".join(texts(turns)).split()
    return {"id": name, "words": words, "labels": ["word" if word.isalnum() else "mark" for word in words]}


def choice(name: str, turns: list[Turn], number: int) -> Record:
    """Which turn stood in the text; two or three choices."""
    wrong = ["we will all meet again tomorrow .", "the remote control is yellow ."][: 1 + number % 2]
    return asked(name, turns, "choices", wrong, number // 2)


def candidates(name: str, turns: list[Turn], number: int) -> Record:
    """Which turn stood in the text: two to four candidates in one row."""
    wrong = ["we will all meet again tomorrow .", "yellow .", "it was cold ."][: 1 + number % 3]
    return asked(name, turns, "candidates", wrong, number)


def asked(name: str, turns: list[Turn], key: str, wrong: list[str], number: int) -> Record:
    """A question whose answer, the second turn, stands at one of the places among the wrong ones."""
    said, right = texts(turns), number % (len(wrong) + 1)
    choices = [*wrong[:right], said[1], *wrong[right:]]
    return {"id": name, "segments": said, "question": "what was said ?", key: choices, "label": right}


def qa(name: str, turns: list[Turn], number: int) -> Record:
    """The first words of a turn; every third question has no answer."""
    said = texts(turns)
    text, word = " ".join(said), said[2].split()[0]
    answers = [] if number % 3 == 2 else [{"text": word, "start": len(" ".join(said[:2])) + 1}]
    return {"id": name, "question": "how does it begin ?", "text": text, "answers": answers}


def document_qa(name: str, turns: list[Turn], number: int) -> Record:
    """Which turn, and its first word, or yes, or that there is none; a second annotator finds nothing."""
    said = texts(turns)
    place = number % len(said)
    answer: Record = {"paragraph": place}
    if number % 4 < 2:
        answer["spans"] = [{"text": said[place].split()[0], "start": 0}]
    elif number % 4 == 2:
        answer["yes_no"] = "yes"
    annotations = [{}, {} if number % 5 == 4 else answer]
    question = f"does {turns[place]['role']} begin ?"
    return {"id": name, "question": question, "paragraphs": said, "annotations": annotations}


def mlm(name: str, turns: list[Turn], number: int) -> Record:
    return {"id": name, "segments": texts(turns)}


FUNCTIONS: tuple[Callable[..., Record], ...]
FUNCTIONS = classification, segments, tokens, choice, candidates, qa, document_qa, mlm
KINDS = {function.__name__: function for function in FUNCTIONS}


def write(kind: str, documents: Path, out: Path, labelled: bool = True) -> Path:
    """Writes the JSON lines of one split and returns the file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    records = [KINDS[kind](name, turns, n) for n, (name, turns) in enumerate(windows(documents))]
    if not labelled:
        records = [
            {k: v for k, v in record.items() if k not in ("label", "labels", "answers", "annotations")}
            for record in records
        ]
    out.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return out
