"""LibreOffice's help, English-German, page by page: free text with whole documents, for demonstrations and tests.

Not in the paper. `--root` is a folder where two packages of Debian were unpacked; nothing is installed::

    apt-get download libreoffice-help-en-us libreoffice-help-de
    dpkg-deb -x libreoffice-help-en-us_*.deb root
    dpkg-deb -x libreoffice-help-de_*.deb root

so that it holds `usr/share/libreoffice/help/en-US/text` and `.../de/text` with the same `.html` pages. Known to
work: 4:7.4.7-1+deb12u14 (Debian 12), which gives 2,250, 75 and 148 pages with 49,012, 884 and 2,319 segments.
Licence: MPL-2.0, some parts Apache-2.0.

A paragraph or heading has the same id in every language, so the alignment is exact. Left out and counted: code,
paragraphs that are equal in both languages or empty in one, pages with fewer than two segments. A hash of a page's path
decides its split: 4 % are validation, 8 % are test. Pages repeat much ("Example:"), so segments of these two whose
English side also stands in the training part are left out there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hat_fairseq.data.formats.libreoffice_help import page_paths, read_page, share
from hat_fairseq.data.formats.release import release_folder
from hat_fairseq.data.record import Record

SPLITS = ("train", "valid", "test")
DEFAULTS = {
    "source_language": "en",
    "target_language": "de",
    "aligned": True,
    "target_separator": True,
    "on_misaligned": "error",  # the ids of the paragraphs leave nothing to doubt
}
LANGUAGES = ("en-US", "de")
PER_MILLE = {"valid": range(40), "test": range(40, 120)}


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the pages of a split."""
    folder = release_folder(root, "the unpacked packages libreoffice-help-en-us and libreoffice-help-de")
    known = frozenset() if split == "train" else _training_sources(folder)
    for page in _pages(folder, split, counts):
        document = read_page(folder, page, LANGUAGES, counts)
        pairs = list(zip(document.sentences or (), document.target or (), strict=True))
        kept = [both for both in pairs if both[0] not in known]
        counts["segments_that_training_has_too"] += len(pairs) - len(kept)
        if len(kept) < 2:
            counts["pages_with_fewer_than_two_segments"] += 1
            continue
        yield replace(document, parts=(tuple(one for one, _ in kept),), target=tuple(other for _, other in kept))


def _pages(root: Path, split: str, counts: Counter[str]) -> Iterator[str]:
    for page in page_paths(root, LANGUAGES, counts):
        number = share(page, 1000)
        if split == next((name for name, numbers in PER_MILLE.items() if number in numbers), "train"):
            yield page


@lru_cache(maxsize=1)
def _training_sources(root: Path) -> frozenset[str]:
    """English segments of the training part; read once for the two other splits."""
    uncounted: Counter[str] = Counter()
    return frozenset(text for page in read("train", root, uncounted) for text in page.sentences or ())
