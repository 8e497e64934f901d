"""SQuAD 2.0: questions on paragraphs of Wikipedia, half of which have no answer there (Rajpurkar et al. 2018).

`--root` is a folder with `train-v2.0.json` and `dev-v2.0.json` of https://rajpurkar.github.io/SQuAD-explorer/:
130,319 and 11,873 questions. Licence: CC BY-SA 4.0.

The test part is hidden, so there is none here: `valid` is the development part, on which the papers report, and
predictions and scores are made on it. A question of the development part has several answers by several annotators; the
official scoring counts the best match, and so does ours. `plausible_answers`, which belong to questions without
answer, are not read.

SQuAD 1.1 (Rajpurkar et al. 2016), and what annotation tools export in its form, is read likewise: `train-v1.1.json` and
`dev-v1.1.json`, 87,599 and 10,570 questions, all of which have answers. The version in the file decides, not its name.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds import Answer, Question
from release import release_file, release_folder

KIND = "qa"
SPLITS = ("train", "valid")
DEFAULTS = {"splitter": "punctuation"}
RELEASE = {"train": (130319, 87599), "valid": (11873, 10570)}
FILES = {"train": ("train-v2.0.json", "train-v1.1.json"), "valid": ("dev-v2.0.json", "dev-v1.1.json")}
CONTENT = "train-v2.0.json and dev-v2.0.json (of SQuAD 1.1: -v1.1.json)"
VERSIONS = ("v2.0", "1.1")


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Question]:
    """Yield the questions of a split, each with its paragraph."""
    folder = release_folder(root, CONTENT)
    paths = [path for name in FILES[split] if (path := folder / name).is_file()]
    if len(paths) > 1:
        raise ValueError(f"{folder} has {paths[0].name} and {paths[1].name}: keep only one")
    path = paths[0] if paths else release_file(folder / FILES[split][0], CONTENT)
    content = Fields.read(path)
    if (version := content.record.get("version")) not in VERSIONS:
        raise content.error(f"no SQuAD 2.0 or 1.1, its version is {version!r:.60}")
    for article in content.objects("data"):
        article.where = f"{path}, article {article.record.get('title')!r:.60}"
        for paragraph in article.objects("paragraphs"):
            for question in paragraph.objects("qas"):
                counts["questions_of_squad_1_1"] += version == "1.1"
                yield _record(question, paragraph.text("context"), article.where, version == "1.1")


def _record(question: Fields, context: str, where: str, has_answer: bool) -> Question:
    """Make the record of a question; `has_answer`: what holds if the question does not say whether it has an answer."""
    name = question.text("id")
    question.where = f"{where}, question {name}"
    answers = tuple(Answer(item.text("text"), item.get("answer_start", int)) for item in question.objects("answers"))
    impossible = question.record.get("is_impossible", False if has_answer else None)
    if impossible is not (not answers):
        raise question.error(f"{len(answers)} answers, but is_impossible is {impossible!r}")
    return Question(name, question.text("question"), context, answers, origin=question.where)
