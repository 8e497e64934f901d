"""WikiHop: a question, candidates for its answer, and the documents that together tell it (Welbl et al. 2018).

`--root` is the folder `wikihop` of `qangaroo_v1.1.zip` (http://qangaroo.cs.ucl.ac.uk): `train.json` and `dev.json` with
43,738 and 5,129 questions, each with `id`, `query`, `answer`, `candidates` and `supports`. The texts are
Wikipedia's (CC BY-SA).

The test part is hidden, so there is none here: `valid` is the development part, on which the papers report. A query is
a relation and a subject, `country_of_citizenship john doe`, and is read as it is. The label is the number of the answer
among the candidates. The masked files (`train.masked.json`) are not read.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields, read_json
from hat_fairseq.data.kinds import Candidates
from release import release_file, release_folder

KIND = "candidates"
SPLITS = ("train", "valid")
RELEASE = {"train": (43738,), "valid": (5129,)}
FILES = {"train": "train.json", "valid": "dev.json"}
CONTENT = "train.json and dev.json, as the folder wikihop of qangaroo_v1.1.zip has them"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Candidates]:
    """Yield the questions of a split, each with its candidates and documents."""
    path = release_file(release_folder(root, CONTENT) / FILES[split], CONTENT)
    questions = read_json(path)
    if not isinstance(questions, list):
        raise ValueError(f"{path}: expected a list of questions, found a {type(questions).__name__}; {CONTENT}")
    for number, question in enumerate(questions):
        yield _record(Fields(question, f"{path}, question {number}"), counts)


def _record(question: Fields, counts: Counter[str]) -> Candidates:
    candidates, answer = question.texts("candidates"), question.text("answer")
    if answer not in candidates:
        raise question.error(f"the answer {answer!r:.80} is none of its {len(candidates)} candidates")
    if len(set(candidates)) < len(candidates):
        counts["questions_with_equal_candidates"] += 1
    return Candidates(
        id=question.text("id"),
        question=question.text("query"),
        segments=question.texts("supports"),
        candidates=candidates,
        label=candidates.index(answer),
        origin=question.where,
    )
