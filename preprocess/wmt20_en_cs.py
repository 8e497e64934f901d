"""WMT20 news, English-Czech, whole documents (Rohde et al. 2021, section 4.2).

`--root` is a folder with the files below, each where you like in it, also `.gz`; from https://www.statmt.org/wmt20/

train   `europarl-v10.cs-en.tsv` (statmt.org/europarl), `news-commentary-v15.cs-en.tsv` (data.statmt.org) and
        `RAPID_2019.cs-en.xlf` (data.statmt.org/wmt20/translation-task/rapid)
valid   newstest2018, 2,983 segments: from `dev.tgz`; 107 documents (Table 2 of the paper)
test    newstest2020, 130 documents, 1,418 segments: from `test.tgz`
test1   newstest2019: from `dev.tgz`

As with German, the paper does not say which corpora its 42K training documents are. Licence: the test sets are free for
research; for the corpora see their pages. `wmt20_en_de.py` has the forms of the files.
"""

from functools import partial

import wmt20_en_de as en_de

SPLITS = en_de.SPLITS
DEFAULTS = {**en_de.DEFAULTS, "target_language": "cs"}
RELEASE = {"valid": (107,), "test": (130,)}
PAPER = {
    "documents": {"train": "42K", "valid": "107", "test": "130"},
    "source_words": "738",
    "source_tokens": "903",
    "target_words": "641",
    "target_tokens": "862",
}

read = partial(en_de.read_news, "cs")
