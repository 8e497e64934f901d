"""Questions on pages of Wikipedia whose annotators choose a candidate: Natural Questions and TyDi QA as released."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields, read_json_lines
from hat_fairseq.data.kinds import Annotation, Answer, DocumentQuestion
from release import release_folder

Place = tuple[int, tuple[Answer, ...]]  # number of a paragraph, and short answers in it


def pages(root: Path | None, pattern: str, content: str) -> Iterator[Fields]:
    """Yield the questions in the files of JSON lines under `--root` that match `pattern`; ValueError for none."""
    folder = release_folder(root, content)
    paths = sorted(folder.rglob(pattern))
    if not paths:
        raise ValueError(f"{folder} has no {pattern}; it must contain {content}")
    return (Fields(record, f"{path}:{number}") for path in paths for number, record in read_json_lines(path))


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
