"""Transcripts of what people say: plain text, JSON or a table of turns, SubRip (`.srt`) and WebVTT (`.vtt`).

The content decides what a file is. In plain text a line is a turn. If most lines begin with `Name: `, these are the
speakers, and a line without one goes on with the speaker before it. There may be times, `[00:01:23] Name: ` or
`Name (01:23): `. A text of one line is running text, without turns.

Subtitles cut sentences into cues of a few words. Cues of one speaker are joined up to the end of a sentence, over
pauses of `PAUSE` seconds at most. Captions that roll show each line twice, of which the second is left out.

Whatever is left out is counted: by names that people can read.
"""

import html
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hat_fairseq.data.compression import compression_of, decompressed
from hat_fairseq.data.files import Fields, note_input, of_type, parse_json
from hat_fairseq.data.formats import JSON, JSON_LINES, STDIN, TEXT, DataFile
from hat_fairseq.data.kinds.evidence import Evidence
from hat_fairseq.data.record import Turn
from hat_fairseq.data.text import is_blank, shown

WEBVTT, SUBRIP = "WebVTT", "SubRip"
PAUSE = 3.0  # seconds
LONGEST = 400  # characters of cues that are joined, where no sentence ends
LIST_KEYS = ("turns", "sentences", "segments")
RECORD_KEYS = (*LIST_KEYS, "text")
TURN_KEYS = ("text", "speaker", "role", "start", "end")

_CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d\d(?:[.,]\d{1,3})?"
_TIMING = re.compile(rf"[ \t]*({_CLOCK})[ \t]*-->[ \t]*({_CLOCK})[ \t]*(.*)")
_TIME_FIRST = re.compile(rf"\s*[\[(]?({_CLOCK})[\])]?(?:\s*[-–]\s+|\s+|$)")
_NAME = re.compile(rf"([^\W\d_][^:：\n]{{0,59}}?)\s*(?:[\[(]({_CLOCK})[\])])?\s*(?::\s+|:$|：\s*)")
_MOST_WORDS = 6  # of a name
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^<>]*)>|</v>")
_TAG = re.compile(r"</?(?:c|i|b|u|s|v|ruby|rt|lang|font)(?:[.\s][^<>]*)?>|<\d[\d:.]*>|\{\\an?\d\}", re.IGNORECASE)
_BLOCK = re.compile(r"(NOTE|STYLE|REGION)(?:\s|$)")
_END = re.compile(r"[.!?…。！？؟।]['\"”’»)\]]*$")
_BLOCKS = {"NOTE": "notes", "STYLE": "styles", "REGION": "regions"}


@dataclass(frozen=True)
class Said:
    """A turn, or a cue: seconds are those of its beginning and end, None where they are unknown."""

    text: str
    speaker: str | None = None
    start: float | None = None
    end: float | None = None


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
        """What its numbers count, for people."""
        if self.text is not None or (self.format != TEXT and not self.speakers and not self.has_times):
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
        if ends := [time for each in self.said for time in (each.start, each.end) if time is not None]:
            parts.append(f"up to {clock(max(ends))}")
        changed = f"; left out or joined: {listed(self.counts)}" if +self.counts else ""
        return f"{self.name}: {', '.join(parts)}{changed}"

    def record(self, questions: Sequence[str]) -> Evidence:
        """Returns the document with its questions; ValueError for an empty question."""
        if self.text is not None:
            return Evidence(self.name, questions=tuple(questions), text=self.text)
        turns = tuple(Turn(each.text, speaker=each.speaker) for each in self.said)
        return Evidence(self.name, questions=tuple(questions), turns=turns)


