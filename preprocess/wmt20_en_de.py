"""WMT20 news, English-German, whole documents (Rohde et al. 2021, section 4.2).

`--root` is a folder that contains the files below, at any depth, plain or `.gz`, from https://www.statmt.org/wmt20/

train   `europarl-v10.de-en.tsv` (statmt.org/europarl), `news-commentary-v15.de-en.tsv` (data.statmt.org) and
        `RAPID_2019.de-en.xlf` (data.statmt.org/wmt20/translation-task/rapid)
valid   newstest2018, 122 documents, 2,998 segments: from `dev.tgz`
test    newstest2020, 130 documents, 1,418 segments: from `test.tgz`
test1   newstest2019: from `dev.tgz`

The paper: "We use the WMT18 test data for validation and test the models on both the WMT19 and WMT20 test data". Its
Table 2 counts 363K training documents and does not say of which corpora; these three are the ones that were released
with document boundaries, and it is not known whether they give that number. Licence: the test sets are free for
research; for the corpora see their pages.

Test sets are looked for by name anywhere under the root, as `.sgm` of both languages or as `.xml`, also `.gz`::

    newstest2018-ende-src.en.sgm with newstest2018-ende-ref.de.sgm, or newstest2018.en-de.xml

and training corpora likewise, in any version: `europarl-v10.de-en.tsv`, `news-commentary-v15.de-en.tsv`,
`RAPID_2019.de-en.xlf`. Those that are there are used; how many documents each gave, and how many are not there, is in
the manifest.

Training corpora are `.tsv` with one segment pair on a line, and XLIFF 2, the form of Rapid.

What is sure: `news-commentary-v15.de-en.tsv.gz` has German in the first column and English in the second, and a line
without text (empty, or a tab alone) ends a document. A line with text in one language only is a segment that nobody
translated. `europarl-v10.de-en.tsv.gz` has the same two columns.

What is not: in which way the parallel files of Europarl v10 mark their documents. Those in one language name the
document (`ep-96-04-15`, `ep-07-01-15-003`) in a column after the text. So both ways are read, a line without text
and a change of that name, and a file with neither is refused: it would be one document of a million segments.

A few lines of Europarl have a tab within a text. A line with more or fewer columns than the first is left out and
counted, because nobody can tell what belongs to what.

XLIFF: `<file id=> <unit id=> <segment> <source xml:lang=> <target xml:lang=>`; each `<file>` is a document.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bitext import Side, join, pair, read_sides, read_test_set
from hat_fairseq.data.files import read_columns
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import is_blank
from markup import Tag, scan
from release import find, release_folder

SETS = {"valid": "newstest2018", "test": "newstest2020", "test1": "newstest2019"}
SPLITS = ("train", *SETS)

DEFAULTS = {
    "source_language": "en",
    "target_language": "de",
    "aligned": True,
    "target_separator": True,
    "on_misaligned": "merge",  # the corpora have lines that nobody translated; in a document, nothing should go missing
    "on_empty": "drop",
}
RELEASE = {"valid": (122,), "test": (130,)}
PAPER = {
    "documents": {"train": "363K", "valid": "122", "test": "130"},
    "source_words": "354",
    "source_tokens": "446",
    "target_words": "331",
    "target_tokens": "460",
}
CORPORA = ("europarl-v*.{pair}.tsv", "news-commentary-v*.{pair}.tsv", "RAPID_*.{pair}.xlf")
TAGS = ("file", "segment", "source", "target")
SITTING = re.compile(r"ep-\d\d-\d\d-\d\d(?:-\d+)?")


def read_news(language: str, split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the documents of a split, from English into `language`."""
    folder = release_folder(root, "the unpacked dev.tgz and test.tgz of WMT20 and its training corpora")
    if split == "train":
        return _read_corpora(folder, language, counts)
    return _test_set(folder, SETS[split], language, counts)


def _test_set(root: Path, name: str, language: str, counts: Counter[str]) -> Iterator[Record]:
    sgm = [f"{name}-en{language}-src.en.sgm", f"{name}-en{language}-ref.{language}.sgm"]
    xml = f"{name}.en-{language}.xml"
    source, target, both = (find(root, file) for file in (*sgm, xml))
    if both is not None and source is None and target is None:
        return read_test_set(both, "en", language, counts)
    if source is None or target is None or both is not None:
        present = ", ".join(str(file) for file in (source, target, both) if file is not None)
        raise ValueError(f"{root}: expected {sgm[0]} with {sgm[1]}, or {xml}, found {present or 'neither'}")
    return join(read_sides(source), read_sides(target), counts)


