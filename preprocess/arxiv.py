"""arXiv articles and their abstracts (Cohan et al. 2018).

`--root` is the folder `arxiv-dataset` of the release at https://github.com/armancohan/long-summarization (files at
Google Drive, mirrored at https://archive.org/details/armancohan-long-summarization-paper-code): `train.txt`,
`val.txt` and `test.txt` with 203,037, 6,436 and 6,440 articles, one JSON object a line
(`pubmed.py` says which). The release states no licence.

Articles and abstracts come in sentences, lower-cased, formulas as `@xmath`, so `--splitter` is `given`.
`--on-empty drop`, the default here, drops and counts articles without text.
"""

from functools import partial

import pubmed

DEFAULTS = pubmed.DEFAULTS
RELEASE = {"train": (203037,), "valid": (6436,), "test": (6440,)}
PAPER = {
    "documents": {"train": "203K", "valid": "6.4K", "test": "6.4K"},
    "source_words": "6055",
    "source_tokens": "8613",
    "target_words": "280",
    "target_tokens": "362",
}

read = partial(pubmed.read_articles, "arxiv-dataset")
