"""Tiny complete releases in the containers of the encoders' datasets, filled with the sample texts.

Each function of ``WRITERS`` makes the folder that a reader takes as ``--root``; each of ``FOLDERS`` one of JSON lines.
"""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path
from typing import Any

from preprocess.containers import meetings, turns, write_lines

from hat_fairseq.data.files import read_json_lines

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SPLITS = {"train": range(6), "valid": range(6, 9), "test": range(9, 12)}  # of the biographies
MNLI_LABELS = ("entailment", "neutral", "contradiction")
MULTINLI = (
    "gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse sentence1 sentence2"
)
MULTINLI += " promptID pairID genre label1 label2 label3 label4 label5"
GLUE = "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
GLUE += " sentence1 sentence2 label1 gold_label"


@cache
def articles() -> list[dict[str, Any]]:
    """25 articles, with id, title, published, paragraphs, hyperpartisan."""
    return [record for _, record in read_json_lines(SAMPLES / "hyperpartisan.jsonl.gz")]


@cache
def biographies() -> list[tuple[str, ...]]:
    """The sentences of twelve biographies, in English."""
    return [tuple(record["target"]) for _, record in read_json_lines(SAMPLES / "wikipedia_zh_en.jsonl.gz")]


def of(split: str) -> list[tuple[str, ...]]:
    return [biographies()[number] for number in SPLITS[split]]


def write_hyperpartisan(root: Path) -> None:
    """The two XML files; without hp-splits.json the ids decide, 13 / 6 / 6 articles."""
    root.mkdir(parents=True, exist_ok=True)
    texts, labels = ElementTree.Element("articles"), ElementTree.Element("articles")
    for record in articles():
        attributes = {"id": record["id"], "published-at": record["published"] or "", "title": record["title"]}
        article = ElementTree.SubElement(texts, "article", attributes)
        for paragraph in record["paragraphs"]:
            ElementTree.SubElement(article, "p").text = paragraph
        truth = {"hyperpartisan": record["hyperpartisan"], "id": record["id"], "labeled-by": "article"}
        ElementTree.SubElement(labels, "article", truth)
    for name, element in (("articles", texts), ("ground-truth", labels)):
        path = root / f"{name}-training-byarticle-20181122.xml"
        ElementTree.ElementTree(element).write(path, encoding="utf-8", xml_declaration=True)


def write_imdb(root: Path) -> None:
    """As aclImdb; the articles are the reviews, 6 / 2 / 4."""
    records = iter(articles())
    for part, label, numbers in (
        ("train", "pos", (0, 7, 30, 11250)),
        ("train", "neg", (1, 8, 11249, 12499)),
        ("test", "pos", (0, 10)),
        ("test", "neg", (1, 2)),
    ):
        folder = root / part / label
        folder.mkdir(parents=True, exist_ok=True)
        for number in numbers:
            text = "<br /><br />".join(next(records)["paragraphs"])
            (folder / f"{number}_{9 if label == 'pos' else 2}.txt").write_text(text, encoding="utf-8")


def pairs(split: str) -> list[tuple[str, str, str]]:
    """Premise, hypothesis and label: two sentences of one biography, or of two, or with a quotation mark in one."""
    found = []
    for number, sentences in enumerate(of(split)):
        other = of(split)[number - 1]
        for label, hypothesis in zip(MNLI_LABELS, (sentences[0], sentences[1], f'He said "{other[0]}'), strict=True):
            found.append((sentences[0], hypothesis, label))
    return found


def write_tsv(path: Path, columns: str, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(row.get(column, "") for column in columns.split()) for row in rows]
    path.write_text("\n".join(["\t".join(columns.split()), *lines]) + "\n", encoding="utf-8", newline="\n")


def mnli_rows(split: str) -> list[dict[str, str]]:
    return [
        {"pairID": f"{number}n", "sentence1": one, "sentence2": two, "gold_label": label, "label1": label}
        for number, (one, two, label) in enumerate(pairs(split))
    ]


def write_mnli(root: Path) -> None:
    """As multinli_1.0, with a pair without agreed label in each file; 18 / 9 / 9 others."""
    for split, name in {"train": "train", "valid": "dev_matched", "test": "dev_mismatched"}.items():
        undecided = {**mnli_rows(split)[0], "gold_label": "-"}
        write_tsv(root / f"multinli_1.0_{name}.txt", MULTINLI, [undecided, *mnli_rows(split)])


