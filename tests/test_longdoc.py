"""`benchmarks/longdoc.py`: arms with the weights of an encoder, tasks from folders, and heads on vectors."""

import sys
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import document_vectors
import longdoc
import pytest
import torch
import torch.nn.functional as F
import vector_heads
from commands import run_command, write_lines
from minilm import needs_minilm
from study_table import read_runs


@pytest.mark.slow
@needs_minilm
def test_arms_of_longdoc_have_the_weights_of_the_encoder(tmp_path: Path) -> None:
    """All attentions read a short document alike, and as the whole encoder does; a long one differently."""
    run_command("hat", "import", "minilm", "--package", tmp_path / "minilm")
    encoders = document_vectors.Encoders(tmp_path / "minilm", {"mine": ("hat_roberta", {"no_hierarchy": True})})
    long = " ".join(f"Words of sentence {number} say something about {number % 7} things." for number in range(90))
    documents = [{"id": "short", "text": "It was good. I liked it. So did she."}, {"id": "long", "text": long}]
    write_lines(tmp_path / "train.jsonl", [{**each, "label": each["id"]} for each in documents])
    records = longdoc.Task("labels", tmp_path).records("train", None)
    short, long_one = encoders.documents(records, "classification", 16384)
    assert encoders.refused == {}
    for each in (short, long_one):
        assert all(seconds >= 0 for _, seconds in encoders.read(each))
    expected = short.vectors[longdoc.WHOLE]
    assert len(expected) == 3
    for name in (longdoc.CHUNKS, longdoc.FIRST, *encoders.arms):
        torch.testing.assert_close(short.vectors[name], expected, atol=2e-2, rtol=0)  # bf16 where it is fast
    assert longdoc.WHOLE not in long_one.vectors  # 512 positions
    assert len(long_one.vectors[longdoc.FIRST]) < len(long_one.vectors[longdoc.CHUNKS]) == 90
    torch.testing.assert_close(long_one.vectors["mine"], long_one.vectors["full"])
    for one, other in combinations([name for name in encoders.arms if name != "mine"], 2):
        assert (long_one.vectors[one] - long_one.vectors[other]).abs().max() > 0.01, (one, other)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["FOLDER", "labels=none"], "none/train.jsonl is missing or empty"),
        (["FOLDER", "labels=FOLDER"], "train.jsonl is missing or empty"),
        (["none", "labels=FOLDER"], "none is no folder of hat import"),
        (["FOLDER", "texts=FOLDER"], "expected one of labels, sentences, passages, lines"),
        (["FOLDER", "--arm", "x", "labels=FOLDER"], "expected NAME=NETWORK"),
        (["FOLDER", "--arm", "x=nosuch", "labels=FOLDER"], "networks: hat_transformer"),
        (["FOLDER", "--arm", "x=hat_roberta attention_windw=9", "labels=FOLDER"], "no setting of hat_roberta"),
    ],
)
def test_longdoc_refuses_what_it_cannot_compare(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("config.json", "train.jsonl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "argv", ["longdoc", *(word.replace("FOLDER", str(tmp_path)) for word in words)])
    with pytest.raises(SystemExit, match="2"):
        longdoc.main()
    assert message in capsys.readouterr().err


LABELLED = [{"id": str(n), "segments": ["one", "two"], "label": "ab"[n % 2]} for n in range(4)]
ROLES = [{"id": str(n), "segments": ["one", "two", "three"], "labels": ["a", "b", "ab"[n % 2]]} for n in range(4)]
ASKED = [
    {
        "id": str(n),
        "questions": ["who came"],
        "sentences": ["nobody", "Ann came", "Bob came", "yes"],
        "evidence": [[0, 1, 2]],
        "lines": [[2]],
    }
    for n in range(2)
]


def write_split(folder: Path, rows: list[dict[str, Any]], **others: list[dict[str, Any]]) -> Path:
    """The rows as each split of a folder, but for the splits that have others."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in longdoc.SPLITS:
        write_lines(folder / f"{split}.jsonl", others.get(split, rows))
    return folder


def without(key: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != key} for row in rows]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["labels=A", "labels=B/../A"], "two tasks are called 'labels, A'"),
        (["labels=A/text", "labels=A"], "two tasks are called 'labels, A'"),
        (["labels=A", "--arm", "full=hat_roberta"], "--arm full: there is an arm of this name"),
        (["labels=A", "--arm", "x=hat_roberta", "--arm", "x=ernie_sparse"], "--arm x: there is an arm of this name"),
        (["labels=A", "--arm", "words=hat_roberta"], "--arm words: there is an arm of this name"),
        (["labels=A"], "config.json"),
        (["labels=unlabelled"], "document '0' has no label"),
        (["labels=ordered"], "each label that is read is 'a'"),
        (["labels=pairs"], "document '0' is a pair of texts"),
        (["labels=symbols"], "tokens"),
        (["sentences=A"], "labels"),
        (["lines=passages"], "document '0' has no lines"),
        (["passages=lines"], "document '0' has no evidence"),
        (["sentences=blank"], "document '0' has an empty text"),
        (["lines=unanswered"], "test.jsonl: no question has lines"),
        (["labels=A", "--documents", "0"], "no document is read"),
    ],
)
def test_longdoc_refuses_documents_before_its_first_minute(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("A", "A/text", "B"):
        write_split(tmp_path / name, LABELLED)
    write_split(tmp_path / "unlabelled", LABELLED, test=without("label", LABELLED))
    write_split(tmp_path / "ordered", LABELLED, test=LABELLED[::2])
    write_split(tmp_path / "pairs", [{**row, "second": "three"} for row in LABELLED])
    write_split(tmp_path / "symbols", [{"id": row["id"], "tokens": row["segments"], "label": "1"} for row in LABELLED])
    write_split(tmp_path / "passages", ASKED, test=without("lines", ASKED))
    write_split(tmp_path / "lines", without("evidence", ASKED))
    write_split(tmp_path / "blank", [{**row, "segments": ["one", " ", "three"]} for row in ROLES])
    write_split(tmp_path / "unanswered", ASKED, test=[{**row, "lines": [[]]} for row in ASKED])
    (tmp_path / "config.json").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["longdoc", ".", *words])
    with pytest.raises(SystemExit, match="2"):
        longdoc.main()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert message in line
    assert not [*tmp_path.glob("longdoc*")]


class Vectors:
    """Stands for the encoders: the first channel of a unit says whether its document is an odd one, or its place."""

    refused: ClassVar[dict[str, str]] = {}
    arms: ClassVar[dict[str, None]] = {document_vectors.CHUNKS: None}

    def __init__(self, *args: object) -> None:
        self.read_ids: list[str] = []

    def documents(self, records: Iterable[Any], kind: str, longest: int) -> Iterator[document_vectors.Document]:
        return (document_vectors.Document(each, torch.arange(9), [], []) for each in records)

    def read(self, document: document_vectors.Document) -> Iterator[tuple[str, float]]:
        record = document.record
        if is_asked := hasattr(record, "questions"):
            document.asked = torch.tensor([[1.0, 0.0]])
        size = len(record.sentences if is_asked else record.segments)
        first = torch.arange(size) == 2 if is_asked else torch.full((size,), int(record.id) % 2)
        vectors = torch.stack([first, ~first if is_asked else 1 - first], dim=1).float()
        for name in (document_vectors.CHUNKS, document_vectors.FIRST):
            document.vectors[name] = vectors[: 1 if name == document_vectors.FIRST else None]
            yield name, 1.0


def test_longdoc_refuses_an_arm_that_it_cannot_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, where the attentions of every run that an encoder cannot have are only named."""
    write_split(tmp_path / "papers", LABELLED)
    (tmp_path / "config.json").touch()
    monkeypatch.setattr(longdoc, "Encoders", Vectors)
    monkeypatch.setattr(Vectors, "refused", {"mine": "it has parts that the encoder lacks"})
    words = [str(tmp_path), f"labels={tmp_path / 'papers'}", "--arm", "mine=hat_roberta"]
    monkeypatch.setattr(sys, "argv", ["longdoc", *words])
    with pytest.raises(SystemExit, match="2"):
        longdoc.main()
    assert "error: --arm mine: it has parts that the encoder lacks" in capsys.readouterr().err


def test_longdoc_compares_several_folders_of_a_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of tasks are those of their own folders, and a table that is there keeps its other tasks."""
    folders = {"papers": LABELLED, "articles/text": LABELLED[::-1], "roles": ROLES, "meetings": ASKED}
    for name, rows in folders.items():
        write_split(tmp_path / name, rows)
    (tmp_path / "config.json").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(longdoc, "Encoders", Vectors)
    monkeypatch.setattr(longdoc, "memory_of", lambda *args: {document_vectors.CHUNKS: 7})
    for words in (
        ["labels=papers", "labels=articles/text", "sentences=roles"],
        ["lines=meetings", "passages=meetings"],
    ):
        monkeypatch.setattr(sys, "argv", ["longdoc", ".", *words])
        longdoc.main()
    tasks = dict.fromkeys(run["task"] for run in read_runs(tmp_path / "longdoc.csv.gz"))
    names = ["labels, articles", "labels, papers", "lines, meetings", "passages, meetings", "sentences, roles"]
    assert [*tasks] == names
    assert (tmp_path / "longdoc.svg").is_file()

    def figures(task: str, arm: str) -> set[float]:
        runs = [run for run in read_runs(tmp_path / "longdoc.csv.gz") if (run["task"], run["arm"]) == (task, arm)]
        assert len(runs) == (1 if task in names[2:4] else 3)
        return {sum(value for value, _ in each.values()) for run in runs for each in run["scores"].values()}

    assert figures("lines, meetings", "chunks") == {1.0}  # the line comes first
    assert figures("passages, meetings", "chunks") == {(1 + 2 / 2 + 3 / 3) / 3}
    assert max(figures("sentences, roles", "first 512")) <= 1  # of three sentences one is read


@pytest.mark.parametrize("recipe", [vector_heads.LABELS, vector_heads.SENTENCE_LABELS], ids=["document", "sentences"])
def test_heads_learn_from_vectors(recipe: vector_heads.HeadRecipe) -> None:
    """Of documents of different lengths; of sentences labels without a vector do not count."""
    of_sentences = recipe is vector_heads.SENTENCE_LABELS
    vectors, gold = [], []
    for number in range(24):
        kinds = torch.full((2 + number % 3,), number % 2) if not of_sentences else torch.arange(2 + number % 3) % 2
        vectors.append(F.one_hot(kinds, 6).float())
        gold.append(F.pad(kinds, (0, 2), value=1) if of_sentences else kinds[:1])
    head = vector_heads.trained(recipe, vectors, gold, 2, 1)
    for own, wanted in zip(vectors, gold, strict=True):
        found = vector_heads.logits_of(head, own).argmax(dim=1)
        assert torch.equal(found, wanted[: len(found)])
        assert len(found) == (len(own) if of_sentences else 1)
