"""The data of the tutorials: 300 invented minutes of meetings, with all that a model can learn from them.

Each document has facts: what a group decides, when and where it meets again, who leads the work, and what it costs.
They stand in sentences of templates, between remarks without importance. All is drawn with one seed. Documents with
labels are longer, and of their own (`labels_task.py`).
"""

import random
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import json_lines
from hat_fairseq.data.outputs import atomic_directory

SPLITS = {"train": 240, "valid": 30, "test": 30}
PEOPLE = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Henry", "Ida", "Jonas")
PLACES = {
    "in the library": "in der Bibliothek",
    "in the old mill": "in der alten Mühle",
    "in the garden": "im Garten",
    "in the town hall": "im Rathaus",
    "in the school": "in der Schule",
    "at the harbour": "am Hafen",
    "at the station": "am Bahnhof",
    "at the lake": "am See",
}
DAYS = {
    "on Monday": "am Montag",
    "on Tuesday": "am Dienstag",
    "on Wednesday": "am Mittwoch",
    "on Thursday": "am Donnerstag",
    "on Friday": "am Freitag",
    "on Saturday": "am Samstag",
}
THINGS = {
    "the boat": "das Boot",
    "the bridge": "die Brücke",
    "the roof": "das Dach",
    "the fence": "den Zaun",
    "the stage": "die Bühne",
    "the kitchen": "die Küche",
    "the path": "den Weg",
    "the clock": "die Uhr",
}
REMARKS = {  # sentences without importance, English and German
    "{person} measured {thing} {day}.": "{person} hat {day} {thing} vermessen.",
    "{person} and {other} had coffee {place}.": "{person} und {other} haben {place} Kaffee getrunken.",
    "{person} took a picture of {thing}.": "{person} hat {thing} fotografiert.",
    "It rained {day}, and {person} stayed {place}.": "Es hat {day} geregnet, und {person} ist {place} geblieben.",
    "{person} met {other} {place} {day}.": "{person} hat {other} {day} {place} getroffen.",
    "Nobody had seen {thing} for years.": "Niemand hatte {thing} seit Jahren gesehen.",
    "{person} thanked {other} for the cake.": "{person} hat {other} für den Kuchen gedankt.",
    "{person} will write to {other}.": "{person} wird {other} schreiben.",
}
DECISIONS = {
    "approved": {
        "The group agreed to repair {thing}.": "Die Gruppe hat beschlossen, {thing} zu reparieren.",
        "All voted to repair {thing}.": "Alle haben dafür gestimmt, {thing} zu reparieren.",
    },
    "rejected": {
        "The group refused to repair {thing}.": "Die Gruppe hat abgelehnt, {thing} zu reparieren.",
        "All voted against repairing {thing}.": "Alle haben dagegen gestimmt, {thing} zu reparieren.",
    },
    "postponed": {
        "The group will decide about {thing} later.": "Die Gruppe wird später über {thing} entscheiden.",
        "All wanted to wait before repairing {thing}.": "Alle wollten warten, bevor sie {thing} reparieren.",
    },
}
NEXT = {"The next meeting is {day} {place}.": "Das nächste Treffen ist {day} {place}."}
LEADER = {"{person} leads the work.": "{person} leitet die Arbeit."}
COST = {"The work costs {cost} euros.": "Die Arbeit kostet {cost} Euro."}
QUESTIONS = {  # with the fact that answers them
    "When is the next meeting?": "next",
    "Where is the next meeting?": "next",
    "Who leads the work?": "leader",
    "How much does the work cost?": "cost",
}


@dataclass(frozen=True)
class Sentence:
    """A sentence in both languages; `fact`: what it tells, if anything."""

    english: str
    german: str
    fact: str = ""


@dataclass(frozen=True)
class Minutes:
    """The sentences of a meeting, the decision, and who says what."""

    sentences: list[Sentence]
    decision: str
    speakers: list[str]

    @property
    def text(self) -> str:
        return " ".join(each.english for each in self.sentences)

    def number(self, fact: str) -> int:
        return next(number for number, each in enumerate(self.sentences) if each.fact == fact)

    def fact(self, name: str) -> Sentence:
        return self.sentences[self.number(name)]


def sentence(draw: random.Random, templates: dict[str, str], fact: str = "") -> Sentence:
    """Draws a template and the words in its places."""
    english, german = draw.choice(list(templates.items()))
    person, other = draw.sample(PEOPLE, 2)
    names = {"person": person, "other": other, "cost": str(draw.randrange(2, 60) * 50)}
    slots = {"place": draw.choice(list(PLACES)), "day": draw.choice(list(DAYS)), "thing": draw.choice(list(THINGS))}
    translated = {"place": PLACES[slots["place"]], "day": DAYS[slots["day"]], "thing": THINGS[slots["thing"]]}
    return Sentence(english.format(**names, **slots), german.format(**names, **translated), fact)


def minutes(draw: random.Random, remarks: int) -> Minutes:
    """Draws a meeting with the facts in any order between remarks; a long one says the decision several times."""
    decision = draw.choice(list(DECISIONS))
    facts = {"decision": DECISIONS[decision], "next": NEXT, "leader": LEADER, "cost": COST}
    said = [sentence(draw, templates, fact) for fact, templates in facts.items()]
    said += [sentence(draw, DECISIONS[decision], "decision") for _ in range(remarks // 20)]
    said += [sentence(draw, REMARKS) for _ in range(remarks)]
    draw.shuffle(said)
    present = draw.sample(PEOPLE, 3)
    return Minutes(said, decision, [draw.choice(present) for _ in said])


def summary(meeting: Minutes) -> dict[str, Any]:
    return {"text": meeting.text, "target": [meeting.fact(name).english for name in ("decision", "next")]}


def translation(meeting: Minutes) -> dict[str, Any]:
    said = meeting.sentences
    return {"sentences": [each.english for each in said], "target": [each.german for each in said]}


def transcript(meeting: Minutes) -> dict[str, Any]:
    pairs = zip(meeting.speakers, meeting.sentences, strict=True)
    asked = {question: meeting.number(fact) for question, fact in QUESTIONS.items()}
    asked["What did they decide?"] = meeting.number("decision")
    return {
        "turns": [{"speaker": speaker, "text": each.english} for speaker, each in pairs],
        "questions": list(asked),
        "evidence": [[number] for number in asked.values()],
    }


LABELS = "labels"
#: Folder, the records that it has, and how many remarks a document has.
FOLDERS: dict[str, tuple[Callable[[Minutes], dict[str, Any]], int]] = {
    "summaries": (summary, 8),
    "translations": (translation, 4),
    "transcripts": (transcript, 16),
}


def write(folder: Path) -> None:
    """Writes a folder with `train.jsonl`, `valid.jsonl` and `test.jsonl` for each tutorial; ValueError if it exists.

    The documents of labels are those of `labels_task.py`, which are longer.
    """
    labels = runpy.run_path(str(Path(__file__).with_name("labels_task.py")))
    with atomic_directory(folder) as made:
        for name, (record, remarks) in FOLDERS.items():
            draw = random.Random(name)  # the same in every run
            (made / name).mkdir()
            for split, number in SPLITS.items():
                rows = [{"id": f"{split}-{n}", **record(minutes(draw, remarks))} for n in range(1, number + 1)]
                (made / name / f"{split}.jsonl").write_bytes(b"".join(json_lines(rows)))
        (made / LABELS).mkdir()
        for split, number in SPLITS.items():
            rows = labels["records"](split, number)
            (made / LABELS / f"{split}.jsonl").write_bytes(b"".join(json_lines(rows)))
