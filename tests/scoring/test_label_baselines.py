"""Baselines of labels: what each can know, that nothing of the references is read, and their row beside a system."""

import json
import random
from pathlib import Path

import pytest
from commands import hat, write_lines

from hat_fairseq.scoring.baselines import FIRST, OF_DOCUMENTS, OF_SEGMENTS, LabelledDocument, baselines

OTHER = [f"word{number}" for number in range(60)]


def documents(count: int, seed: int, decided_after: int = 0) -> list[LabelledDocument]:
    """Two labels, and after so many other words `yes indeed` or `no indeed`, which decides."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        label = draw.choice(["a", "b"])
        decides = [{"a": "yes", "b": "no"}[label], "indeed"] * 5
        text = [*draw.choices(OTHER[:4], k=decided_after), *decides, *draw.choices(OTHER, k=5)]
        made.append(LabelledDocument((" ".join(text),), (label,)))
    return made


def accuracy(names: list[str], *splits: list[LabelledDocument], of_segments: bool = False) -> dict[str, float]:
    known = OF_SEGMENTS if of_segments else OF_DOCUMENTS
    found = baselines([known[name] for name in names], *splits)
    gold = [label for each in splits[2] for label in each.labels]
    scored = {
        each.title: sum(a == b for a, b in zip((x for own in each.predictions for x in own), gold, strict=True))
        / len(gold)
        for each in found
    }
    return {name: scored[known[name].title] for name in names}


def test_words_that_decide_late_are_seen_by_all_words_alone() -> None:
    splits = [documents(80, 1, FIRST), documents(20, 2, FIRST), documents(40, 3, FIRST)]
    found = accuracy(["majority", "words-512", "words"], *splits)
    assert found["words"] > 0.9
    assert found["words-512"] < 0.75
    assert found["majority"] < 0.75


def segments(count: int, seed: int) -> list[LabelledDocument]:
    """The first segment is a title; each `answer` comes after a question and has no word of its own."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        texts, labels = [" ".join(draw.choices(OTHER, k=4))], ["title"]
        for _ in range(draw.randrange(2, 9)):
            if draw.random() < 0.5:
                texts += ["who asks " + draw.choice(OTHER), " ".join(draw.choices(OTHER, k=4))]
                labels += ["question", "answer"]
            else:
                texts.append(" ".join(draw.choices(OTHER, k=4)))
                labels.append("other")
        made.append(LabelledDocument(tuple(texts), tuple(labels)))
    return made


def test_of_segments_the_place_knows_titles_and_neighbours_know_answers() -> None:
    found = accuracy([*OF_SEGMENTS], segments(80, 1), segments(20, 2), segments(40, 3), of_segments=True)
    assert found["majority"] < found["words"] < found["neighbours"]
    assert found["neighbours"] > 0.9
    assert found["place"] > found["majority"]


def test_one_label_and_texts_without_common_words_are_no_error() -> None:
    alone = [LabelledDocument((text,), ("a",)) for text in ("x", "y", "")]
    two = [LabelledDocument((f"w{number}",), ("ab"[number % 2],)) for number in range(4)]
    for split in (alone, two):
        for each in baselines([OF_DOCUMENTS[name] for name in ("majority", "words-512", "words")], split, split, split):
            assert len(each.predictions) == len(split)


def write_splits(folder: Path, **more: object) -> None:
    for name, seed, count in (("train", 1, 60), ("valid", 2, 20), ("test", 3, 30)):
        rows = [
            {"id": f"{name}-{number}", "text": each.texts[0], "label": each.labels[0]} | more
            for number, each in enumerate(documents(count, seed))
        ]
        write_lines(folder / f"{name}.jsonl", rows)


def test_rows_and_differences_beside_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_splits(tmp_path)
    gold = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    write_lines(tmp_path / "system.jsonl", [{"id": each["id"], "label": "a"} for each in gold])
    out = tmp_path / "scores.json"
    words = ["score", "classification", tmp_path / "system.jsonl", "--references", tmp_path / "test.jsonl"]
    assert hat(*words, "--out", out, "--baselines") == 0
    record = json.loads(out.read_text())
    assert {*record} == {str(tmp_path / "system.jsonl"), "majority", "words, first 512 tokens", "words"}
    difference = record["words"]["accuracy minus the first"]
    figures = [each["figures"]["accuracy"]["mean"] for each in (record["words"], next(iter(record.values())))]
    assert difference["mean"] == pytest.approx(figures[0] - figures[1])
    assert difference["low"] > 0
    assert "all predictions are 'a'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--encoder", "x"], "--encoder has no effect without --baselines"),
        (["--baselines", "absent.jsonl"], "absent.jsonl is missing"),
        (["--baselines", "--vectors", "x"], "--vectors has no effect without --encoder"),
    ],
)
def test_refusals(flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_splits(tmp_path)
    words = ["score", "classification", tmp_path / "test.jsonl", "--references", tmp_path / "test.jsonl"]
    assert hat(*words, *flags) == 2
    assert message in capsys.readouterr().err


def test_missing_training_documents_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_splits(tmp_path)
    (tmp_path / "train.jsonl").unlink()
    words = ["score", "classification", tmp_path / "test.jsonl", "--references", tmp_path / "test.jsonl"]
    assert hat(*words, "--baselines") == 2
    assert "train.jsonl is missing" in capsys.readouterr().err
