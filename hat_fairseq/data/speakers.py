"""Who speaks, and when: names and times at the beginnings of lines, such as `[00:01:23] Name: `.

If most lines begin with a name, `Name:`, `Name (01:23):`, `Name: (01:23)`, `Name [01:23]`, `Name, 01:23:`, `[Name]:`,
`[Name]` or `<Name>`, these are the speakers, and a line without one goes on with the speaker before it. Or the name
stands on a line of its own before what is said, as programs for meetings write it: `Name  1:23` with two spaces, `Name
(1:23)`, `Name - 1:23`, `[Name] 00:01:23`, or the time alone; or `1:23 Name`, `1:23 - Name` or `Name:`, if these
names return. Between times alone on their lines, names that return are found as in a text without times.

A time may have an end, `[0:01 - 0:05]` or in seconds `[1.50s -> 5.25s]`, or be one of the day, `9:15 AM`. All times
of a text have one form, and all names: others are part of what is said. Marks of Markdown's emphasis, headings and
items may be around both.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

CLOCK = r"\d{1,3}(?::\d{1,2})?:\d\d(?:[.,]\d{1,6})?"
_TO = r"\s*(?:--?>|[-–—/,])\s*"
_STAMP = rf"{CLOCK}(?:{_TO}{CLOCK})?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_SECONDS = r"\d{1,6}\.\d{1,3}s?"
_SQUARE, _ROUND = rf"\[\s*{_STAMP}\s*\]", rf"\(\s*{_STAMP}\s*\)"
_SPAN = rf"\[\s*{_SECONDS}\s*--?>\s*{_SECONDS}\s*\]"  # with an arrow: `[0.1 - 0.5]` may be a number's interval
_BRACKETED = rf"{_SQUARE}|{_ROUND}"
_FORMS = rf"(?P<square>{_SQUARE})|(?P<span>{_SPAN})|(?P<round>{_ROUND})|(?P<bare>{_STAMP})"
_TIME_FIRST = re.compile(rf"\s*(?:{_FORMS})(?:\s*[-–]\s+|\s+|$)")
_PARTS = re.compile(rf"({CLOCK})(?:({_TO})({CLOCK}))?(?:\s?([AaPp]))?")
_PARTS_OF_SPAN = re.compile(rf"({_SECONDS})\s*--?>\s*({_SECONDS})")
_NAME = r"[^\W\d_][^:：\n]{0,99}?"
_BEFORE = {  # what stands before a text: a name, and perhaps a time
    form: re.compile(pattern)
    for form, pattern in {
        "name:": rf"(?:>>\s*)?({_NAME})\s*+({_BRACKETED}|{_SPAN})?\s*+(?::\s+|:$|：\s*)",
        "name [time]": rf"(?![^\[]*\b[a-z])([^\W\d_][^:：\n\[\]]{{0,59}}?)\s++({_SQUARE})\s+(?=\S)",
        "name: [time]": rf"(?:>>\s*)?({_NAME})\s*+[:：]\s*+({_BRACKETED})\s+(?=\S)",
        "name, time:": rf"(?:>>\s*)?({_NAME})\s*+[,–-]\s*+({_STAMP})\s*+(?::\s+|:$|：\s*)",
        "[name]:": r"\[([^\W\d_][^:：\[\]\n]{0,59})\]()\s*[:：](?:\s+|$)",
        "[name]": r"\[(?![^\]]*\b[a-z])([^\W\d_][^:：\[\]\n]{0,59})\]()\s+(?=\S)",
        "<name>": r"<([^\W\d_][^:：<>\n]{0,59})>()[:：]?\s+(?=\S)",
    }.items()
}
_ALONE = r"[^\W\d_][^:：\n\[\]]{0,99}?"
_ANY_TIME = rf"{_BRACKETED}|{_STAMP}"
_HEADINGS = {  # lines with nothing else; a space before a time is not enough: `We meet at 10:30` is text
    form: re.compile(rf"\s*+{pattern}\s*+[:：]?\s*+")
    for form, pattern in {
        "[name] time": rf"\[(?P<name>{_ALONE})\]\s++(?P<time>{_ANY_TIME})",
        "name (time)": rf"(?P<name>{_ALONE})\s++(?P<time>{_BRACKETED})",
        "name  time": rf"(?P<name>{_ALONE})(?:\s\s++|\t|\s[-–—|]\s)(?P<time>{_STAMP})",
        "time": rf"(?P<name>)(?P<time>{_ANY_TIME})",
    }.items()
}
_TIME_AND_NAME = re.compile(rf"\s*+(?P<time>{_ANY_TIME})\s++(?:[-–—|]\s++)?(?P<name>{_ALONE})\s*+[:：]?\s*+")
_NAME_ALONE = re.compile(rf"\s*+({_ALONE})\s*+[:：]\s*+")
_IN_BRACKETS = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)")  # beside a name: `Ann Lee (Kiel, SPD)`
_AFTER_DASH = re.compile(r"\s[-–—|]\s+(?=\S)")  # `Ann Lee - School of Law`
_WITH_NAME = re.compile(r"\S[^:：]{0,99}[:：]\s")  # a line that begins with what may be a name
_EMPHASIS = re.compile(r"^\s*(\*{1,3}|_{1,3})(?![\s*_])(.+?)\1(?![\w*_])")  # of Markdown
_MARKER = re.compile(r"^\s*(?:#{1,6}|[-*+•])\s+")  # of a heading or an item in Markdown
DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # marks that show nothing
_LEAST_HEADINGS = 3  # that show the form of a text; or one for three lines
MOST_WORDS = 6  # of a name, without those in brackets and after a dash
_HALF_DAY = 12 * 3600


@dataclass(frozen=True)
class Said:
    """A turn, or a cue: seconds are those of its beginning and end, None where they are unknown."""

    text: str
    speaker: str | None = None
    start: float | None = None
    end: float | None = None


class Heading(NamedTuple):
    """A line with a name, a time or both, and nothing else; `place`: its number."""

    place: int
    name: str | None
    start: float | None = None
    end: float | None = None


def turns_of_lines(lines: Sequence[str]) -> tuple[list[Said], bool]:
    """Returns the turns of plain text, and whether the lines have names."""
    lines = [line.lstrip(DIRECTIONS) for line in lines]
    headings = headings_of(lines)
    if any(each.name for each in headings):
        return with_ends(turns_after(lines, headings)), True
    if not headings:
        said, speakers = turns_of_names(lines)
        return with_ends(said), speakers
    timed = turns_after(lines, headings)
    texts = [each.text for each in timed]
    if are_dense(names := names_alone(list(map(without_markup, texts))), texts):
        return with_ends(turns_after(texts, names, timed)), True
    said, speakers = turns_of_names(texts)
    named = [each.speaker for each, text in zip(said, texts, strict=True) if each.text != text]
    if not speakers or 2 * len(set(named)) > len(named):  # names return: else they are what is said
        return with_ends(timed), False
    pairs = zip(said, timed, strict=True)
    said = [replace(each, start=time.start, end=time.end) if each.start is None else each for each, time in pairs]
    return with_ends(said), True


def turns_of_names(lines: Sequence[str]) -> tuple[list[Said], bool]:
    """Returns a turn for each line, with the name and the time at its beginning, and whether the lines have names."""
    plain = list(map(without_markup, lines))
    matches = list(map(_TIME_FIRST.match, plain))
    forms = Counter(match.lastgroup for match in matches if match)
    form, count = max(forms.items(), key=lambda pair: pair[1], default=("", 0))
    times = [match if match and match.lastgroup == form and 2 * count > len(lines) else None for match in matches]
    rests = [
        line if match is None else bare[match.end() :] for line, bare, match in zip(lines, plain, times, strict=True)
    ]
    form_of_name = form_of_names(rests)
    names = [name_before(rest, form_of_name) for rest in rests]
    speakers, speaker, said = most_are_there(names), None, list[Said]()
    for match, rest, named in zip(times, rests, names, strict=True):
        start, end = (None, None) if match is None else begin_and_end(match[0])
        if speakers and named is not None:
            speaker, (time, until), rest = named
            start, end = (start, end) if time is None else (time, until)
        elif speakers and match is not None and may_begin_with_name(rest):
            speaker = None  # unknown, but not the one before
        said.append(Said(rest, speaker, start, end))
    return said, speakers


def headings_of(lines: Sequence[str]) -> list[Heading]:
    """Returns the lines after which others are said, all of one form; none if the text is not of that form."""
    plain = list(map(without_markup, lines))
    timed = [list(of_form(plain, pattern)) for pattern in _HEADINGS.values()]
    headings = max(*timed, names_that_return(of_form(plain, _TIME_AND_NAME), len(lines)), key=len)
    headings = in_order(with_names_known(headings, with_text(headings, headings, len(lines))))
    times = [plain[each.place].strip() for each in headings if each.name is None]
    are_times = len(times) == len(headings) and times[:1] in (["0:00:00"], ["00:00:00"])  # every 5 minutes, as in Meet
    if len(headings) >= _LEAST_HEADINGS or are_dense(headings, lines) or are_times:
        return headings
    headings = names_alone(plain)
    return headings if are_dense(headings, lines) else []


def are_dense(headings: Sequence[Heading], lines: Sequence[str]) -> bool:
    """Returns whether there are two headings, and one for three lines from the first one on."""
    return len(headings) >= 2 and _LEAST_HEADINGS * len(headings) >= len(lines) - headings[0].place


def of_form(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[Heading]:
    """Yields the lines of a form of `_HEADINGS`."""
    for place, line in enumerate(lines):
        if (match := pattern.fullmatch(line)) and is_short(match["name"]):
            yield Heading(place, match["name"] or None, *begin_and_end(match["time"]))


def names_that_return(headings: Iterable[Heading], count: int) -> list[Heading]:
    """Returns the headings before a text, if a name stands there twice on average: else they are what is said."""
    headings = list(headings)
    headings = with_text(headings, headings, count)
    return headings if 2 * len({each.name for each in headings}) <= len(headings) else []


def with_text(headings: Sequence[Heading], others: Sequence[Heading], count: int) -> list[Heading]:
    """Returns the headings after which something is said, before one of the others and the end of `count` lines."""
    places = {count, *(each.place for each in others)}
    return [each for each in headings if each.place + 1 not in places]


def with_names_known(headings: Sequence[Heading], spoken: Sequence[Heading]) -> list[Heading]:
    """Returns the headings of `spoken`, and those of the same speakers that have no text."""
    places, names = {each.place for each in spoken}, {each.name for each in spoken} - {None}
    return [each for each in headings if each.place in places or each.name in names]


def in_order(headings: Sequence[Heading]) -> list[Heading]:
    """Returns the headings without those whose time is later than the next one's, but the one before is not.

    One whose name returns stays: people talk over each other.
    """
    ordered, names = list[Heading](), Counter(each.name for each in headings if each.name)
    for number, each in enumerate(headings):
        after = headings[number + 1].start if number + 1 < len(headings) else None
        before = ordered[-1].start if ordered else None
        is_name = names[each.name or ""] > 1
        if is_name or None in (before, after, each.start) or not before <= after < each.start:  # type: ignore[operator]
            ordered.append(each)
    return ordered


def names_alone(lines: Sequence[str]) -> list[Heading]:
    """Returns the lines `Name:`, of two names at least, of which one returns; else they are the headings of a text.

    A name that does not return has no lower-case word, and does not follow another one at once.
    """
    matches = [(place, match[1]) for place, line in enumerate(lines) if (match := _NAME_ALONE.fullmatch(line))]
    counts = Counter(name for _, name in matches)
    headings = list[Heading]()
    for place, name in matches:
        follows = bool(headings) and headings[-1].place == place - 1
        is_name = counts[name] > 1 or not (follows or any(word[0].islower() for word in name.split()))
        if is_name and is_short(name):
            headings.append(Heading(place, name))
    headings = with_text(headings, [each for each in headings if counts[str(each.name)] > 1], len(lines))
    names = Counter(each.name for each in headings)
    return headings if 1 < len(names) < len(headings) else []


def turns_after(lines: Sequence[str], headings: Sequence[Heading], timed: Sequence[Said] = ()) -> list[Said]:
    """Returns the lines between headings, each said by the one before it; those before the first one by nobody.

    `timed`: each line with its time, where headings have none.
    """
    by_place, speaker, said = {each.place: each for each in headings}, None, list[Said]()
    start: float | None = None
    end: float | None = None
    for place, line in enumerate(lines):
        heading = by_place.get(place)
        if heading is not None:
            _, speaker, start, end = heading
        if timed and timed[place].start is not None:
            start, end = timed[place].start, timed[place].end
        if heading is None:
            said.append(Said(line, speaker, start, end))
            start = end = None
    return said


def with_ends(said: list[Said]) -> list[Said]:
    """Returns turns that end where the next one begins, unless they have an end, or the next one begins before."""
    following = [*said[1:], Said("")]
    return [
        each if each.end is not None or is_before(after, each) else replace(each, end=after.start)
        for each, after in zip(said, following, strict=False)
    ]


def is_before(one: Said, other: Said) -> bool:
    """Returns whether a turn begins before another one; after midnight, hours of the day begin anew."""
    return one.start is not None and other.start is not None and 0 < other.start - one.start < _HALF_DAY


def most_are_there(values: Iterable[Any]) -> bool:
    """Returns whether more than half are there."""
    there = [value is not None for value in values]
    return 2 * sum(there) > len(there)


def without_markup(line: str) -> str:
    """Returns a line without the marks of Markdown around its beginning."""
    return _EMPHASIS.sub(r"\2", _MARKER.sub("", line))


def form_of_names(lines: Sequence[str]) -> re.Pattern[str]:
    """Returns the form of names that most lines begin with, for `name_before`; a single name in brackets is none.

    `name: [time]` is `name:`, too: it is the form if all these lines have a time.
    """
    counts = {form: sum(name_before(line, form) is not None for line in lines) for form in _BEFORE.values()}
    most = max(counts, key=lambda form: counts[form] if counts[form] > 1 else 0)
    timed = _BEFORE["name: [time]"]
    return timed if most is _BEFORE["name:"] and 1 < counts[timed] == counts[most] else most


def name_before(line: str, form: re.Pattern[str]) -> tuple[str, tuple[float | None, float | None], str] | None:
    """Returns the name at the beginning of a line, begin and end after it, and what follows; None without a name."""
    line = without_markup(line)
    match = form.match(line)
    if match is None or not is_short(match[1]):
        return None
    return match[1], begin_and_end(match[2]) if match[2] else (None, None), line[match.end() :]


def is_short(name: str) -> bool:
    """Returns whether a name has at most `MOST_WORDS` words, and 60 characters, without what is added to it."""
    plain = _IN_BRACKETS.sub(lambda match: "" if len(match[1].split()) <= MOST_WORDS else match[0], name)
    dash = _AFTER_DASH.search(plain)
    if dash and not plain[dash.end()].islower():  # else it is a sentence
        plain = plain[: dash.start()]
    return len(plain.split()) <= MOST_WORDS and len(plain) <= 60


def may_begin_with_name(line: str) -> bool:
    """Returns whether a line begins with something before a colon that may be the name of another speaker."""
    return _WITH_NAME.match(line) is not None and not line[0].islower()


def begin_and_end(time: str) -> tuple[float, float | None]:
    """Converts `[0:01 - 0:05]`, `9:15 AM` and the like to seconds; of `0:01 / 12:00` the latter is the whole length."""
    if span := _PARTS_OF_SPAN.search(time):
        begin, end = (float(each.removesuffix("s")) for each in span.groups())
        return begin, end
    match = _PARTS.search(time)
    assert match is not None
    first, to, last, half = match.groups()
    until = last if last and to.strip() != "/" else None
    return seconds(first, half), None if until is None else seconds(until, half)


def seconds(clock: str, half: str | None = None, of_day: bool = False) -> float:
    """Converts `1:02:03.5`, `02:03,5` and the like to seconds.

    Of a time of the day two numbers are hours and minutes: with `half`, which is `A` or `P`, or `of_day`.
    """
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = 60 * total + float(part)
    if (half or of_day) and clock.count(":") == 1:
        total *= 60
    return total if half is None else total % _HALF_DAY + (_HALF_DAY if half in "Pp" else 0)


def clock(time: float) -> str:
    """Returns seconds as `1:02:03`."""
    minutes, second = divmod(int(time), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
