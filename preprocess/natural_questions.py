"""Natural Questions: questions to a search engine, each with a page of Wikipedia (Kwiatkowski et al. 2019).

`--root` is a folder, or one with folders, that holds files of https://ai.google.com/research/NaturalQuestions/download:
`nq-train-*.jsonl.gz` or `*nq-train.jsonl.gz` (307,372 questions, original or simplified), and `nq-dev-*.jsonl.gz` or
`*nq-dev-all.jsonl.gz` (7,830; only original). Licence: CC BY-SA 3.0.

The test part is hidden, so there is none here. Paragraphs are the long-answer candidates at the top level, without HTML
tags; candidates inside others are skipped, and so are answers in them (Alberti et al. 2019 do the same). Of the
development part, `meta` keeps what the official files need: annotations, and the tokens that the words come from.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds import Answer, DocumentQuestion
from hat_fairseq.data.text import is_blank
from tydi_qa import Place, pages, question_record

KIND = "document_qa"
SPLITS = ("train", "valid")
RELEASE = {"train": (307372, 307373), "valid": (7830,)}
FILES = {"train": "*nq-train*.jsonl*", "valid": "*nq-dev*.jsonl*"}
CONTENT = "nq-train-*.jsonl.gz and nq-dev-*.jsonl.gz, or the simplified files"
TAG = re.compile(r"</?[A-Za-z][^>]*>")  # in simplified files, where nothing else says what a tag is

Words = dict[int, tuple[int, int]]  # by the number of its token, the characters of each word of a paragraph


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[DocumentQuestion]:
    """Yield the questions of a split, each with its page."""
    return (_record(page, split == "train", counts) for page in pages(root, FILES[split], CONTENT, counts))


def _record(page: Fields, is_train: bool, counts: Counter[str]) -> DocumentQuestion:
    tokens = _tokens(page)
    texts: list[str] = []
    candidates: list[list[int]] = []
    words: dict[int, tuple[int, Words]] = {}  # by the number of the candidate: number and words of its paragraph
    for number, candidate in enumerate(page.objects("long_answer_candidates")):
        begin, end = candidate.get("start_token", int), candidate.get("end_token", int)
        if not 0 <= begin < end <= len(tokens):
            raise candidate.error(f"candidate {number} has the tokens {begin} to {end} of {len(tokens)}")
        if not candidate.record.get("top_level"):
            counts["nested_candidates_skipped"] += 1
            continue
        text, word_spans = _paragraph(tokens, begin, end)
        if is_blank(text):
            counts["candidates_without_text_skipped"] += 1
            continue
        words[number] = len(texts), word_spans
        texts.append(text)
        candidates.append([begin, end, *_runs(list(word_spans))])
    if not texts:  # the whole page, which is no long answer
        counts["pages_without_candidate"] += 1
        text, word_spans = _paragraph(tokens, 0, len(tokens))
        texts, candidates = [text], [[-1, -1, *_runs(list(word_spans))]]
    meta = None if is_train else {"natural_questions": {"candidates": candidates}}
    return question_record(page, texts, "long_answer", partial(_find, len(tokens), texts, words, counts), meta, counts)


def _tokens(page: Fields) -> list[str | None]:
    """Return the tokens of a page without spaces inside; None for HTML tags."""
    if "document_text" in page:
        return [None if TAG.fullmatch(token) else token for token in page.text("document_text").split(" ")]
    tokens = page.items("document_tokens", dict)  # thousands: read without a check of each
    try:
        return [None if token["html_token"] else "".join(token["token"].split()) for token in tokens]
    except (KeyError, AttributeError) as error:
        raise page.error(f"document_tokens: a token without {error}") from error


def _paragraph(tokens: Sequence[str | None], begin: int, end: int) -> tuple[str, Words]:
    """Join tokens to a text; also return where each word stands in it."""
    numbered = [(number, token) for number, token in enumerate(tokens[begin:end], start=begin) if token is not None]
    ends = list(accumulate((len(token) + 1 for _, token in numbered), initial=0))
    spans = ((start, start + len(token)) for start, (_, token) in zip(ends, numbered, strict=False))
    words = {number: span for (number, _), span in zip(numbered, spans, strict=True)}
    return " ".join(token for _, token in numbered), words


def _runs(numbers: Sequence[int]) -> list[int]:
    """Divide increasing numbers into runs; return the first number of each, and its length."""
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] + runs[-1] == number:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs


def _find(
    size: int,
    texts: Sequence[str],
    words: dict[int, tuple[int, Words]],
    counts: Counter[str],
    annotation: Fields,
    candidate: int,
) -> Place | None:
    """Find the paragraph and the short answers of an annotation; `size`: number of the page's tokens."""
    if candidate not in words:
        counts["annotations_in_skipped_candidates"] += candidate >= 0
        return None
    paragraph, word_spans = words[candidate]
    spans = []
    for answer in annotation.objects("short_answers"):
        first, end = answer.get("start_token", int), answer.get("end_token", int)
        if not 0 <= first < end <= size:
            raise answer.error(f"a short answer has the tokens {first} to {end} of {size}")
        inside = [word_spans[number] for number in range(first, end) if number in word_spans]
        text = texts[paragraph][inside[0][0] : inside[-1][1]] if inside else ""
        if not is_blank(text):
            spans.append(Answer(text, inside[0][0]))
        else:
            counts["short_answers_outside_paragraph"] += 1
    return paragraph, tuple(spans)
