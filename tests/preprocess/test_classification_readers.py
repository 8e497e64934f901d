"""The readers of MultiNLI, Hyperpartisan and IMDB on tiny releases, and what they refuse."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from preprocess.encoder_containers import (
    GLUE,
    articles,
    mnli_rows,
    pairs,
    write_glue,
    write_hyperpartisan,
    write_imdb,
    write_mnli,
    write_tsv,
)

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record

XML = "articles-training-byarticle-20181122.xml"
TRUTH = "ground-truth-training-byarticle-20181122.xml"


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


# MultiNLI


@pytest.mark.parametrize(("write", "undecided"), [(write_mnli, 1), (write_glue, 0)])
def test_both_releases_of_mnli_give_the_same_pairs(
    write: Callable[[Path], None], undecided: int, tmp_path: Path
) -> None:
    write(tmp_path)
    for split in ("train", "valid", "test"):
        counts: Counter[str] = Counter()
        examples = read("mnli", split, tmp_path, counts)
        assert [(*example.parts, example.label) for example in examples] == pairs(split)
        assert counts["pairs_without_agreed_label_dropped"] == undecided
        assert examples[0].id == f"{2 + undecided}-0n" and len({example.id for example in examples}) == len(examples)


def test_quotes_in_mnli_are_characters(tmp_path: Path) -> None:
    write_glue(tmp_path)
    lines = (tmp_path / "train.tsv").read_text().splitlines(keepends=True)
    assert sum(line.count('"') % 2 for line in lines), "an open quotation mark would swallow lines"
    assert len(read("mnli", "train", tmp_path)) == len(lines) - 1


def test_a_row_may_end_behind_what_is_read(tmp_path: Path) -> None:
    write_mnli(tmp_path)
    path = tmp_path / "multinli_1.0_train.txt"
    path.write_text("".join(line.rstrip("\t\n") + "\n" for line in path.read_text().splitlines()), newline="\n")
    assert [(*example.parts, example.label) for example in read("mnli", "train", tmp_path)] == pairs("train")


def changed_row(root: Path, **changes: str) -> None:
    write_tsv(root / "train.tsv", GLUE, [{**mnli_rows("train")[0], **changes}])


REFUSED_MNLI: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: None, r"train\.tsv is missing; the folder must hold train\.tsv, dev_matched\.tsv"),
    (lambda root: changed_row(root, gold_label="maybe"), r"train\.tsv:2: the label is 'maybe', not contradiction, e"),
    (lambda root: (root / "train.tsv").write_text("a\tb\n1\t2\n"), r"train\.tsv:1: no column 'pairID'; the col.* a, b"),
    (lambda root: (root / "train.tsv").write_text(""), r"train\.tsv is empty"),
    (lambda root: changed_row(root, sentence1="one\ttwo"), r"train\.tsv:2: 13 columns, the first line names 12"),
    (lambda root: write_tsv(root / "train.tsv", GLUE[:-11], []), r"train\.tsv:1: no column 'gold_label'"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED_MNLI)
def test_what_is_no_mnli_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("mnli", "train", tmp_path)


def test_a_cut_off_row_of_mnli_is_refused(tmp_path: Path) -> None:
    write_glue(tmp_path)
    path = tmp_path / "train.tsv"
    path.write_text(path.read_text()[:-60])
    with pytest.raises(ValueError, match=r"train\.tsv:19: \d+ columns, the first line names 12; is the file cut off\?"):
        read("mnli", "train", tmp_path)


# Hyperpartisan


def test_articles_are_read_in_their_split(tmp_path: Path) -> None:
    write_hyperpartisan(tmp_path)
    splits = {split: read("hyperpartisan", split, tmp_path) for split in ("train", "valid", "test")}
    assert {split: len(examples) for split, examples in splits.items()} == {"train": 13, "valid": 6, "test": 6}
    ids = [example.id for examples in splits.values() for example in examples]
    assert sorted(ids) == [record["id"] for record in articles()]
    by_id = {record["id"]: record for record in articles()}
    for example in splits["valid"]:
        record = by_id[example.id]
        lines = [" ".join(paragraph.split()) for paragraph in record["paragraphs"]]
        assert example.parts == ("\n".join(filter(None, lines)),)
        assert example.label == record["hyperpartisan"] and record["title"] not in example.parts[0]


def test_references_left_in_the_text_are_resolved_and_counted(tmp_path: Path) -> None:
    write_hyperpartisan(tmp_path)
    counts: Counter[str] = Counter()
    texts = [str(example.parts[0]) for example in read("hyperpartisan", "train", tmp_path, counts)]
    train = [record for record in articles() if int(record["id"]) % 10 < 8]
    raw = [paragraph for record in train for paragraph in record["paragraphs"]]
    assert counts == Counter(lines_with_references_resolved=sum("&amp;" in paragraph for paragraph in raw))
    assert not any("&amp;" in text for text in texts) and any(" & " in text for text in texts)


def test_text_between_paragraphs_and_in_links_is_kept(tmp_path: Path) -> None:
    write_hyperpartisan(tmp_path)
    body = 'Before. <p>One <a href="x">link</a>, more.</p> Between. <p/><a>Alone</a> After.'
    (tmp_path / XML).write_text(f'<articles><article id="0000001">{body}</article></articles>')
    (tmp_path / TRUTH).write_text('<articles><article id="0000001" hyperpartisan="true"/></articles>')
    (article,) = read("hyperpartisan", "train", tmp_path)
    assert article.parts == ("Before.\nOne link, more.\nBetween.\nAlone\nAfter.",)


def test_longformers_split_is_taken_and_its_leak_is_counted(tmp_path: Path) -> None:
    write_hyperpartisan(tmp_path)
    splits = {"train": [93, 39, 569], "dev": [79], "test": [39, 569]}
    (tmp_path / "hp-splits.json").write_text(json.dumps(splits))
    for split, name, shared in (("train", "train", 2), ("valid", "dev", 0), ("test", "test", 0)):
        counts: Counter[str] = Counter()
        examples = read("hyperpartisan", split, tmp_path, counts)
        assert [int(example.id) for example in examples] == splits[name]
        assert counts["articles_also_in_the_test_split"] == shared


REFUSED_ARTICLES: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: (root / TRUTH).unlink(), r"ground-truth.*xml is missing; the folder must hold articles-training"),
    (lambda root: (root / XML).write_text((root / XML).read_text()[:9999]), r"articles.*\.xml:\d+: no XML .*cut off\?"),
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
    write_hyperpartisan(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("hyperpartisan", "train", tmp_path)


# IMDB


def test_reviews_are_read_and_a_block_of_them_is_for_validation(tmp_path: Path) -> None:
    write_imdb(tmp_path)
    counts: Counter[str] = Counter()
    splits = {split: read("imdb", split, tmp_path, counts) for split in ("train", "valid", "test")}
    ids = {split: [example.id for example in examples] for split, examples in splits.items()}
    assert ids["train"] == ["neg/1_2", "neg/8_2", "neg/11249_2", "pos/0_9", "pos/7_9", "pos/30_9"]
    assert ids["valid"] == ["neg/12499_2", "pos/11250_9"]
    assert ids["test"] == ["neg/1_2", "neg/2_2", "pos/0_9", "pos/10_9"]
    assert all(example.label == example.id[:3] for examples in splits.values() for example in examples)
    assert splits["train"][3].parts == ("\n\n".join(articles()[0]["paragraphs"]),)
    gaps = sum(2 * (len(record["paragraphs"]) - 1) for record in articles()[:12])
    assert counts == Counter(line_break_tags_replaced=gaps)


REFUSED_REVIEWS: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: [path.unlink() for path in (root / "train/pos").iterdir()], r"train/pos has no \.txt files; --root"),
    (lambda root: (root / "train/neg/one.txt").write_text("x"), r"neg/one\.txt: a review's name is NUMBER_STARS\.txt"),
    (lambda root: (root / "train/neg/1_2.txt").write_bytes(b"\xff"), r"neg/1_2\.txt:1: invalid UTF-8"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_REVIEWS)
def test_what_is_no_imdb_is_refused(change: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write_imdb(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("imdb", "train", tmp_path)


@pytest.mark.parametrize("name", ["mnli", "hyperpartisan", "imdb"])
def test_a_root_is_needed(name: str) -> None:
    with pytest.raises(ValueError, match="--root DIR is required: .* containing"):
        read(name, "train", None)
