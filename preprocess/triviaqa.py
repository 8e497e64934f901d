"""TriviaQA, the part on Wikipedia: questions of quizzes, each with pages that may tell the answer (Joshi et al. 2017).

`--root` is the folder that `triviaqa-rc.tar.gz` (http://nlp.cs.washington.edu/triviaqa/) unpacks to:
`qa/wikipedia-train.json`, `qa/wikipedia-dev.json` and the pages `evidence/wikipedia/*.txt`. Licence: Apache 2.0.

An example is a question with one page, as in the authors' conversion for SQuAD models, and its id is theirs,
`QUESTION--FILE`: 110,648 pairs for training and 14,229 for development. The test part has no answers, so `valid` is
the development part. Nobody has marked the answers in the pages (distant supervision): every place of a page that is
identical to an alias of the answer counts as one (Liu et al. 2022, section 4.2.3). Words are compared without case,
punctuation and leading articles; of overlapping places the first one counts, and of several aliases there the longest.
Pages without such a place stay in the data, as questions without answer, and are counted. Of the development part,
`meta` keeps the question's id and the accepted answers, for `hat score triviaqa`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds import Answer, Question
from release import read_text, release_file, release_folder

KIND = "qa"
SPLITS = ("train", "valid")
DEFAULTS = {"splitter": "punctuation"}
RELEASE = {"train": (110648, 110647), "valid": (14229,)}
FILES = {"train": "qa/wikipedia-train.json", "valid": "qa/wikipedia-dev.json"}
PAGES = "evidence/wikipedia"
CONTENT = f"{FILES['train']}, {FILES['valid']} and {PAGES}, as triviaqa-rc.tar.gz has them"
MARKS = "".join(filter(lambda character: unicodedata.category(character)[0] == "M", map(chr, range(0x20000))))
WORD = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}])*")  # letters with their vowel signs and accents
ARTICLES = ("a", "an", "the")


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Question]:
    """Yield the questions of a split, each once for each of its pages."""
    folder = release_folder(root, CONTENT)
    path = release_file(folder / FILES[split], CONTENT)
    for question in Fields.read(path).objects("Data"):
        name = question.text("QuestionId")
        question.where = f"{path}, question {name}"
        answer = Fields(question.get("Answer", dict), question.where)
        meta = None
        if split != "train":
            humans = answer.texts("HumanAnswers") if "HumanAnswers" in answer else ()
            meta = {"triviaqa": {"question": name, "answers": [*answer.texts("NormalizedAliases"), *humans]}}
        for page in question.objects("EntityPages"):
            file = page.text("Filename")
            text = read_text(release_file(folder / PAGES / file, CONTENT))
            answers = find_answers(text, [answer.text("Value"), *answer.texts("Aliases")])
            counts["pages_without_an_alias"] += not answers
            asked = question.text("Question")
            yield Question(f"{name}--{file}", asked, text, answers, meta=meta, origin=question.where)


def find_answers(text: str, aliases: Iterable[str]) -> tuple[Answer, ...]:
    """Find the places of a text whose words are those of an alias, in their order."""
    phrases: dict[str, set[tuple[str, ...]]] = {}
    for alias in aliases:
        words = tuple(word.lower() for word in WORD.findall(alias))
        while len(words) > 1 and words[0] in ARTICLES:
            words = words[1:]
        if words:
            phrases.setdefault(words[0], set()).add(words)
    matches = list(WORD.finditer(text))
    words = tuple(match[0].lower() for match in matches)
    answers, place = [], 0
    while place < len(words):
        here = phrases.get(words[place], ())
        length = max((len(phrase) for phrase in here if words[place : place + len(phrase)] == phrase), default=0)
        if length:
            begin, end = matches[place].start(), matches[place + length - 1].end()
            answers.append(Answer(text[begin:end], begin))
        place += max(1, length)
    return tuple(answers)
