from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from preprocess.parallel_containers import (
    libreoffice_en_cs,
    libreoffice_en_de,
    sgm,
    tsv,
    write,
    write_wmt20_en_cs,
    write_wmt20_en_de,
    xliff,
    xml,
)

from bitext import join
from hat_fairseq.data.binarize import check_splits
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from wmt import read_tsv
from wmt_xml import read_sides, read_test_set

DEV = "dev/newstest2018-ende-{}.sgm"
WRITERS = {"wmt20_en_de": write_wmt20_en_de, "wmt20_en_cs": write_wmt20_en_cs}
TEXTS = {"wmt20_en_de": libreoffice_en_de, "wmt20_en_cs": libreoffice_en_cs}


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))


def texts(documents: list[Record]) -> list[tuple[tuple[str, ...] | None, tuple[str, ...] | None]]:
    return [(document.sentences, document.target) for document in documents]


def one_set(folder: Path, source: str, target: str) -> list[Record]:
    """Two ``.sgm`` files with the given content."""
    for name, content in (("src.sgm", source), ("ref.sgm", target)):
        (folder / name).write_bytes(content.encode())
    return list(join(read_sides(folder / "src.sgm"), read_sides(folder / "ref.sgm")))


@pytest.mark.parametrize("name", WRITERS)
def test_a_release_gives_the_texts_it_was_made_of(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path)
    counts: Counter[str] = Counter()
    documents = [document for split in find_reader(name).splits for document in read(name, split, tmp_path, counts)]
    expected = TEXTS[name]()
    assert sorted(texts(documents)) == sorted(texts(expected))
    assert +counts == {
        "documents_of_europarl-v10": 6,
        "documents_of_news-commentary-v15": 6,
        "documents_of_RAPID_2019": 4,
    }
    assert [document.id for document in documents[:1]] == ["europarl-v10-1"]
    assert len({document.id for document in documents}) == len(documents)


@pytest.mark.parametrize(
    ("name", "split", "source", "target"),
    [
        ("wmt20_en_de", "train", ("europarl-v10.de-en.tsv.gz", 1, 0), ("europarl-v10.de-en.tsv.gz", 1, 0)),
        ("wmt20_en_de", "valid", ("newstest2018-ende-src.en.sgm", 2, 3), ("newstest2018-ende-ref.de.sgm", 2, 3)),
        ("wmt20_en_cs", "test1", ("newstest2019.en-cs.xml", 4, 3), ("newstest2019.en-cs.xml", 0, 3)),
    ],
)
def test_a_document_says_where_it_stands(
    name: str, split: str, source: tuple[str, int, int], target: tuple[str, int, int], tmp_path: Path
) -> None:
    """File, first line, and how many lines its tags add to those of its segments; in XML the target comes behind."""
    WRITERS[name](tmp_path)
    (first, *_) = read(name, split, tmp_path)
    length = len(first.sentences or ())
    begin = target[1] or source[1] + length + 4
    expected = [
        f"{file}:{line}-{line + length + more - 1}" for file, line, more in (source, (target[0], begin, target[2]))
    ]
    assert first.origin == ", ".join(expected)


