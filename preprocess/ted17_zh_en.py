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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.formats.bitext import join
from hat_fairseq.data.formats.iwslt_xml import read_set, read_training
from hat_fairseq.data.formats.release import find_one, release_folder
from hat_fairseq.data.record import Record

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


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the talks of a split."""
    folder = release_folder(root, "the unpacked archives 2017-01-trnted and 2017-01-ted-test of WIT3, zh-en and en-zh")
    if split == "train":
        source, target = (find_one(folder, f"train.tags.zh-en.{language}") for language in ("zh", "en"))
        yield from join(read_training(source, counts), read_training(target, Counter()))
        return
    for name in SETS[split]:
        source = find_one(folder, f"IWSLT17.TED.{name}.zh-en.zh.xml")
        target = find_one(folder, f"IWSLT17.TED.{name}.zh-en.en.xml", f"IWSLT17.TED.{name}.en-zh.en.xml")
        yield from join(read_set(source), read_set(target), f"{name}-")
