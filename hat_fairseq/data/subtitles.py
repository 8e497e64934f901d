"""Subtitles, SubRip (`.srt`) and WebVTT (`.vtt`): cues of a few words, joined to turns.

Cues of one speaker are joined up to the end of a sentence, over pauses of `PAUSE` seconds at most. Captions that roll
show each line twice, of which the second is left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import filterfalse, islice, pairwise

from hat_fairseq.data.language import join_pieces, pattern
from hat_fairseq.data.speakers import (
    CLOCK,
    Said,
    form_of_names,
    is_short,
    may_begin_with_name,
    most_are_there,
    name_before,
    seconds,
)
from hat_fairseq.data.text import is_blank, unescape

PAUSE = 3.0  # seconds
LONGEST = 400  # characters of cues that are joined, where no sentence ends

_CLOCK = rf"{CLOCK}|\d{{1,3}}:\d{{1,2}}:\d{{1,2}}(?:[.,]\d{{1,6}})?"  # Teams has written 0:0:5.12
_TIMING = re.compile(rf"[ \t]*({_CLOCK})[ \t]*-->[ \t]*({_CLOCK})[ \t]*(.*)")
_NAMED = re.compile(r'\d+\s+"([^"]+)"(?:\s+\(\d+\))?\s*')  # an identifier of Webex
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^<>]*)>|</v>")
_SETTINGS = re.compile(r"(?:[^\W\d]\w*:\S+(?:\s+|$))*")  # such as `align:start position:0%`, `X1:40 X2:600`
_NAMES = "c|v|lang|ruby|rt|i|b|u|s|em|strong|font|span|small|big|sub|sup|mark|del|ins|strike|a|(?P<line>br|p|div)"
_TAG = re.compile(rf"</?(?:{_NAMES})(?:[.\s/][^<>]*)?>|<\d[\d:.]*>|\{{\\[^{{}}\n]*\}}", re.IGNORECASE)
_BLOCK = re.compile(r"(NOTE|STYLE|REGION)(?:\s|$)")
_END = r"""[\p{Sentence_Terminal}…]['"\p{Pe}\p{Pf}\p{Pi}]*+$"""  # for `pattern`
FIRST = 8  # lines that show something, among which the first cue of a text without a header begins
_BLOCKS = {"NOTE": "notes", "STYLE": "styles", "REGION": "regions"}


def has_cues(lines: Iterable[str]) -> bool:
    """Tells whether one of the first lines has the times of a cue; a text may show some further on."""
    return any(map(_TIMING.fullmatch, islice(filterfalse(is_blank, lines), FIRST)))


@dataclass
class _Cue:
    start: float
    end: float
    lines: list[str] = field(default_factory=list)
    speaker: str | None = None  # named before the times


def turns_of_cues(lines: list[str], is_vtt: bool, counts: Counter[str]) -> list[Said]:
    """Returns the turns of the lines of a file; counts what is left out or joined."""
    cues = _without_repeated(list(_cues(lines, is_vtt, counts)), counts)
    if is_vtt:
        cues = [replace(cue, lines=[line.strip() for line in cue.lines]) for cue in cues]
    voices = [list(_voices(cue, is_vtt, counts)) for cue in cues]
    counts["cues without text"] += sum(not each for each in voices)
    said = [each for voice in voices for each in voice]
    if not any(each.speaker for each in said):
        said = _with_names(said)
    joined = list(_joined([replace(each, text=join_pieces(each.text.split("\n"))) for each in said]))
    counts["cues joined to turns"] = len(said) - len(joined)
    return joined


def _cues(lines: list[str], is_vtt: bool, counts: Counter[str]) -> Iterator[_Cue]:
    """Yields the cues; counts everything else.

    In WebVTT a blank line ends a cue. In SubRip the next cue does, because people leave blank lines in its text.
    """
    timings = [(number, match) for number, line in enumerate(lines) if (match := _TIMING.fullmatch(line))]
    begins = [*(_begin_of_cue(lines, number, is_vtt) for number, _ in timings), len(lines)]
    _count_outside(lines[: begins[0]], is_vtt, counts)
    for (number, timing), (begin, following) in zip(timings, pairwise(begins), strict=True):
        named = _NAMED.fullmatch(lines[begin]) if begin < number else None
        counts["cue identifiers"] += begin < number and named is None
        is_text = _SETTINGS.fullmatch(timing[3]) is None
        counts["cue settings"] += bool(timing[3].strip()) and not is_text
        end = number + 1
        while end < following and not (is_vtt and is_blank(lines[end])):
            end += 1
        _count_outside(lines[end:following], is_vtt, counts)
        inside = [*([timing[3]] if is_text else []), *lines[number + 1 : end]]
        inside = [line for line in inside if not is_blank(line)]
        yield _Cue(seconds(timing[1]), seconds(timing[2]), inside, named and named[1])


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
    last, repeats = None, list[bool]()
    for cue in cues:
        said = [(cue.speaker, _VOICE.findall(line), text) for line in cue.lines if (text := _plain(line)[0].strip())]
        repeats.append(bool(said) and said[0] == last)
        last = said[-1] if said else last
    if 3 * sum(repeats) <= len(cues):
        return cues
    counts["lines that repeat the one before"] += sum(repeats)
    rolled = []
    for cue, repeat in zip(cues, repeats, strict=True):
        lines = [line for line in cue.lines if _plain(line)[0].strip()]
        if lines[repeat:]:
            rolled.append(replace(cue, lines=lines[repeat:]))
    return rolled


def _voices(cue: _Cue, is_vtt: bool, counts: Counter[str]) -> Iterator[Said]:
    """Yields what each voice says in a cue, without tags."""
    text, speaker = "\n".join(cue.lines), cue.speaker
    pieces = _VOICE.split(text) if is_vtt else [text]
    for number, piece in enumerate(pieces):
        if number % 2:  # the name, or None at the end of a voice
            speaker = unescape(piece).strip() or None if piece is not None else None
            continue
        plain, tags = _plain(piece)
        counts["tags"] += tags
        if not is_blank(plain):
            yield Said(plain, speaker, cue.start, cue.end)


def _plain(text: str) -> tuple[str, int]:
    """Returns a text without tags, and their number; `<br>` and the like end a line."""
    plain, tags = _TAG.subn(lambda match: "\n" if match["line"] else "", text)
    return unescape(plain), tags


def _with_names(said: list[Said]) -> list[Said]:
    """Takes the names out of the texts, if most cues begin with one, or each has one that returns as its first line."""
    texts = [each.text.strip() for each in said]
    form = form_of_names(texts)
    if not most_are_there([name_before(text, form) for text in texts]):
        firsts = [text.partition("\n")[0] for text in texts if "\n" in text]
        if len(firsts) < max(len(said), 2) or 2 * len({*firsts}) > len(firsts) or not all(map(is_short, firsts)):
            return said
        pairs = zip(said, firsts, texts, strict=True)
        return [replace(each, speaker=first, text=text.partition("\n")[2]) for each, first, text in pairs]
    turns, speaker = list[Said](), None
    for each in said:
        for number, line in enumerate(each.text.split("\n")):
            named = name_before(line.strip(), form)
            if named is not None:
                speaker, _, line = named
            elif not number and may_begin_with_name(line.strip()):
                speaker = None  # unknown, but not the one before
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
        if each.speaker == last.speaker and is_near and not pattern(_END).search(last.text):
            last = replace(last, text=join_pieces((last.text, each.text)), end=each.end)
        else:
            yield last
            last = each
    if last is not None:
        yield last
