"""QMSum: questions on meetings, and the turns that answer each of them (Zhong et al. 2021).

`--root` is a clone of https://github.com/Yale-LILY/QMSum, with the meetings in `data/ALL/{train,val,test}/*.json`, or
by their domain in `data/Product`, `data/Academic` and `data/Committee`: 162, 35 and 35 meetings with 1,095, 237 and 244
questions. One domain alone is a `--root`, too, with `--partial`. Licence: MIT; the meetings are those of AMI and ICSI
(CC BY 4.0) and of committees of the parliaments of Wales and Canada. `meta` of a record has the domain, `ami`, `icsi`
or `committee`: by the folder, and in `data/ALL` by the name of the meeting.

The questions are those of `specific_query_list`, which have a `relevant_text_span`: first and last turn, both
inclusive. A part of a span beyond the last turn is cut off. The general questions are about whole meetings, and are not
read. Tags such as {vocalsound} and {disfmarker} are left out. Spelling and spaces are those of the release, and a turn
that has no more text keeps its number. The few turns that support an answer are read from ExplainMeetSum, if the root
has it, too; see `explainmeetsum.py`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from explainmeetsum import CONTENT as CONTENT_OF_LINES
from explainmeetsum import read_meetings, with_lines
from hat_fairseq.data.files import Fields
from hat_fairseq.data.record import Turn
from hat_fairseq.units.evidence import Evidence
from release import release_folder

KIND = "evidence"
DEFAULTS = {"splitter": "given"}
RELEASE = {"train": (162,), "valid": (35,), "test": (35,)}
CONTENT = "data/ALL/{train,val,test}/*.json, or data/{Academic,Committee,Product}/{train,val,test}/*.json"
CONTENT_OF_ALL = f"{CONTENT}; and {CONTENT_OF_LINES}"
FOLDERS = {"train": "train", "valid": "val", "test": "test"}
DOMAINS = {"Academic": "icsi", "Committee": "committee", "Product": "ami"}
NAMES = {"ami": re.compile(r"[A-Z]{2}\d{4}[a-d]"), "icsi": re.compile(r"B[a-z]{2}\d{3}")}  # others are of committees
TAG = re.compile(r" ?\{\w+\}")


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Evidence]:
    """Yield the meetings of a split, each with its questions."""
    folder = release_folder(root, CONTENT_OF_ALL)
    lines = read_meetings(folder, split)
    for path in _files(folder, FOLDERS[split]):
        meeting = Fields.read(path)
        turns = tuple(_turn(turn, counts) for turn in meeting.objects("meeting_transcripts"))
        if not (queries := meeting.objects("specific_query_list")):
            counts["meetings_without_questions_skipped"] += 1
            continue
        record = Evidence(
            path.stem,
            questions=tuple(query.text("query") for query in queries),
            turns=turns,
            evidence=tuple(_evidence(query, len(turns), counts) for query in queries),
            meta={"domain": domain_of(path)},
            origin=str(path),
        )
        yield with_lines(record, lines, counts)


def domain_of(path: Path) -> str:
    """Return the domain of a meeting: that of its folder, or in a folder of all that of its name."""
    if folder := DOMAINS.get(path.parent.parent.name):
        return folder
    return next((domain for domain, name in NAMES.items() if name.fullmatch(path.stem)), DOMAINS["Committee"])


def _files(root: Path, name: str) -> list[Path]:
    """List the meetings of a split in the first of the forms that a release may have; ValueError if there are none."""
    data = root / "data"
    for folders in ([data / "ALL"], [data / domain for domain in DOMAINS], [root]):
        if files := sorted(path for folder in folders for path in (folder / name).glob("*.json")):
            return files
    raise ValueError(f"{root} has no meetings of {name}; it must hold {CONTENT}")


def _turn(turn: Fields, counts: Counter[str]) -> Turn:
    text, tags = TAG.subn("", turn.text("content"))
    counts["tags_removed"] += tags
    return Turn(text.strip(" ") if tags else text, speaker=turn.text("speaker"))


def _evidence(query: Fields, turns: int, counts: Counter[str]) -> tuple[int, ...]:
    """Return the numbers of the turns in the spans of a question."""
    numbers = set[int]()
    for span in query.items("relevant_text_span", list):
        if len(span) != 2 or not all(isinstance(end, str) and end.isdecimal() for end in span):
            raise query.error(f"a span is the numbers of two turns as strings, not {span!r:.60}")
        first, last = map(int, span)
        if last < first:
            raise query.error(f"the span {span} ends before it begins")
        counts["spans_beyond_the_last_turn_cut"] += last >= turns
        numbers.update(range(first, min(last + 1, turns)))
    return tuple(sorted(numbers))
