"""`hat score squad`: SQuAD's definition written out, and hand-computed cases."""

from __future__ import annotations

import json
import random
import re
import string
from pathlib import Path

import pytest

from hat_fairseq import cli
from hat_fairseq.scoring.squad import best_threshold, exact, f1, normalize, score_answers

WORDS = ["the", "The", "a", "an", "of", "Paris,", "paris", "New-York", "1998", "(1998)", "..", "Ål", "don't", "dont"]
WORDS += ["x", "x.y", "THE", "river"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel\tTower!", "eiffel tower"),
        ("an apple, a pear; the end", "apple pear end"),
        ("theory of a.b", "theory of ab"),
        ("a.n apple", "apple"),  # punctuation goes first, so an article appears
        ("don't «stop»", "dont «stop»"),  # ASCII punctuation only
        ("The", ""),
    ],
)
def test_normalization(text: str, expected: str) -> None:
    assert normalize(text) == expected


def test_f1_counts_words_as_often_as_they_occur() -> None:
    assert f1("red red car", "the red car.") == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert f1("bus", "car") == 0 and f1("", "car") == 0 and f1("the", "") == 1
    assert exact("The car", "car!") == 1 and exact("cars", "car") == 0


def questions(count: int, seed: int, ties: bool) -> tuple[dict, dict, dict]:
    """Random predictions, gold answers (a third without) and no-answer scores."""
    draw = random.Random(seed)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 4)))

    ids = [f"q{number}" for number in range(count)]
    golds = {i: [text() for _ in range(draw.choice([0, 1, 3]))] for i in ids}
    predictions = {i: draw.choice([text(), "", *golds[i]]) for i in ids}
    odds = {i: float(draw.randint(-2, 3)) if ties else draw.gauss(0, 2) for i in draw.sample(ids, count)}
    return predictions, golds, odds


def words_of(text: str) -> list[str]:
    text = "".join(" " if c in string.whitespace else c for c in text.lower() if c not in string.punctuation)
    return [word for word in re.sub(r"\b(a|an|the)\b", " ", text).split(" ") if word]


def raw_scores(prediction: str, golds: list[str]) -> tuple[float, float]:
    """Exact match and F1 of one answer, the best over its golds; golds of nothing but articles do not count."""
    best_exact = best_f1 = 0.0
    for gold in [gold for gold in golds if words_of(gold)] or [""]:
        guess, right = words_of(prediction), words_of(gold)
        common = sum(min(guess.count(word), right.count(word)) for word in set(guess))
        overlap = float(guess == right) if not guess or not right else 2 * common / (len(guess) + len(right))
        best_exact, best_f1 = max(best_exact, float(guess == right)), max(best_f1, overlap)
    return best_exact, best_f1


def reference(golds: dict[str, list[str]], predictions: dict, odds: dict | None, threshold: float) -> dict:
    """The definition, written out: every figure from the scores of all questions, every threshold tried."""
    raw = {i: raw_scores(predictions[i], golds[i]) for i in golds}
    result: dict[str, float] = {}
    answered = {i: odds is None or odds[i] <= threshold for i in golds}
    kept = {i: raw[i] if answered[i] else 2 * (float(not golds[i]),) for i in golds}
    parts = {"": list(golds), "HasAns_": [i for i in golds if golds[i]], "NoAns_": [i for i in golds if not golds[i]]}
    for name, ids in parts.items():
        if ids:
            for column, figure in enumerate(("exact", "f1")):
                result[f"{name}{figure}"] = 100 * sum(kept[i][column] for i in ids) / len(ids)
            result[f"{name}total"] = len(ids)
    if odds is None:
        return result
    order = sorted(odds, key=odds.__getitem__)  # of equal scores the one that was given first
    for column, figure in enumerate(("exact", "f1")):
        sums = []
        for number in range(len(order) + 1):  # the first ones are answered, the others are not
            right = [raw[i][column] if golds[i] else float(not predictions[i]) for i in order[:number]]
            sums.append(sum(right) + sum(not golds[i] for i in order[number:]))
        best = max(range(len(sums)), key=lambda number: round(sums[number], 9))
        result[f"best_{figure}"] = 100 * sums[best] / len(order)
        result[f"best_{figure}_thresh"] = odds[order[best - 1]] if best else 0.0
    return result


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("threshold", [1.0, -0.5])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_all_figures_are_those_of_the_definition(count: int, threshold: float, ties: bool) -> None:
    for seed in range(5):
        predictions, golds, odds = questions(count, seed, ties)
        ours = score_answers(predictions, golds, odds, threshold, samples=0).scores
        theirs = reference(golds, predictions, odds, threshold)
        assert list(ours) == list(theirs)
        assert ours == pytest.approx(theirs, rel=1e-12)
        plain = score_answers(predictions, golds, samples=0).scores
        expected = {k: v for k, v in reference(golds, predictions, None, 1.0).items() if "best" not in k}
        assert plain == pytest.approx(expected, rel=1e-12) and plain.keys() == expected.keys()


