"""`hat score natural_questions`: every rule by hand, and all figures against the authors' package."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from official_predictions import natural_predictions, natural_questions

from hat_fairseq import cli
from hat_fairseq.scoring.natural_questions import long_outcome, short_outcome
from hat_fairseq.scoring.natural_questions_files import NaturalAnswer, NaturalPrediction, Span

A, B, C = Span((10, 20), (2, 4)), Span((30, 45), (6, 9)), Span((50, 60), (11, 12))


def predicted(**answer: Any) -> NaturalPrediction:
    return NaturalPrediction(1, NaturalAnswer(**answer), long_score=2.5, short_score=-1.0)


def longs(*spans: Span | None) -> list[NaturalAnswer]:
    return [NaturalAnswer(span) for span in spans]


def shorts(*sets: tuple[Span, ...] | str) -> list[NaturalAnswer]:
    return [NaturalAnswer(yes_no=each) if isinstance(each, str) else NaturalAnswer(None, each) for each in sets]


def test_a_question_has_an_answer_if_two_annotators_gave_one() -> None:
    one, two = longs(A, None, None, None, None), longs(A, B, None, None, None)
    assert long_outcome(one, predicted(long_answer=A), 2) == (False, True, 0, 2.5)
    assert long_outcome(two, predicted(long_answer=A), 2) == (True, True, 1, 2.5)
    assert long_outcome(one, predicted(long_answer=A), 1) == (True, True, 1, 2.5)
    assert short_outcome(shorts((A,), (), ()), predicted(short_answers=(A,)), 2) == (False, True, 0, -1)
    assert short_outcome(shorts((A,), "yes", ()), predicted(short_answers=(A,)), 2) == (True, True, 1, -1)


def test_a_long_answer_is_that_of_any_annotator() -> None:
    golds = longs(A, B, None)
    assert [long_outcome(golds, predicted(long_answer=span), 2).value for span in (A, B, C)] == [1, 1, 0]
    assert long_outcome(golds, predicted(), 2) == (True, False, 0, 2.5)


def test_spans_are_equal_by_bytes_or_by_tokens() -> None:
    assert Span((10, 20)).same(A) and Span(None, (2, 4)).same(A) and Span((10, 20), (0, 1)).same(A)
    assert Span((10, 21), (2, 4)).same(A)  # other bytes: the tokens are enough
    assert not Span((10, 21)).same(A) and not Span((11, 20), (2, 5)).same(A)
    assert not Span((10, 20)).same(Span(None, (2, 4)))


def test_short_answers_are_one_annotators_set() -> None:
    golds = shorts((A, B), (A,), ())
    right = [(A,), (A, B), (B, A), (A, B, A)]
    wrong = [(B,), (A, C), (A, B, C)]
    assert [short_outcome(golds, predicted(short_answers=spans), 2).value for spans in right + wrong] == [1] * 4 + [
        0
    ] * 3
    assert short_outcome(golds, predicted(), 2) == (True, False, 0, -1)  # the empty set of an annotator is no answer


def test_a_yes_is_right_if_any_annotator_says_so() -> None:
    golds = shorts("yes", (A,), ())
    answers = [{"yes_no": "yes"}, {"yes_no": "no"}, {"short_answers": (A,)}]
    assert [short_outcome(golds, predicted(**answer), 2).value for answer in answers] == [1, 0, 1]


def write(folder: Path, questions: list[dict], predictions: list[dict]) -> list[str]:
    """The words of a command that scores the predictions; the references are in two parts, one of them gzipped."""
    half = len(questions) // 2
    lines = [json.dumps(question) + "\n" for question in questions]
    with gzip.open(folder / "r1.jsonl.gz", "wt") as file:
        file.writelines(lines[:half])
    (folder / "r2.jsonl").write_text("".join(lines[half:]))
    (folder / "p.json").write_text(json.dumps({"predictions": predictions}))
    references = [str(folder / "r1.jsonl.gz")] * (half > 0) + [str(folder / "r2.jsonl")]
    return ["score", "natural_questions", "--hypotheses", str(folder / "p.json"), "--references", *references]


def scores(folder: Path, words: list[str], *more: str) -> dict:
    out = folder / "out.json"
    assert cli.main([*words, "--json", str(out), "--overwrite", "--bootstrap-samples", "0", *more]) == 0
    (record,) = json.loads(out.read_text()).values()
    return record["scores"]


def question(identifier: int, answered: bool) -> dict:
    nothing = {"start_byte": -1, "end_byte": -1, "start_token": -1, "end_token": -1}
    span = {"start_byte": 1, "end_byte": 5, "start_token": 0, "end_token": 2} if answered else nothing
    return {
        "example_id": identifier,
        "annotations": [{"long_answer": span, "short_answers": [], "yes_no_answer": "NONE"}] * 5,
    }


def prediction(identifier: int, start: int, score: float) -> dict:
    span = {"start_byte": start, "end_byte": 5}
    return {"example_id": identifier, "long_answer": span, "long_answer_score": score, "short_answers_score": score}


def test_figures_of_a_case_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scores 3: right; 2, twice: right and wrong; 1: an answer to a question without any; a fourth gold is missed."""
    questions = [question(i, answered=i != 4) for i in range(1, 6)]
    predictions = [
        prediction(1, start=1, score=3),
        prediction(2, start=1, score=2),
        prediction(3, start=2, score=2),
        prediction(4, start=1, score=1),
        {"example_id": 5, "long_answer_score": 9, "short_answers_score": 9},
    ]
    words = write(tmp_path, questions, predictions)
    found = scores(tmp_path, words)["long"]
    # After 3: P 1, R 1/4. After both of 2: P 2/3, R 2/4, the best F1. After 1: P 2/4, R 2/4.
    f1 = 100 * 2 * (2 / 3) * 0.5 / (2 / 3 + 0.5)
    expected = {"precision": 100 * 2 / 3, "recall": 50, "threshold": 2, "f1_of_all": 50}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["f1"]["mean"] == pytest.approx(f1) and found["f1"]["low"] is None
    assert found["recall_at_precision"] == pytest.approx({"0.5": 50, "0.75": 25, "0.9": 25})
    capsys.readouterr()
    assert cli.main([*words, "--bootstrap-samples", "50"]) == 0
    _, long, short, signature = capsys.readouterr().out.splitlines()
    assert long.split()[1:3] == ["long", "57.14"] and long.split()[3].startswith("[")
    assert short.split()[1:4] == ["short", "0.00", "[0.00,"] and short.split()[7] == "0.00"  # no answer: threshold 0
    assert signature == (
        "Natural Questions | annotators: 2 | threshold: of the best F1 | "
        "bootstrap: 50 of questions (95 %, seed 0) | questions: 5"
    )