def read_transcript(path: Path, number_of: str | None = None, running: bool = False) -> Transcript:
    """Reads a transcript; `-` is the standard input. The file may be compressed.

    Args:
        number_of: the id of a document, where a file of JSON has several.
        running: plain text without names is running text, whose lines are no turns.
    Raises:
        ValueError: no text, what nothing here reads, several documents without an id, or damage, with the place.
    """
    from_input = path == STDIN
    name = "standard input" if from_input else " ".join(path.name.split())
    if not from_input:
        note_input(path)
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name a file with a transcript")
    source: Any = nullcontext(sys.stdin.buffer) if from_input else decompressed(path)
    with source as opened:
        file = DataFile(Path(name) if from_input else path, TURN_KEYS, opened)
        if from_input and (compressed := compression_of(file.head)):
            raise ValueError(f"{name} is compressed with {compressed}: unpack it before")
        if file.format in (JSON, JSON_LINES):
            transcript = _of_json(file, name, number_of)
        elif file.is_table:
            if from_input and file.format != "CSV":
                raise ValueError(f"{name} is {file.format}, which is read from a file only: name the file")
            transcript = _of_rows([row for _, row in file.rows()], name, file.format, file.counts)
        else:
            text = "\n".join(line for _, line in file.lines())
            transcript = of_text(text, name, running)
    if number_of is not None and file.format not in (JSON, JSON_LINES):
        raise ValueError(f"--id {number_of} has no effect: {path} is {transcript.format}, one document; remove it")
    if not _has_text(transcript):
        lost = f" (left out: {listed(transcript.counts)})" if +transcript.counts else ""
        raise ValueError(f"{name if from_input else path} has no text{lost}: nothing to ask about")
    return transcript


def _has_text(transcript: Transcript) -> bool:
    texts = [each.text for each in transcript.said] if transcript.text is None else [transcript.text]
    return not all(map(is_blank, texts))


def listed(counts: Counter[str]) -> str:
    """Returns counts as `12 notes, 3 styles`."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)


def of_text(text: str, name: str, running: bool = False) -> Transcript:
    """Reads the content of plain text, SubRip or WebVTT; see `read_transcript`."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next((line for line in lines if not is_blank(line)), "")
    if re.match(r"WEBVTT(?:\s|$)", first):
        return _of_cues(lines, name, WEBVTT)
    if any(map(_TIMING.fullmatch, lines)):
        return _of_cues(lines, name, SUBRIP)
    visible = [line.strip() for line in lines if not is_blank(line)]
    said, speakers = _of_lines(visible)
    if not speakers and not any(each.start is not None for each in said) and (running or len(visible) == 1):
        return Transcript(name, TEXT, text=text)
    return Transcript(name, TEXT, tuple(said))


def _of_lines(lines: list[str]) -> tuple[list[Said], bool]:
    """The turns of plain text, and whether the lines have names."""
    matches = list(map(_TIME_FIRST.match, lines))
    times = _most(matches)
    starts = [seconds(match[1]) if times and match else None for match in matches]
    rests = [line[match.end() :] if times and match else line for line, match in zip(lines, matches, strict=True)]
    names = list(map(_name, rests))
    speakers, speaker, said = _most(names), None, list[Said]()
    for start, rest, named in zip(starts, rests, names, strict=True):
        if speakers and named is not None:
            speaker, time, rest = named
            start = start if time is None else seconds(time)
        said.append(Said(rest, speaker, start))
    following = [*said[1:], Said("")]
    return [replace(each, end=after.start) for each, after in zip(said, following, strict=False)], speakers


def _most(values: Iterable[Any]) -> bool:
    """Whether more than half are there."""
    there = [value is not None for value in values]
    return 2 * sum(there) > len(there)


def _name(line: str) -> tuple[str, str | None, str] | None:
    """The name at the beginning of a line, the time behind it, and what follows; None if there is no name."""
    match = _NAME.match(line)
    if match is None or len(match[1].split()) > _MOST_WORDS:
        return None
    return match[1], match[2], line[match.end() :]


def seconds(clock: str) -> float:
    """Converts `1:02:03.5`, `02:03,5` and the like to seconds."""
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = 60 * total + float(part)
    return total


