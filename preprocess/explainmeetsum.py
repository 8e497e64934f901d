"""ExplainMeetSum (Kim et al. 2023): the lines of QMSum's meetings that support the answer to each question.

In `explainmeetsum/` of a `--root`, `train.jsonl` and `val.jsonl`, also compressed, have a meeting on each line:
`{"meeting": "ES2004a", "turns": 266, "questions": [{"query": "...", "evidence": [[12, 0], [13, 2]]}]}`, where `turns`
is their number in QMSum, and the evidence is pairs of a turn and a sentence in it, both from 0. Licence: MIT.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from hat_fairseq.data.compression import ENDINGS
from hat_fairseq.data.files import Fields, read_json_lines
from hat_fairseq.units.evidence import Evidence

FOLDER = "explainmeetsum"
NAMES = {"train": "train", "valid": "val", "test": "test"}
CONTENT = f"{FOLDER}/{{train,val}}.jsonl, if the lines that support an answer shall be read"


def read_meetings(root: Path | None, split: str) -> dict[str, Fields]:
    """Read the meetings of a split by their names; none if there is no file for it."""
    paths = [] if root is None else [root / FOLDER / f"{NAMES[split]}.jsonl{ending}" for ending in ("", *ENDINGS)]
    meetings: dict[str, Fields] = {}
    for path in filter(Path.is_file, paths):
        for number, record in read_json_lines(path):
            meeting = Fields(record, f"{path}:{number}")
            if (name := meeting.text("meeting")) in meetings:
                raise meeting.error(f"the meeting {name} is there for the second time")
            meetings[name] = meeting
    return meetings


def with_lines(record: Evidence, meetings: dict[str, Fields], counts: Counter[str]) -> Evidence:
    """Add the lines to a record, if its meeting and all of its questions are there; count both cases."""
    if not meetings:
        return record
    meeting = meetings.get(record.id)
    lines = None if meeting is None else _lines(record, meeting)
    counts["meetings_with_lines" if lines else "meetings_without_lines"] += 1
    return replace(record, lines=lines)


def _lines(record: Evidence, meeting: Fields) -> tuple[tuple[int, ...], ...] | None:
    """Return the numbers of the turns for each question; None if a question is not there."""
    turns = len(record.turns or ())
    if meeting.get("turns", int) != turns:
        raise meeting.error(f"it has {meeting.get('turns', int)} turns, and {record.name} has {turns}")
    known = {each.text("query").strip(): _turns(each, turns) for each in meeting.objects("questions")}
    numbers = [known.get(question.strip()) for question in record.questions]
    return None if None in numbers else tuple(each for each in numbers if each is not None)


def _turns(question: Fields, turns: int) -> tuple[int, ...]:
    numbers = set[int]()
    for pair in question.items("evidence", list):
        if len(pair) != 2 or type(pair[0]) is not int or not 0 <= pair[0] < turns:
            raise question.error(
                f"evidence is pairs of a turn, from 0 to {turns - 1}, and a sentence, not {pair!r:.60}"
            )
        numbers.add(pair[0])
    return tuple(sorted(numbers))
