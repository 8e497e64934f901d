"""Our predictions of Natural Questions and TyDi QA (primary tasks) in the offsets of these datasets, and their files.

A question has a passage (Natural Questions: long answer) and a short answer (TyDi QA: minimal answer), or yes or no.
The readers of both datasets (`preprocess/`) keep in `meta` how to get from our paragraphs to the dataset's offsets:

    natural_questions  {"candidates": [[start token, end token, first of a run of words, its length, ...], ...]}
    tydi_qa            {"language", "candidates": [[index of the candidate, its first byte], ...]}

Each paragraph has one item. A page without candidates is one paragraph, with -1. The words of Natural Questions are its
tokens that are no HTML tags, joined by single spaces. `meta` also has the release's `example_id` and `annotations`.
Offsets are half-open.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hat_fairseq.data.files import Fields, json_lines
from hat_fairseq.data.kinds import QuestionKind
from hat_fairseq.data.outputs import atomic_file
from hat_fairseq.data.record import Record

#: By the name of the dataset, which is the key in `meta`: the name of the file.
FILES = {"natural_questions": "natural_questions.json", "tydi_qa": "tydi_qa.jsonl"}

#: Of SQuAD: by file what it has of each prediction.
SQUAD_FILES = {"predictions.json": "answer", "null_odds.json": "no_answer_score", "nbest_predictions.json": "n_best"}

Spans = frozenset[tuple[int, ...]]


class PageAnswer(NamedTuple):
    """An annotator's or a model's answer."""

    passage: tuple[int, ...] | None  # Natural Questions: its tokens; TyDi QA: the number of the candidate
    spans: Spans  # short answers, in tokens or in bytes
    yes_no: str = "none"


def official_files(kind: str, record: Record) -> list[str]:
    """Lists the files that official scorers read, for predictions of a kind of data on records such as this one."""
    if (dataset := dataset_of(record)) is not None:
        return [FILES[dataset]]
    return [*SQUAD_FILES] if kind == QuestionKind.name else []


def dataset_of(record: Record) -> str | None:
    """Returns the dataset that a record is from; None for data of the user's own."""
    return next((name for name in FILES if name in (record.meta or {})), None)


def meta_of(dataset: str, record: Record) -> Fields:
    """Returns what the reader kept; ValueError for other data."""
    meta = (record.meta or {}).get(dataset)
    if meta is None or record.elements is None or not record.id.lstrip("-").isdecimal():
        raise ValueError(f"{record.name} is not from {dataset}, or not from its development part")
    return Fields(meta, f"{record.name}: meta")


def page_answer(dataset: str, record: Record, prediction: Mapping[str, Any]) -> PageAnswer:
    """Returns a prediction in the offsets of the dataset; IndexError for a negative number."""
    for name in ("paragraph", "answer_paragraph", "start"):
        number = prediction.get(name)
        if number is not None and (type(number) is not int or number < 0):
            raise IndexError(f"{name} is {number!r:.60}")
    candidates = meta_of(dataset, record).get("candidates", list)
    in_words = dataset == "natural_questions"
    passage: tuple[int, ...] | None = None
    spans = []
    if prediction["paragraph"] is not None:
        numbers = candidates[prediction["paragraph"]][: 2 if in_words else 1]
        passage = tuple(numbers) if numbers[0] >= 0 else None
    if prediction["start"] is not None and record.elements is not None:
        text, begin = record.elements[prediction["answer_paragraph"]], prediction["start"]
        around = text[:begin], text[: begin + len(prediction["answer"])]
        candidate = candidates[prediction["answer_paragraph"]]
        if in_words:
            runs = zip(candidate[2::2], candidate[3::2], strict=True)
            words = [first + i for first, count in runs for i in range(count)]
            first, last = (words[text.count(" ")] for text in around)
            spans.append((first, last + 1))
        else:
            first, last = (candidate[1] + len(text.encode(errors="surrogatepass")) for text in around)
            spans.append((first, last))
    yes_no = prediction["type"] if prediction["type"] in ("yes", "no") else "none"
    return PageAnswer(passage, frozenset(spans), yes_no)


def write_official_answers(folder: Path, dataset: str, predictions: Iterable[tuple[Record, Mapping[str, Any]]]) -> Path:
    """Writes the file that the dataset's scorer reads (`nq_eval`, `tydi_eval.py`), from stored records and predictions.

    Returns its path. ValueError for other data.
    """
    path = folder / FILES[dataset]
    with atomic_file(path) as file:
        if dataset == "natural_questions":
            rows = [_natural_row(*pair) for pair in predictions]
            file.writelines(json_lines([{"predictions": rows}], ensure_ascii=True))
        else:
            file.writelines(json_lines((_tydi_row(*pair) for pair in predictions), ensure_ascii=True))
    return path


def write_squad_answers(folder: Path, predictions: Sequence[Mapping[str, Any]]) -> None:
    """Writes the files that SQuAD's scorer reads."""
    for name, key in SQUAD_FILES.items():
        with atomic_file(folder / name) as file:
            file.writelines(json_lines([{each["id"]: each[key] for each in predictions}], indent=1))


def null_answer(predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns what the official files say of a question without text: no answer, as `hat score` takes it.

    `predictions`: those of the other questions. In SQuAD none of them is surer that there is no answer.
    """
    surest = max((each["no_answer_score"] for each in predictions if "no_answer_score" in each), default=0.0)
    of_squad: dict[str, Any] = {"answer": "", "no_answer_score": surest, "n_best": []}
    return {**of_squad, "paragraph": None, "start": None, "type": None, "paragraph_score": 0.0, "answer_score": 0.0}


def _natural_row(record: Record, prediction: Mapping[str, Any]) -> dict[str, Any]:
    def span(tokens: tuple[int, ...]) -> dict[str, int]:
        return {"start_byte": -1, "end_byte": -1, "start_token": tokens[0], "end_token": tokens[1]}

    answer = page_answer("natural_questions", record, prediction)
    return {
        "example_id": int(record.id),
        "long_answer": span(answer.passage or (-1, -1)),
        "long_answer_score": prediction["paragraph_score"],
        "short_answers": list(map(span, answer.spans)),
        "short_answers_score": prediction["answer_score"],
        "yes_no_answer": answer.yes_no.upper(),
    }


def _tydi_row(record: Record, prediction: Mapping[str, Any]) -> dict[str, Any]:
    answer = page_answer("tydi_qa", record, prediction)
    (number,), (start, end) = answer.passage or (-1,), next(iter(answer.spans), (-1, -1))
    return {
        "example_id": int(record.id),
        "language": meta_of("tydi_qa", record).text("language"),
        "passage_answer_index": number,
        "passage_answer_score": prediction["paragraph_score"],
        "minimal_answer": {"start_byte_offset": start, "end_byte_offset": end},
        "minimal_answer_score": prediction["answer_score"],
        "yes_no_answer": answer.yes_no.upper(),
    }
