"""Transcripts of what people say: subtitles, JSON or a table of turns, and plain text in three layouts.

SubRip (`.srt`) and WebVTT (`.vtt`) are read by `subtitles.py`, and plain text by `speakers.py`. A plain text of one
line is running text, without turns. Whatever is dropped is counted, under names that people can read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hat_fairseq.data.columns import Columns
from hat_fairseq.data.files import Fields, at, of_type, parse_json, rows_of_lists
from hat_fairseq.data.formats import (
    CLOCK,
    JSON_LINES,
    PLAIN_TEXT,
    SUBRIP,
    WEBVTT,
    OpenFile,
    ending_of,
    form_of_text,
    opened,
)
from hat_fairseq.data.speakers import Said, clock, seconds, turns_of_lines
from hat_fairseq.data.subtitles import turns_of_cues
from hat_fairseq.data.text import is_blank, shown
from hat_fairseq.options import OptionError

MOST = 20_000_000  # bytes of a transcript, which is read whole; a line of it takes a hundred bytes of memory or more
WHISPER_CPP, CHUNKS = "transcription", "chunks"  # the latter of a pipeline of transformers
#: Of programs that recognise speech, which repeat the text beside.
RECOGNISED = ("segments", "utterances", CHUNKS, WHISPER_CPP)
LIST_KEYS = ("turns", "sentences", *RECOGNISED)
RECORD_KEYS = (*LIST_KEYS, "text")
TURN_KEYS = ("text", "speaker", "role", "start", "end")
WHISPER = ("start", "end", "text")  # the columns of its .tsv, in milliseconds
IN_MILLISECONDS = 1000
#: Other keys of turns under which people have the speaker; they are named, unless a speaker is read.
OTHER_SPEAKERS = re.compile(r".*speaker.*|.*name|who|author|user|sender|from|participant|actor", re.IGNORECASE)
MOST_KEYS = 12  # of a message
ONE_DOCUMENT = "{id} has no effect: {} is {} document; remove it"


@dataclass(frozen=True)
class Transcript:
    """What a file says, in order.

    Attributes:
        name: of the file, or the id of the document.
        format: what it is, for people.
        said: the turns; of running text none.
        text: running text instead.
        counts: what was left out or joined.
    """

    name: str
    format: str
    said: tuple[Said, ...] = ()
    text: str | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def speakers(self) -> list[str]:
        """Lists the names of the speakers, in the order in which they begin."""
        return list(dict.fromkeys(each.speaker for each in self.said if each.speaker is not None))

    @property
    def unit(self) -> str:
        """Says what its numbers count, for people."""
        if self.text is not None or (self.format != PLAIN_TEXT and not self.speakers and not self.has_times):
            return "sentence"
        return "turn" if self.speakers or self.has_times else "line"

    @property
    def has_times(self) -> bool:
        return any(each.start is not None for each in self.said)

    def describe(self) -> str:
        """Says what was read: format, turns, speakers, length, and what was left out."""
        parts = [self.format]
        if self.text is None:
            number, names = len(self.said), len(self.speakers)
            of = f" of {names:,} speaker{'s' * (names != 1)}" if names else ""
            parts.append(f"{number:,} {self.unit}{'s' * (number != 1)}{of}")
        ends = [time for each in self.said for time in (each.start, each.end) if time is not None]
        if ends:
            parts.append(f"up to {clock(max(ends))}")
        changed = f"; skipped or joined: {listed(self.counts)}" if +self.counts else ""
        return f"{self.name}: {', '.join(parts)}{changed}"

    def fields(self, forms: Sequence[str]) -> dict[str, Any]:
        """Returns the document as a record has it, in one of these forms: the turns, or else the text of all."""
        if self.text is not None:
            return {"text": self.text}
        if "turns" in forms:
            return {"turns": [{"speaker": each.speaker, "text": each.text} for each in self.said]}
        lines = (each.text if each.speaker is None else f"{each.speaker}: {each.text}" for each in self.said)
        return {"text": "\n".join(lines)}


def read_transcript(path: Path, number_of: str | None = None, running: bool = False) -> Transcript:
    """Reads a transcript; `-` is the standard input. The file may be compressed.

    Args:
        number_of: the id of a document, where a file of JSON has several.
        running: plain text without names is running text, whose lines are no turns.
    Raises:
        ValueError: no text, what nothing here reads, several documents without an id, or damage, with the place.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file with a transcript")
    with opened(path, most=MOST) as file:
        return transcript_in(file, number_of, running)


