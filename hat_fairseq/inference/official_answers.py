"""Writes answers in the file formats of the official scorers of Natural Questions and TyDi QA.

The readers of both datasets (`preprocess/`) keep in `meta` how to get from our paragraphs to the dataset's offsets:

    natural_questions  {"candidates": [[start token, end token, first of a run of words, its length, ...], ...]}
    tydi_qa            {"language", "candidates": [[index of the candidate, its first byte], ...]}

Each paragraph has one item. A page without candidates is one paragraph, with -1. The words of Natural Questions are its
tokens that are no HTML tags, joined by single spaces. `meta` also has the release's `example_id` and `annotations`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..data.record import Record
from ..scoring import natural_questions_files as nq
from ..scoring import tydi_qa_files as tydi

#: By the name of the dataset, which is the key in `meta`: the name of the file.
FILES = {"natural_questions": "natural_questions.json", "tydi_qa": "tydi_qa.jsonl"}


def dataset_of(record: Record) -> str | None:
    """The dataset that a record is from; None for data of the user's own."""
    return next((name for name in FILES if name in (record.meta or {})), None)


def without_offsets(prediction: dict[str, Any]) -> dict[str, Any]:
    """A prediction without what only these files need."""
    meta = {name: value for name, value in prediction.get("meta", {}).items() if name not in FILES}
    kept = {name: value for name, value in prediction.items() if name != "meta"}
    return kept | ({"meta": meta} if meta else {})


def write_official_answers(folder: Path, dataset: str, predictions: Iterable[tuple[Record, Mapping[str, Any]]]) -> Path:
    """Writes the file of a dataset from stored records and predictions; returns its path. ValueError for other data."""
    path = folder / FILES[dataset]
    if dataset == "natural_questions":
        answers = (_natural(_meta(dataset, record), record, each) for record, each in predictions)
        nq.write_natural_predictions(path, answers)
    else:
        tydi.write_tydi_predictions(path, (_tydi(_meta(dataset, record), record, each) for record, each in predictions))
    return path


def _meta(dataset: str, record: Record) -> Mapping[str, Any]:
    meta: Mapping[str, Any] | None = (record.meta or {}).get(dataset)
    if meta is None or record.sentences is None or not record.id.lstrip("-").isdecimal():
        raise ValueError(f"{record.name} is not from {dataset}, as the first document is")
    return meta


def _natural(meta: Mapping[str, Any], record: Record, prediction: Mapping[str, Any]) -> nq.NaturalPrediction:
    long_answer: nq.Span | None = None
    short_answers: tuple[nq.Span, ...] = ()
    if prediction["paragraph"] is not None:
        first, end = meta["candidates"][prediction["paragraph"]][:2]
        long_answer = nq.Span(token=(first, end)) if first >= 0 else None
    if around := _around(record, prediction):
        runs = meta["candidates"][prediction["answer_paragraph"]][2:]
        words = [first + i for first, count in zip(runs[::2], runs[1::2], strict=True) for i in range(count)]
        first, last = (words[text.count(" ")] for text in around)
        short_answers = (nq.Span(token=(first, last + 1)),)
    answer = nq.NaturalAnswer(long_answer, short_answers, _yes_no(prediction))
    return nq.NaturalPrediction(int(record.id), answer, prediction["paragraph_score"], prediction["answer_score"])


def _tydi(meta: Mapping[str, Any], record: Record, prediction: Mapping[str, Any]) -> tydi.TydiPrediction:
    passage: int | None = None
    minimal: tuple[int, int] | None = None
    if prediction["paragraph"] is not None:
        number = meta["candidates"][prediction["paragraph"]][0]
        passage = number if number >= 0 else None
    if around := _around(record, prediction):
        begin = meta["candidates"][prediction["answer_paragraph"]][1]
        first, last = (begin + len(text.encode(errors="surrogatepass")) for text in around)
        minimal = first, last
    answer = tydi.TydiAnswer(passage, minimal, _yes_no(prediction))
    scores = prediction["paragraph_score"], prediction["answer_score"]
    return tydi.TydiPrediction(int(record.id), meta["language"], answer, *scores)


def _around(record: Record, prediction: Mapping[str, Any]) -> tuple[str, str] | None:
    """The paragraph of a short answer up to its begin, and up to its end; None if there is none."""
    if prediction["start"] is None or record.sentences is None:
        return None
    text, begin = record.sentences[prediction["answer_paragraph"]], prediction["start"]
    return text[:begin], text[: begin + len(prediction["answer"])]


def _yes_no(prediction: Mapping[str, Any]) -> str:
    return prediction["type"] if prediction["type"] in ("yes", "no") else "none"
