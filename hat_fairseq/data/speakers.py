"""Who speaks, and when: names and times at the beginnings of lines, `[00:01:23] Name: ` or `Name (01:23): `.

If most lines begin with a name, these are the speakers, and a line without one goes on with the speaker before it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d\d(?:[.,]\d{1,3})?"
_TIME_FIRST = re.compile(rf"\s*[\[(]?({CLOCK})[\])]?(?:\s*[-–]\s+|\s+|$)")
_NAME = re.compile(rf"([^\W\d_][^:：\n]{{0,59}}?)\s*(?:[\[(]({CLOCK})[\])])?\s*(?::\s+|:$|：\s*)")
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
    following = [*said[1:], Said("")]
    return [replace(each, end=after.start) for each, after in zip(said, following, strict=False)], speakers


def most_are_there(values: Iterable[Any]) -> bool:
    """Returns whether more than half are there."""
    there = [value is not None for value in values]
    return 2 * sum(there) > len(there)


def name_before(line: str) -> tuple[str, str | None, str] | None:
    """Returns the name at the beginning of a line, the time after it, and what follows; None if there is no name."""
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
