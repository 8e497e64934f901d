"""SAMSum: chats written by linguists and their summaries (Gliwa et al. 2019).

`--root` is a folder with `train`, `val` (or `validation`) and `test`, 14,732, 818 and 819 chats with `id`,
`dialogue` and `summary`: the JSON lists out of `corpus.7z` (https://arxiv.org/abs/1911.12237, ancillary files;
2,944,100 bytes), or the same as `.jsonl` or `.csv` (also `.gz`). One training chat is empty; `--on-empty drop`,
the default here, drops and counts it, and copies without it are taken as well. Licence: CC BY-NC-ND 4.0.

A line of a dialogue is a turn, `Amanda: I baked cookies.`: as in Rohde et al. 2021, section 4.1, the name stays
before its utterance, and both share a segment embedding. Emoticons and `<file_photo>` stay too. A line that has no
name before a colon goes on with the turn before it.

Names are as many as chats, and a test chat's names may be new, so the segments are not names but `S1`, `S2`... in
the order in which the speakers of a chat appear. 98 % of the validation and test chats have at most four speakers; the
eighth and all later ones share `S8`. The paper does not give its lengths for chats: ours are those of CNN/DailyMail,
whose model it starts from.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.data.text import is_blank
from release import read_table, release_folder

DEFAULTS = {"splitter": "given", "roles": True, "on_empty": "drop"}
RELEASE = {"train": (14732, 14731), "valid": (818,), "test": (819,)}
PAPER = {
    "documents": {"train": "14.7K", "valid": "818", "test": "819"},
    "source_words": "94",
    "source_tokens": "147",
    "target_words": "20",
    "target_tokens": "26",
}
COLUMNS = ("id", "dialogue", "summary")
MOST_SPEAKERS = 8
LONGEST_NAME = 4  # words


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the chats of a split, one turn a sentence."""
    folder = release_folder(root, "train.json, val.json and test.json, out of corpus.7z")
    for where, row in read_table(folder, split, COLUMNS, counts):
        turns = split_turns(row["dialogue"], counts)
        yield record_from_json({"id": row["id"], "turns": turns, "summary": row["summary"]}, where)


def split_turns(dialogue: str, counts: Counter[str]) -> list[dict[str, str]]:
    """Split a dialogue into turns: `text`, name included, and `role`."""
    turns: list[dict[str, str]] = []
    role_of: dict[str | None, str] = {}
    for line in (line.strip() for line in dialogue.split("\n") if not is_blank(line)):
        name = speaker(line)
        if name is None:
            counts["lines_without_speaker"] += 1
        if name is None and turns:
            turns[-1]["text"] += f" {line}"
            continue
        if name not in role_of:
            counts["speakers_beyond_the_last_role"] += len(role_of) >= MOST_SPEAKERS
            role_of[name] = f"S{min(len(role_of) + 1, MOST_SPEAKERS)}"
        turns.append({"role": role_of[name], "text": line})
    return turns


def speaker(line: str) -> str | None:
    """Return the name before the first colon; None if none stands there, as in `:)`, `12:30` or `https://`."""
    name, colon, rest = line.partition(":")
    is_name = 0 < len(name.split()) <= LONGEST_NAME and any(map(str.isalpha, name)) and not set(name) & set("<>")
    return name.strip() if colon and is_name and not rest.startswith("//") else None