@pytest.mark.parametrize("seed", range(4))
def test_all_figures_are_those_of_the_authors(seed: int, tmp_path: Path) -> None:
    util = pytest.importorskip("natural_questions.eval_utils")
    from absl import flags
    from natural_questions import nq_eval

    flags.FLAGS.mark_as_parsed()
    questions = natural_questions(seed)
    predictions = natural_predictions(seed, questions)
    words = write(tmp_path, questions, predictions)
    with gzip.open(tmp_path / "all.gz", "wt") as file:
        file.writelines(json.dumps(question) + "\n" for question in questions)
    stats = nq_eval.score_answers(
        util.read_annotation_from_one_split(str(tmp_path / "all.gz")), util.read_prediction_json(tmp_path / "p.json")
    )
    theirs = nq_eval.get_metrics_with_answer_stats(*stats)
    of_all = nq_eval.compute_final_f1(*stats)
    assert len(predictions) >= 500
    for kind, found in scores(tmp_path, words).items():
        best = f"{kind}-best-threshold"
        expected = {"f1": 100 * theirs[f"{best}-f1"], "threshold": theirs[best]}
        expected |= {name: 100 * theirs[f"{best}-{name}"] for name in ("precision", "recall")}
        expected |= {p: 100 * theirs[f"{kind}-recall-at-precision>={p}"] for p in found["recall_at_precision"]}
        expected |= {"f1_of_all": 100 * of_all[f"{kind}-answer-f1"]}
        ours = {**found, "f1": found["f1"]["mean"], **found["recall_at_precision"]}
        assert {name: ours[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        assert 5 < ours["f1"] < 95


def test_simplified_references_give_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They have tokens only; predictions by bytes cannot be right there, and a note says so."""
    questions = natural_questions(5)
    predictions = natural_predictions(5, questions)
    spans = [s for p in predictions for s in [*p.get("short_answers", []), p.get("long_answer")] if s]
    for span in spans:
        span.update(start_byte=-1, end_byte=-1)
    original = scores(tmp_path, write(tmp_path, questions, predictions))
    text = json.dumps(questions)
    for record in (simplified := json.loads(text)):
        for annotation in record["annotations"]:
            for span in (annotation["long_answer"], *annotation["short_answers"]):
                del span["start_byte"], span["end_byte"]
    assert scores(tmp_path, write(tmp_path, simplified, predictions)) == original
    capsys.readouterr()
    answer = {"example_id": 1, "long_answer": {"start_byte": 1, "end_byte": 5}}
    answer |= {"long_answer_score": 1, "short_answers_score": 1}
    simple = {"example_id": 1, "annotations": [{**simplified[0]["annotations"][0]}] * 2}
    simple["annotations"][0]["long_answer"] = {"start_token": 0, "end_token": 2}
    scores(tmp_path, write(tmp_path, [simple], [answer]))
    assert "1 spans are wrong because" in capsys.readouterr().err


def test_parts_with_one_annotation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    single = question(1, answered=True)
    single["annotations"] = single["annotations"][:1]
    words = write(tmp_path, [single], [prediction(1, start=1, score=0)])
    assert scores(tmp_path, words)["long"]["f1"]["mean"] == 0
    assert (
        "1 of 1 questions have fewer than 2 annotations, so they have no answer; --annotators 1"
        in capsys.readouterr().err
    )
    assert scores(tmp_path, words, "--annotators", "1")["long"]["f1"]["mean"] == 100
    assert capsys.readouterr().err == ""
    assert cli.main([*words, "--annotators", "0"]) == 2
    assert capsys.readouterr().err == "hat: error: --annotators must be at least 1, not 0\n"


def test_the_ids_must_be_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ids, message in (
        ([1], "p.json lacks 1 of 2 ids, the first is 2"),
        ([1, 2, 3], "lacks 1 of 3 ids, the first is 3"),
    ):
        predictions = [prediction(i, start=1, score=0) for i in ids]
        assert cli.main(write(tmp_path, [question(i, answered=True) for i in (1, 2)], predictions)) == 2
        assert message in capsys.readouterr().err


def test_several_systems_are_resampled_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = natural_questions(1, copies=5)
    words = write(tmp_path, questions, natural_predictions(1, questions))
    (tmp_path / "q.json").write_text((tmp_path / "p.json").read_text())
    words.insert(4, str(tmp_path / "q.json"))
    assert cli.main([*words, "--bootstrap-samples", "100"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1][1:] == rows[3][1:] and rows[2][1:] == rows[4][1:]
    low, high = float(rows[1][3].strip("[,")), float(rows[1][4].strip("]"))
    assert low < float(rows[1][2]) < high
