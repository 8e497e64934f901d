"""Who speaks in plain text, and when, in three layouts.

1. `[0:01:23] Name: text` on a line. The brackets may be missing, and so may the time, or a date may stand before it.
2. `Name  0:01:23` on a line, or `Name` and the time alone on the next one; then the lines that are said.
3. A turn on each line, without names. A time may stand before it, or alone on the line above.

Names count only if they return: if most lines with a name have one that is there twice. Else the text is in layout 3,
as lists, letters, minutes and prose are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

HIDDEN = "\ufeff\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # marks that show nothing
LONGEST_NAME = 80  # characters
MOST_WORDS = 6  # of a name that does not return
#: What stands before colons in mail, logs and minutes, and returns there.
FIELDS = {"from", "to", "cc", "bcc", "subject", "date", "sent", "re", "error", "warning", "info", "debug"}
FIELDS |= {"note", "agenda", "decision", "action"}
_HALF_DAY = 12 * 3600

_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_CLOCK = r"\d{1,3}(?::\d\d)?:\d\d(?:[.,]\d{1,6})?"
_DATE = r"(?:\d{4}-\d\d?-\d\d?|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_HALF = r"(?:\s?(?P<half>[AaPp])\.?\s?[Mm](?!\w)\.?)?"
_WHEN = rf"(?P<date>{_DATE}(?:,?\s|T))?(?P<start>{_CLOCK}){_ZONE}{_HALF}(?:\s?(?:--?>|[-–])\s?(?P<end>{_CLOCK}))?"
_TIME = re.compile(rf"[\[(]?\s?{_WHEN}\s?[\])]?(?:\s[-–])?(?:\s+|$)")
_START = r"""[^\s"'“„«*_#<>\[\](){}|@:：.,;!?¿¡…&/\\–—-]"""  # how a name may begin
NAME = re.compile(rf"(?:>>\s?)?(?P<name>{_START}[^:：\n]{{0,{LONGEST_NAME - 1}}})(?::(?:\s+|$)|：\s*)")
_ALONE = rf"(?P<name>{_START}[^:：\[\]\n]{{0,{LONGEST_NAME - 1}}}?)"
_HEADING = re.compile(rf"\[?{_ALONE}\]?(?:\s\s+|\t|\s(?=[\[(])|(?<=\])\s)[\[(]?{_WHEN}[\])]?\s?:?")
_NAME_ALONE = re.compile(rf"{_ALONE}(?<![.,;!?…])")


@dataclass(frozen=True)
class Said:
    """A turn, or a cue: seconds are those of its beginning and end, None where they are unknown."""

    text: str
    speaker: str | None = None
    start: float | None = None
    end: float | None = None


class Name(NamedTuple):
    """A name before a colon; `length`: of all that stands before the text."""

    name: str
    length: int


class Heading(NamedTuple):
    """A name and a time before lines that are said; `after`: the number of the first of these."""

    name: str
    time: re.Match[str]
    after: int


def turns_of_lines(lines: Iterable[str], counts: Counter[str]) -> list[Said]:
    """Returns the turns of the lines of a plain text; counts the dates, which are left out with their times."""
    lines = [line.strip().strip(HIDDEN).strip() for line in lines]
    headings = headings_of(lines)
    said = turns_below(headings, lines, counts) if headings else turns_on_lines(lines, counts)
    return with_ends(said)


def turns_on_lines(lines: Sequence[str], counts: Counter[str]) -> list[Said]:
    """Returns a turn for each line but times alone. A line with neither name nor time goes on with the speaker."""
    times = times_before(lines)
    rests = [line[time.end() :] if time else line for line, time in zip(lines, times, strict=True)]
    names = [name_before(rest) for rest in rests]
    timed = [bool(time and rest) for time, rest in zip(times, rests, strict=True)]
    known = known_names_of(names, rests, timed)
    begins = sum(bool(name or time) for name, time in zip(names, timed, strict=True)) if known else len(lines)
    has_times = 2 * sum(timed) > begins  # else a time is what somebody says: `10:30 is too late`
    said, speaker, alone = list[Said](), None, None
    for line, time, rest, name in zip(lines, times, rests, names, strict=True):
        if time and not rest:
            alone = time
            continue
        if time and (not has_times or (time["date"] and not known)):
            time, rest, name = None, line, None
        if known and (name or time):  # one who is not known is another one than before
            speaker = name.name if name and name.name in known else None
            rest = rest[name.length :] if name and speaker else rest
        if rest:
            said.append(Said(rest, speaker, *begin_and_end(time or alone, counts)))
            alone = None
    return said


def times_before(lines: Sequence[str]) -> list[re.Match[str] | None]:
    """Returns the time at the beginning of each line, if it has brackets as most have, or none as most."""
    times = [_TIME.match(line) for line in lines]
    brackets = [time and time[0][0] * (time[0][0] in "[(") for time in times]
    counts = Counter(each for each in brackets if each is not None)
    most = max(counts, key=lambda each: counts[each], default="")
    return [time if each == most else None for time, each in zip(times, brackets, strict=True)]


def name_before(text: str) -> Name | None:
    """Returns the name before the first colon of a text; None if no name can stand there."""
    match = NAME.match(text)
    if match is None or (name := match["name"].strip()).lower() in FIELDS:
        return None
    return Name(name, match.end())


def known_names_of(names: Sequence[Name | None], texts: Sequence[str], timed: Sequence[bool]) -> set[str]:
    """Returns who speaks: what stands before colons, if it returns, on most lines or after a time."""
    there = [each.name for each in names if each]
    with_both = sum(bool(name and time) for name, time in zip(names, timed, strict=True))
    with_text = sum(len(text) > (name.length if name else 0) for name, text in zip(names, texts, strict=True))
    return known_names(there) if 2 * len(there) > with_text or 2 * with_both > len(there) else set()


def known_names(names: Sequence[str]) -> set[str]:
    """Returns the names if most of them return: those that do, and others in which each word has a capital letter."""
    counts = {name: number for name, number in Counter(names).items() if number > 1 or is_proper(name)}
    return {*counts} if 2 * sum(number for number in counts.values() if number > 1) > sum(counts.values()) else set()


def is_proper(name: str) -> bool:
    words = name.split()
    return len(words) <= MOST_WORDS and not any(word[0].islower() for word in words)


def headings_of(lines: Sequence[str]) -> dict[int, Heading]:
    """Returns the lines with a name and a time alone, by their numbers; none if the names do not return."""
    headings = dict[int, Heading]()
    for number, (line, below) in enumerate(pairwise([*lines, ""])):
        if len(line) > 2 * LONGEST_NAME or number - 1 in headings and headings[number - 1].after > number:
            continue
        if match := _HEADING.fullmatch(line):
            headings[number] = Heading(match["name"].strip(), match, number + 1)
        elif (time := _TIME.fullmatch(below)) and (match := _NAME_ALONE.fullmatch(line)):
            headings[number] = Heading(match["name"].strip(), time, number + 2)
    spoken = [each.name for each in headings.values() if each.after < len(lines) and each.after not in headings]
    known = known_names(spoken) if 2 * len(spoken) > len(headings) else set()
    return {number: each for number, each in headings.items() if each.name in known}


def turns_below(headings: dict[int, Heading], lines: Sequence[str], counts: Counter[str]) -> list[Said]:
    """Returns the lines below headings, each said by the one above it; those before the first one by nobody."""
    said, speaker, time, begin = list[Said](), None, None, 0
    for number, line in enumerate(lines):
        if heading := headings.get(number):
            speaker, time, begin = heading
        elif number >= begin:
            said.append(Said(line, speaker, *begin_and_end(time, counts)))
            time = None
    return said


def begin_and_end(time: re.Match[str] | None, counts: Counter[str]) -> tuple[float | None, float | None]:
    """Returns the seconds of a time, those of the day with `AM` or `PM`; with a date none, because days differ."""
    if time is None:
        return None, None
    if time["date"]:
        counts["dates"] += 1
        return None, None
    return seconds(time["start"], time["half"]), None if time["end"] is None else seconds(time["end"], time["half"])


def with_ends(said: Sequence[Said]) -> list[Said]:
    """Returns turns that end where the next one begins, unless they have an end, or the next one begins before."""
    following = [*(each.start for each in said[1:]), None]
    return [
        replace(each, end=after) if each.end is None and is_later(after, each.start) else each
        for each, after in zip(said, following, strict=False)
    ]


def is_later(time: float | None, start: float | None) -> bool:
    """Returns whether a turn begins after another one; after midnight, hours of the day begin anew."""
    return time is not None and start is not None and 0 < time - start < _HALF_DAY


def seconds(clock: str, half: str | None = None) -> float:
    """Converts `1:02:03.5`, `02:03,5` and the like to seconds; `half`: `A` or `P` of `9:15 AM`, the time of the day."""
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = 60 * total + float(part)
    if half and clock.count(":") == 1:
        total *= 60
    return total if half is None else total % _HALF_DAY + (_HALF_DAY if half in "Pp" else 0)


def clock(time: float) -> str:
    """Returns seconds as `1:02:03`."""
    minutes, second = divmod(int(time), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
