"""Every reader on a small release: its records and counts are those of `golden/readers`.

`HAT_GOLDEN=1 pytest tests/preprocess/test_release_readers.py` writes them anew. A line is a record with its split and
its place in the release, or, of a split, what was counted; of a long record it is the SHA-256. The ids of chats and
articles, and comments here, say what is special.
"""

import csv
import gzip
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY
from golden_lines import cases, check
from releases import RELEASES, write_release

from ami import FILLERS, filter_words
from hat_fairseq import cli
from hat_fairseq.data.binarize import check_splits
from hat_fairseq.data.readers import SPLITS, find_reader, names
from hat_fairseq.data.records_json import record_to_json
from triviaqa import find_answers

GOLDEN = REPOSITORY / "tests/golden/readers"
LIBREOFFICE = str(REPOSITORY / "examples/libreoffice_help_en_de.py")
CARRIED = ("ami", "ami_questions", "icsi")
READERS = {name: name for name in names()} | {
    "glue": "mnli",  # the other form of the same pairs
    "natural_questions_odd": "natural_questions",  # outside, without annotations or candidates, skipped ones first
    "tydi_qa_offsets": "tydi_qa",  # inside characters, outside of passages, without candidates
    "libreoffice_help_en_de": LIBREOFFICE,
    "libreoffice_page": LIBREOFFICE,  # ids twice, alternatives for systems, what is no translation
}
LONGEST = 2000  # characters of a line


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Any]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


def lines(name: str, root: Path | None) -> Iterator[str]:
    for split in find_reader(name).splits:
        counts: Counter[str] = Counter()
        for record in read(name, split, root, counts):
            origin = str(record.origin).replace(str(root or REPOSITORY), "ROOT")
            line = json.dumps({"split": split, "origin": origin} | record_to_json(record), ensure_ascii=False)
            yield line if len(line) < LONGEST else sha256(line.encode()).hexdigest()
        yield json.dumps({"split": split, "counts": dict(sorted((+counts).items()))})


@pytest.mark.slow
@pytest.mark.parametrize("release", READERS)
def test_records_and_counts(release: str, tmp_path: Path) -> None:
    root = None if release in CARRIED else write_release(release, tmp_path)
    text = "".join(line + "\n" for line in lines(READERS[release], root))
    path = GOLDEN / f"{release}.jsonl"
    if os.environ.get("HAT_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


Change = str | None | list[list[str]]


def apply(path: Path, change: Change) -> None:
    """Makes the content of a file another one, None to remove it, or replaces pairs of texts in it."""
    if change is None:
        return path.unlink()
    text = change if isinstance(change, str) else path.read_bytes().decode()
    for old, new in change if isinstance(change, list) else ():
        assert old in text, old
        text = text.replace(old, new)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())


def outcome(case: dict[str, Any], root: Path) -> dict[str, Any]:
    """What a change of a release changes of its records and counts."""
    reader, release, split = find_reader(READERS.get(case["release"], case["release"])), case["release"], case["split"]
    write_release(release, root)
    seen, counts = list[dict[str, str]](), list[Counter[str]]()
    try:
        for change in ({}, case["change"]):
            for name, each in change.items():
                apply(root / name, each)
            counts.append(Counter())
            records = [record_to_json(each) for each in reader.read(split, root, counts[-1])]
            seen.append({json.dumps(each, ensure_ascii=False): each["id"] for each in records})
    except ValueError as error:
        return {"error": str(error).replace(f"{root}/", "")}
    before, after = seen
    changed = {name: counts[1][name] - counts[0][name] for name in sorted(counts[0] | counts[1])}
    return {
        "before": [*before.values()],
        "after": [*after.values()],
        "new": [json.loads(each) for each in after if each not in before],
        "counts": {name: number for name, number in changed.items() if number},
    }


@cases("changed_releases")
def test_a_change_of_a_release(case: dict[str, Any], tmp_path: Path) -> None:
    check("changed_releases", case, outcome(case, tmp_path))


