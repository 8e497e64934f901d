"""ICSI meetings: transcripts with speakers and roles, abstractive summaries (Janin et al. 2003).

Carried in `icsi_data/` (CC BY 4.0, see ATTRIBUTION.txt there), so `--root` is not needed. A root of one's own must
hold `icsi.train.jsonl.gz`, `icsi.dev.jsonl.gz` (our `valid`) and `icsi.test.jsonl.gz` in the same form: 43, 10
and 6 meetings with 21,115, 3,669 and 2,599 turns, the split of Shang et al. 2018 and of Rohde et al. 2021.

As with AMI, a turn is a sentence, its role goes before it and has a segment embedding, and meaningless words are
filtered out (`ami.py`). The roles are what the corpus says of a speaker's standing:
Grad, PhD, Postdoc, Professor, Undergrad. Several speakers of a meeting have the same one. Lengths as for AMI; a meeting
has 11,900 tokens on average, so three quarters of it are cut off.
"""

from functools import partial

import ami

DEFAULTS = ami.DEFAULTS
RELEASE = {"train": (43,), "valid": (10,), "test": (6,)}
PAPER = {
    "documents": {"train": "43", "valid": "10", "test": "6"},
    "source_words": "6228",
    "source_tokens": "7913",
    "target_words": "466",
    "target_tokens": "576",
}

read = partial(ami.read_meetings, "icsi")
