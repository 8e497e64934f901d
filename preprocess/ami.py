"""AMI meetings: transcripts with speakers and roles, abstractive summaries (Carletta et al. 2006).

Carried in ``ami_data/`` (CC BY 4.0, see ATTRIBUTION.txt there), so ``--root`` is not needed. A root of one's own must
hold ``ami.train.jsonl.gz``, ``ami.dev.jsonl.gz`` (our ``valid``) and ``ami.test.jsonl.gz`` in the same form: 97, 20 and
20 meetings with 28,388, 5,783 and 5,393 turns.

As in Rohde et al. 2021, section 4.1: a turn is a sentence, its role (PM project manager, ME marketing expert, UI user
interface designer, ID industrial designer) goes before it and has a segment embedding, and a small lexicon "filters out
meaningless words". The paper does not print its lexicon; ours is ``FILLERS``. HMNet's form has lost most fillers
already, and the commas and full stops that stood around them are left over: these go too. All of it is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hat_fairseq.data.document import Document, read_documents

SPLITS = ("train", "valid", "test")
DEFAULTS = {
    "bpe": "learned",
    "num_codes": 4000,
    "splitter": "given",
    "roles": True,
    "role_in_text": True,
    "max_source_tokens": 3072,
    "max_target_tokens": 1024,
    "long_source": "truncate",
}
FILES = {"train": "ami.train.jsonl.gz", "valid": "ami.dev.jsonl.gz", "test": "ami.test.jsonl.gz"}

# Hesitations and sounds of agreement; "Mm - hmm ." is three of these and a full stop.
FILLERS = frozenset(["ah", "er", "erm", "ha", "hm", "hmm", "hu", "huh", "hum", "mm", "mmm", "oh", "uh", "uhm", "um"])
PAUSES = frozenset({",", "-"})
ENDS = frozenset({".", "..", "...", "?", "!"})


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the meetings of a split with the meaningless words of each turn left out."""
    folder = root or Path(__file__).with_name("ami_data")
    path = folder / FILES[split]
    if not path.is_file():
        raise ValueError(f"{path} is missing; an AMI root holds {', '.join(FILES.values())}")
    for meeting in read_documents(path):
        turns = [filter_words(turn.split(), counts) for turn in meeting.sentences or ()]
        kept = [index for index, words in enumerate(turns) if any(map(_is_word, words))]
        counts["turns_without_words_dropped"] += len(turns) - len(kept)
        yield replace(
            meeting,
            sentences=tuple(" ".join(turns[index]) for index in kept),
            roles=tuple(meeting.roles[index] for index in kept) if meeting.roles else None,
        )


def filter_words(words: list[str], counts: Counter[str]) -> list[str]:
    """Leave out fillers, and punctuation that then stands at the start of the turn or behind other punctuation."""
    kept: list[str] = []
    for word in words:
        if word.lower() in FILLERS:
            counts["fillers_removed"] += 1
        elif word not in PAUSES | ENDS or (kept and kept[-1] not in PAUSES | ENDS):
            kept.append(word)
        else:
            counts["stray_punctuation_removed"] += 1
            if kept and kept[-1] in PAUSES and word in ENDS:  # "right , ." ends with the full stop
                kept[-1] = word
    return kept


def _is_word(word: str) -> bool:
    return any(map(str.isalnum, word))
