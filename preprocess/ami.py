"""AMI meetings: transcripts with speakers and roles, abstractive summaries (Carletta et al. 2006).

Carried in `ami_data/` (CC BY 4.0, see ATTRIBUTION.txt there), so `--root` is not needed. A root of one's own must
hold `ami.train.jsonl.gz`, `ami.dev.jsonl.gz` (our `valid`) and `ami.test.jsonl.gz` in the same form: 97, 20 and
20 meetings with 28,388, 5,783 and 5,393 turns, the split of Shang et al. 2018. Rohde et al. follow that split too, but
print 100, 17 and 20.

As in Rohde et al. 2021, section 4.1: a turn is a sentence, its role (PM project manager, ME marketing expert, UI user
interface designer, ID industrial designer) goes before it and has a segment embedding, and "we first built a small
lexicon that filters out meaningless words". The paper does not print its lexicon; ours is `FILLERS`. HMNet's form of
AMI and ICSI has lost most fillers already, and the commas and full stops that stood around them are left over: these go
too. All of it is counted. The paper does not give its lengths for meetings; the recipe has those of its other long
documents.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hat_fairseq.data.kinds import Document
from hat_fairseq.data.records_json import read_records
from release import release_file

DEFAULTS = {"splitter": "given", "roles": True}
RELEASE = {"train": (97,), "valid": (20,), "test": (20,)}
PAPER = {
    "documents": {"train": "100", "valid": "17", "test": "20"},
    "source_words": "3156",
    "source_tokens": "4081",
    "target_words": "280",
    "target_tokens": "321",
}
FILES = {"train": "train.jsonl.gz", "valid": "dev.jsonl.gz", "test": "test.jsonl.gz"}

# Hesitations and sounds of agreement; "Mm - hmm ." is three of these and a full stop.
FILLERS = frozenset(["ah", "er", "erm", "ha", "hm", "hmm", "hu", "huh", "hum", "mm", "mmm", "oh", "uh", "uhm", "um"])
PAUSES = frozenset({",", "-"})
ENDS = frozenset({".", "..", "...", "?", "!"})


def read_meetings(corpus: str, split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the meetings of a split; turns without a word in them are dropped and counted.

    `root`: holds `{corpus}.train.jsonl.gz`, `{corpus}.dev.jsonl.gz` (our `valid`) and `{corpus}.test.jsonl.gz`;
    None for the meetings of this repository. ValueError with file and line for a missing file, or no such meetings.
    """
    folder = root or Path(__file__).with_name(f"{corpus}_data")
    content = ", ".join(f"{corpus}.{name}" for name in FILES.values())
    for meeting in read_records(release_file(folder / f"{corpus}.{FILES[split]}", content)):
        assert isinstance(meeting, Document)  # the kind that read_records reads by default
        turns = [filter_words(turn.split(), counts) for turn in meeting.elements or ()]
        worded = [index for index, words in enumerate(turns) if any(map(str.isalnum, "".join(words)))]
        counts["turns_without_words_dropped"] += len(turns) - len(worded)
        roles = tuple(meeting.roles[index] for index in worded) if meeting.roles else None
        yield meeting.with_sentences(tuple(" ".join(turns[index]) for index in worded), roles, meeting.target)


def filter_words(words: list[str], counts: Counter[str]) -> list[str]:
    """Leave out fillers, and punctuation that then stands at the start of the turn or after other punctuation."""
    rest: list[str] = []
    for word in words:
        if word.lower() in FILLERS:
            counts["fillers_removed"] += 1
        elif word not in PAUSES | ENDS or (rest and rest[-1] not in PAUSES | ENDS):
            rest.append(word)
        else:
            counts["stray_punctuation_removed"] += 1
            if rest and rest[-1] in PAUSES and word in ENDS:  # "right , ." ends with the full stop
                rest[-1] = word
    return rest


read = partial(read_meetings, "ami")
