"""Who speaks, and when: names and times at the beginnings of lines, `[00:01:23] Name: ` or `Name (01:23): `.

If most lines begin with a name, these are the speakers, and a line without one goes on with the speaker before it. Or
the name stands on a line of its own before what is said, as programs for meetings write it: `Name  1:23` with two
spaces, `Name (1:23)`, `[Name] 00:01:23`; or `Name:`, if one of these names returns.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d\d(?:[.,]\d{1,3})?"
_TIME_FIRST = re.compile(rf"\s*[\[(]?({CLOCK})[\])]?(?:\s*[-–]\s+|\s+|$)")
_NAME = re.compile(rf"([^\W\d_][^:：\n]{{0,59}}?)\s*(?:[\[(]({CLOCK})[\])])?\s*(?::\s+|:$|：\s*)")
_ALONE = r"([^\W\d_][^:：\n\[\]]{0,59}?)"
_HEADING = re.compile(  # a space before a time is not enough: `We meet at 10:30` is text
    rf"\s*(?:\[{_ALONE}\]\s+|{_ALONE}(?:\s\s+|\t)|{_ALONE}\s+(?=[\[(]))[\[(]?({CLOCK})[\])]?\s*[:：]?\s*"
)
_NAME_ALONE = re.compile(rf"\s*{_ALONE}\s*[:：]\s*")
_EMPHASIS = re.compile(r"^\s*(\*{1,3}|_{1,3})([^*_\n]+)\1")  # of Markdown
_LEAST_HEADINGS = 3  # one for three lines
_MOST_WORDS = 6  # of a name


@dataclass(frozen=True)
class Said:
    """A turn, or a cue: seconds are those of its beginning and end, None where they are unknown."""

    text: str
    speaker: str | None = None
    start: float | None = None
    end: float | None = None


def turns_of_lines(lines: list[str]) -> tuple[list[Said], bool]:
    """Returns the turns of plain text, and whether the lines have names."""
    if said := turns_after_headings(lines):
        return with_ends(said), True
    matches = list(map(_TIME_FIRST.match, lines))
    times = most_are_there(matches)
    starts = [seconds(match[1]) if times and match else None for match in matches]
    rests = [line[match.end() :] if times and match else line for line, match in zip(lines, matches, strict=True)]
    names = list(map(name_before, rests))
    speakers, speaker, said = most_are_there(names), None, list[Said]()
    for start, rest, named in zip(starts, rests, names, strict=True):
        if speakers and named is not None:
            speaker, time, rest = named
            start = start if time is None else seconds(time)
        said.append(Said(rest, speaker, start))
    return with_ends(said), speakers


def turns_after_headings(lines: list[str]) -> list[Said]:
    """Returns the lines that follow lines with a name and a time alone; none if the text is not of this form."""
    headings = list(map(heading_of, lines))
    names = [heading[0] for heading in headings if heading is not None]
    if len(names) < 2 or headings[0] is None or _LEAST_HEADINGS * len(names) < len(lines):
        return []
    if all(heading is None or heading[1] is None for heading in headings) and len({*names}) == len(names):
        return []  # headings of a text
    speaker: str | None = None
    start: float | None = None
    said = list[Said]()
    for line, heading in zip(lines, headings, strict=True):
        if heading is not None:
            speaker, start = heading
        else:
            said.append(Said(line, speaker, start))
            start = None
    return said


def heading_of(line: str) -> tuple[str, float | None] | None:
    """Returns name and time, if it has one, of a line that has nothing else, else None."""
    line = _EMPHASIS.sub(r"\2", line)
    if match := _HEADING.fullmatch(line):
        name, time = match[1] or match[2] or match[3], seconds(match[4])
    elif match := _NAME_ALONE.fullmatch(line):
        name, time = match[1], None
    return (name, time) if match and len(name.split()) <= _MOST_WORDS else None


def with_ends(said: list[Said]) -> list[Said]:
    """Returns turns that end where the next one begins."""
    following = [*said[1:], Said("")]
    return [replace(each, end=after.start) for each, after in zip(said, following, strict=False)]


def most_are_there(values: Iterable[Any]) -> bool:
    """Returns whether more than half are there."""
    there = [value is not None for value in values]
    return 2 * sum(there) > len(there)


def name_before(line: str) -> tuple[str, str | None, str] | None:
    """Returns the name at the beginning of a line, the time after it, and what follows; None if there is no name."""
    line = _EMPHASIS.sub(r"\2", line)
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