def transcript_in(
    file: OpenFile,
    number_of: str | None = None,
    running: bool = False,
    has_turns: bool = True,
) -> Transcript:
    """Reads the transcript in an open file, as `read_transcript`; without `has_turns` plain text is running text."""
    name = " ".join(file.path.name.split())
    if file.is_json:
        transcript = _of_json(file, name, number_of)
    elif file.is_table:
        transcript = _of_table(list(_limited(file)), name, file)
    else:
        text = "\n".join(line for _, line in file.lines())
        with at(file.path):
            transcript = of_text(text, name, running, has_turns, file.format)
    if number_of is not None and not file.is_json:
        raise OptionError(ONE_DOCUMENT, file.path, f"{transcript.format}, one", id=number_of)
    check_text(transcript, str(file.path))
    return transcript


def of_record(record: Any) -> Transcript:
    """Returns what a record says, without its questions; ValueError if nobody says anything."""
    speakers = getattr(record, "roles", None) or (None,) * len(record.elements or ())
    pairs = zip(record.elements or (), speakers, strict=True)
    said = tuple(Said(text, None if speaker is None else shown(speaker) or None) for text, speaker in pairs)
    transcript = Transcript(record.id, JSON_LINES, said, record.text)
    check_text(transcript, record.name)
    return transcript


class InPython(NamedTuple):
    """What stands for a file where turns are objects of Python."""

    path: str
    format: str
    counts: Counter[str]


def of_turns(turns: Sequence[Any], name: str) -> Transcript:
    """Reads turns as they are in a file of JSON; see `_of_rows`."""
    return _of_rows(turns, name, InPython(name, "turns", Counter()))


def _limited(file: OpenFile) -> Iterator[dict[str, Any]]:
    """Yields the rows of a table; ValueError for one that is too large for a transcript."""
    size = 0
    for _, row in file.rows(keep_empty=True):
        size += sum(1 + len(str(cell)) for cell in row.values())
        if size > MOST:
            raise ValueError(
                f"{file.path} has more than {MOST:,} characters, and a transcript is read whole: divide it"
            )
        yield row


def check_text(transcript: Transcript, name: str) -> None:
    """Raises ValueError for a transcript in which nobody says anything; `name`: what the message calls it."""
    texts = [each.text for each in transcript.said] if transcript.text is None else [transcript.text]
    if all(map(is_blank, texts)):
        lost = f" (skipped: {listed(transcript.counts)})" if +transcript.counts else ""
        raise ValueError(f"{name} has no text{lost}: nothing to ask about")


def listed(counts: Counter[str]) -> str:
    """Returns counts as `notes (12), styles (1)`."""
    return ", ".join(f"{name} ({number:,})" for name, number in counts.items() if number)