def test_passages_and_answers_of_tydi_qa_are_the_bytes_of_the_article(tmp_path: Path) -> None:
    """In every language of the sample."""
    path = write_release("tydi_qa", tmp_path) / "tydiqa-v1.0-dev.jsonl.gz"
    articles = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    answers = 0
    for record, article in zip(read("tydi_qa", "valid", tmp_path), articles, strict=True):
        data = article["document_plaintext"].encode()
        bounds = [(c["plaintext_start_byte"], c["plaintext_end_byte"]) for c in article["passage_answer_candidates"]]
        assert record.parts == (article["question_text"], tuple(data[begin:end].decode() for begin, end in bounds))
        for annotation, raw in zip(record.annotations or (), article["annotations"], strict=True):
            minimal = raw["minimal_answer"]
            answer = data[minimal["plaintext_start_byte"] : minimal["plaintext_end_byte"]].decode()
            assert [span.text for span in annotation.spans] == ([answer] if answer else [])
            assert all(record.parts[1][annotation.paragraph][s.start :].startswith(s.text) for s in annotation.spans)
            answers += len(annotation.spans)
    assert answers == 6


@pytest.mark.parametrize(
    ("text", "aliases", "expected"),
    [
        ("In New  York, new york's NEW-YORK", ["New York"], ["New  York", "new york", "NEW-YORK"]),
        ("New York City of York", ["York", "The New York City", "New York"], ["New York City", "York"]),
        ("Yorkshire; snow_york", ["York"], ["york"]),
        ("the U.S. and us", ["U.S.", "The"], ["the", "U.S"]),
        ("a b a b a", ["a b a"], ["b a", "b a"]),
        ("nothing", ["", "..."], []),
        ("Ångström, ÅNGSTRÖM", ["ångström"], ["Ångström", "ÅNGSTRÖM"]),
        ("He lived in İstanbul.", ["İstanbul"], ["İstanbul"]),
        ("हिन्दी भाषा है, हिन्द", ["हिन्दी"], ["हिन्दी"]),
        ("Beyonce\u0301 sings", ["Beyonce\u0301"], ["Beyonce\u0301"]),
    ],
)
def test_aliases_of_triviaqa_are_compared_without_case_punctuation_and_articles(
    text: str, aliases: list[str], expected: list[str]
) -> None:
    answers = find_answers(text, aliases)
    assert [answer.text for answer in answers] == expected
    assert all(text[answer.start : answer.end] == answer.text for answer in answers)


def test_no_test_segment_of_libreoffices_help_is_in_training(tmp_path: Path) -> None:
    write_release("libreoffice_help_en_de", tmp_path)
    train, *others = (read(LIBREOFFICE, split, tmp_path) for split in ("train", "valid", "test"))
    known = {text for page in train for text in page.elements or ()}
    assert all(others)
    assert not known & {text for pages in others for page in pages for text in page.elements or ()}


@pytest.mark.slow
def test_meaningless_words_leave_the_meetings_and_nothing_else() -> None:
    for turn, expected in {
        "Right , both of them , .": "Right , both of them .",
        ". , Tu tu": "Tu tu",
        "Mm - hmm . And it 's user - friendly .": "And it 's user - friendly .",
        "What ? . No": "What ? No",
        "Ah - ha !": "",
        "- . Good .": "Good .",
    }.items():
        assert " ".join(filter_words(turn.split(), Counter())) == expected
    meetings = [meeting for name in ("ami", "icsi") for meeting in read(name, "train", None)]
    assert not FILLERS & {
        word for meeting in meetings for turn in meeting.elements or () for word in turn.lower().split()
    }


def test_a_pixel_is_the_luma_of_its_colour() -> None:
    """Each picture of the fixture has one colour."""
    records = read("lra_image", "train", RELEASES / "lra_image") + read("lra_image", "test", RELEASES / "lra_image")
    colours = {"data_batch_1-0": (255, 0, 0), "data_batch_1-1": (0, 255, 0), "test_batch-1": (128, 255, 64)}
    for record in records:
        red, green, blue = colours.get(record.id, (0, 0, 0))
        luma = 0.2989 * red + 0.587 * green + 0.114 * blue
        assert record.id not in colours or {luma - 1 < int(pixel) <= luma + 0.5 for pixel in record.parts[0]} == {True}


