"""What is no release is refused with the place of the mistake: without that, records would be wrong or missing."""

import os
import pickle
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from releases import write_release

from hat_fairseq.data.readers import find_reader, names

HYPERPARTISAN = "{}-training-byarticle-20181122.xml"
DEV = "dev/newstest2018-ende-{}.sgm"
CS = "dev/xml/newstest2018.en-cs.xml"
TED = "zh-en/train.tags.zh-en.{}"
NEWS = "europarl-v10.de-en.tsv"
MEETING = "data/ALL/train/ES0001a.json"
PAGE = '{"example_id": 1, "question_text": "?", "document_text": "a b", "long_answer_candidates": '
PAGE += (
    '[{"start_token": 0, "end_token": %d, "top_level": true}], "annotations": [{"long_answer": {"candidate_index": 0}, '
)
PAGE += '"short_answers": [{"start_token": 1, "end_token": 4}], "yes_no_answer": "NONE"}]}\n'
# Release, file, what is replaced there, by what, and a part of the message. "": the whole file; None: it is removed.
CHANGES = [
    ("glue", "train.tsv", "\tentailment\n", "\tmaybe\n", "train.tsv:2: the label is 'maybe', not contradiction, e"),
    ("mnli", "multinli_1.0_train.txt", "gold_label", "label", "train.txt:1: no column 'gold_label'"),
    ("glue", "train.tsv", "Anna Berg paints", "Anna\tBerg paints", "train.tsv:2: 14 columns, the first line names 12"),
    ("glue", "train.tsv", "\tneutral\n", "", "is the file cut off?"),
    ("hyperpartisan", HYPERPARTISAN.format("articles"), "</articles>", "", "no XML"),
    ("hyperpartisan", HYPERPARTISAN.format("ground-truth"), '"true"', '"yes"', "article 84 has the label 'yes', not"),
    ("hyperpartisan", "hp-splits.json", "", '{"train": [84, 1], "dev": [], "test": []}', "there is no article 1 in"),
    ("imdb", "train/neg/one.txt", "", "x", "a review's name is NUMBER_STARS.txt"),
    ("squad2", "train-v2.0.json", '"v2.0"', '"v3"', "no SQuAD 2.0 or 1.1, its version is 'v3'"),
    ("squad2", "train-v2.0.json", '"is_impossible": true', '"id2": ""', "0 answers, but is_impossible is None"),
    ("squad2", "train-v1.1.json", "", "{}", "has train-v2.0.json and train-v1.1.json: keep only one"),
    ("squad2", "train-v2.0.json", '"is_impossible": false', '"is_impossible": true', "but is_impossible is True"),
    ("squad2", "train-v2.0.json", '"answer_start": 0', '"answer_start": 1', "does not stand at"),
    ("race", "train/middle/2.txt", '["A", "D"]', '["A"]', "2.txt: 2 questions, 2 options, 1 answers"),
    ("race", "train/middle/2.txt", '"D"', '"AB"', "2.txt, question 1: the answer is 'AB', not A, B, C or D"),
    ("race", "train/middle/2.txt", '"People like birds.", ', "", "2.txt, question 0: expected four options as strings"),
    ("wikihop", "train.json", '"answer": "anna berg"', '"answer": "x"', "the answer 'x' is none of its 2 candidates"),
    ("triviaqa", "evidence/wikipedia/Page_0.txt", "", None, "Page_0.txt is missing"),
    ("lra_listops", "basic_train.tsv", ")\t5", ")\t6", "basic_train.tsv:2: the expression has the value 5, not 6"),
    ("lra_listops", "basic_train.tsv", "[MAX", "[SUM", "basic_train.tsv:2: '[SUM' is no digit, operator or bracket"),
    ("lra_listops", "basic_train.tsv", "[MAX", "", "basic_train.tsv:2: the expression has the value None, not 5"),
    ("lra_retrieval", "new_aan_pairs.train.tsv", "0.0\tP0", "P0", "train.tsv:1: 4 columns instead of 5"),
    ("lra_retrieval", "new_aan_pairs.train.tsv", "0.0", "2.0", "train.tsv:1: the label is '2.0', not 0.0 or 1.0"),
    ("pubmed", "train.txt", '"article_id"', '"id"', "train.txt:1: no key 'article_id'"),
    ("pubmed", "train.txt", '["anna', '[1, "anna', "train.txt:1: each item of article_text must be a string"),
    ("samsum", "train.json", '"c0"', '""', "document '': its id is empty"),
    ("xsum", "bbc-summary-data/1.summary", "[SN]RESTBODY[SN]", "", "1.summary: no [SN]RESTBODY[SN]"),
    ("xsum", "bbc-summary-data/2.summary", "", None, "2.summary is missing, which XSum-TRAINING"),
    ("cnn_dm", "url_lists/all_train.txt", "/0.html", "/00.html", "all_train.txt:1: http://example.org/00.html"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="', 'docid="x', "and neither is any other of the"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="2018.1"', 'docid="2018.0"', "document '2018.0' was there before"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="2018.1"', "", "a document without docid"),
    ("wmt20_en_de", DEV.format("ref.de"), '<seg id="1">Carla', '<seg id="2">Carla', "has the segment '1' where"),
    ("wmt20_en_de", DEV.format("ref.de"), "<p>\n", "<p>\nlost\n", "text outside of <seg>: lost"),
    ("wmt20_en_de", DEV.format("ref.de"), "</refset>", "<seg id=1>x</seg>", "<seg> outside of the text of a document"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="2018.1"', 'docid="2018.1', "cannot read the tag <doc"),
    ("wmt20_en_de", DEV.format("ref.de"), "", None, "expected newstest2018-ende-src.en.sgm with"),
    ("wmt20_en_de", "newstest2018-ende-src.en.sgm", "", "x", "found more than one file for newstest2018"),
    ("wmt20_en_de", "newstest2018.en-de.xml", "", "x", "or newstest2018.en-de.xml, found"),
    ("wmt20_en_de", "europarl-v9.de-en.tsv", "", "x", "found more than one file for europarl-v"),
    ("wmt20_en_de", NEWS, "", "a\tb\nc\td\n", "no line without text and no names of documents (ep-...) in 2 lines"),
    ("wmt20_en_de", NEWS, "", "\nc\na\tb\n", "europarl-v10.de-en.tsv:2: one column instead of two"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", 'lang="en"', 'lang="fr"', "<target> is in 'fr' instead of 'en'"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", '<file id="4">', "", "<segment> outside of <file>"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", "<segment>", "", "<source> outside of <segment>"),
    ("wmt20_en_cs", CS, '<ref lang="cs"', '<ref lang="de"', "document '2018.0' has no <ref lang=cs>"),
    ("wmt20_en_cs", CS, '<src lang="en"', '<src lang="de"', "document '2018.0' has no <src lang=en>"),
    ("wmt20_en_cs", CS, 'id="2018.1"', 'id="2018.0"', "document '2018.0' was there before"),
    ("wmt20_en_cs", CS, '<seg id="3">Mnozí', '<seg id="2">Mnozí', "'2018.0' has the segment '3' where"),
    ("ted17_zh_en", TED.format("en"), "<talkid>1</talkid>", "", "text before the first <talkid>: Ben Koch"),
    ("ted17_zh_en", TED.format("en"), "<talkid>1</talkid>", "<talkid> </talkid>", "a talk without an id"),
    ("ted17_zh_en", TED.format("en"), "<talkid>", "<talkid>9", "and neither is any other of the"),
    ("ted17_zh_en", TED.format("zh"), "<talkid>3</talkid>", "<talkid>2</talkid>", "document '2' was there before"),
    ("ted17_zh_en", "zh-en/IWSLT17.TED.tst2014.zh-en.en.xml", "", None, "IWSLT17.TED.tst2014.en-zh.en.xml is missing"),
    ("natural_questions", "0-nq-dev.jsonl", "", PAGE % 9, "candidate 0 has the tokens 0 to 9 of 2"),
    ("natural_questions", "0-nq-dev.jsonl", "", PAGE % 2, "a short answer has the tokens 1 to 4 of 2"),
    ("tydi_qa_offsets", "tydiqa-v1.0-dev.jsonl", '_byte": 14', '_byte": 99', "the bytes 9 to 99 are not in"),
    ("tydi_qa_offsets", "tydiqa-v1.0-dev.jsonl", '"passage_answer"', '"passage"', "there is no passage_answer"),
    (
        "qmsum",
        MEETING,
        '"5",\n     "5"',
        '"5"',
        "ES0001a.json: specific_query_list: a span is the numbers of two turns as",
    ),
    ("qmsum", MEETING, '"3",\n     "4"', "3, 4", "a span is the numbers of two turns as strings, not [3, 4]"),
    ("qmsum", MEETING, '"3",\n     "4"', '"4", "3"', "the span ['4', '3'] ends before it begins"),
    ("qmsum", MEETING, '"speaker": "Marketing"', '"speaker": 1', "speaker must be a string, not 1"),
    ("qmsum", MEETING, '"specific_query_list"', '"queries"', "ES0001a.json: there is no specific_query_list"),
    ("qmsum", MEETING, "", None, "has no meetings of train; it must hold data/ALL/{train,val,test}/*.json, or data/{"),
]
READERS = {"glue": "mnli", "tydi_qa_offsets": "tydi_qa"}


def refusal(release: str, root: Path | None) -> str:
    """The message of a refusal; nothing where the release is read."""
    reader = find_reader(READERS.get(release, release))
    try:
        for split in reader.splits:
            list(reader.read(split, root, Counter()))
    except ValueError as error:
        return str(error)
    return ""


def test_mistakes_in_files_are_refused(tmp_path: Path) -> None:
    accepted = []
    for number, (release, file, old, new, message) in enumerate(CHANGES):
        root = write_release(release, tmp_path / str(number))
        path = root / file
        text = path.read_bytes().decode() if path.exists() else ""
        assert old in text, (release, old)
        if new is None:
            path.unlink()
        else:
            path.write_bytes((text.replace(old, new) if old else new).encode())
        if message not in (error := refusal(release, root)):
            accepted.append((release, file, message, error))
    assert accepted == []


def test_a_folder_is_needed_and_what_it_lacks_is_named(tmp_path: Path) -> None:
    for name in set(names()) - {"ami", "ami_questions", "icsi"}:
        assert refusal(name, None).startswith(
            "--root DIR is required: the folder of the downloaded release, containing"
        )
        assert "nowhere is not a folder" in refusal(name, tmp_path / "nowhere"), name
        assert str(tmp_path) in refusal(name, tmp_path), name


@pytest.mark.fault("Security", "a data set whose pickle names a function", "names both, nothing is run")
def test_a_pickle_that_names_a_function_is_refused_and_nothing_is_run(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    write_release("lra_image", tmp_path)
    (tmp_path / "test_batch").write_bytes(pickle.dumps({"data": Attack()}, protocol=4))
    assert "test_batch is no batch of CIFAR-10's python release: it names posix.mkdir" in refusal("lra_image", tmp_path)
    assert not (tmp_path / "made").exists()


def batch(**changes: Any) -> bytes:
    """A batch of one picture, or of what the changes make of it."""
    content = {b"data": np.zeros((1, 3072), np.uint8), b"labels": [1]}
    return pickle.dumps(content | {name.encode(): value for name, value in changes.items()}, protocol=4)


def png(mode: str, width: int) -> bytes:
    file = BytesIO()
    Image.new(mode, (width, 32)).save(file, "PNG")
    return file.getvalue()


PNG = "curv_contour_length_14/imgs/0/sample_0.png"
LIST = "curv_contour_length_14/metadata/0.npy"
# Release, file, its content or how many bytes are cut off, and a part of the message.
PICTURES: list[tuple[str, str, bytes | int, str]] = [
    ("lra_image", "data_batch_1", 1000, "is no batch of CIFAR-10's python release"),
    ("lra_image", "data_batch_1", batch(labels=[1.0]), "picture 0: the class is 1.0, not from 0 to 9"),
    ("lra_image", "data_batch_1", batch(labels=[]), "is no batch of CIFAR-10's python release"),
    ("lra_image", "data_batch_1", batch(data=np.zeros((1, 384), np.int64)), "its pixels are not bytes in rows"),
    ("lra_image", "data_batch_1", batch(data=np.zeros((3072, 2), np.uint8).T), "its pixels are not bytes in rows"),
    ("lra_image", "data_batch_1", b"\x80\x04\x8e" + b"\xff" * 7 + b"\0.", "MemoryError"),  # petabytes
    ("lra_pathfinder", PNG, png("L", 60_000), "no greyscale PNG image of 32 x 32 pixels"),
    ("lra_pathfinder", PNG, png("RGB", 32), "its mode is RGB, and"),
    ("lra_pathfinder", PNG, 30, "truncated"),
    (
        "lra_pathfinder",
        LIST,
        b"imgs/0 sample_0.png 0 2\n",
        "0.npy:1: expected folder, file, number and a label, 0 or 1",
    ),
]


@pytest.mark.fault(
    "Input", "missing, damaged or other files of Long Range Arena", "refused with the file and the line or picture"
)
def test_damaged_pictures_are_refused(tmp_path: Path) -> None:
    for number, (release, file, content, message) in enumerate(PICTURES):
        path = write_release(release, tmp_path / str(number)) / file
        path.write_bytes(path.read_bytes()[:-content] if isinstance(content, int) else content)
        error = refusal(release, tmp_path / str(number))
        assert message in error and path.name in error
