"""Scientific articles with their abstracts, in the format of Cohan et al. 2018 (PubMed, arXiv).

JSON lines with these keys::

    article_id      a string, once in a file
    article_text    list of sentences: the body
    abstract_text   list of sentences, each between <S> and </S>: the target
    sections        list of lists of sentences: the body once more, by sections
    section_names   list of strings
    labels          null; may be missing
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hat_fairseq.data.document import Document
from hat_fairseq.data.files import read_json_lines
from hat_fairseq.data.formats.release import release_file, release_folder

SPLITS = ("train", "valid", "test")
DEFAULTS = {
    "bpe": "gpt2",
    "splitter": "given",
    "max_source_tokens": 3071,  # with </s> the paper's 3072
    "max_target_tokens": 511,
    "long_source": "truncate",
    "long_target": "truncate",
    "on_empty": "drop",
}

FILES = {"train": "train.txt", "valid": "val.txt", "test": "test.txt"}
KEYS = ("article_id", "article_text", "abstract_text", "sections", "section_names")
MARK = re.compile(r"</?S>")


def read_articles(split: str, root: Path | None, archive: str, counts: Counter[str]) -> Iterator[Document]:
    """Yield the articles of a split: the sentences of ``article_text``, abstracts as targets.

    ``article_text`` is what others measure on; where the sections say something else, that is counted. The release
    has articles without any text: they come as they are, for ``--on-empty`` to decide.

    Args:
        archive: the name of the folder in the release, for messages.

    Raises:
        ValueError: a file is missing or not in this format; with file and line.
    """
    content = f"{', '.join(FILES.values())}, as the folder {archive} of the release does"
    for number, record in read_json_lines(release_file(release_folder(root, content) / FILES[split], content)):
        where = f"{root}/{FILES[split]}:{number}"
        missing = [key for key in KEYS if key not in record]
        if missing:
            raise ValueError(f"{where}: no key {missing[0]!r}; the {archive} of Cohan et al. has {', '.join(KEYS)}")
        yield _article(record, where, counts)


def _article(record: dict[str, Any], where: str, counts: Counter[str]) -> Document:
    body = _strings(record["article_text"], "article_text", where)
    abstract = _strings(record["abstract_text"], "abstract_text", where)
    if not isinstance(record["sections"], list):
        raise ValueError(f"{where}: sections must be a list of lists, not {record['sections']!r:.60}")
    sections = [sentence for section in record["sections"] for sentence in _strings(section, "sections", where)]
    counts["articles_unlike_their_sections"] += list(filter(str.strip, body)) != list(filter(str.strip, sections))
    counts["abstract_sentences_without_marks"] += sum(not MARK.search(line) for line in abstract if line.strip())
    target = [MARK.sub(" ", sentence).strip() for sentence in abstract]
    return Document.from_json({"id": record["article_id"], "sentences": body, "target": target}, where)


def _strings(value: Any, key: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{where}: {key} must be a list of sentences, not {value!r:.60}")
    return value