def clock(time: float) -> str:
    """Returns seconds as `1:02:03`."""
    minutes, second = divmod(int(time), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


# Subtitles


@dataclass
class _Cue:
    start: float
    end: float
    lines: list[str] = field(default_factory=list)


def _of_cues(lines: list[str], name: str, form: str) -> Transcript:
    counts = Counter[str]()
    cues = _without_repeated(list(_cues(lines, form == WEBVTT, counts)), counts)
    if form == WEBVTT:
        cues = [replace(cue, lines=[line.strip() for line in cue.lines]) for cue in cues]
    said = [each for cue in cues for each in _voices(cue, form == WEBVTT, counts)]
    counts["cues without text"] += sum(not any(cue.lines) for cue in cues)
    if not any(each.speaker for each in said):
        said = _with_names(said)
    joined = list(_joined([replace(each, text=" ".join(each.text.split())) for each in said]))
    counts["cues joined to turns"] = len(said) - len(joined)
    return Transcript(name, form, tuple(joined), counts=counts)


def _cues(lines: list[str], is_vtt: bool, counts: Counter[str]) -> Iterator[_Cue]:
    """Yields the cues; counts everything else.

    In WebVTT a blank line ends a cue. In SubRip the next cue does, because people leave blank lines in its text.
    """
    timings = [(number, match) for number, line in enumerate(lines) if (match := _TIMING.fullmatch(line))]
    begins = [*(_begin_of_cue(lines, number, is_vtt) for number, _ in timings), len(lines)]
    _count_outside(lines[: begins[0]], is_vtt, counts)
    for (number, timing), (begin, following) in zip(timings, pairwise(begins), strict=True):
        counts["cue numbers or names"] += begin < number
        counts["cue settings"] += bool(timing[3].strip())
        end = number + 1
        while end < following and not (is_vtt and is_blank(lines[end])):
            end += 1
        _count_outside(lines[end:following], is_vtt, counts)
        inside = [line for line in lines[number + 1 : end] if not is_blank(line)]
        yield _Cue(seconds(timing[1]), seconds(timing[2]), inside)


def _begin_of_cue(lines: list[str], number: int, is_vtt: bool) -> int:
    """The line where the cue with a timing in line `number` begins: that of its number or name, if it has one."""
    before = lines[number - 1] if number else ""
    apart = number < 2 or is_blank(lines[number - 2])
    is_number = before.strip().isdecimal() and (apart or not is_vtt)
    return number - 1 if is_number or (is_vtt and apart and not is_blank(before) and number > 1) else number


def _count_outside(lines: list[str], is_vtt: bool, counts: Counter[str]) -> None:
    """Counts blocks of WebVTT by what they are, and other lines outside cues."""
    block = "lines outside cues"
    for line in lines:
        if is_blank(line):
            block = "lines outside cues"
        elif is_vtt and line.startswith("WEBVTT"):
            block = ""  # its header, of which the lines up to a blank one are part
        elif is_vtt and block == "lines outside cues" and (match := _BLOCK.match(line)):
            block = _BLOCKS[match[1]]
            counts[block] += 1
        elif block == "lines outside cues":
            counts[block] += 1


def _without_repeated(cues: list[_Cue], counts: Counter[str]) -> list[_Cue]:
    """Leaves out the first line of cues that repeats the last one before, if many do: captions that roll."""
    texts = [[plain for line in cue.lines if (plain := _TAG.sub("", line).strip())] for cue in cues]
    last, repeats = "", list[bool]()
    for lines in texts:
        repeats.append(bool(lines) and lines[0] == last)
        last = lines[-1] if lines else last
    if 3 * sum(repeats) <= len(cues):
        return cues
    counts["lines that repeat the one before"] += sum(repeats)
    rolled = []
    for cue, repeat in zip(cues, repeats, strict=True):
        lines = [line for line in cue.lines if _TAG.sub("", line).strip()]
        if lines[repeat:]:
            rolled.append(replace(cue, lines=lines[repeat:]))
    return rolled


def _voices(cue: _Cue, is_vtt: bool, counts: Counter[str]) -> Iterator[Said]:
    """Yields what each voice says in a cue, without tags."""
    text, speaker = "\n".join(cue.lines), None
    pieces = _VOICE.split(text) if is_vtt else [text]
    for number, piece in enumerate(pieces):
        if number % 2:  # the name, or None at the end of a voice
            speaker = html.unescape(piece).strip() or None if piece is not None else None
            continue
        plain, tags = _TAG.subn("", piece)
        counts["tags"] += tags
        if not is_blank(plain):
            yield Said(html.unescape(plain) if is_vtt else plain, speaker, cue.start, cue.end)


def _with_names(said: list[Said]) -> list[Said]:
    """Takes the names out of the texts, if most cues begin with one."""
    if not _most([_name(each.text.strip()) for each in said]):
        return said
    turns, speaker = list[Said](), None
    for each in said:
        for number, line in enumerate(each.text.split("\n")):
            named = _name(line.strip())
            if named is not None:
                speaker, _, line = named
            if number and named is None:
                turns[-1] = replace(turns[-1], text=f"{turns[-1].text}\n{line}")
            else:
                turns.append(replace(each, text=line, speaker=speaker))
    return turns


def _joined(said: Iterable[Said]) -> Iterator[Said]:
    """Joins cues of one speaker up to the end of a sentence."""
    last: Said | None = None
    for each in said:
        if last is None:
            last = each
            continue
        assert last.end is not None and each.start is not None
        is_near = each.start - last.end <= PAUSE and len(last.text) + len(each.text) < LONGEST
        if each.speaker == last.speaker and is_near and not _END.search(last.text):
            last = replace(last, text=f"{last.text} {each.text}".strip(), end=each.end)
        else:
            yield last
            last = each
    if last is not None:
        yield last


# JSON and tables


def _of_json(file: DataFile, name: str, wanted: str | None) -> Transcript:
    """Reads one document with `turns`, `sentences`, `segments` or `text`, or a turn in each object or string."""
    rows = []
    for where, text in file.json_texts():
        with_place = parse_json(text)
        if not isinstance(with_place, str):
            with_place = Fields(with_place, where).record
        rows.append(with_place)
    documents = [row for row in rows if isinstance(row, dict) and _is_document(row, len(rows))]
    if not documents:
        if wanted is not None:
            raise ValueError(f"--id {wanted} has no effect: {file.path} is one document; remove it")
        return _of_rows(rows, name, file.format, file.counts)
    if len(documents) < len(rows):
        raise ValueError(f"{file.path} has documents and turns side by side; give one document")
    ids = [str(row.get("id", number)) for number, row in enumerate(documents, start=1)]
    if wanted is not None and wanted not in ids:
        raise ValueError(f"{file.path} has no document {wanted!r}; it has {', '.join(ids[:8])}")
    if wanted is None and len(ids) > 1:
        more = ", ..." if len(ids) > 8 else ""
        raise ValueError(
            f"{file.path} has {len(ids)} documents: choose one of {', '.join(ids[:8])}{more} with --id, or ask all "
            "with hat predict"
        )
    chosen = documents[ids.index(wanted) if wanted is not None else 0]
    return _of_document(chosen, str(chosen.get("id", name)), file)


def _is_document(row: dict[str, Any], rows: int) -> bool:
    """Whether an object is a document, not a turn: that has a speaker or a time, or others beside it without ids."""
    if any(key in row for key in LIST_KEYS):
        return True
    return "text" in row and not {"speaker", "role", "start", "end"} & row.keys() and (rows == 1 or "id" in row)


def _of_document(row: dict[str, Any], name: str, file: DataFile) -> Transcript:
    forms = [key for key in RECORD_KEYS if row.get(key) is not None]
    if forms == ["segments", "text"]:  # as programs that recognise speech write them: the same text twice
        forms = ["segments"]
    if len(forms) != 1:
        raise ValueError(f"{file.path}: document {name} has {' and '.join(forms)}; give one of them")
    counts = file.counts
    counts.update(f"key {key!r}" for key in row if key not in ("id", "meta", *RECORD_KEYS))
    value = row[forms[0]]
    if isinstance(value, str):
        if forms != ["text"]:
            raise ValueError(f"{file.path}: document {name}: {forms[0]} must be a list, not {value!r:.60}")
        return Transcript(name, file.format, text=value, counts=counts)
    return _of_rows(of_type(value, list, f"{file.path}: {forms[0]}"), name, file.format, counts)


def _of_rows(rows: Sequence[Any], name: str, form: str, counts: Counter[str]) -> Transcript:
    """Reads turns: objects or strings; other keys than those of a turn are counted."""
    said, others = [], Counter[str]()
    for number, row in enumerate(rows, start=1):
        where = f"{name}, turn {number}"
        if isinstance(row, str):
            said.append(Said(row))
            continue
        fields = Fields(row, where)
        others.update(f"values of {key!r}" for key in fields.record if key not in TURN_KEYS)
        text = fields.record.get("text")
        text = "" if text is None and "text" in fields else fields.text("text")
        speaker = fields.record.get("speaker", fields.record.get("role"))
        speaker = None if speaker is None else shown(fields.checked(speaker, str, "speaker")) or None
        said.append(Said(text, speaker, *(_time(fields, key) for key in ("start", "end"))))
    return Transcript(name, form, tuple(said), counts=counts + others)


def _time(fields: Fields, key: str) -> float | None:
    """The seconds under a key, a number or a clock such as `00:01:23`; ValueError for something else."""
    value = fields.record.get(key)
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(_CLOCK, value.strip()):
        return seconds(value.strip())
    if isinstance(value, str) and re.fullmatch(r"\d+(?:\.\d+)?", value.strip()):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise fields.error(f"{key} must be seconds or a clock such as 00:01:23, not {value!r:.60}")
