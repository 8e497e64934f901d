from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from releases import RELEASES, write_lines

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))


@pytest.mark.parametrize("name", ["pubmed", "arxiv"])
def test_a_release_is_read(name: str) -> None:
    counts: Counter[str] = Counter()
    splits = [read(name, split, RELEASES / "cohan", counts) for split in ("train", "valid", "test")]
    assert [len(articles) for articles in splits] == [3, 2, 2] and counts == Counter()
    article = splits[1][0]
    assert article.id == "a3" and article.roles is None and article.text is None
    assert article.sentences and article.sentences[0] == "dov levi paints clocks ." and len(article.sentences) == 5
    assert article.target == ("dov levi shows new pictures.", "the exhibition opens in may.")


def one_article(root: Path, **changes: Any) -> None:
    """A file of one article with other values; None takes the key away."""
    article = {**json.loads((RELEASES / "cohan/train.txt").read_text().splitlines()[0]), **changes}
    kept = {key: value for key, value in article.items() if value is not None}
    write_lines(root / "train.txt", [kept])


def test_what_the_sections_say_differently_is_counted(tmp_path: Path) -> None:
    body = ["one .", "", "two ."]
    for sections, differs in (([["one ."], ["two ."]], 0), ([["one ."]], 1), ([["two ."], ["one ."]], 1)):
        counts: Counter[str] = Counter()
        one_article(tmp_path, article_text=body, sections=sections)
        assert read("pubmed", "train", tmp_path, counts)[0].sentences == ("one .", "", "two .")
        assert counts["articles_unlike_their_sections"] == differs


def test_marks_leave_the_abstract_and_sentences_without_are_counted(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    one_article(tmp_path, abstract_text=["<S> we show x . </S>", "bare .", ""])
    assert read("pubmed", "train", tmp_path, counts)[0].target == ("we show x .", "bare .", "")
    assert counts["abstract_sentences_without_marks"] == 1


def test_articles_without_text_are_left_to_the_pipeline(tmp_path: Path) -> None:
    one_article(tmp_path, article_text=[], sections=[])
    assert read("pubmed", "train", tmp_path)[0].sentences == ()
    assert find_reader("pubmed").defaults["on_empty"] == "drop" == find_reader("arxiv").defaults["on_empty"]


def cut_off(root: Path) -> None:
    one_article(root)
    text = (root / "train.txt").read_text()
    (root / "train.txt").write_text(text + text[:100])


REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: write_lines(root / "val.txt", []), r"train\.txt is missing; the folder must hold train\.txt, val\.t"),
    (lambda root: one_article(root, article_id=None), r"train\.txt:1: no key 'article_id'; the pubmed-dataset of Coh"),
    (lambda root: one_article(root, sections=None), r"train\.txt:1: no key 'sections'"),
    (lambda root: one_article(root, article_id=12), r"train\.txt:1: article_id must be a string, not 12"),
    (lambda root: one_article(root, article_text="one"), r"train\.txt:1: article_text must be a list, not 'one'"),
    (lambda root: one_article(root, abstract_text=[1]), r"train\.txt:1: each item of abstract_text must be a string"),
    (
        lambda root: one_article(root, sections=["one"]),
        r"train\.txt:1: each item of sections must be a list",
    ),
    (lambda root: one_article(root, sections={"a": 1}), r"train\.txt:1: sections must be a list, not "),
    (lambda root: write_lines(root / "train.txt", [{"article": "x", "abstract": "y"}]), r"train\.txt:1: no key 'art"),
    (lambda root: (root / "train.txt").write_text(json.dumps([1]) + "\n"), r"train\.txt:1: expected a JSON object"),
    (cut_off, r"train\.txt:2: not a JSON object \(.*\); is the file cut off\?"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_is_no_release_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("pubmed", "train", tmp_path)


def test_the_root_has_to_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--root DIR is required: .* containing train\.txt, .* arxiv-dataset"):
        read("arxiv", "train", None)
    with pytest.raises(
        ValueError, match=r"nowhere is not a folder; it must be one that contains train\.txt, val\.txt, test\.txt"
    ):
        read("arxiv", "train", tmp_path / "nowhere")
