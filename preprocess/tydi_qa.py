"""TyDi QA: questions in eleven languages, each with an article of Wikipedia; the primary tasks (Clark et al. 2020).

`--root` is a folder with `tydiqa-v1.0-train.jsonl.gz` and `tydiqa-v1.0-dev.jsonl.gz` of
https://github.com/google-research-datasets/tydiqa: 166,916 and 18,670 questions. Licence: Apache 2.0.

The test part is hidden, so there is none here. Paragraphs are the passage candidates. All offsets of the release count
bytes of the UTF-8 text. Of the development part, `meta` keeps what the official files need: language, annotations, and
number and first byte of each passage.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from document_questions import Place, pages, question_record
from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds import Answer, DocumentQuestion
from hat_fairseq.data.kinds.windows import kept_characters

KIND = "document_qa"
SPLITS = ("train", "valid")
RELEASE = {"train": (166916,), "valid": (18670,)}
FILES = {"train": "tydiqa-v*-train.jsonl*", "valid": "tydiqa-v*-dev.jsonl*"}
CONTENT = "tydiqa-v1.0-train.jsonl.gz and tydiqa-v1.0-dev.jsonl.gz"

Passage = tuple[int, int, int]  # number of its paragraph, first byte, end


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[DocumentQuestion]:
    """Yield the questions of a split, each with its article."""
    return (_record(article, split == "train", counts) for article in pages(root, FILES[split], CONTENT))


def _record(article: Fields, is_train: bool, counts: Counter[str]) -> DocumentQuestion:
    data = article.text("document_plaintext").encode("utf-8", "surrogatepass")
    texts: list[str] = []
    candidates: list[list[int]] = []
    passages: dict[int, Passage] = {}  # by the number of the candidate
    for number, candidate in enumerate(article.objects("passage_answer_candidates")):
        begin, end = _bytes(candidate, data, counts)
        text = _text(data[begin:end])
        if not kept_characters(text):
            counts["candidates_without_text_skipped"] += 1
            continue
        passages[number] = len(texts), begin, end
        texts.append(text)
        candidates.append([number, begin])
    if not texts:  # the whole article, which is no passage
        counts["articles_without_candidate"] += 1
        texts, candidates = [_text(data)], [[-1, 0]]
    facts = {"language": article.text("language"), "candidates": candidates}
    find, meta = partial(_find, data, passages, counts), None if is_train else {"tydi_qa": facts}
    return question_record(article, texts, "passage_answer", find, meta, counts)


def _find(
    data: bytes, passages: dict[int, Passage], counts: Counter[str], annotation: Fields, candidate: int
) -> Place | None:
    answer = Fields(annotation.get("minimal_answer", dict), annotation.where)
    has_answer = answer.get("plaintext_start_byte", int) >= 0
    if candidate not in passages:
        counts["annotations_in_skipped_candidates"] += candidate >= 0
        counts["minimal_answers_outside_passage"] += candidate < 0 and has_answer
        return None
    paragraph, first, last = passages[candidate]
    if has_answer:
        begin, end = _bytes(answer, data, counts)
        text = _text(data[begin:end])
        if first <= begin and end <= last and kept_characters(text):
            return paragraph, (Answer(text, len(_text(data[first:begin]))),)
        counts["minimal_answers_outside_passage"] += 1
    return paragraph, ()


def _bytes(span: Fields, data: bytes, counts: Counter[str]) -> tuple[int, int]:
    """Where a span begins and ends; an offset inside a character becomes the character's first byte."""
    released = [span.get(f"plaintext_{side}_byte", int) for side in ("start", "end")]
    if not 0 <= released[0] <= released[1] <= len(data):
        raise span.error(f"the bytes {released[0]} to {released[1]} are not in a text of {len(data)}")
    begin, end = (_first_byte(data, offset) for offset in released)
    counts["offsets_inside_characters"] += [begin, end] != released
    return begin, end


def _first_byte(data: Sequence[int], offset: int) -> int:
    while offset < len(data) and data[offset] & 0xC0 == 0x80:  # a byte that continues a character
        offset -= 1
    return offset


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
