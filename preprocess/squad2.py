"""SQuAD 2.0: questions on paragraphs of Wikipedia, half of which have no answer there (Rajpurkar et al. 2018).

``--root`` is a folder with ``train-v2.0.json`` and ``dev-v2.0.json`` of https://rajpurkar.github.io/SQuAD-explorer/:
130,319 and 11,873 questions. Licence: CC BY-SA 4.0.

The test part is hidden, so there is none here: ``valid`` is the development part, on which the papers report, and
predictions and scores are made on it. A question of the development part has several answers by several annotators; the
official scoring counts the best match, and so does ours. ``plausible_answers``, which belong to questions without
answer, are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hat_fairseq.data.example import Answer, Example
from hat_fairseq.data.formats.json_file import list_of, read_json, text_of
from hat_fairseq.data.formats.release import release_file, release_folder

TASK = "qa"
SPLITS = ("train", "valid")
DEFAULTS = {
    "bpe": "gpt2",
    "splitter": "punctuation",
    "segments": "sentences",
    "max_source_tokens": 511,  # with </s> 512
    "long_source": "chunk",
}
RELEASE = {"train": (130319,), "valid": (11873,)}
FILES = {"train": "train-v2.0.json", "valid": "dev-v2.0.json"}
CONTENT = "train-v2.0.json and dev-v2.0.json"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Example]:
    """Yield the questions of a split, each with its paragraph."""
    path = release_file(release_folder(root, CONTENT) / FILES[split], CONTENT)
    for article in list_of(_load(path), "data", dict, str(path)):
        where = f"{path}, article {article.get('title')!r:.60}"
        for paragraph in list_of(article, "paragraphs", dict, where):
            context = text_of(paragraph, "context", where)
            for question in list_of(paragraph, "qas", dict, where):
                yield _example(question, context, where)


def _example(question: dict[str, Any], context: str, where: str) -> Example:
    name = text_of(question, "id", where)
    where = f"{where}, question {name}"
    answers = [_answer(answer, where) for answer in list_of(question, "answers", dict, where)]
    if question.get("is_impossible") is not (not answers):
        raise ValueError(f"{where}: {len(answers)} answers, but is_impossible is {question.get('is_impossible')!r}")
    return Example(
        id=name,
        inputs=((text_of(question, "question", where), context),),
        answers=tuple(answers),
        origin=where,
    )


def _answer(answer: dict[str, Any], where: str) -> Answer:
    start = answer.get("answer_start")
    if not isinstance(start, int):
        raise ValueError(f"{where}: answer_start must be a number, not {start!r:.60}")
    return Answer(text=text_of(answer, "text", where), start=start)


def _load(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict) or content.get("version") != "v2.0":
        raise ValueError(f"{path}: no SQuAD 2.0, its version is not v2.0")
    return content
