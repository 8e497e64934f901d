"""RACE: English examinations, four choices for each question (Lai et al. 2017).

`--root` is the folder `RACE` of `RACE.tar.gz` (https://www.cs.cmu.edu/~glai1/data/race/):
`{train,dev,test}/{middle,high}/NUMBER.txt`, in each a JSON object with `article`, `questions`, `options`,
`answers` (A to D) and `id`: 87,866, 4,887 and 4,934 questions. For research only, says the release; the
examinations remain their authors'.

A choice becomes one text, and is the second part of the input. As in fairseq's RACE example of RoBERTa: where the
question has a blank, `_` or several in a row, the choice is put in its place, in all of them if there are several;
otherwise it follows the question. Both kinds are counted. Middle and high school go together; the id says which,
`high/12-0` is the first question of `high/12.txt`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds import Choice
from release import release_folder, release_texts

KIND = "choice"
DEFAULTS = {"splitter": "punctuation"}
RELEASE = {"train": (87866,), "valid": (4887,), "test": (4934,)}
FOLDERS = {"train": "train", "valid": "dev", "test": "test"}
LEVELS = ("middle", "high")
CONTENT = "train, dev and test, in each of them middle and high, as RACE.tar.gz has them"
BLANK = re.compile("_+")
LETTERS = "ABCD"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Choice]:
    """Yield the questions of a split, each with its article and four choices."""
    folder = release_folder(root, CONTENT) / FOLDERS[split]
    for level in LEVELS:
        files = release_texts(folder / level, CONTENT, counts)
        for path in sorted(files, key=lambda file: (len(file.stem), file.stem)):  # 2.txt before 10.txt
            yield from _questions(path, level, counts)


def _filled(question: str, choice: str) -> str:
    return BLANK.sub(lambda _: choice, question)


def _questions(path: Path, level: str, counts: Counter[str]) -> Iterator[Choice]:
    passage = Fields.read(path)
    article, questions, answers = passage.text("article"), passage.texts("questions"), passage.texts("answers")
    options = passage.items("options", list)
    if not len(questions) == len(options) == len(answers):
        raise ValueError(f"{path}: {len(questions)} questions, {len(options)} options, {len(answers)} answers")
    for number, (question, choices, answer) in enumerate(zip(questions, options, answers, strict=True)):
        if not all(isinstance(choice, str) for choice in choices) or len(choices) != len(LETTERS):
            raise ValueError(f"{path}, question {number}: expected four options as strings, found {choices!r:.60}")
        if answer not in tuple(LETTERS):
            raise ValueError(f"{path}, question {number}: the answer is {answer!r:.60}, not A, B, C or D")
        if len(set(choices)) < len(choices):
            counts["questions_with_equal_choices"] += 1
        has_blank = BLANK.search(question) is not None
        counts["questions_with_a_blank" if has_blank else "questions_without_blank"] += 1
        yield Choice(
            id=f"{level}/{path.stem}-{number}",
            text=article,
            choices=tuple(_filled(question, each) if has_blank else f"{question} {each}" for each in choices),
            label=LETTERS.index(answer),
            origin=f"{path}, question {number}",
        )