def test_samples_of_natural_questions_are_counted_and_files_are_not_read_twice(tmp_path: Path) -> None:
    folder, counts = write_release("natural_questions", tmp_path), Counter[str]()
    before = read("natural_questions", "train", folder)
    path = next(folder.rglob("*nq-train*"))
    (folder / "sample").mkdir()
    shutil.copy(path, folder / "sample" / "nq-train-sample.jsonl.gz")
    assert read("natural_questions", "train", folder, counts) == before
    assert counts["sample_files_skipped"] == 1
    (folder / "sample" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    with pytest.raises(ValueError, match="are the same questions twice: keep one of them"):
        read("natural_questions", "train", folder)


def test_copies_of_a_paper_of_arxiv_are_in_one_split(tmp_path: Path) -> None:
    write_release("arxiv_categories", tmp_path)
    for folder in tmp_path.iterdir():
        (folder / "0704.0001v1.txt").write_text("A paper.", encoding="utf-8")
    papers = {
        split: [one.id for one in read("arxiv_categories", split, tmp_path)] for split in ("train", "valid", "test")
    }
    assert sum(map(len, papers.values())) == 55
    assert sorted(sum(id_.endswith("/0704.0001v1") for id_ in ids) for ids in papers.values()) == [0, 0, 11]


@pytest.mark.slow
def test_every_form_of_a_table_gives_the_same_articles(tmp_path: Path) -> None:
    """XSum's own files and the table of the other release, in the forms that people store it in."""
    articles = [(one.id, one.text, one.target) for one in read("xsum", "valid", RELEASES / "xsum")]
    rows = [{"document": text, "summary": " ".join(target or ()), "id": id_} for id_, text, target in articles]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name, content in (
        ("validation.jsonl", text.encode()),
        ("validation.json", text.encode()),
        ("val.jsonl.gz", gzip.compress(text.encode())),
        ("val.json", json.dumps(rows, indent=1).encode()),
    ):
        (folder := tmp_path / name).mkdir()
        (folder / name).write_bytes(content)
    (tmp_path / "csv").mkdir()
    with open(tmp_path / "csv/validation.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    for folder in tmp_path.iterdir():
        assert [(one.id, one.text, one.target) for one in read("xsum", "valid", folder)] == articles


INVISIBLE_LINES = [  # a release, a file of it, what stands there and what is put there
    ("wmt20_en_de", "news-commentary-v15.de-en.tsv.gz", "\n\t\r\n", "\n\u200b\t\ufeff\r\n"),
    ("wmt20_en_de", "dev/newstest2018-ende-src.en.sgm", "<p>\n", "<p>\n\u200e\u00ad\n"),
    ("ted17_zh_en", "zh-en/train.tags.zh-en.en", '<doc docid="1"', '\u2060\n<doc docid="1"'),
    ("cnn_dm", "cnn/stories/34698e339b2cdaf8ce6cd1115342a69fa736ab7c.story", "\n\n", "\n\u2800\u200b\n"),
    ("samsum", "val.json", "\\r\\n", "\\r\\n\\u200b\\u3164\\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("release", "name", "old", "new"), INVISIBLE_LINES)
def test_lines_that_show_nothing_are_blank(release: str, name: str, old: str, new: str, tmp_path: Path) -> None:
    def texts() -> list[object]:
        splits = find_reader(release).splits
        return [(one.id, one.parts, one.target, one.roles) for split in splits for one in read(release, split, root)]

    root = write_release(release, tmp_path)
    expected, path = texts(), root / name
    unpack, pack = (gzip.decompress, gzip.compress) if path.suffix == ".gz" else (bytes, bytes)
    content = unpack(path.read_bytes()).decode()
    assert old in content
    path.write_bytes(pack(content.replace(old, new).encode()))
    assert texts() == expected


def test_segments_without_ids_are_joined_by_position(tmp_path: Path) -> None:
    root = write_release("wmt20_en_de", tmp_path)

    def texts() -> list[object]:  # without the last document, which lacks a segment
        return [(one.sentences, one.target) for one in read("wmt20_en_de", "valid", root)][:3]

    expected, path = texts(), root / "dev/newstest2018-ende-ref.de.sgm"
    path.write_text(re.sub(r"<seg id=[^>]*>", "<seg>", path.read_text(encoding="utf-8")), encoding="utf-8")
    assert texts() == expected


def test_paragraphs_that_show_nothing_are_no_candidates(tmp_path: Path) -> None:
    root = write_release("natural_questions", tmp_path)
    counts, more = Counter[str](), Counter[str]()
    expected = read("natural_questions", "train", root, counts)
    (path,) = root.glob("*train.jsonl.gz")
    pages = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    for page in pages:
        end = len(page["document_text"].split(" "))
        page["document_text"] += " <P> \u200b \ufeff </P>"
        page["long_answer_candidates"].append({"start_token": end, "end_token": end + 4, "top_level": True})
    path.write_bytes(gzip.compress("".join(json.dumps(page) + "\n" for page in pages).encode()))
    assert read("natural_questions", "train", root, more) == expected
    assert more - counts == {"candidates_without_text_skipped": len(pages)}


def test_an_incomplete_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--bpe", "learned", "--out", str(tmp_path / "out")]
    assert cli.main(["preprocess", "samsum", "--root", str(RELEASES / "samsum"), *options]) == 2
    assert "the split train has 8 documents, a complete release 14,732 or 14,731" in capsys.readouterr().err


def test_several_test_sets_are_numbered_as_fairseq_does() -> None:
    check_splits(find_reader("wmt20_en_de").splits)
    with pytest.raises(ValueError, match="cannot number the splits train, test1; use test, test1"):
        check_splits(("train", "test1"))


@pytest.mark.slow
def test_meetings_in_folders_of_their_domains_or_in_one_are_the_same(tmp_path: Path) -> None:
    root = write_release("qmsum", tmp_path)
    expected = {split: read("qmsum", split, root) for split in SPLITS}
    assert [len(meetings) for meetings in expected.values()] == [1, 1, 1]
    for split in ("train", "val", "test"):
        for number, path in enumerate(sorted((root / "data/ALL" / split).iterdir())):
            folder = root / "data" / ("Academic", "Product")[number] / split
            folder.mkdir(parents=True)
            path.rename(folder / path.name)
    assert {split: read("qmsum", split, root) for split in SPLITS} == expected
    shutil.copytree(root / "explainmeetsum", root / "data/Academic/explainmeetsum")
    assert {split: read("qmsum", split, root / "data/Academic") for split in SPLITS} == expected
    meetings = [each for split in SPLITS for each in read("qmsum", split, root / "data/Academic")]
    assert {each.meta["domain"] for each in meetings} == {"icsi"}  # of the folder, whatever their names are


def test_lines_are_those_of_a_meeting_all_of_whose_questions_are_known(tmp_path: Path) -> None:
    """Also from a compressed file; without a file there are none, and nothing is counted."""
    root = write_release("qmsum", tmp_path)
    path = root / "explainmeetsum/train.jsonl"
    counts: dict[str, Counter[str]] = {split: Counter() for split in SPLITS}
    lines = {split: [each.lines for each in read("qmsum", split, root, counts[split])] for split in SPLITS}
    assert lines == {"train": [((3, 5), (5,))], "valid": [None], "test": [None]}
    joined = [[counts[split][f"meetings_{has}_lines"] for has in ("with", "without")] for split in SPLITS]
    assert joined == [[1, 0], [0, 1], [0, 0]]
    (root / "explainmeetsum/train.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert [each.lines for each in read("qmsum", "train", root)] == lines["train"]


def test_lines_of_the_meetings_of_this_repository(tmp_path: Path) -> None:
    """A root may hold the lines alone."""
    (meeting, *_) = read("ami_questions", "valid", None)
    known = {"meeting": meeting.id, "turns": len(meeting.turns)}
    questions = [{"query": each, "evidence": [[n, 0]]} for n, each in enumerate(meeting.questions)]
    (tmp_path / "explainmeetsum").mkdir()
    line = json.dumps(known | {"questions": questions})
    (tmp_path / "explainmeetsum/val.jsonl").write_text(line + "\n")
    counts = Counter[str]()
    first, *others = read("ami_questions", "valid", tmp_path, counts)
    assert first.lines == tuple((n,) for n in range(len(questions)))
    assert first.evidence == meeting.evidence
    assert {each.lines for each in others} == {None}
    assert {each.meta["domain"] for each in others} == {"ami"}
    assert (counts["meetings_with_lines"], counts["meetings_without_lines"]) == (1, 19)
