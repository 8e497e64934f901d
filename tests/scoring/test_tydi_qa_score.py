"""`hat score tydi_qa`: every rule by hand, and all figures against those of the authors' script.

`HAT_TYDI_EVAL=/path/to/tydi_eval.py` runs that script and writes its figures to `tests/golden/tydi_qa.json` anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import REPOSITORY
from official_predictions import tydi_predictions, tydi_questions

from hat_fairseq import cli
from hat_fairseq.scoring.tydi_qa import byte_f1, minimal_outcome, passage_outcome
from hat_fairseq.scoring.tydi_qa_files import Offsets, TydiAnswer, TydiPrediction

GOLDEN = REPOSITORY / "tests/golden/tydi_qa.json"
SEEDS = range(4)


def predicted(passage: int | None = None, minimal: Offsets = None, yes_no: str = "none") -> TydiPrediction:
    return TydiPrediction(1, "thai", TydiAnswer(passage, minimal, yes_no), passage_score=2.5, minimal_score=-1.0)


def test_a_passage_is_that_of_any_annotator_and_needs_two() -> None:
    one, two = ([TydiAnswer(3), TydiAnswer(), TydiAnswer()], [TydiAnswer(3), TydiAnswer(), TydiAnswer(0)])
    assert passage_outcome(one, predicted(3), 2) == (False, True, 0, 2.5)
    assert passage_outcome(one, predicted(3), 1) == (True, True, 1, 2.5)
    assert [passage_outcome(two, predicted(index), 2).value for index in (0, 1, 3)] == [1, 0, 1]
    assert passage_outcome(two, predicted(), 2) == (True, False, 0, 2.5)


def test_a_minimal_answer_counts_as_the_f1_with_the_nearest_annotator() -> None:
    golds = [TydiAnswer(minimal=(39, 50)), TydiAnswer(minimal=(34, 50)), TydiAnswer()]
    assert minimal_outcome(golds, predicted(minimal=(30, 40)), 2) == (True, True, pytest.approx(2 * 6 / 26), -1)
    assert minimal_outcome(golds, predicted(minimal=(39, 50)), 2).value == 1
    assert minimal_outcome(golds, predicted(minimal=(30, 34)), 2) == (True, True, 0, -1)
    assert minimal_outcome(golds[1:], predicted(minimal=(34, 50)), 2) == (False, True, 0, -1)
    assert minimal_outcome(golds, predicted(), 2) == (True, False, 0, -1)


def test_bytes_in_common() -> None:
    assert byte_f1((0, 4), (4, 8)) == byte_f1((4, 8), (0, 4)) == byte_f1(None, (0, 4)) == byte_f1((2, 2), (0, 4)) == 0
    assert byte_f1((0, 4), (0, 4)) == 1 and byte_f1((1, 2), (0, 4)) == byte_f1((0, 4), (1, 2)) == pytest.approx(2 / 5)


def test_a_yes_or_no_counts_as_one_and_as_an_annotators_answer() -> None:
    golds = [TydiAnswer(yes_no="yes"), TydiAnswer(minimal=(0, 9)), TydiAnswer()]
    assert [minimal_outcome(golds, predicted(yes_no=answer), 2).value for answer in ("yes", "no")] == [1, 0]
    assert minimal_outcome(golds, predicted(minimal=(0, 9)), 2) == (True, True, 1, -1)
    assert minimal_outcome(golds[:1], predicted(yes_no="yes"), 2) == (False, True, 0, -1)


def test_a_missing_prediction_is_an_answer_where_there_is_none() -> None:
    unanswered, answered = [TydiAnswer()] * 3, [TydiAnswer(0, (0, 9))] * 3
    for outcome in (passage_outcome, minimal_outcome):
        assert outcome(unanswered, None, 2) == (False, True, 0, 0)
        assert outcome(answered, None, 2) == (True, False, 0, 0)


def write(folder: Path, questions: list[dict], predictions: list[dict]) -> list[str]:
    for name, records in (("r.jsonl", questions), ("p.jsonl", predictions)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    files = ["--hypotheses", str(folder / "p.jsonl"), "--references", str(folder / "r.jsonl")]
    return ["score", "tydi_qa", *files, "--bootstrap-samples", "0"]


def scores(folder: Path, words: list[str]) -> dict:
    assert cli.main([*words, "--json", str(folder / "out.json"), "--overwrite"]) == 0
    (record,) = json.loads((folder / "out.json").read_text()).values()
    return record["scores"]


def authors_figures(script: str, folder: Path) -> dict:
    """What the authors' script prints: an object for each language, in the order of the lines, and the averages."""
    files = [f"--gold_path={folder}/r.jsonl", f"--predictions_path={folder}/p.jsonl", "--noverbose"]
    lines = subprocess.run(
        [sys.executable, script, *files], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    languages = [line.split(" & ")[1] for line in lines if line.startswith("Passage & ")]
    *figures, averages = [json.loads(line) for line in lines if line.startswith("{")]
    every = {**dict(zip(languages, figures, strict=True)), "averages": averages}
    return {
        name: {key: round(value, 6) for key, value in figures.items() if "precision-at" not in key}
        for name, figures in every.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_all_figures_are_those_of_the_authors(seed: int, tmp_path: Path) -> None:
    questions = tydi_questions(seed)
    predictions = tydi_predictions(seed, questions)
    found = scores(tmp_path, write(tmp_path, questions, predictions))
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    if script := os.environ.get("HAT_TYDI_EVAL"):
        golden[str(seed)] = authors_figures(script, tmp_path)
        text = ",\n".join(f'"{key}": {json.dumps(golden[key])}' for key in sorted(golden))
        GOLDEN.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    theirs = golden[str(seed)]
    averages = theirs.pop("averages")
    assert 350 < len(predictions) < len(questions)
    for kind, ours in found.items():
        expected = [averages[f"avg_{kind}_{name}"] for name in ("f1", "precision", "recall")]
        assert [ours["f1"]["mean"] / 100, ours["precision"] / 100, ours["recall"] / 100] == pytest.approx(
            expected, abs=1e-6
        )
        assert ours["languages"].keys() == theirs.keys()
        for language, best in ours["languages"].items():
            names = [f"best-threshold{end}" for end in ("-f1", "-precision", "-recall", "")]
            names += [f"recall-at-precision>={precision}" for precision in best["recall_at_precision"]]
            expected = [theirs[language][f"{kind}-{name}"] for name in names]
            figures = [best["f1"], best["precision"], best["recall"], 100 * best["threshold"]]
            figures += best["recall_at_precision"].values()
            assert [figure / 100 for figure in figures] == pytest.approx(expected, abs=1e-6), language


def case(identifier: int, language: str, answered: bool = True) -> dict:
    minimal = {"plaintext_start_byte": 4, "plaintext_end_byte": 8} if answered else NOTHING
    annotation = {"passage_answer": {"candidate_index": 1 if answered else -1}, "minimal_answer": minimal}
    return {"example_id": identifier, "language": language, "annotations": [annotation | {"yes_no_answer": "NONE"}] * 3}


NOTHING = {"plaintext_start_byte": -1, "plaintext_end_byte": -1}


def answer(identifier: int, language: str, index: int, score: float) -> dict:
    scores = {"passage_answer_score": score, "minimal_answer_score": score}
    return {"example_id": identifier, "language": language, "passage_answer_index": index, **scores}


def test_each_language_has_a_threshold_and_english_is_not_in_the_mean(tmp_path: Path, capsys) -> None:
    questions = [case(1, "thai"), case(2, "thai"), case(3, "korean"), case(4, "english"), case(5, "telugu")]
    predictions = [
        answer(1, "thai", 1, 5),
        answer(2, "thai", 0, 4),
        answer(3, "korean", 1, -9),
        answer(4, "english", 1, 0),
    ]
    predictions.append(answer(6, "thai", 1, 9))
    words = write(tmp_path, questions, predictions)
    found = scores(tmp_path, words)["passage"]
    assert {name: each["threshold"] for name, each in found["languages"].items()} == {
        "english": 0,
        "korean": -9,
        "thai": 5,
    }
    assert found["f1"]["mean"] == pytest.approx((100 + 100 * 2 / 3) / 2)
    assert found["precision"] == 100 and found["recall"] == 75
    captured = capsys.readouterr()
    assert "p.jsonl: no predictions in telugu; the mean is over the other languages" in captured.err
    assert "p.jsonl: 1 predictions are of questions that the references lack, and do not count" in captured.err
    header, mean, signature, _, _, table, *languages = captured.out.splitlines()
    assert header.split() == ["passage", "F1", "minimal", "F1", "languages", "without", "English"]
    assert mean.split()[1:] == ["83.33", "0.00", "2"]
    assert signature == (
        "TyDi QA, primary tasks | annotators: 2 | threshold: of the best F1 | bootstrap: none | questions: 5"
    )
    assert [line.split()[:3] for line in languages] == [
        ["english", "1", "100.00"], ["korean", "1", "100.00"], ["thai", "2", "66.67"],
    ]  # fmt: skip


def test_a_missing_prediction_lowers_precision(tmp_path: Path, capsys) -> None:
    questions = [case(1, "thai"), case(2, "thai", answered=False)]
    found = scores(tmp_path, write(tmp_path, questions, [answer(1, "thai", 1, -1)]))["passage"]["languages"]["thai"]
    assert (found["precision"], found["recall"], found["threshold"]) == (50, 100, -1)  # the missing one has the score 0
    assert "p.jsonl: 1 questions have no prediction; those without answer count as" in capsys.readouterr().err


def test_intervals(tmp_path: Path, capsys) -> None:
    questions = tydi_questions(0, copies=3)
    words = write(tmp_path, questions, tydi_predictions(0, questions))
    words[-1] = "100"
    for kind in scores(tmp_path, words).values():
        assert kind["f1"]["low"] < kind["f1"]["mean"] < kind["f1"]["high"]
    only = [question for question in questions if question["language"] == "english"]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(question) + "\n" for question in only))
    assert scores(tmp_path, words)["passage"]["f1"] == {"mean": 0, "low": 0, "high": 0}  # no language to average


def test_what_is_refused(tmp_path: Path, capsys) -> None:
    questions = [case(1, "thai"), case(2, "korean")]
    for predictions, message in (
        ([answer(1, "korean", 1, 0)], "p.jsonl: question 1 is in thai, not in korean"),
        ([answer(3, "thai", 1, 0)], "p.jsonl: none of its 1 predictions is of a question of the references"),
    ):
        assert cli.main(write(tmp_path, questions, predictions)) == 2
        assert message in capsys.readouterr().err
    assert cli.main(write(tmp_path, [], [answer(1, "thai", 1, 0)])) == 2
    assert "r.jsonl: no questions, so there is nothing to score" in capsys.readouterr().err
