"""Subtitles, SubRip (`.srt`) and WebVTT (`.vtt`): cues of a few words, joined to turns.

Speakers are voices, `<v Name>`, or `Name: ` where most cues begin so and the names return. Cues of one speaker are
joined up to the end of a sentence, over pauses of `PAUSE` seconds at most. Captions that roll show each line twice, of
which the second is dropped: only cues of two lines or more roll.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from hat_fairseq.data.formats import TIMING
from hat_fairseq.data.language import join_pieces, pattern
from hat_fairseq.data.speakers import Said, known_names, name_before, seconds
from hat_fairseq.data.text import is_blank, unescape

PAUSE = 3.0  # seconds
LONGEST = 400  # characters of cues that are joined, where no sentence ends

_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s++([^<>]*)>|</v>")
_SETTINGS = re.compile(r"(?:[^\W\d]\w*:\S+(?:\s+|$))*")  # such as `align:start position:0%`, `X1:40 X2:600`
_NAMES = "c|v|lang|ruby|rt|i|b|u|s|em|strong|font|span|small|big|sub|sup|mark|del|ins|strike|a|(?P<line>br|p|div)"
_TAG = re.compile(rf"</?(?:{_NAMES})(?:[.\s/][^<>]*)?>|<\d[\d:.]*>|\{{\\[^{{}}\n]*\}}", re.IGNORECASE)
_BLOCK = re.compile(r"(NOTE|STYLE|REGION)(?:\s|$)")
_DATA = re.compile(r"""\s*(\{\s*".*\}|\S+#xywh=\S*)\s*""", re.DOTALL)  # of programs, in place of what people say
_END = r"""[\p{Sentence_Terminal}…]['"\p{Pe}\p{Pf}\p{Pi}]*+$"""  # for `pattern`
_BLOCKS = {"NOTE": "notes", "STYLE": "styles", "REGION": "regions"}


@dataclass(frozen=True)
class _Cue:
    start: float
    end: float
    lines: list[str]  # that show something
    height: int  # its lines with those of white space, which captions that roll have


def turns_of_cues(lines: list[str], is_vtt: bool, counts: Counter[str]) -> list[Said]:
    """Returns the turns of the lines of a file; counts what is dropped or joined.

    ValueError for cues that hold data of programs, such as JSON.
    """
    cues = list(_cues(lines, is_vtt, counts))
    if cues and all(_DATA.fullmatch("\n".join(cue.lines)) for cue in cues):
        raise ValueError(
            f"the cues are data of programs, {cues[0].lines[0]!r:.60}, and not what is said (as in the metadata of a "
            "meeting of Teams): save the transcript itself"
        )
    voices = [list(_voices(cue, is_vtt, counts)) for cue in _without_repeated(cues, counts)]
    counts["cues without text"] += sum(not each for each in voices)
    said = [each for voice in voices for each in voice]
    if not any(each.speaker for each in said):
        said = _with_names(said)
    joined = list(_joined([replace(each, text=join_pieces(each.text.split("\n"))) for each in said]))
    counts["cues joined to turns"] = len(said) - len(joined)
    return joined


def _cues(lines: list[str], is_vtt: bool, counts: Counter[str]) -> Iterator[_Cue]:
    """Yields the cues; counts everything else.

    In WebVTT a blank line below the text ends a cue. In SubRip the next cue does, because people leave blank lines in
    its text.
    """
    timings = [(number, match) for number, line in enumerate(lines) if (match := TIMING.fullmatch(line))]
    begins = [*(_begin_of_cue(lines, number, is_vtt) for number, _ in timings), len(lines)]
    _count_outside(lines[: begins[0]], is_vtt, counts)
    for (number, timing), (begin, following) in zip(timings, pairwise(begins), strict=True):
        counts["cue identifiers"] += begin < number
        beside = (timing[3] or "").strip()
        is_text = bool(beside) and _SETTINGS.fullmatch(beside) is None
        counts["cue settings"] += bool(beside) and not is_text
        first = end = number + 1
        while first < following and is_blank(lines[first]):  # as Teams and YouTube write them
            first += 1
        if first < following and not (is_vtt and (_BLOCK.match(lines[first]) or is_text)):
            end = first
        while end < following and not (is_vtt and is_blank(lines[end])):
            end += 1
        _count_outside(lines[end:following], is_vtt, counts)
        inside = [*([beside] if is_text else []), *(line for line in lines[number + 1 : end] if not is_blank(line))]
        height = len(inside)
        if is_vtt:  # YouTube shows a line of white space above or below, and an empty one ends the cue
            below = end + 1 < len(lines) and not lines[end + 1] and bool(lines[end])
            height += below + sum(bool(line) for line in lines[number + 1 : first])
        yield _Cue(seconds(timing[1]), seconds(timing[2]), [line.strip() for line in inside], height)


def _begin_of_cue(lines: list[str], number: int, is_vtt: bool) -> int:
    """The line where the cue with a timing in line `number` begins: that of its identifier, if it has one."""
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
    repeats, last, height = list[bool](), None, 0
    for cue in cues:
        said = [(_VOICE.findall(line), text) for line in cue.lines if (text := _plain(line)[0].strip())]
        repeats.append(bool(said) and said[0] == last and max(cue.height, height) > 1)
        last, height = (said[-1], cue.height) if said else (last, height)
    if 3 * sum(repeats) <= len(cues):
        return cues
    counts["lines that repeat the one before"] += sum(repeats)
    visible = [[line for line in cue.lines if _plain(line)[0].strip()] for cue in cues]
    rolled = [replace(cue, lines=lines[repeat:]) for cue, lines, repeat in zip(cues, visible, repeats, strict=True)]
    return [cue for cue in rolled if cue.lines]


def _voices(cue: _Cue, is_vtt: bool, counts: Counter[str]) -> Iterator[Said]:
    """Yields what each voice says in a cue, without tags."""
    text, speaker = "\n".join(cue.lines), None
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
    """Takes the names out of the lines, if most cues begin with one, and they return."""
    lines = [[(name_before(line.strip()), line.strip()) for line in each.text.strip().split("\n")] for each in said]
    names = [name.name for of_cue in lines for name, _ in of_cue if name]
    known = known_names(names) if 2 * sum(of_cue[0][0] is not None for of_cue in lines) > len(said) else set()
    if not known:
        return said
    turns, speaker = list[tuple[Said, list[str]]](), None
    for each, of_cue in zip(said, lines, strict=True):
        for number, (name, line) in enumerate(of_cue):
            if number and (name is None or name.name not in known):
                turns[-1][1].append(line)
                continue
            if name:  # one who is not known is another one than before
                speaker, line = (name.name, line[name.length :]) if name.name in known else (None, line)
            turns.append((replace(each, speaker=speaker), [line]))
    return [replace(each, text="\n".join(texts)) for each, texts in turns if not all(map(is_blank, texts))]


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