def test_what_looks_like_xml_is_read_as_it_is(tmp_path: Path) -> None:
    source = (
        '\ufeff<SRCSET setid=x srclang="any">\r\n<DOC sysid="ref" docid=a.1 origlang=\'en\'>\r\n<p>\r\n'
        '<seg id="1">A &amp; B &lt; C, D & E < F &#8211; R&D</seg>\r\n<SEG id=2>not closed\r\n over two lines\r\n'
        '<seg id="3"></seg>\r\n</p>\r\n</DOC>\r\n</SRCSET>\r\n'
    )
    target = '<refset>\n<doc docid="a.1"><hl><seg id="1">eins</seg></hl>\n<seg id="2"> zwei </seg><seg id="3"/></doc>\n'
    (document,) = one_set(tmp_path, source, target)
    assert document.id == "a.1"
    assert document.sentences == ("A & B < C, D & E < F – R&D", "not closed over two lines", "")
    assert document.target == ("eins", "zwei", "")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            "<doc docid=a>\n<seg id=1>x</seg>\n",
            "<doc docid=b>\n",
            r"src\.sgm:1: document 'a' is not in .*ref\.sgm \(1 of 1",
        ),
        ("<doc docid=a>\n", "<doc docid=a>\n<doc docid=b>\n", r"ref\.sgm:2: document 'b' is not in .*src\.sgm"),
        ("<doc docid=a>\n<doc docid=a>\n", "<doc docid=a>\n", r"src\.sgm:2: document 'a' was there before, in line 1"),
        ("<doc>\n", "<doc docid=a>\n", r"src\.sgm:1: a document without docid"),
        ("nothing\n", "<doc docid=a>\n", r"src\.sgm: no <doc> in it"),
        ("<seg id=1>x</seg>\n", "<doc docid=a>\n", r"src\.sgm:1: <seg> outside of the text of a document"),
        ("<doc docid=a>\nlost\n", "<doc docid=a>\n", r"src\.sgm:2: text outside of <seg>: lost"),
        (
            "<doc docid=a>\n<sge id=1>x</seg>\n",
            "<doc docid=a>\n",
            r"src\.sgm:2: (text outside of <seg>|</seg> without)",
        ),
        ("<doc docid=a\n>\n", "<doc docid=a>\n", r"src\.sgm:1: cannot read the tag <doc docid=a"),
        (
            "<doc docid=a>\n<seg id=1>x</seg>\n",
            "<doc docid=a>\n<seg id=2>x</seg>\n",
            r"src\.sgm:1: document 'a' has the segment '1' where .*ref\.sgm:1 has '2'",
        ),
    ],
)
def test_what_is_no_pair_of_sgm_files_is_refused(source: str, target: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        one_set(tmp_path, source, target)


def test_different_numbers_of_segments_are_left_to_the_pipeline(tmp_path: Path) -> None:
    (document,) = one_set(
        tmp_path, "<doc docid=a><seg id=1>x</seg><seg id=2>y</seg>\n", "<doc docid=a><seg id=1>z</seg>\n"
    )
    assert (document.sentences, document.target) == (("x", "y"), ("z",))


def test_invalid_utf_8_is_named(tmp_path: Path) -> None:
    write_wmt20_en_de(tmp_path)
    path = tmp_path / DEV.format("ref.de")
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xfc", 1))
    with pytest.raises(ValueError, match=r"newstest2018-ende-ref\.de\.sgm:\d+: invalid UTF-8, byte 0xfc"):
        read("wmt20_en_de", "valid", tmp_path)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_xml_has_both_languages_and_more(ending: str, tmp_path: Path) -> None:
    documents = libreoffice_en_cs()[:2]
    lines = xml(documents, ("en", "cs"))
    suite = [
        '<doc id="s" origlang="en" testsuite="t"><src lang="en"><p><seg id="1">x</seg></p></src></doc>',
        "</dataset>",
    ]
    second = [line.replace('"A"', '"B"').replace("<seg", "<seg").replace("</seg>", " B</seg>") for line in lines]
    begin, end = (next(i for i, line in enumerate(second) if tag in line) for tag in ('"B"', "</ref>"))
    lines[end + 1 : end + 1] = second[begin : end + 1]
    path = tmp_path / f"set.xml{ending}"
    write(path, [*lines[:-1], *suite])
    counts: Counter[str] = Counter()
    read = list(read_test_set(path, "en", "cs", counts))
    assert texts(read) == texts(documents) and counts == {"documents_of_test_suites_left_out": 1}
    first, second = read[0].references
    assert second == tuple(f"{segment} B" for segment in first) and len(read[1].references) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('<doc id="a"><src lang="en"></src></doc>', r"set\.xml:1: document 'a' has no <ref lang=de>"),
        ('<doc id="a">\n<ref lang="de"></ref></doc>', r"set\.xml:1: document 'a' has no <src lang=en>"),
        (
            '<doc id="a"><src lang="cs"></src><ref lang="de"></ref></doc>',
            r"set\.xml:1: document 'a' has no <src lang=en>",
        ),
        ("<doc><src></src><ref></ref></doc>", r"set\.xml:1: a document without id"),
        (
            '<doc id="a"><src/><ref/></doc>\n<doc id="a"><src/><ref/></doc>',
            r"set\.xml:2: document 'a' was there before",
        ),
        ('<doc id="a">\n<seg id="1">x</seg>', r"set\.xml:2: <seg> outside of the text of a document"),
        ('<doc id="a"><src>\nlost</src></doc>', r"set\.xml:2: text outside of <seg>: lost"),
        ("<dataset></dataset>", r"set\.xml: no <doc> in it"),
        (
            '<doc id="a"><src><seg id="1">x</seg></src><ref><seg id="2">y</seg></ref></doc>',
            r"set\.xml:1: document 'a' has the segment '1' where .* has '2'",
        ),
    ],
)
def test_what_is_no_test_set_in_xml_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "set.xml").write_text(content + "\n")
    with pytest.raises(ValueError, match=message):
        list(read_test_set(tmp_path / "set.xml", "en", "de", Counter()))


def test_segments_without_translation_stay_in_their_place(tmp_path: Path) -> None:
    content = "Eins.\tOne.\r\n\tTwo.\r\nDrei.\t\r\n\t\r\n\r\nVier.\tFour.\r\n"
    (tmp_path / "news-commentary-v15.de-en.tsv.gz").write_bytes(gzip.compress(("\ufeff" + content).encode()))
    counts: Counter[str] = Counter()
    documents = read("wmt20_en_de", "train", tmp_path, counts)
    assert texts(documents) == [(("One.", "Two.", ""), ("Eins.", "", "Drei.")), (("Four.",), ("Vier.",))]
    assert documents[0].origin == "news-commentary-v15.de-en.tsv.gz:1-3, news-commentary-v15.de-en.tsv.gz:1-3"
    assert counts["training_corpora_not_there"] == 2


