from __future__ import annotations

import argparse
import json

import pytest
from rouge_score.rouge_scorer import RougeScorer

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import record_to_json
from hat_fairseq.scoring import baselines
from hat_fairseq.scoring.baselines import best_constant, lead, mean_words


def write(path, documents):
    path.write_text("".join(json.dumps(record_to_json(document)) + "\n" for document in documents))
    return str(path)


def run(*arguments):
    parser = argparse.ArgumentParser()
    baselines.add_arguments(parser)
    return baselines.main(parser.parse_args([str(argument) for argument in arguments]))


def test_lead_leaves_roles_out():
    turns = Record("m", (("Hello everybody .", "Mm - hmm ."),), roles=("PM", "ID"))
    assert lead(turns, 5) == "Hello everybody . Mm -"
    assert lead(Record("t", ("a  b\nc",)), 2) == "a b"
    assert lead(turns, 99) == "Hello everybody . Mm - hmm ."


def test_the_constant_is_the_nearest_by_rouge_score(ami_train):
    documents = ami_train[:10]
    scorer = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)

    def score(candidate):
        others = [other for other in documents if other is not candidate]
        scores = [scorer.score("\n".join(other.target), "\n".join(candidate.target)) for other in others]
        return sum(value.fmeasure for each in scores for value in each.values()) / len(others)

    expected = max(documents, key=score)
    constant, its_score = best_constant(documents)
    assert constant is expected and its_score == pytest.approx(score(expected))


def test_ami(ami_train, ami_test, tmp_path, capsys):
    train, test = write(tmp_path / "train.jsonl", ami_train), write(tmp_path / "test.jsonl", ami_test)
    assert run("--documents", test, "--train", train, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "the first 286 words of each of 20 documents" in printed  # the mean of the training summaries
    assert "training document 'IS1006c', the nearest of 97" in printed
    rows = [json.loads(line) for line in (tmp_path / "out" / "constant.jsonl").open()]
    assert [row["id"] for row in rows] == [document.id for document in ami_test]
    chosen = next(document for document in ami_train if document.id == "IS1006c")
    assert all(row["text"].split("\n") == list(chosen.target) for row in rows)
    leads = [json.loads(line)["text"] for line in (tmp_path / "out" / "lead.jsonl").open()]
    assert [len(text.split()) for text in leads] == [286] * 20


def test_large_training_sets_are_sampled(ami_train, tmp_path, capsys):
    train = write(tmp_path / "train.jsonl", ami_train[:30])
    arguments = ["--documents", train, "--train", train, "--out", tmp_path, "--candidates", 5]
    run(*arguments)
    first = (tmp_path / "constant.jsonl").read_text()
    assert "the nearest of 5 (of 30 in training) to the 4 others" in capsys.readouterr().out
    with pytest.raises(ValueError, match="lead.jsonl exists"):
        run(*arguments)
    run(*arguments, "--overwrite")
    assert (tmp_path / "constant.jsonl").read_text() == first


def test_mean_words():
    documents = [Record(str(i), ("x",), target=target) for i, target in enumerate([("a b", "c"), ("d e",)])]
    assert mean_words(documents) == 2


def test_errors(tmp_path):
    untargeted = write(tmp_path / "u.jsonl", [Record("a", ("x",))])
    single = write(tmp_path / "s.jsonl", [Record("a", ("x",), target=("y",))])
    with pytest.raises(ValueError, match=r"u\.jsonl: no document has a target"):
        run("--documents", single, "--train", untargeted, "--out", tmp_path)
    with pytest.raises(ValueError, match="at least 2 training summaries, not 1"):
        run("--documents", single, "--train", single, "--out", tmp_path)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        run("--documents", single, "--train", single, "--out", tmp_path, "--words", "0")
