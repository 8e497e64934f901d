"""Asks a document from Python: `Model.ask`."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data.files import Fields
from ..data.record import Record
from ..data.records_json import record_from_json
from ..data.transcripts import Transcript, check_text, of_text, of_turns, read_transcript
from ..inference.loading import split_with
from ..inference.python import Input, Model, is_file_name
from ..inference.reading import check_splitter
from ..inference.rows import logged_changes
from ..options import OptionError
from .answers import Answers
from .ask import ask as ask_record
from .ask import check_answers, check_questions, splitter_of, with_questions
from .evidence import Evidence, EvidenceOptions

logger = logging.getLogger(__name__)


def ask(
    model: Model,
    document: Input | Path | Sequence[Any],
    questions: str | list[str] | tuple[str, ...],
    most_passages: int | None,
    threshold: float | None,
    splitter: str | None,
    id: str | None,
) -> Answers:
    """Finds the passages of a document that answer questions; see `Model.ask`."""
    check_answers(model.loaded, model.name)
    asked = list(questions) if isinstance(questions, list | tuple) else [questions]
    check_questions(asked)
    record, transcript = with_document(document, asked, id, model.kind)
    check_splitter([record], splitter)
    split_with(model.pipeline, splitter_of(model.splitter or "given", splitter))
    with logged_changes(model.pipeline):
        return ask_record(model.loaded, record, EvidenceOptions(threshold, most_passages), transcript)


def with_document(
    document: Input | Path | Sequence[Any], questions: list[str], number_of: str | None, kind: str
) -> tuple[Evidence, Transcript | None]:
    """Returns a document with its questions, and its transcript, if it was read; ValueError if it has other questions.

    `number_of`: the id of a document, where a file has several.
    """
    if isinstance(document, Path):
        transcript = read_transcript(document, number_of)
        logger.log(logging.WARNING if +transcript.counts else logging.INFO, "%s", transcript.describe())
        return with_questions(transcript, questions), transcript
    if number_of is not None:
        raise OptionError("{id} has no effect without the path of a transcript: remove it", id=None)
    if isinstance(document, str) and is_file_name(document):
        raise ValueError(f"the document {document!r:.200} is the name of a file: give Path({document!r:.200})")
    if isinstance(document, str) and (read := turns_of_text(document)) is not None:
        check_text(read, "the document")
        logger.warning("the document is read as %s", read.describe().removeprefix(f"{read.name}: "))
        return with_questions(read, questions), read
    if isinstance(document, Evidence):
        return replace(document.without_gold(), questions=tuple(questions)), None
    if isinstance(document, Record):
        raise ValueError(f"{document.name} is a {type(document).__name__}: give its text, or its turns")
    if isinstance(document, Sequence) and not isinstance(document, str):
        document = {"sentences" if all(isinstance(each, str) for each in document) else "turns": list(document)}
    fields = {"text": document} if isinstance(document, str) else Fields(document, "the document").record
    if of_questions := sorted({"questions", "evidence", "spans"} & fields.keys()):
        logger.warning("skipped in the document: %s", ", ".join(of_questions))
        fields = {name: value for name, value in fields.items() if name not in of_questions}
    read = None
    if isinstance(turns := fields.get("turns"), list | tuple):
        read = of_turns(turns, "the document")
        if +read.counts:
            logger.warning("the document is read as %s", read.describe().removeprefix(f"{read.name}: "))
        fields = {**fields, **read.fields(["turns"])}
    record = record_from_json({"id": "1", **fields, "questions": questions}, "the document", kind)
    assert isinstance(record, Evidence)
    return record, read


def turns_of_text(text: str) -> Transcript | None:
    """Reads a string of several lines that is WebVTT, SubRip or turns with names; None for other texts."""
    transcript = of_text(text, "1", running=True)
    return None if transcript.text is not None or "\n" not in text.strip() else transcript
