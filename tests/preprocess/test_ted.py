from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from preprocess.parallel_containers import iwslt_xml, train_tags, wikipedia_zh_en, write, write_ted17_zh_en

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from ted17_zh_en import read_training

TEST = "en-zh/IWSLT17.TED.tst2017.en-zh.en.xml"
TRAIN = "zh-en/train.tags.zh-en.{}"


def read(split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader("ted17_zh_en").read(split, root, Counter() if counts is None else counts))


def test_a_release_gives_the_talks_it_was_made_of(tmp_path: Path) -> None:
    write_ted17_zh_en(tmp_path)
    talks = wikipedia_zh_en()
    counts: Counter[str] = Counter()
    train = read("train", tmp_path, counts)
    stripped = [tuple(text.strip() for text in talk.sentences or ()) for talk in talks]
    assert [talk.id for talk in train] == ["1", "2", "3", "4", "5", "6"]
    assert [(talk.sentences, talk.target) for talk in train] == [(talk.sentences, talk.target) for talk in talks[:6]]
    assert counts == {"titles_and_descriptions_left_out": 12}
    assert [talk.id for talk in read("valid", tmp_path)] == [f"{name}-{number}" for name, number in VALID]
    for split, name in (("test", "tst2017-108"), ("test1", "tst2016-107")):
        (talk,) = read(split, tmp_path)
        assert talk.id == name and talk.sentences == stripped[6 + (int(name[-3:]) - 100) % 6]


VALID = [("dev2010", 100), *((f"tst201{year}", 101 + year) for year in range(6))]


def test_a_talk_says_where_it_stands(tmp_path: Path) -> None:
    write_ted17_zh_en(tmp_path)
    first, *_ = read("train", tmp_path)
    length = len(first.sentences or ())
    assert first.origin == f"train.tags.zh-en.zh:5-{length + 7}, train.tags.zh-en.en:5-{length + 7}"
    (test,) = read("test", tmp_path)
    assert test.origin is not None and test.origin.startswith("IWSLT17.TED.tst2017.zh-en.zh.xml:4-")
    assert ", IWSLT17.TED.tst2017.en-zh.en.xml:4-" in test.origin


def test_training_files_without_doc_are_read_too(tmp_path: Path) -> None:
    talks = wikipedia_zh_en()[:3]
    lines = [line for line in train_tags(talks, 1) if not line.startswith(("<doc", "</doc"))]
    path = tmp_path / "train"
    path.write_bytes(("\ufeff" + "\r\n".join([*lines[:6], "R&amp;D &lt; x & y", "", *lines[6:]]) + "\r\n").encode())
    sides = list(read_training(path, Counter()))
    assert [side.id for side in sides] == ["1", "2", "3"]
    assert sides[0].segments == ["R&D < x & y", "", *(talks[0].target or ())]
    assert [tuple(side.segments) for side in sides[1:]] == [talk.target for talk in talks[1:]]


def test_a_talk_id_with_a_space_begins_a_talk(tmp_path: Path) -> None:
    write(tmp_path / "train.tags", ["<talkid>7</talkid>", "x", "<talkid>8 b</talkid>", "y"])
    assert [(side.id, side.segments) for side in read_training(tmp_path / "train.tags", Counter())] == [
        ("7", ["x"]),
        ("8 b", ["y"]),
    ]


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        (
            TRAIN.format("en"),
            ["<url>x</url>", "text"],
            r"train\.tags\.zh-en\.en:2: text before the first <talkid>: text",
        ),
        (TRAIN.format("en"), ["<talkid> </talkid>", "x"], r"train\.tags\.zh-en\.en:1: a talk without an id"),
        (TRAIN.format("en"), ["<url>x</url>"], r"train\.tags\.zh-en\.en: no <talkid> in it"),
        (
            TRAIN.format("en"),
            train_tags(wikipedia_zh_en()[:5], 1),
            r"train\.tags\.zh-en\.zh:\d+: document '6' is not in .*train\.tags\.zh-en\.en \(1 of 6",
        ),
        (
            TRAIN.format("zh"),
            ["<talkid>7</talkid>", "x"] * 2,
            r"train\.tags\.zh-en\.zh:3: document '7' was there before, in",
        ),
        (
            TEST,
            ["<refset>", "<doc docid=1>", "<seg id=1>x</seg>"],
            r"tst2017\.en-zh\.en\.xml:2: a document without talkid",
        ),
        (TEST, iwslt_xml(wikipedia_zh_en()[:1], 1, "en", 55), r"zh\.xml:4: document '108' is not in .*tst2017\.en-zh"),
    ],
)
def test_what_is_no_release_is_refused(name: str, lines: list[str], message: str, tmp_path: Path) -> None:
    write_ted17_zh_en(tmp_path)
    write(tmp_path / name, lines)
    with pytest.raises(ValueError, match=message):
        read("train" if "train" in name else "test", tmp_path)


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    write_ted17_zh_en(tmp_path)
    (tmp_path / "zh-en" / "IWSLT17.TED.tst2014.zh-en.en.xml").unlink()
    with pytest.raises(
        ValueError, match=r"IWSLT17\.TED\.tst2014\.zh-en\.en\.xml or IWSLT17\.TED\.tst2014\.en-zh\.en\.xml is"
    ):
        read("valid", tmp_path)
    with pytest.raises(ValueError, match="--root DIR is required"):
        read("train", None)
