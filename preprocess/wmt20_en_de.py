"""WMT20 news, English-German, whole documents (Rohde et al. 2021, section 4.2).

`--root` is a folder that contains the files below, at any depth, plain or `.gz`, from https://www.statmt.org/wmt20/

train   `europarl-v10.de-en.tsv` (statmt.org/europarl), `news-commentary-v15.de-en.tsv` (data.statmt.org) and
        `RAPID_2019.de-en.xlf` (data.statmt.org/wmt20/translation-task/rapid)
valid   newstest2018, 122 documents, 2,998 segments: from `dev.tgz`
test    newstest2020, 130 documents, 1,418 segments: from `test.tgz`
test1   newstest2019: from `dev.tgz`

The paper: "We use the WMT18 test data for validation and test the models on both the WMT19 and WMT20 test data". Its
Table 2 counts 363K training documents and does not say of which corpora; these three are the ones that were released
with document boundaries, and it is not known whether they give that number. Licence: the test sets are free for
research; for the corpora see their pages.
"""

from functools import partial

import wmt

SPLITS = wmt.SPLITS
DEFAULTS = {**wmt.DEFAULTS, "target_language": "de"}
RELEASE = {"valid": (122,), "test": (130,)}
PAPER = {
    "documents": {"train": "363K", "valid": "122", "test": "130"},
    "source_words": "354",
    "source_tokens": "446",
    "target_words": "331",
    "target_tokens": "460",
}

read = partial(wmt.read_news, "de")