def write_glue(root: Path) -> None:
    """The same pairs as GLUE has them."""
    for split, name in {"train": "train", "valid": "dev_matched", "test": "dev_mismatched"}.items():
        write_tsv(root / f"{name}.tsv", GLUE, mnli_rows(split))


def squad_article(sentences: tuple[str, ...], number: int) -> dict[str, Any]:
    """A paragraph and two questions: its first words are the answer to one, the other has none."""
    name = " ".join(sentences[0].split()[:2])
    context = " ".join(sentences)
    answer = {"text": name, "answer_start": context.index(name)}
    later = {"text": sentences[1], "answer_start": context.index(sentences[1])}
    questions = [
        {"id": f"{number}a", "question": "Who is this?", "answers": [answer, answer], "is_impossible": False},
        {"id": f"{number}c", "question": "What comes then?", "answers": [later], "is_impossible": False},
        {
            "id": f"{number}b",
            "question": "Which film won?",
            "answers": [],
            "plausible_answers": [answer],
            "is_impossible": True,
        },
    ]
    return {"title": name.replace(" ", "_"), "paragraphs": [{"context": context, "qas": questions}]}


def write_squad2(root: Path) -> None:
    """18 and 9 questions."""
    root.mkdir(parents=True, exist_ok=True)
    for split, name in {"train": "train-v2.0.json", "valid": "dev-v2.0.json"}.items():
        data = [squad_article(sentences, number) for number, sentences in zip(SPLITS[split], of(split), strict=True)]
        (root / name).write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")


def race_passage(sentences: tuple[str, ...], number: int) -> dict[str, Any]:
    """A passage with two questions, one of them with a blank."""
    options = [biographies()[(number + step) % len(biographies())][1] for step in range(4)]
    return {
        "id": f"high{number}.txt",
        "article": "\n".join(sentences),
        "questions": ["What is said?", "The passage says: _ It is true."],
        "options": [options, options[::-1]],
        "answers": ["A", "D"],
    }


def write_race(root: Path) -> None:
    """As RACE.tar.gz: in each split the last passage is for high school, the others are for middle school."""
    for split, name in {"train": "train", "valid": "dev", "test": "test"}.items():
        for number, sentences in zip(SPLITS[split], of(split), strict=True):
            folder = root / name / ("high" if number == SPLITS[split][-1] else "middle")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.txt").write_text(json.dumps(race_passage(sentences, number)), encoding="utf-8")


def write_c4(root: Path) -> None:
    """Two training files and one of validation; in each a page of all biographies, three times, and a short one."""
    root.mkdir(parents=True, exist_ok=True)
    long = " ".join(sentence for sentences in biographies() for sentence in sentences)
    for name in ("train.00000-of-00002", "train.00001-of-00002", "validation.00000-of-00001"):
        with gzip.open(root / f"c4-{name}.json.gz", "wt", encoding="utf-8") as file:
            for text in (" ".join(biographies()[0]), "\n".join([long] * 3)):
                record = {"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": "http://example.org/"}
                file.write(json.dumps(record) + "\n")


def write_sequential_sentences(root: Path) -> None:
    """Meetings: who speaks in each turn."""
    for split in ("train", "valid", "test"):
        lines = []
        for meeting in meetings(split):
            roles, texts = zip(*turns(meeting), strict=True)
            lines.append({"id": meeting.id, "segments": texts, "labels": roles})
        write_lines(root / f"{split}.jsonl", lines)


def write_multiple_choice(root: Path) -> None:
    """Which sentence goes on?"""
    for split in ("train", "valid", "test"):
        lines = []
        for number, sentences in zip(SPLITS[split], of(split), strict=True):
            other = biographies()[number - 1]
            record = {"id": str(number), "text": " ".join(sentences[:-1]), "question": "What follows?"}
            lines.append({**record, "choices": [other[1], sentences[-1], other[2]], "label": 1})
        write_lines(root / f"{split}.jsonl", lines)


def write_roberta_pretraining(root: Path) -> None:
    """Biographies, each a document."""
    for split in ("train", "valid"):
        lines = [{"text": " ".join(sentences)} for sentences in of(split)]
        write_lines(root / f"{split}.jsonl", lines)


WRITERS = {
    "squad2": write_squad2,
    "mnli": write_mnli,
    "race": write_race,
    "hyperpartisan": write_hyperpartisan,
    "imdb": write_imdb,
    "c4": write_c4,
}
FOLDERS = {
    "sequential_sentences": write_sequential_sentences,
    "multiple_choice": write_multiple_choice,
    "roberta_pretraining": write_roberta_pretraining,
    "ernie_sparse_pretraining": write_roberta_pretraining,
}
