from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from releases import RELEASES, write_lines, write_release

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record

SPLIT_FILE = "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json"


def read(split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader("xsum").read(split, root, Counter() if counts is None else counts))


#: What the Hugging Face release has of two articles.
ROWS = [
    {
        "document": f"{name} paints {thing}. The painter lives in {town}. Many people bought pictures of {thing}.\n"
        f"{name} began when the old school closed. A new exhibition opens in May.",
        "summary": f"{name} shows new pictures.",
        "id": number,
    }
    for number, name, town, thing in (("3", "Dov Levi", "Haifa", "clocks"), ("4", "Eva Lind", "Malmö", "maps"))
]


def json_lines(records: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def write_csv(path: Path, records: list[dict[str, str]], columns: str = "document summary id") -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns.split())
        writer.writeheader()
        writer.writerows(records)


FORMS: dict[str, Callable[[Path], object]] = {
    "summaries": partial(write_release, "xsum"),
    "CSV": lambda root: write_csv(root / "validation.csv", ROWS),
    "JSON lines": lambda root: write_lines(root / "validation.jsonl", ROWS),
    "JSON lines in .json": lambda root: write_lines(root / "validation.json", ROWS),
    "compressed": lambda root: (root / "val.jsonl.gz").write_bytes(gzip.compress(json_lines(ROWS))),
    "JSON list": lambda root: (root / "validation.json").write_text(json.dumps(ROWS, indent=1)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_release_gives_the_same_articles(form: str, tmp_path: Path) -> None:
    FORMS[form](tmp_path)
    articles = read("valid", tmp_path)
    assert [(article.id, " ".join((article.text or "").split())) for article in articles] == [
        (row["id"], " ".join(row["document"].split())) for row in ROWS
    ]
    assert [" ".join(article.target or ()).strip() for article in articles] == [row["summary"] for row in ROWS]


def test_summaries_are_complete_and_the_buttons_of_the_page_are_counted() -> None:
    counts: Counter[str] = Counter()
    assert [len(read(split, RELEASES / "xsum", counts)) for split in ("train", "valid", "test")] == [3, 2, 2]
    assert counts == Counter(page_buttons_removed=7)


def test_a_long_article_in_a_csv_is_read(tmp_path: Path) -> None:
    """The csv module takes 131,072 characters unless it is told otherwise."""
    write_csv(tmp_path / "train.csv", [{"document": "word " * 40000, "summary": "s", "id": "a"}])
    assert len((read("train", tmp_path)[0].text or "").split()) == 40000


def without_body(root: Path) -> None:
    write_release("xsum", root)
    path = root / "bbc-summary-data/1.summary"
    path.write_text(path.read_text().partition("[SN]RESTBODY[SN]")[0])


def without_article(root: Path) -> None:
    write_release("xsum", root)
    (root / "bbc-summary-data/2.summary").unlink()


def split_file(text: str) -> Callable[[Path], object]:
    def make(root: Path) -> None:
        write_release("xsum", root)
        (root / SPLIT_FILE).write_text(text)

    return make


def two_tables(root: Path) -> None:
    for ending in ("csv", "jsonl"):
        (root / f"train.{ending}").touch()


REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (without_article, r"2\.summary is missing, which XSum-TRAINING.* lists; unpack the arch"),
    (without_body, r"1\.summary: no \[SN\]RESTBODY\[SN\], so this is no complete article"),
    (split_file('{"train": ["1"'), r"5-5\.json:1: no JSON \(Expecting"),
    (split_file('{"test": []}'), r"5-5\.json: no JSON object with train and validation and test \('train'\)"),
    (split_file("[]"), r"5-5\.json: no JSON object with train and validation and test"),
    (lambda root: None, r"expected bbc-summary-data/ beside XSum-TRAINING\S+, or one file train\.csv .*, found none"),
    (two_tables, r"found \S+train\.csv and \S+train\.jsonl"),
    (
        lambda root: write_csv(root / "train.csv", [], "article summary id"),
        r"train\.csv:1: expected the columns document, summary, id, found article, summary, id",
    ),
    (
        lambda root: (root / "train.csv").write_text('document,summary,id\na,"b'),
        r"train\.csv:2: unexpected end of data",
    ),
    (
        lambda root: write_lines(root / "train.jsonl", [{"document": "a", "summary": None, "id": "b"}]),
        r"train\.jsonl:1: summary must be a string, not None",
    ),
    (lambda root: (root / "train.json").write_text('[{"document": "a"'), r"train\.json:1: no JSON .*cut off"),
    (lambda root: (root / "train.json").write_text("[1]"), r"train\.json, record 1: expected a JSON object, found 1"),
    (
        lambda root: (root / "train.json").write_text('[{"document": "a"}]'),
        r"train\.json, record 1: expected an object with document, summary, id, found document",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_is_no_release_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("train", tmp_path)


def test_the_split_file_is_needed(tmp_path: Path) -> None:
    write_release("xsum", tmp_path)
    (tmp_path / SPLIT_FILE).unlink()
    with pytest.raises(ValueError, match="5-5.json is missing; the folder must hold bbc-summary-data/ beside XSum"):
        read("train", tmp_path)
    with pytest.raises(ValueError, match="--root DIR is required: .* containing bbc-summary-data/"):
        read("train", None)
