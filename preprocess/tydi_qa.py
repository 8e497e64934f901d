"""TyDi QA: questions in eleven languages, each with an article of Wikipedia; the primary tasks (Clark et al. 2020).

`--root` is a folder with `tydiqa-v1.0-train.jsonl.gz` and `tydiqa-v1.0-dev.jsonl.gz` of
https://github.com/google-research-datasets/tydiqa: 166,916 and 18,670 questions. Licence: Apache 2.0.

The test part is hidden, so there is none here. Paragraphs are the passage candidates. All offsets of the release count
bytes of the UTF-8 text. Of the development part, `meta` keeps what the official files need: language, annotations, and
number and first byte of each passage. `natural_questions.py` reads its pages and annotations with the functions here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields, read_json_lines
from hat_fairseq.data.kinds import Annotation, Answer, DocumentQuestion
from hat_fairseq.data.text import is_blank
from release import release_folder

KIND = "document_qa"
SPLITS = ("train", "valid")
RELEASE = {"train": (166916,), "valid": (18670,)}
FILES = {"train": "tydiqa-v*-train.jsonl*", "valid": "tydiqa-v*-dev.jsonl*"}
CONTENT = "tydiqa-v1.0-train.jsonl.gz and tydiqa-v1.0-dev.jsonl.gz"

SAMPLE = "-sample."  # in the names of files

Place = tuple[int, tuple[Answer, ...]]  # number of a paragraph, and short answers in it
Passage = tuple[int, int, int]  # number of its paragraph, first byte, end


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[DocumentQuestion]:
    """Yield the questions of a split, each with its article."""
    return (_record(article, split == "train", counts) for article in pages(root, FILES[split], CONTENT, counts))


def pages(root: Path | None, pattern: str, content: str, counts: Counter[str]) -> Iterator[Fields]:
    """Yield the questions in the files of JSON lines under `--root` that match `pattern`; ValueError for none.

    Samples, which Natural Questions has beside its files, are counted. A file that is there twice, such as packed and
    unpacked, is an error.
    """
    folder = release_folder(root, content)
    matching = sorted(folder.rglob(pattern))
    paths = [path for path in matching if SAMPLE not in path.name]
    if samples := len(matching) - len(paths):
        counts["sample_files_skipped"] += samples
    if not paths:
        raise ValueError(f"{folder} has no {pattern}; it must contain {content}")
    by_name: dict[str, Path] = {}
    for path in paths:
        other = by_name.setdefault(path.name.partition(".jsonl")[0], path)
        if other != path:
            raise ValueError(f"{other} and {path} are the same questions twice: keep one of them")
    return (Fields(record, f"{path}:{number}") for path in paths for number, record in read_json_lines(path, counts))


def question_record(
    page: Fields,
    texts: Sequence[str],
    answer: str,
    find: Callable[[Fields, int], Place | None],
    meta: dict[str, dict[str, Any]] | None,
    counts: Counter[str],
) -> DocumentQuestion:
    """Make the record of a question on a page with the keys that both releases have, and on the paragraphs `texts`.

    Args:
        answer: key of an annotation that holds the number of the chosen candidate.
        find: what an annotation says of the candidate with this number; None if it has no paragraph.
        meta: by the name of the dataset, what is kept beside id and annotations; None to keep nothing.
    """
    identifier, annotations = page.get("example_id", int), None
    release_keys: dict[str, Any] = {"example_id": identifier}
    if "annotations" in page:
        released = page.objects("annotations")
        chosen = [Fields(each.get(answer, dict), each.where).get("candidate_index", int) for each in released]
        places = map(find, released, chosen)
        annotations = tuple(map(_annotation, released, places))
        lost = all(each.paragraph is None for each in annotations)
        counts["answers_lost_by_reader"] += lost and any(number >= 0 for number in chosen)
        release_keys["annotations"] = page.record["annotations"]
    return DocumentQuestion(
        id=str(identifier),
        question=page.text("question_text"),
        paragraphs=tuple(texts),
        annotations=annotations,
        meta=None if meta is None else {name: release_keys | more for name, more in meta.items()},
        origin=page.where,
    )


def _annotation(annotation: Fields, place: Place | None) -> Annotation:
    if place is None:
        return Annotation()
    yes_no = annotation.text("yes_no_answer").lower()
    return Annotation(*place, yes_no=None if yes_no == "none" else yes_no)


def _record(article: Fields, is_train: bool, counts: Counter[str]) -> DocumentQuestion:
    data = article.text("document_plaintext").encode("utf-8", "surrogatepass")
    texts: list[str] = []
    candidates: list[list[int]] = []
    passages: dict[int, Passage] = {}  # by the number of the candidate
    for number, candidate in enumerate(article.objects("passage_answer_candidates")):
        begin, end = _bytes(candidate, data, counts)
        text = _text(data[begin:end])
        if is_blank(text):
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
        if first <= begin and end <= last and not is_blank(text):
            return paragraph, (Answer(text, len(_text(data[first:begin]))),)
        counts["minimal_answers_outside_passage"] += 1
    return paragraph, ()


def _bytes(span: Fields, data: bytes, counts: Counter[str]) -> tuple[int, int]:
    """Return where a span begins and ends; an offset inside a character becomes the character's first byte."""
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
