from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from hat_fairseq.data.readers import find_reader

ARTICLES = [
    {"id": "a1", "article": 'First, he said "no".\nSecond.', "highlights": "One .\nTwo ."},
    {"id": "b2", "article": "Only one sentence", "highlights": "Three ."},
]


def as_csv(root: Path) -> None:
    with open(root / "validation.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "article", "highlights"])
        writer.writeheader()
        writer.writerows(ARTICLES)


def as_json_lines(root: Path) -> None:
    (root / "validation.jsonl").write_text("".join(json.dumps(article) + "\n" for article in ARTICLES))


def as_stories(root: Path) -> None:
    (root / "url_lists").mkdir()
    (root / "url_lists" / "all_val.txt").write_text("".join(f"http://{article['id']}\n" for article in ARTICLES))
    for article, source in zip(ARTICLES, ("cnn", "dailymail"), strict=True):
        folder = root / source / "stories"
        folder.mkdir(parents=True)
        name = hashlib.sha1(f"http://{article['id']}".encode()).hexdigest()
        highlights = "".join(f"@highlight\n\n{line}\n\n" for line in article["highlights"].split("\n"))
        (folder / f"{name}.story").write_text(article["article"].replace("\n", "\n\n") + "\n\n" + highlights)


@pytest.mark.parametrize("release", [as_csv, as_json_lines, as_stories])
def test_every_release_of_cnn_dm_gives_the_same_articles(release, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    release(tmp_path)
    documents = list(find_reader("cnn_dm").read("valid", tmp_path, Counter()))
    assert [(document.text, document.target) for document in documents] == [
        (article["article"], tuple(article["highlights"].split("\n"))) for article in ARTICLES
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other.csv", "", "expected url_lists/ .* or one file train.csv or train.jsonl .*, found none"),
        ("train.csv", "article,summary\n", r"train\.csv:1: expected the columns id, article, highlights, found"),
        ("train.csv", "id,article,highlights\na,b\n", r"train\.csv:2: 2 columns instead of 3"),
        ("train.csv", 'id,article,highlights\na,"b', r"train\.csv:2: unexpected end of data"),
        ("train.jsonl", '{"id": "a", "document": "b"}\n', r"train\.jsonl:1: expected an object with id, article"),
        ("train.jsonl", "a,b\n", r"train\.jsonl:1: not a JSON object"),
        ("url_lists/all_train.txt", "http://x\n", r"all_train\.txt:1: http://x has no file cnn/stories/\w{40}\.story"),
    ],
)
def test_what_is_no_release_of_cnn_dm_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        list(find_reader("cnn_dm").read("train", tmp_path, Counter()))


def test_a_story_without_highlights_is_refused(tmp_path: Path) -> None:
    as_stories(tmp_path)
    story = next((tmp_path / "cnn" / "stories").iterdir())
    story.write_text("half a story")
    with pytest.raises(ValueError, match=r"\.story: no @highlight"):
        list(find_reader("cnn_dm").read("valid", tmp_path, Counter()))


def test_unknown_readers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no reader 'amy': give one of ami, arxiv, arxiv_categories, c4, cnn_dm"):
        find_reader("amy")
    with pytest.raises(ValueError, match=r"has no train\.jsonl, valid\.jsonl, test\.jsonl"):
        find_reader(str(tmp_path))
    (tmp_path / "mine.py").write_text("SPLITS = ()\n")
    with pytest.raises(ValueError, match=r"mine\.py is no reader: it has no function read"):
        find_reader(str(tmp_path / "mine.py"))
    (tmp_path / "mine.py").write_text("KIND = 'summary'\n\n\ndef read(split, root, counts):\n    return []\n")
    with pytest.raises(ValueError, match="KIND is an unknown kind 'summary'; choose one of text, classification"):
        find_reader(str(tmp_path / "mine.py"))
    (tmp_path / "mine.py").write_text("TASK = 'text'\n\n\ndef read(split, root, counts):\n    return []\n")
    with pytest.raises(ValueError, match=r"mine\.py: TASK is called KIND now"):
        find_reader(str(tmp_path / "mine.py"))


def test_a_path_is_never_a_reader_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ami").mkdir()
    (tmp_path / "ami" / "train.jsonl").write_text('{"id": "a", "text": "b", "label": "c"}\n')
    assert find_reader("ami").splits == ("train", "valid", "test")
    reader = find_reader("./ami", "classification")
    assert (reader.splits, reader.kind) == (("train",), "classification")
    assert [example.label for example in reader.read("train", None, Counter())] == ["c"]


def test_readers_import_modules_of_their_folders(tmp_path: Path) -> None:
    """Two folders have a module of the same name, and each reader gets that of its own."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ids_of_mine.py").write_text(f"ID = {name!r}\n")
        text = "from ids_of_mine import ID\n\n\ndef read(split, root, counts):\n    return [ID]\n"
        (tmp_path / name / "mine.py").write_text(text)
    readers = [find_reader(str(tmp_path / name / "mine.py")) for name in ("one", "two")]
    assert [list(reader.read("train", None, Counter())) for reader in readers] == [["one"], ["two"]]
    assert str(tmp_path / "one") not in sys.path
