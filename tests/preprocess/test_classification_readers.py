"""The readers of MultiNLI, Hyperpartisan and IMDB on tiny releases, and what they refuse."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from releases import RELEASES, write_release

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record

SPLITS = ("train", "valid", "test")
XML = "articles-training-byarticle-20181122.xml"
TRUTH = "ground-truth-training-byarticle-20181122.xml"


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


# MultiNLI


@pytest.mark.parametrize(("form", "undecided"), [("mnli", 1), ("glue", 0)])
def test_both_releases_of_mnli_give_the_same_pairs(form: str, undecided: int) -> None:
    for split, first in (("train", "Anna Berg"), ("valid", "Dov Levi"), ("test", "Eva Lind")):
        counts: Counter[str] = Counter()
        examples = read("mnli", split, RELEASES / form, counts)
        labels = [example.label for example in examples]
        assert labels == ["entailment", "neutral", "contradiction"] * (3 if split == "train" else 2)
        assert examples[1].parts[0].startswith(first) and examples[1].parts[1].startswith("The painter")
        assert [example.parts for example in examples] == [one.parts for one in read("mnli", split, RELEASES / "glue")]
        assert counts["pairs_without_agreed_label_dropped"] == undecided
        assert examples[0].id == f"{2 + undecided}-0n" and len({example.id for example in examples}) == len(examples)


def test_quotes_in_mnli_are_characters() -> None:
    texts = [part for example in read("mnli", "train", RELEASES / "glue") for part in example.parts]
    assert sum(text.count('"') % 2 for text in texts) == 3, "an open quotation mark would swallow lines"


def test_a_row_may_end_behind_what_is_read(tmp_path: Path) -> None:
    write_release("mnli", tmp_path)
    path = tmp_path / "multinli_1.0_train.txt"
    path.write_text("".join(line.rstrip("\t\n") + "\n" for line in path.read_text().splitlines()), newline="\n")
    assert read("mnli", "train", tmp_path) == read("mnli", "train", RELEASES / "mnli")


def changed_row(root: Path, old: str, new: str) -> None:
    header, row, *_ = (RELEASES / "glue/train.tsv").read_text().splitlines(keepends=True)
    (root / "train.tsv").write_text(header + row.replace(old, new, 1))


REFUSED_MNLI: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: None, r"train\.tsv is missing; the folder must hold train\.tsv, dev_matched\.tsv"),
    (
        lambda root: changed_row(root, "\tentailment\n", "\tmaybe\n"),
        r"train\.tsv:2: the label is 'maybe', not contradiction, e",
    ),
    (lambda root: (root / "train.tsv").write_text("a\tb\n1\t2\n"), r"train\.tsv:1: no column 'pairID'; the col.* a, b"),
    (lambda root: (root / "train.tsv").write_text(""), r"train\.tsv is empty"),
    (lambda root: changed_row(root, "paints", "one\ttwo"), r"train\.tsv:2: 13 columns, the first line names 12"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED_MNLI)
def test_what_is_no_mnli_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("mnli", "train", tmp_path)


def test_a_cut_off_row_of_mnli_is_refused(tmp_path: Path) -> None:
    write_release("glue", tmp_path)
    path = tmp_path / "train.tsv"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ValueError, match=r"train\.tsv:10: \d+ columns, the first line names 12; is the file cut off\?"):
        read("mnli", "train", tmp_path)


# Hyperpartisan


def test_articles_are_read_in_their_split_and_references_resolved() -> None:
    counts: Counter[str] = Counter()
    splits = {split: read("hyperpartisan", split, RELEASES / "hyperpartisan", counts) for split in SPLITS}
    assert {split: [int(one.id) for one in examples] for split, examples in splits.items()} == {
        "train": [84, 93, 102],
        "valid": [18, 28],
        "test": [39, 79, 569],
    }
    first, second = splits["valid"]
    assert first.parts == ("A bridge was painted & cleaned.\nDov Levi paints clocks. The painter lives in Haifa.",)
    assert (first.label, second.label) == ("false", "true")
    assert counts == Counter(lines_with_references_resolved=2)


def test_text_between_paragraphs_and_in_links_is_kept(tmp_path: Path) -> None:
    write_release("hyperpartisan", tmp_path)
    body = 'Before. <p>One <a href="x">link</a>, more.</p> Between. <p/><a>Alone</a> After.'
    (tmp_path / XML).write_text(f'<articles><article id="0000001">{body}</article></articles>')
    (tmp_path / TRUTH).write_text('<articles><article id="0000001" hyperpartisan="true"/></articles>')
    (article,) = read("hyperpartisan", "train", tmp_path)
    assert article.parts == ("Before.\nOne link, more.\nBetween.\nAlone\nAfter.",)


def test_longformers_split_is_taken_and_its_leak_is_counted(tmp_path: Path) -> None:
    write_release("hyperpartisan", tmp_path)
    splits = {"train": [93, 39, 569], "dev": [79], "test": [39, 569]}
    (tmp_path / "hp-splits.json").write_text(json.dumps(splits))
    for split, name, shared in (("train", "train", 2), ("valid", "dev", 0), ("test", "test", 0)):
        counts: Counter[str] = Counter()
        examples = read("hyperpartisan", split, tmp_path, counts)
        assert [int(example.id) for example in examples] == splits[name]
        assert counts["articles_also_in_the_test_split"] == shared


REFUSED_ARTICLES: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: (root / TRUTH).unlink(), r"ground-truth.*xml is missing; the folder must hold articles-training"),
    (lambda root: (root / XML).write_text((root / XML).read_text()[:-20]), r"articles.*\.xml:\d+: no XML .*cut off\?"),
    (lambda root: (root / XML).write_text("<a><article/></a>"), r"articles.*\.xml: an article without a number as its"),
    (lambda root: (root / TRUTH).write_text("<a/>"), r"ground-truth.*xml: article 84 has the label None, not 'true' o"),
    (
        lambda root: (root / "hp-splits.json").write_text('{"train": [84, 1], "dev": [], "test": []}'),
        r"hp-splits\.json: there is no article 1 in articles-",
    ),
    (lambda root: (root / "hp-splits.json").write_text('{"train": [84'), r"hp-splits\.json:1: no JSON .*cut off\?"),
    (lambda root: (root / "hp-splits.json").write_text("[84]"), r"hp-splits\.json: expected a JSON object"),
    (lambda root: (root / "hp-splits.json").write_text("{}"), r"hp-splits\.json: there is no train"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_ARTICLES)
def test_what_is_no_hyperpartisan_release_is_refused(
    change: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    write_release("hyperpartisan", tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("hyperpartisan", "train", tmp_path)


# IMDB


def test_reviews_are_read_and_a_block_of_them_is_for_validation() -> None:
    counts: Counter[str] = Counter()
    splits = {split: read("imdb", split, RELEASES / "imdb", counts) for split in SPLITS}
    ids = {split: [example.id for example in examples] for split, examples in splits.items()}
    assert ids["train"] == ["neg/1_2", "neg/8_2", "neg/11249_2", "pos/0_9", "pos/7_9", "pos/30_9"]
    assert ids["valid"] == ["neg/12499_2", "pos/11250_9"]
    assert ids["test"] == ["neg/1_2", "neg/2_2", "pos/0_9", "pos/10_9"]
    assert all(example.label == example.id[:3] for examples in splits.values() for example in examples)
    assert splits["train"][3].parts == ("A fine film about Anna Berg.\n\nNumber 0 of the train part.",)
    assert counts == Counter(line_break_tags_replaced=24)


REFUSED_REVIEWS: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: [path.unlink() for path in (root / "train/pos").iterdir()], r"train/pos has no \.txt files; --root"),
    (lambda root: (root / "train/neg/one.txt").write_text("x"), r"neg/one\.txt: a review's name is NUMBER_STARS\.txt"),
    (lambda root: (root / "train/neg/1_2.txt").write_bytes(b"\xff"), r"neg/1_2\.txt:1: invalid UTF-8"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_REVIEWS)
def test_what_is_no_imdb_is_refused(change: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write_release("imdb", tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("imdb", "train", tmp_path)


@pytest.mark.parametrize("name", ["mnli", "hyperpartisan", "imdb"])
def test_a_root_is_needed(name: str) -> None:
    with pytest.raises(ValueError, match="--root DIR is required: .* containing"):
        read(name, "train", None)