def test_names_of_sittings_are_document_boundaries(tmp_path: Path) -> None:
    rows = ["Ja.\tYes.\tep-96-04-15\tx", "Gut.\tGood.\tep-96-04-15\tx", "Nein.\tNo.\tep-96-04-16-003\tx"]
    write(tmp_path / "europarl-v10.de-en.tsv", rows)
    assert [document.sentences for document in read("wmt20_en_de", "train", tmp_path)] == [("Yes.", "Good."), ("No.",)]


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("europarl-v10.de-en.tsv", ["a\tb", "c\td"], r"europarl-v10\.de-en\.tsv: no line without text .* in 2 lines"),
        ("europarl-v10.de-en.tsv", ["", "c", "a\tb"], r"europarl-v10\.de-en\.tsv:2: one column instead of two"),
        ("RAPID_2019.de-en.xlf", ["<xliff>"], r"RAPID_2019\.de-en\.xlf: no <file> in it"),
        ("RAPID_2019.de-en.xlf", ["<segment>"], r"RAPID_2019\.de-en\.xlf:1: <segment> outside of <file>"),
        ("RAPID_2019.de-en.xlf", ["<file id=1>", "<source>x</source>"], r"xlf:2: <source> outside of <segment>"),
        (
            "RAPID_2019.de-en.xlf",
            ["<file id=1>", "<segment>", "<source xml:lang=en>x</source>"],
            r"RAPID_2019\.de-en\.xlf:3: <source> is in 'en' instead of 'de'",
        ),
        ("other.tsv", ["a\tb"], r"has none of europarl-v\*\.de-en\.tsv, news-commentary-v\*\.de-en\.tsv, RAPID_"),
    ],
)
def test_what_is_no_training_corpus_is_refused(name: str, lines: list[str], message: str, tmp_path: Path) -> None:
    write(tmp_path / name, lines)
    with pytest.raises(ValueError, match=message):
        read("wmt20_en_de", "train", tmp_path)


def test_the_source_of_xliff_may_lack_its_target(tmp_path: Path) -> None:
    lines = xliff(libreoffice_en_de()[:2], ("en", "de"))
    lines.remove(next(line for line in lines if line.startswith("<target")))
    write(tmp_path / "RAPID_2019.de-en.xlf", lines)
    first, second = read("wmt20_en_de", "train", tmp_path)
    expected, untouched = texts(libreoffice_en_de()[:2])
    assert texts([first, second]) == [(("", *(expected[0] or ())[1:]), expected[1]), untouched]


@pytest.mark.parametrize(
    ("change", "split", "message"),
    [
        (
            lambda root: (root / DEV.format("ref.de")).unlink(),
            "valid",
            r"expected newstest2018-ende-src\.en\.sgm with .*ref",
        ),
        (
            lambda root: write(root / "newstest2018.en-de.xml", ["x"]),
            "valid",
            r"or newstest2018\.en-de\.xml, found .*sgm, ",
        ),
        (
            lambda root: write(root / "more" / "newstest2018-ende-src.en.sgm", sgm([], 0, "en")),
            "valid",
            "found more than one file for newstest2018",
        ),
        (
            lambda root: write(root / "europarl-v9.de-en.tsv", tsv([])),
            "train",
            r"found more than one file for europarl-v.*: .*europarl-v10.*, .*europarl-v9.*; keep only one",
        ),
    ],
)
def test_a_release_must_be_unambiguous_and_complete(change, split: str, message: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write_wmt20_en_de(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("wmt20_en_de", split, tmp_path)


def test_without_root_the_readers_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--root DIR is required: .* containing the unpacked dev.tgz and test.tgz"):
        read("wmt20_en_cs", "valid", None)


def test_a_corpus_in_two_columns_is_read_in_the_order_of_its_name(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    write(tmp_path / "x.tsv", ["eins\tone", "12.\tzwölf\ttwelve", "eins", "", "zwei\ttwo"])
    first, _ = read_tsv(tmp_path / "x.tsv", counts)
    assert [side.segments for side in first] == [["eins"], ["one"]]
    assert counts == {"lines_with_other_columns_left_out": 2}


def test_several_test_sets_are_numbered_as_fairseq_does() -> None:
    splits = find_reader("wmt20_en_de").splits
    assert splits == ("train", "valid", "test", "test1")
    check_splits(splits)
    with pytest.raises(ValueError, match="cannot number the splits train, test1; use test, test1"):
        check_splits(("train", "test1"))
