"""TED talks as released for IWSLT 2017 (WIT3): tagged training files; dev and test sets in XML that is not well-formed.

`train.tags.zh-en.zh` and `.en`: lines `<url>`, `<keywords>`, `<speaker>`, `<talkid>`, `<title>`,
`<description>` and others before a talk, between `<doc>` and `</doc>` or not, names of reviewers and translators
behind it, one segment on each line between them. `IWSLT17.TED.*.xml`: as `wmt_sgm`, with the same descriptions. The
attribute `docid` may differ between the languages of a talk; `<talkid>` does not.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.formats.bitext import Side
from hat_fairseq.data.formats.markup import unescape
from hat_fairseq.data.formats.wmt_sgm import read_sides

DESCRIPTIONS = ("url", "keywords", "speaker", "talkid", "title", "description", "reviewer", "translator")
_TALK_ID = re.compile(r"\s*<talkid>\s*([^<]*?)\s*</talkid>\s*")
_DESCRIPTION = re.compile(rf"\s*<(?:/?doc|{'|'.join(DESCRIPTIONS)})\b")


def read_set(path: Path) -> Iterator[Side]:
    """Yield the talks of a dev or test set in one language; ValueError as `wmt_sgm.read_sides`."""
    return read_sides(path, DESCRIPTIONS, "talkid")


def read_training(path: Path, counts: Counter[str]) -> Iterator[Side]:
    """Yield the talks of a training file; titles and descriptions, which dev and test sets lack too, are counted only.

    Raises:
        ValueError: a segment that belongs to no talk, a file without talks; with file and line.
    """
    side: Side | None = None
    for number, line in read_lines(path):
        if (talk := _TALK_ID.fullmatch(line)) is not None:
            if side is not None:
                yield side
            if not talk[1]:
                raise ValueError(f"{path}:{number}: a talk without an id")
            side = Side(path, number, talk[1], number)
        elif _DESCRIPTION.match(line):
            counts["titles_and_descriptions_left_out"] += bool(re.match(r"\s*<(?:title|description)\b", line))
        elif side is not None:
            side.segments.append(unescape(line.removesuffix("\r")))
            side.last = number
        elif line.strip():
            raise ValueError(f"{path}:{number}: text before the first <talkid>: {line.strip():.60}")
    if side is None:
        raise ValueError(f"{path}: no <talkid> in it; take the file with tags (train.tags...)")
    yield side