def test_the_best_threshold_is_the_best_of_all() -> None:
    for seed in range(5):
        predictions, golds, odds = questions(30, seed, ties=False)
        # SQuAD's search counts an answer of nothing but articles as one: it is left to the comparison above.
        predictions = {i: normalize(text) for i, text in predictions.items()}
        answerable = {i: bool(texts) for i, texts in golds.items()}
        raw = {i: max(f1(predictions[i], text) for text in texts or [""]) for i, texts in golds.items()}
        found, threshold = best_threshold(predictions, raw, odds, answerable)

        def mean(limit: float, odds=odds, raw=raw, answerable=answerable) -> float:
            kept = [raw[i] if odds[i] <= limit else float(not answerable[i]) for i in raw]
            return 100 * sum(kept) / len(kept)

        assert found == pytest.approx(max(map(mean, [-99.0, *odds.values()])))
        assert found == pytest.approx(mean(threshold)) or threshold == 0


def write(path: Path, content: object) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in content))  # type: ignore[attr-defined]
    else:
        path.write_text(json.dumps(content))
    return path


def released(golds: dict[str, list[str]]) -> dict:
    """The layout of dev-v2.0.json."""
    asked = [
        {
            "id": i,
            "question": "?",
            "answers": [{"text": t, "answer_start": 0} for t in texts],
            "is_impossible": not texts,
        }
        for i, texts in golds.items()
    ]
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": asked}]}]}


def test_both_ways_of_writing_give_the_same_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions, golds, odds = questions(12, 3, ties=False)
    json_files = [write(tmp_path / "p.json", predictions), write(tmp_path / "r.json", released(golds))]
    rows = [{"id": i, "answer": text, "no_answer_score": odds[i]} for i, text in predictions.items()]
    examples = [
        {"id": i, "question": "?", "text": "c", "answers": [{"text": t, "start": 0} for t in texts]}
        for i, texts in golds.items()
    ]
    line_files = [write(tmp_path / "p.jsonl", rows), write(tmp_path / "r.jsonl", examples)]
    official = ["--null-odds", write(tmp_path / "o.json", odds), "--json", tmp_path / "score.json"]
    outputs = []
    for (hypotheses, references), more in ((json_files, official), (line_files, [])):
        words = ["score", "squad", "--bootstrap-samples", 20, "--hypotheses", hypotheses, "--references", references]
        assert cli.main([str(word) for word in (*words, *more)]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    *figures, signature = outputs[0].splitlines()
    assert [line.split()[0] for line in figures[:4]] == ["exact", "f1", "total", "HasAns_exact"]
    assert signature == "SQuAD 2.0 | no-answer-threshold: 1 | bootstrap: 20 of questions (95 %, seed 0) | questions: 12"
    scores = json.loads((tmp_path / "score.json").read_text())[str(tmp_path / "p.json")]["scores"]
    assert scores == pytest.approx(reference(golds, predictions, odds, 1.0))
    assert figures[1].split(maxsplit=1)[1].startswith(f"{scores['f1']:.2f} [")


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ({"a": "x"}, {"b": []}, "p.json lacks 1 of 1 ids, the first is 'b'"),
        ({"a": "x", "b": ""}, {"b": []}, "r.json lacks 1 of 2 ids, the first is 'a'"),
        ({"a": 3}, {"a": []}, "p.json: question 'a': expected a string, found 3"),
        ([], {"a": []}, "p.json: expected a JSON object, found a list"),
        ({"a": ""}, {}, "r.json is empty"),
    ],
)
def test_what_is_refused(predictions, references, message, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HAT_TRACEBACK", "1")
    paths = write(tmp_path / "p.json", predictions), write(tmp_path / "r.json", released(references))
    with pytest.raises(ValueError, match=message):
        cli.main(["score", "squad", "--hypotheses", str(paths[0]), "--references", str(paths[1])])


def test_files_of_another_kind_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAT_TRACEBACK", "1")
    good = write(tmp_path / "p.jsonl", [{"id": "a", "answer": "x"}, {"id": "b", "answer": "x"}])
    half = write(tmp_path / "h.jsonl", [{"id": "a", "answer": "x", "no_answer_score": 1}, {"id": "b", "answer": "x"}])
    golds = write(tmp_path / "r.jsonl", [{"id": "a", "answers": []}, {"id": "b", "answers": [{"text": "x"}]}])
    labels = write(tmp_path / "l.jsonl", [{"id": "a", "label": "x"}])
    for hypotheses, references, message in (
        (good, labels, "l.jsonl: found no questions with id and answers"),
        (labels, golds, "l.jsonl:1: 'answer': expected a string, found None"),
        (half, golds, "h.jsonl: 1 of 2 lines have a no_answer_score"),
        (good, write(tmp_path / "r.json", {"no": 1}), "r.json: found no questions"),
    ):
        with pytest.raises(ValueError, match=message):
            cli.main(["score", "squad", "--hypotheses", str(hypotheses), "--references", str(references)])
    odds = write(tmp_path / "o.json", {"a": 0.5})
    words = ["score", "squad", "--hypotheses", str(good), "--references", str(golds), "--null-odds", str(odds)]
    with pytest.raises(ValueError, match="o.json lacks 1 of 2 ids, the first is 'b'"):
        cli.main(words)
