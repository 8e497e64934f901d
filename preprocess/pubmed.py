"""PubMed articles and their abstracts (Cohan et al. 2018).

`--root` is the folder `pubmed-dataset` of the release at https://github.com/armancohan/long-summarization (files at
Google Drive, mirrored at https://archive.org/details/armancohan-long-summarization-paper-code): `train.txt`,
`val.txt` and `test.txt` with 119,924, 6,633 and 6,658 articles, JSON lines with these keys::

    article_id      a string, once in a file
    article_text    list of sentences: the body
    abstract_text   list of sentences, each between <S> and </S>: the target
    sections        list of lists of sentences: the body once more, by sections
    section_names   list of strings
    labels          null; may be missing

The release states no licence. Articles and abstracts come in sentences, lower-cased, so `--splitter` is `given`. Some
articles have no text; `--on-empty drop`, the default here, drops and counts them. Rohde et al. 2021 print 112K training
articles and do not say which ones they left out.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hat_fairseq.data.files import Fields, read_json_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.text import is_blank
from release import release_file, release_folder

DEFAULTS = {"splitter": "given", "on_empty": "drop"}
RELEASE = {"train": (119924,), "valid": (6633,), "test": (6658,)}
PAPER = {
    "documents": {"train": "112K", "valid": "6.6K", "test": "6.7K"},
    "source_words": "3016",
    "source_tokens": "4016",
    "target_words": "178",
    "target_tokens": "258",
}
FILES = {"train": "train.txt", "valid": "val.txt", "test": "test.txt"}
KEYS = ("article_id", "article_text", "abstract_text", "sections", "section_names")
MARK = re.compile(r"</?S>")


def read_articles(archive: str, split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the articles of a split: the sentences of `article_text`, abstracts as targets.

    `article_text` is what others measure on; where the sections say something else, that is counted. The release
    has articles without any text: they come as they are, for `--on-empty` to decide. `archive`: the name of the
    folder in the release. ValueError with file and line for a missing file or another format.
    """
    content = f"{', '.join(FILES.values())}, as the folder {archive} of the release does"
    path = release_file(release_folder(root, content) / FILES[split], content)
    for number, record in read_json_lines(path, counts):
        where = f"{root}/{FILES[split]}:{number}"
        missing = [key for key in KEYS if key not in record]
        if missing:
            raise ValueError(f"{where}: no key {missing[0]!r}; the {archive} of Cohan et al. has {', '.join(KEYS)}")
        yield _article(Fields(record, where), counts)


def _article(fields: Fields, counts: Counter[str]) -> Document:
    body, abstract = fields.texts("article_text"), fields.texts("abstract_text")
    sections = [fields.checked(t, str, "a sentence of sections") for s in fields.items("sections", list) for t in s]
    counts["articles_unlike_their_sections"] += list(filter(str.strip, body)) != list(filter(str.strip, sections))
    counts["abstract_sentences_without_marks"] += sum(not MARK.search(line) for line in abstract if not is_blank(line))
    target = [MARK.sub(" ", sentence).strip() for sentence in abstract]
    return Document(fields.text("article_id"), sentences=body, target=tuple(target), origin=fields.where)


read = partial(read_articles, "pubmed-dataset")
