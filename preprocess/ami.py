"""AMI meetings: transcripts with speakers and roles, abstractive summaries (Carletta et al. 2006).

Carried in `ami_data/` (CC BY 4.0, see ATTRIBUTION.txt there), so `--root` is not needed. A root of one's own must
hold `ami.train.jsonl.gz`, `ami.dev.jsonl.gz` (our `valid`) and `ami.test.jsonl.gz` in the same form: 97, 20 and
20 meetings with 28,388, 5,783 and 5,393 turns, the split of Shang et al. 2018. Rohde et al. follow that split too, but
print 100, 17 and 20.

As in Rohde et al. 2021, section 4.1: a turn is a sentence, its role (PM project manager, ME marketing expert, UI user
interface designer, ID industrial designer) goes before it and has a segment embedding, and meaningless words are
filtered out (`meetings.py`). The paper does not give its lengths for meetings; the
recipe has those of its other long documents.
"""

from functools import partial

import meetings

DEFAULTS = meetings.DEFAULTS
RELEASE = {"train": (97,), "valid": (20,), "test": (20,)}
PAPER = {
    "documents": {"train": "100", "valid": "17", "test": "20"},
    "source_words": "3156",
    "source_tokens": "4081",
    "target_words": "280",
    "target_tokens": "321",
}

read = partial(meetings.read_meetings, "ami")
