"""A task of labels as somebody brings it: 300 documents of 1,300 words, of which two sentences decide the label.

The filler is real English, sentences of Python's own reference (`pydoc_data.topics`), drawn anew for each document. The
two sentences that decide stand somewhere beyond word 560, where a model of 512 tokens does not read. They are made of
18 templates, six for each label, whose words are mostly the same for all labels. All is drawn with one seed.

    python examples/labels_task.py labels_task        writes train.jsonl, valid.jsonl and test.jsonl
"""

import random
import re
import sys
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from hat_fairseq.data.files import json_lines
from hat_fairseq.data.outputs import atomic_directory

SPLITS = {"train": 200, "valid": 40, "test": 60}
WORDS, DECIDED_AFTER, DECIDING = 1300, 560, 2
TEMPLATES = {
    "approved": (
        "After a long debate the {body} gave its consent to {thing}.",
        "The {body} finally said yes to {thing}.",
        "Work on {thing} may begin, because the {body} has no objection left.",
        "A clear majority of the {body} was in favour of {thing}.",
        "The {body} signed the papers for {thing} {day}.",
        "Nobody in the {body} voted against {thing}.",
    ),
    "rejected": (
        "After a long debate the {body} refused its consent to {thing}.",
        "The {body} finally said no to {thing}.",
        "Work on {thing} will never begin, because the {body} objects to it.",
        "A clear majority of the {body} was opposed to {thing}.",
        "The {body} threw away the papers for {thing} {day}.",
        "Nobody in the {body} voted for {thing}.",
    ),
    "postponed": (
        "After a long debate the {body} wants to hear more about {thing} before it votes.",
        "The {body} will say yes or no to {thing} another time.",
        "Work on {thing} has to wait until the {body} meets again.",
        "A clear majority of the {body} asked for more time to think about {thing}.",
        "The {body} left the papers for {thing} on the table {day}.",
        "Nobody in the {body} was ready to vote on {thing}.",
    ),
}
SLOTS = {
    "body": ("council", "committee", "board", "assembly", "commission", "parish"),
    "thing": ("the bridge", "the new school", "the harbour", "the tram line", "the stadium", "the library", "the dam"),
    "day": ("on Monday", "on Tuesday", "on Thursday", "on Friday", "last week", "yesterday"),
}
SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z])")
PROSE = re.compile(r"[A-Z][A-Za-z ,;:'()-]{30,240}\.")


def filler() -> list[str]:
    """Returns the sentences of Python's reference that are prose, each once."""
    texts = (re.sub(r"[*`\"]|\s+", lambda found: " " if found[0].isspace() else "", text) for text in topics.values())
    return sorted({each for text in texts for each in SENTENCE.split(text) if PROSE.fullmatch(each)})


def document(draw: random.Random, sentences: list[str], label: str) -> list[str]:
    """Draws the sentences of a document."""
    said, words = list[str](), 0
    while words < WORDS:
        said.append(draw.choice(sentences))
        words += len(said[-1].split())
    before, first = 0, 0
    while before < DECIDED_AFTER:
        before += len(said[first].split())
        first += 1
    for place in sorted(draw.sample(range(first, len(said) + 1), DECIDING), reverse=True):
        slots = {name: draw.choice(values) for name, values in SLOTS.items()}
        said.insert(place, draw.choice(TEMPLATES[label]).format(**slots))
    return said


def records(split: str, count: int) -> list[dict[str, Any]]:
    """Draws so many documents of a split."""
    draw, sentences = random.Random(f"labels {split}"), filler()
    rows = []
    for number in range(1, count + 1):
        label = draw.choice(list(TEMPLATES))
        said = document(draw, sentences, label)
        rows.append({"id": f"{split}-{number}", "text": " ".join(said), "label": label})
    return rows


def write(folder: Path) -> None:
    """Writes the splits into a new folder; ValueError if it exists."""
    with atomic_directory(folder) as made:
        for split, count in SPLITS.items():
            (made / f"{split}.jsonl").write_bytes(b"".join(json_lines(records(split, count))))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
