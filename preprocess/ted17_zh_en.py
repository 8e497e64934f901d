"""TED talks of IWSLT 2017, Chinese-English, whole talks (Rohde et al. 2021, section 4.2).

`--root` is a folder with the unpacked archives of WIT3 (https://wit3.fbk.eu, mirrored at
https://github.com/hlt-mt/WIT3 and https://huggingface.co/datasets/IWSLT/iwslt2017), each file where you like in it:

2017-01-trnted `zh-en.tgz`
    `train.tags.zh-en.zh` and `train.tags.zh-en.en`; `IWSLT17.TED.dev2010.zh-en.zh.xml` with `...zh-en.en.xml`,
    and likewise for tst2010 to tst2015
2017-01-ted-test `zh-en.tgz` and `en-zh.tgz`
    `IWSLT17.TED.tst2016.zh-en.zh.xml` with `IWSLT17.TED.tst2016.en-zh.en.xml`, and likewise for tst2017: each
    archive has the side that was to be translated

The paper: training data of IWSLT17, "the test and validation data prior to 2016" for validation (dev2010 and tst2010 to
tst2015), TED17 and TED16 for testing. `test` is tst2017 (12 talks, 1,459 segments), `test1` is tst2016 (13 talks,
1,156 segments). Talk ids join the languages. Licence of the talks: CC BY-NC-ND 4.0.

Training files have the lines `<url>`, `<keywords>`, `<speaker>`, `<talkid>`, `<title>`, `<description>` and others
before a talk, between `<doc>` and `</doc>` or not, names of reviewers and translators after it, one segment on each
line between them. Dev and test sets are as `.sgm` (`bitext.py`), with the same descriptions. The attribute `docid` may
differ between the languages of a talk; `<talkid>` does not.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bitext import Side, join, read_sides
from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.text import is_blank, unescape
from release import find_one, release_folder

SETS = {
    "valid": ("dev2010", "tst2010", "tst2011", "tst2012", "tst2013", "tst2014", "tst2015"),
    "test": ("tst2017",),
    "test1": ("tst2016",),
}
SPLITS = ("train", *SETS)
DEFAULTS = {
    "source_language": "zh",
    "target_language": "en",
    "aligned": True,
    "target_separator": True,
    "on_misaligned": "merge",  # a line that is empty in one language; in a talk, nothing should go missing
}
RELEASE = {"train": (1906,), "valid": (97,), "test": (12,), "test1": (13,)}
PAPER = {
    "documents": {"train": "1906", "valid": "97", "test": "12"},
    "source_words": "3775",
    "source_tokens": "2680",
    "target_words": "2107",
    "target_tokens": "2590",
}


DESCRIPTIONS = ("url", "keywords", "speaker", "talkid", "title", "description", "reviewer", "translator")
_TALK_ID = re.compile(r"\s*<talkid>\s*([^<]*?)\s*</talkid>\s*")
_DESCRIPTION = re.compile(rf"\s*<(?:/?doc|{'|'.join(DESCRIPTIONS)})\b")


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the talks of a split."""
    folder = release_folder(root, "the unpacked archives 2017-01-trnted and 2017-01-ted-test of WIT3, zh-en and en-zh")
    if split == "train":
        source, target = (find_one(folder, f"train.tags.zh-en.{language}") for language in ("zh", "en"))
        yield from join(read_training(source, counts), read_training(target, Counter()), counts)
        return
    for name in SETS[split]:
        source = find_one(folder, f"IWSLT17.TED.{name}.zh-en.zh.xml")
        target = find_one(folder, f"IWSLT17.TED.{name}.zh-en.en.xml", f"IWSLT17.TED.{name}.en-zh.en.xml")
        sides = [read_sides(path, DESCRIPTIONS, "talkid") for path in (source, target)]
        yield from join(sides[0], sides[1], counts, f"{name}-")


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
        elif not is_blank(line):
            raise ValueError(f"{path}:{number}: text before the first <talkid>: {line.strip():.60}")
    if side is None:
        raise ValueError(f"{path}: no <talkid> in it; take the file with tags (train.tags...)")
    yield side
