"""PubMed articles and their abstracts (Cohan et al. 2018).

`--root` is the folder `pubmed-dataset` of the release at https://github.com/armancohan/long-summarization (files at
Google Drive, mirrored at https://archive.org/details/armancohan-long-summarization-paper-code): `train.txt`,
`val.txt` and `test.txt` with 119,924, 6,633 and 6,658 articles, one JSON object a line
(`cohan.py` says which). The release states no licence.

Articles and abstracts come in sentences, lower-cased, so `--splitter` is `given`. Some articles have no text;
`--on-empty drop`, the default here, drops and counts them. Rohde et al. 2021 print 112K training articles and do not
say which ones they left out.
"""

from functools import partial

import cohan

DEFAULTS = cohan.DEFAULTS
RELEASE = {"train": (119924,), "valid": (6633,), "test": (6658,)}
PAPER = {
    "documents": {"train": "112K", "valid": "6.6K", "test": "6.7K"},
    "source_words": "3016",
    "source_tokens": "4016",
    "target_words": "178",
    "target_tokens": "258",
}

read = partial(cohan.read_articles, "pubmed-dataset")