def of_text(text: str, name: str, running: bool = False, has_turns: bool = True, form: str | None = None) -> Transcript:
    """Reads the content of plain text, SubRip or WebVTT; see `read_transcript`.

    `form`: which of them it is; None for a string, whose beginning says it.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    form = form_of_text(text.lstrip()) if form is None else form
    lines, counts = text.split("\n"), Counter[str]()
    if form in (SUBRIP, WEBVTT):
        return Transcript(name, form, tuple(turns_of_cues(lines, form == WEBVTT, counts)), counts=counts)
    if not has_turns:
        return Transcript(name, PLAIN_TEXT, text=text)
    visible = [line for line in lines if not is_blank(line)]
    said = turns_of_lines(visible, counts)
    if (running or len(visible) == 1) and not any(each.speaker or each.start is not None for each in said):
        return Transcript(name, PLAIN_TEXT, text=text)
    return Transcript(name, PLAIN_TEXT, tuple(said), counts=counts)


# JSON and tables


def _of_json(file: OpenFile, name: str, wanted: str | None) -> Transcript:
    """Reads one document with one of `RECORD_KEYS`, or a turn in each object or string."""
    rows = []
    for where, text in file.json_texts():
        with at(where):
            row = parse_json(text)
        rows.append(row if isinstance(row, str) else _with_lists(dict(Fields(row, where).record), where))
    rows = list(map(_lower, rows))
    documents = [row for row in rows if isinstance(row, dict) and _is_document(row, len(rows))]
    if not documents:
        if wanted is not None:
            raise OptionError(ONE_DOCUMENT, file.path, "one", id=wanted)
        return _of_rows(rows, name, file)
    if len(documents) < len(rows):
        raise ValueError(f"{file.path} has documents and turns side by side; give one document")
    ids = [str(row.get("id", number)) for number, row in enumerate(documents, start=1)]
    chosen = documents[chosen_of(ids, wanted, file.path)]
    return _of_document(chosen, str(chosen.get("id", name)), file)


def chosen_of(ids: Sequence[str], wanted: str | None, path: Path) -> int:
    """Returns the place of the document that is wanted; ValueError if there is none, or several without a choice."""
    if again := next((id_ for id_, number in Counter(ids).items() if number > 1), None):
        raise ValueError(f"{path} has {again!r} as the id of several documents; give each an id of its own")
    some = ", ".join(ids[:8]) + (", ..." if len(ids) > 8 else "")
    if wanted is not None and wanted not in ids:
        raise ValueError(f"{path} has no document {wanted!r}; it has {some}")
    if wanted is None and len(ids) > 1:
        raise OptionError(
            "{} has {} documents: choose one of {} with {id}, or ask all with predict", path, len(ids), some, id=None
        )
    return 0 if wanted is None else ids.index(wanted)


def _with_lists(row: dict[str, Any], where: str) -> dict[str, Any]:
    """A document with a list of turns, where it has an object of lists."""
    lists = {key: rows_of_lists(row[key], f"{where}: {key}") for key in LIST_KEYS if isinstance(row.get(key), dict)}
    return {**row, **lists}


def _is_document(row: dict[str, Any], rows: int) -> bool:
    """Whether an object is a document, not a turn: that has a speaker or a time, or others beside it without ids."""
    if any(key in row for key in LIST_KEYS):
        return True
    return "text" in row and not {"speaker", "role", "start", "end"} & row.keys() and (rows == 1 or "id" in row)


def _of_document(row: dict[str, Any], name: str, file: OpenFile) -> Transcript:
    forms = [key for key in RECORD_KEYS if row.get(key) is not None]
    if len(forms) == 2 and forms[0] in RECOGNISED and forms[1] == "text":
        forms = forms[:1] if row[forms[0]] else forms[1:]
    if len(forms) != 1:
        raise ValueError(f"{file.path}: document {name} has {' and '.join(forms)}; give one of them")
    counts = file.counts
    counts.update(f"key {key!r}" for key in row if key not in ("id", "meta", *RECORD_KEYS))
    value = row[forms[0]]
    if isinstance(value, str):
        if forms != ["text"]:
            raise ValueError(f"{file.path}: document {name}: {forms[0]} must be a list, not {value!r:.60}")
        return Transcript(name, file.format, text=value, counts=counts)
    rows = of_type(value, list, f"{file.path}: {forms[0]}")
    if forms == [WHISPER_CPP]:
        inside = Columns(("start=timestamps.from", "end=timestamps.to", "=offsets"))
        rows = [inside.renamed_row(row, name) if isinstance(row, dict) else row for row in rows]
    if forms == [CHUNKS]:
        rows = [_with_times(row) for row in rows]
    return _of_rows(rows, name, file, IN_MILLISECONDS if forms == ["utterances"] and _are_whole(rows) else 1)


def _with_times(row: Any) -> Any:
    """A turn with the two times of its `timestamp`."""
    times = row.get("timestamp") if isinstance(row, dict) else None
    if not isinstance(times, list) or len(times) != 2:
        return row
    return {**dict(zip(("start", "end"), times, strict=True)), **{key: row[key] for key in row if key != "timestamp"}}


def _of_table(rows: list[dict[str, Any]], name: str, file: OpenFile) -> Transcript:
    """Reads a turn in each row. A .tsv of Whisper has the columns start, end and text, and whole milliseconds."""
    rows = [_lower(row) for row in rows]
    is_whisper = ending_of(file.path.name) == "tsv" and all((*row,) == WHISPER for row in rows)
    turns = [{key: cell for key, cell in row.items() if cell is not None or key == "text"} for row in rows]
    return _of_rows(turns, name, file, IN_MILLISECONDS if is_whisper and _are_whole(rows) else 1)


def _are_whole(rows: Sequence[Any]) -> bool:
    """Whether all times are whole numbers."""
    times = [row.get(key) for row in rows if isinstance(row, dict) for key in ("start", "end")]
    return all(re.fullmatch(r"\d{1,12}", str(time).strip()) for time in times if time is not None)


def _of_rows(rows: Sequence[Any], name: str, file: OpenFile | InPython, unit: int = 1) -> Transcript:
    """Reads turns: objects or strings; other keys than those of a turn are counted.

    `unit`: how many units of time a second has. ValueError if no speaker is read, and another key may have it.
    """
    said, others, speakers = [], Counter[str](), list[str]()
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str):
            said.append(Said(row))
            continue
        fields = Fields(_lower(row), f"{name}, turn {number}")
        unknown = [key for key in fields.record if key not in TURN_KEYS]
        others.update(f"values of {key!r}" for key in unknown)
        speakers += [key for key in unknown if OTHER_SPEAKERS.fullmatch(key) and isinstance(fields.record[key], str)]
        said.append(_said(fields, unit))
    if speakers and not any(each.speaker for each in said):
        key = speakers[0]
        text = f"no turn has a speaker, and {key!r} may be one: call it 'speaker', or remove it"
        raise ValueError(f"{file.path}: {text}")
    return Transcript(name, file.format, tuple(said), counts=file.counts + others)


def _said(fields: Fields, unit: int) -> Said:
    if "text" not in fields:
        keys = ", ".join(map(repr, [*fields.record][:MOST_KEYS])) or "none"
        known = f"those of a turn are {', '.join(TURN_KEYS)}, and a document has {', '.join(LIST_KEYS)} or text"
        raise fields.error(f"there is no text: its keys are {keys}; {known}")
    text = "" if fields.record["text"] is None else fields.text("text")
    role = fields.record.get("role")  # which replaces the speaker, as in `record.roles_of`
    speaker = fields.record.get("speaker") if role is None else role
    if isinstance(speaker, int) and not isinstance(speaker, bool):  # as programs that recognise speech count them
        speaker = str(speaker)
    speaker = None if speaker is None else shown(fields.checked(speaker, str, "speaker")) or None
    return Said(text, speaker, _time(fields, "start", unit), _time(fields, "end", unit))


def _lower(row: Any) -> Any:
    """A turn or document whose keys such as `Speaker` are in lower case, each if no other is the same then.

    `Start` and `End` are, if they are seconds or clocks.
    """
    if not isinstance(row, dict):
        return row
    lower = {key: key.strip().lower() for key in row}
    count = Counter(lower.values())
    named = {
        key: name
        for key, name in lower.items()
        if name in TURN_KEYS and count[name] == 1 and (name not in ("start", "end") or _is_time(row[key]))
    }
    return {named.get(key, key): value for key, value in row.items()}


def _time(fields: Fields, key: str, unit: int) -> float | None:
    """The seconds under a key, a number of so many units or a clock such as `00:01:23`; ValueError for others."""
    value = fields.record.get(key)
    if value is None:
        return None
    if not _is_time(value):
        raise fields.error(f"{key} must be seconds or a clock such as 00:01:23, not {value!r:.60}")
    is_clock = isinstance(value, str) and ":" in value
    return seconds(value.strip()) if is_clock else float(value) / unit


def _is_time(value: Any) -> bool:
    """Whether a value is a number that is not negative, or a clock."""
    if isinstance(value, str):
        return re.fullmatch(rf"{CLOCK}|\d{{1,9}}(?:\.\d+)?", value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**9