def _read_corpora(root: Path, language: str, counts: Counter[str]) -> Iterator[Record]:
    names = [corpus.format(pair=f"{language}-en") for corpus in CORPORA]
    files = [file for name in names if (file := find(root, name)) is not None]
    if not files:
        raise ValueError(f"{root} has none of {', '.join(names)} (or .gz)")
    counts["training_corpora_not_there"] += len(names) - len(files)
    for file in files:
        stem = file.name.partition(f".{language}-en")[0]
        sides = read_xliff(file, (language, "en")) if ".xlf" in file.suffixes else read_tsv(file, counts)
        for number, (other, english) in enumerate(sides, start=1):
            counts[f"documents_of_{stem}"] += 1
            yield pair(english, other, f"{stem}-{number}")


def read_tsv(path: Path, counts: Counter[str]) -> Iterator[tuple[Side, Side]]:
    """Yield the documents, first column first; their ids are numbers.

    ValueError for one column, no boundaries, or no text.
    """
    sides: tuple[Side, Side] | None = None
    name, documents, width, last = "", 0, 0, 0
    for number, columns in read_columns(path):
        has_text = not all(map(is_blank, columns[:2]))
        width = width or (has_text and len(columns))
        if has_text and len(columns) != width:
            counts["lines_with_other_columns_left_out"] += 1
            continue
        new_name = next(filter(SITTING.fullmatch, columns[2:]), "")
        if sides is not None and (not has_text or new_name != name):
            yield sides
            sides = None
        if not has_text:
            continue
        if width < 2:
            raise ValueError(f"{path}:{number}: one column instead of two with a tab between them: {columns[0]:.60}")
        if sides is None:
            documents, name = documents + 1, new_name
            sides = Side(path, number), Side(path, number)
        for side, column in zip(sides, columns, strict=False):
            side.segments.append(column)
            side.last = last = number
    if documents == 1:  # a line without text at the end is no boundary either
        raise ValueError(
            f"{path}: no line without text and no names of documents (ep-...) in {last} lines, so this release has no "
            "document boundaries; take one that has"
        )
    if documents == 0:
        raise ValueError(f"{path} has no text")
    if sides is not None:
        yield sides


def read_xliff(path: Path, languages: tuple[str, str]) -> Iterator[tuple[Side, Side]]:
    """Yield the documents of a file in the order of `languages`; a segment without `<target>` has the empty string.

    Raises:
        ValueError: text in another language or outside of a file, a <file> without its end, a corpus without
            documents; with file and line.
    """
    sides: tuple[Side, Side] | None = None
    inside: Side | None = None
    documents = 0
    for number, item in scan(path, TAGS):
        if isinstance(item, str):
            if inside is not None:
                inside.add_text(item)
        elif item.name == "file":
            if item.closing:
                if sides is not None:
                    yield sides
                sides = None
                continue
            _check_closed(sides)
            documents += 1
            sides = Side(path, number), Side(path, number)
        elif sides is None:
            raise ValueError(f"{path}:{number}: <{item.name}> outside of <file>")
        elif item.name == "segment":
            if not item.closing:
                for side in sides:
                    side.segments.append("")
        else:
            inside = None if item.closing else _enter(sides, item, languages, f"{path}:{number}")
        for side in sides or ():
            side.last = number
    _check_closed(sides)
    if not documents:
        raise ValueError(f"{path}: no <file> in it, so this is no XLIFF corpus")


def _check_closed(sides: tuple[Side, Side] | None) -> None:
    if sides is not None:
        raise ValueError(f"{sides[0].where}: <file> is not closed; is the corpus cut off?")


def _enter(sides: tuple[Side, Side], tag: Tag, languages: tuple[str, str], where: str) -> Side:
    index = ("source", "target").index(tag.name)
    language = tag.attributes.get("xml:lang", languages[index])
    if language.partition("-")[0].lower() != languages[index]:
        raise ValueError(f"{where}: <{tag.name}> is in {language!r} instead of {languages[index]!r}")
    if not sides[index].segments:
        raise ValueError(f"{where}: <{tag.name}> outside of <segment>")
    return sides[index]


read = partial(read_news, "de")
