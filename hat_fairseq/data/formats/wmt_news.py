"""The news task of WMT20 with whole documents, for English into another language: what the readers of it share.

Test sets are looked for by name anywhere under the root, as `.sgm` of both languages or as `.xml`, also `.gz`::

    newstest2018-ende-src.en.sgm with newstest2018-ende-ref.de.sgm, or newstest2018.en-de.xml

and training corpora likewise, in any version: `europarl-v10.de-en.tsv`, `news-commentary-v15.de-en.tsv`,
`RAPID_2019.de-en.xlf`. Those that are there are used; how many documents each gave, and how many are not there, is in
the manifest.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.formats import wmt_corpora, wmt_sgm, wmt_xml
from hat_fairseq.data.formats.bitext import Side, join, pair
from hat_fairseq.data.formats.release import find, release_folder
from hat_fairseq.data.record import Record

SETS = {"valid": "newstest2018", "test": "newstest2020", "test1": "newstest2019"}
SPLITS = ("train", *SETS)

DEFAULTS = {
    "source_language": "en",
    "aligned": True,
    "target_separator": True,
    "on_misaligned": "merge",  # the corpora have lines that nobody translated; in a document, nothing should go missing
    "on_empty": "drop",
}

CORPORA = ("europarl-v*.{pair}.tsv", "news-commentary-v*.{pair}.tsv", "RAPID_*.{pair}.xlf")


def read(language: str, split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the documents of a split, from English into `language`."""
    folder = release_folder(root, "the unpacked dev.tgz and test.tgz of WMT20 and its training corpora")
    if split == "train":
        return _read_corpora(folder, language, counts)
    return _read_test_set(folder, SETS[split], language, counts)


def _read_test_set(root: Path, name: str, language: str, counts: Counter[str]) -> Iterator[Record]:
    sgm = [f"{name}-en{language}-src.en.sgm", f"{name}-en{language}-ref.{language}.sgm"]
    xml = f"{name}.en-{language}.xml"
    source, target, both = (find(root, file) for file in (*sgm, xml))
    if both is not None and source is None and target is None:
        return wmt_xml.read(both, "en", language, counts)
    if source is None or target is None or both is not None:
        found = ", ".join(str(file) for file in (source, target, both) if file is not None)
        raise ValueError(f"{root}: expected {sgm[0]} with {sgm[1]}, or {xml}, found {found or 'neither'}")
    return join(wmt_sgm.read_sides(source), wmt_sgm.read_sides(target))


def _read_corpora(root: Path, language: str, counts: Counter[str]) -> Iterator[Record]:
    names = [corpus.format(pair=f"{language}-en") for corpus in CORPORA]
    files = [file for name in names if (file := find(root, name)) is not None]
    if not files:
        raise ValueError(f"{root} has none of {', '.join(names)} (or .gz)")
    counts["training_corpora_not_there"] += len(names) - len(files)
    for file in files:
        stem = file.name.partition(f".{language}-en")[0]
        for number, (theirs, ours) in enumerate(_sides(file, language, counts), start=1):
            counts[f"documents_of_{stem}"] += 1
            yield pair(ours, theirs, f"{stem}-{number}")


def _sides(file: Path, language: str, counts: Counter[str]) -> Iterator[tuple[Side, Side]]:
    """The other language and English, as the names of the corpora have them."""
    if ".xlf" in file.suffixes:
        return wmt_corpora.read_xliff(file, (language, "en"))
    return wmt_corpora.read_tsv(file, counts)
