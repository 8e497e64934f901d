"""SQuAD 2.0: questions on paragraphs of Wikipedia, half of which have no answer there (Rajpurkar et al. 2018).

`--root` is a folder with `train-v2.0.json` and `dev-v2.0.json` of https://rajpurkar.github.io/SQuAD-explorer/:
130,319 and 11,873 questions. Licence: CC BY-SA 4.0.

The test part is hidden, so there is none here: `valid` is the development part, on which the papers report, and
predictions and scores are made on it. A question of the development part has several answers by several annotators; the
official scoring counts the best match, and so does ours. `plausible_answers`, which belong to questions without
answer, are not read.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields, read_json
from hat_fairseq.data.kinds import Answer, Question
from release import release_file, release_folder

KIND = "qa"
SPLITS = ("train", "valid")
DEFAULTS = {"splitter": "punctuation"}
RELEASE = {"train": (130319,), "valid": (11873,)}
FILES = {"train": "train-v2.0.json", "valid": "dev-v2.0.json"}
CONTENT = "train-v2.0.json and dev-v2.0.json"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Question]:
    """Yield the questions of a split, each with its paragraph."""
    path = release_file(release_folder(root, CONTENT) / FILES[split], CONTENT)
    content = Fields(read_json(path), str(path))
    if content.record.get("version") != "v2.0":
        raise content.error("no SQuAD 2.0, its version is not v2.0")
    for article in content.objects("data"):
        article.where = f"{path}, article {article.record.get('title')!r:.60}"
        for paragraph in article.objects("paragraphs"):
            for question in paragraph.objects("qas"):
                yield _record(question, paragraph.text("context"), article.where)


def _record(question: Fields, context: str, where: str) -> Question:
    name = question.text("id")
    question.where = f"{where}, question {name}"
    answers = tuple(Answer(item.text("text"), item.get("answer_start", int)) for item in question.objects("answers"))
    impossible = question.record.get("is_impossible")
    if impossible is not (not answers):
        raise question.error(f"{len(answers)} answers, but is_impossible is {impossible!r}")
    return Question(name, question.text("question"), context, answers, origin=question.where)
