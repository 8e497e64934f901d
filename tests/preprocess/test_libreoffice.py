from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from preprocess.parallel_containers import write_libreoffice_help_en_de

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from libreoffice_help_en_de import HELP, LANGUAGES, read_page

PAGE = "shared/01/page"


def read(split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader("libreoffice_help_en_de").read(split, root, Counter() if counts is None else counts))


def write_page(root: Path, english: str, german: str) -> None:
    for language, body in zip(LANGUAGES, (english, german), strict=True):
        path = root / HELP / language / "text" / f"{PAGE}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<html>\n<body>\n{body}\n</body></html>\n", encoding="utf-8")


def test_the_pages_and_what_is_left_out(tmp_path: Path) -> None:
    write_libreoffice_help_en_de(tmp_path)
    counts: Counter[str] = Counter()
    pages = {split: read(split, tmp_path, counts) for split in ("train", "valid", "test")}
    assert {split: len(documents) for split, documents in pages.items()} == {"train": 16, "valid": 4, "test": 5}
    (page,) = (page for page in pages["train"] if page.id == "smath/guide/align")
    assert (page.sentences or ())[0] == "Manually Aligning Formula Parts"
    assert (page.target or ())[0] == "Formelteile manuell ausrichten"
    assert page.origin is not None and page.origin.startswith("en-US/text/smath/guide/align.html:")
    assert +counts == {
        "segments_empty_in_a_language": 79,
        "segments_equal_in_both_languages": 11,
        "segments_of_code": 4,
        "segments_that_training_has_too": 2,
    }


def test_no_test_segment_is_in_training(tmp_path: Path) -> None:
    write_libreoffice_help_en_de(tmp_path)
    known = {text for page in read("train", tmp_path) for text in page.sentences or ()}
    for split in ("valid", "test"):
        assert not known & {text for page in read(split, tmp_path) for text in page.sentences or ()}


def test_paragraphs_are_paired_by_their_ids(tmp_path: Path) -> None:
    english = (
        '<h1 id="hd_1">One <a href="x">&amp; two</a></h1><p id="par_2" class="paragraph">Twice</p>\n'
        '<p class="embedded">without id</p><pre id="par_3" class="code">x = 1</pre><p id="par_4">LibreOffice</p>\n'
        '<p id="par_2">Twice,\n again<br>\nhere</p><p id="par_5">only English</p><p id="par_6"><img src="x"></p>'
    )
    german = (
        '<h1 id="hd_1">Eins &amp; <span class="emph">zwei</span></h1><p id="par_2">Zweimal</p>'
        '<p id="par_2">Noch einmal</p><pre id="par_3">y = 1</pre><p id="par_4">LibreOffice</p><p id="par_6">Bild</p>'
    )
    write_page(tmp_path, english, german)
    counts: Counter[str] = Counter()
    page = read_page(tmp_path, PAGE, counts)
    assert page.sentences == ("One & two", "Twice", "Twice, again here")
    assert page.target == ("Eins & zwei", "Zweimal", "Noch einmal")
    assert page.origin == f"en-US/text/{PAGE}.html:3-7, de/text/{PAGE}.html:3-3"
    assert counts == {
        "segments_of_code": 1,
        "segments_equal_in_both_languages": 1,
        "segments_in_one_language_only": 1,
        "segments_empty_in_a_language": 1,
    }


def test_one_alternative_of_a_sentence_is_kept(tmp_path: Path) -> None:
    switch = (
        '<p id="par_1">{} <span class="switchinline"><span id="MACx" class="MAC"><span class="emph">LibreOffice</span>'
        '</span><span id="defaultx"><span class="emph">{}</span></span></span>.</p>'
        '<p id="par_2">{}<span class="switchinline"><span class="WIN" id="WINx"> {}</span></span>!</p>'
    )
    write_page(
        tmp_path, switch.format("Choose", "Tools", "the path", "or drive"), switch.format("Wähle", "Extras", "a", "b")
    )
    page = read_page(tmp_path, PAGE, Counter())
    assert page.sentences == ("Choose Tools.", "the path or drive!")
    assert page.target == ("Wähle Extras.", "a b!")


def test_what_is_no_unpacked_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"en-US/text has no pages .* unpack the package libreoffice-help-en-us"):
        read("train", tmp_path)
    with pytest.raises(ValueError, match="--root DIR is required: .* containing the unpacked packages"):
        read("train", None)
    write_page(tmp_path, '<p id="a">x</p>', "y")
    page = tmp_path / HELP / "de" / "text" / f"{PAGE}.html"
    page.write_bytes(b"<p>\n\xe4</p>")
    with pytest.raises(ValueError, match=r"page\.html:2: invalid UTF-8"):
        read_page(tmp_path, PAGE, Counter())
