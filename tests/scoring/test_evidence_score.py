"""`hat score evidence`: its figures against loops over drawn predictions, its options, and what is refused."""

import copy
import io
import json
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import hat, read_lines, refusal, write_lines

from hat_fairseq.units.baselines import RULES
from hat_fairseq.units.scores import ALL_FIGURES, ANSWER_FIGURES, FIGURES, LINE_FIGURES, auroc, false_alarms

Line = dict[str, Any]
TEXT = "remote control button yellow rubber wood price market meeting monday design user battery"
WORDS = TEXT.split()


def draw_documents(draw: random.Random, count: int) -> list[Line]:
    """Some turns have no text, some questions no evidence, some evidence no text, and some documents no lines."""
    documents = list[Line]()
    for number in range(count):
        units = [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(draw.randint(2, 14))]
        texts = [text if draw.random() < 0.8 else draw.choice(["", " ", "\u200b"]) for text in units[:-1]] + units[-1:]
        asked = [" ".join(draw.choices(WORDS, k=3)) for _ in range(draw.randint(1, 4))]
        gold = [[n for n in range(len(texts)) if draw.random() < draw.choice([0, 0.3, 0.7])] for _ in asked]
        documents.append({"id": f"d{number}", "questions": asked, "sentences": texts, "evidence": gold})
        if number % 4:
            documents[-1]["lines"] = [[n for n in numbers if draw.random() < 0.4] for numbers in gold]
    documents[0]["evidence"][0] = []
    return documents


def draw_scores(draw: random.Random, count: int, known: list[int]) -> list[float | None]:
    """Few different ones, so there are ties."""
    scores: list[float | None] = [None] * count
    for n in known:
        scores[n] = draw.choice([0, 0.1, 0.3, 0.5, 1])
    return scores


def draw_predictions(draw: random.Random, documents: list[Line], old: bool = False) -> list[Line]:
    """The ends of some documents were truncated; `old`: of a version with one threshold, without lines and answers."""
    lines = []
    for document in documents:
        count, threshold = len(document["sentences"]), draw.choice([0, 0.3, 0.5])
        kept = draw.choice([count, count, draw.randint(1, count)])
        known = [n for n, text in enumerate(document["sentences"]) if text.strip(" \u200b") and n < kept]
        questions = []
        for question in document["questions"]:
            own = threshold if old else draw.choice([0, 0.3, 0.5])
            scores = draw_scores(draw, count, known)
            chosen = [n for n in known if (scores[n] or 0) >= own]
            passages = [{"first": n, "last": n} for n in chosen]
            for place in range(len(passages) - 1, 0, -1):  # joined where nothing with text is between
                if known.index(chosen[place]) == known.index(chosen[place - 1]) + 1:
                    passages[place - 1]["last"] = passages.pop(place)["last"]
            draw.shuffle(passages)
            answer: Line = {"question": question, "probabilities": scores, "passages": passages}
            if not old:
                answer |= {"threshold": own, "answered": True, "answer_probability": draw.choice([0.2, 0.4, 0.9])}
                answer |= {"line_probabilities": draw_scores(draw, count, known), "line_threshold": 0.3}
            questions.append(answer)
        lines.append({"id": document["id"], "questions": questions} | ({"threshold": threshold} if old else {}))
    draw.shuffle(lines)
    return lines


def of_units(gold: set[int], scores: list[float | None], threshold: float, known: list[int]) -> tuple[float, float]:
    """Average precision and F1."""
    ranked = sorted(known, key=lambda n: (scores[n] is None, -(scores[n] or 0), n))
    at = [sum(n in gold for n in ranked[:k]) / k for k in range(1, len(ranked) + 1) if ranked[k - 1] in gold]
    chosen = {n for n in known if (score := scores[n]) is not None and score >= threshold}
    return sum(at) / len(at), 2 * len(chosen & gold) / (len(chosen) + len(gold))


def of_answers(right: list[float], wrong: list[float]) -> tuple[float, float]:
    """AUROC and false alarms, of the probabilities of questions with and without an answer."""
    if not right or not wrong:
        return 0.5, 0
    wins = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
    reached = next(t for t in sorted(right, reverse=True) if sum(a >= t for a in right) >= 0.9 * len(right))
    return wins / len(right) / len(wrong), sum(b >= reached for b in wrong) / len(wrong)


def dense_figures(documents: list[Line], predictions: list[Line]) -> list[float]:
    """The definitions, unit by unit."""
    by_id = {line["id"]: line for line in predictions}
    evidence_figures, line_figures, predicted, right, golds, found = [], [], 0, 0, 0, 0
    answers: dict[bool, list[float]] = {True: [], False: []}
    for document in documents:
        line = by_id[document["id"]]
        known = [n for n, text in enumerate(document["sentences"]) if text.strip(" \u200b")]
        gold_lines = document.get("lines", [[]] * len(document["questions"]))
        for answer, evidence, numbers in zip(line["questions"], document["evidence"], gold_lines, strict=True):
            gold, lines, scores = set(known) & set(evidence), set(known) & set(numbers), answer["probabilities"]
            threshold = answer.get("threshold", line.get("threshold"))
            if gold:
                evidence_figures.append(of_units(gold, scores, threshold, known))
            if lines:
                own = answer.get("line_probabilities", scores), answer.get("line_threshold", threshold)
                line_figures.append(of_units(lines, *own, known))
            most = max((score for score in scores if score is not None), default=0)
            answers[bool(gold or lines)].append(answer.get("answer_probability", most))
            covered = set()
            for passage in answer["passages"]:
                inside = [n for n in known if passage["first"] <= n <= passage["last"]]
                covered |= set(inside)
                predicted += 1
                right += 2 * sum(n in gold for n in inside) >= len(inside)
            runs: list[list[int]] = [[]]
            for n in known:
                if n in gold:
                    runs[-1].append(n)
                elif runs[-1]:
                    runs.append([])
            for run in filter(None, runs):
                golds += 1
                found += 2 * sum(n in covered for n in run) >= len(run)
    precision, recall = (right / predicted if predicted else 0), (found / golds if golds else 0)
    harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0
    means = [[sum(each) / len(rows) for each in zip(*rows, strict=True)] for rows in (evidence_figures, line_figures)]
    figures = [*(means[0] or [0, 0]), precision, recall, harmonic, *(means[1] or [0, 0])]
    return [100 * each for each in (*figures, *of_answers(answers[True], answers[False]))]


def score(folder: Path, *words: object) -> tuple[Line, str, str]:
    """The JSON, and what is printed to both streams."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as notes:
        assert hat("score", "evidence", *words, "--out", folder / "s.json") == 0
    return json.loads((folder / "s.json").read_text()), out.getvalue(), notes.getvalue()


@pytest.mark.parametrize("seed", range(12))
def test_figures_intervals_and_differences_are_those_of_loops(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    documents = draw_documents(draw, 8)
    drawn = (("one", False), ("two", seed % 2 == 0))
    systems = {tmp_path / f"{n}.jsonl": draw_predictions(draw, documents, old) for n, old in drawn}
    references = write_lines(tmp_path / "test.jsonl", documents)
    for path, lines in systems.items():
        write_lines(path, lines)
    words = [*systems, "--references", references, "--bootstrap-samples", 20]
    record, printed, _ = score(tmp_path, *words)
    numbers, samples = np.random.default_rng(0), []
    for _ in range(20):
        drawn = [documents[n] for n in numbers.integers(0, 8, 8)]
        samples.append([dense_figures(drawn, lines) for lines in systems.values()])
    limits = np.percentile(samples, [2.5, 97.5], axis=0)
    for number, (path, lines) in enumerate(systems.items()):
        own = record[str(path)]["figures"]
        assert list(own) == list(ALL_FIGURES)
        assert [own[name]["mean"] for name in ALL_FIGURES] == pytest.approx(dense_figures(documents, lines))
        for side, values in zip(("low", "high"), limits[:, number], strict=True):
            assert [own[name][side] for name in ALL_FIGURES] == pytest.approx(values)
    differences = record[str(tmp_path / "two.jsonl")]["differences"]
    pairs = np.diff(samples, axis=1)[:, 0]
    for name, low, high in zip(ALL_FIGURES, *np.percentile(pairs, [2.5, 97.5], axis=0), strict=True):
        assert [differences[name][side] for side in ("low", "high")] == pytest.approx([low, high], abs=1e-9)
    assert "differences" not in record[str(tmp_path / "one.jsonl")]
    assert f"minus {tmp_path / 'one.jsonl'}" in printed


@pytest.mark.parametrize(
    ("without", "names"),
    [
        ("lines", FIGURES + ANSWER_FIGURES),
        ("evidence", LINE_FIGURES + ANSWER_FIGURES),
        ("questions without evidence", FIGURES + LINE_FIGURES),
    ],
)
def test_figures_are_those_that_the_references_have_gold_for(without: str, names: Any, tmp_path: Path) -> None:
    draw = random.Random(4)
    documents = draw_documents(draw, 8)
    path = write_lines(tmp_path / "p.jsonl", draw_predictions(draw, documents))
    for each in documents:
        each.setdefault("lines", each["evidence"])
        each.pop(without, None)
        if without not in ("lines", "evidence"):
            each["evidence"] = [[len(each["sentences"]) - 1] for _ in each["questions"]]
    references = write_lines(tmp_path / "test.jsonl", documents)
    record, printed, _ = score(tmp_path, path, "--references", references, "--bootstrap-samples", 0)
    assert list(record[str(path)]["figures"]) == list(names)
    assert all(name in printed for name in names)


def test_answers_are_told_from_questions_without() -> None:
    scores, answered = np.array([0.9, 0.8, 0.7, 0.2, 0.8, 0.1, 0.3]), np.array([1, 1, 1, 1, 0, 0, 0]) > 0
    assert auroc(scores, answered) == pytest.approx((3 + 2.5 + 2 + 1) / 12)
    assert false_alarms(scores, answered) == 2 / 3
    assert auroc(scores, answered | True) == 0.5
    assert false_alarms(scores, answered & False) == 0


@pytest.mark.parametrize(("wrong", "alarms"), [([0.1, 0.09], 0.5), ([1, 1], 1), ([0, 0], 0)])
def test_false_alarms_where_nine_of_ten_questions_get_a_passage(wrong: list[float], alarms: float) -> None:
    flags, right = np.arange(12) < 10, np.arange(10) / 10  # nine of ten reach 0.1
    assert false_alarms(np.append(right, wrong), flags) == alarms


def test_each_domain_is_scored_as_if_it_were_alone(tmp_path: Path) -> None:
    """A document without a domain counts among all only, and a domain without evidence is named."""
    draw = random.Random(9)
    documents = draw_documents(draw, 10)
    predictions = {name: draw_predictions(draw, documents) for name in ("p", "q")}
    for number, each in enumerate(documents):
        each["meta"] = {"domain": ("b", "a", "none", None)[number % 4], "other": 1}
        if number % 4 == 2:
            each["evidence"] = [[] for _ in each["questions"]]
            each.pop("lines", None)
    paths = {name: write_lines(tmp_path / f"{name}.jsonl", lines) for name, lines in predictions.items()}
    write_lines(tmp_path / "valid.jsonl", documents)
    words = ["--bootstrap-samples", 9, *paths.values(), "--baselines", "--references"]
    record, printed, _ = score(tmp_path, *words, write_lines(tmp_path / "test.jsonl", documents))
    first, second = map(str, paths.values())
    assert list(record[first]["domains"]) == ["a", "b"] == list(record["random"]["domains"])
    assert "domain none: 2 documents, none with evidence" in printed
    for domain in ("a", "b"):
        own = [each for each in documents if each["meta"]["domain"] == domain]
        ids = {each["id"] for each in own}
        for name, lines in predictions.items():
            write_lines(paths[name], [line for line in lines if line["id"] in ids])
        alone, _, _ = score(tmp_path, *words, write_lines(tmp_path / "own.jsonl", own))
        for system, key in ((first, "figures"), (second, "figures"), (second, "differences")):
            assert alone[system][key] == record[system]["domains"][domain][key]
        assert f"domain {domain}: {len(own)} documents\n" in printed


def test_the_whole_document_is_no_right_passage(tmp_path: Path) -> None:
    document = {"id": "a", "questions": ["q"], "sentences": list("abcdefgh"), "evidence": [[0, 1, 2, 6]]}
    references = write_lines(tmp_path / "test.jsonl", [document])

    def figures(*passages: tuple[int, int]) -> list[float]:
        found = [{"first": first, "last": last} for first, last in passages]
        question = {"question": "q", "probabilities": [0.5] * 8, "passages": found}
        path = write_lines(tmp_path / "p.jsonl", [{"id": "a", "threshold": 0.5, "questions": [question]}])
        record, *_ = score(tmp_path, path, "--references", references, "--bootstrap-samples", 0)
        return [record[str(path)]["figures"][name]["mean"] for name in FIGURES[2:]]

    assert figures((0, 7)) == [100, 100, 100]  # half of it is evidence here
    assert figures((1, 7)) == [0, 100, 0]
    assert figures((1, 2)) == [100, 50, pytest.approx(200 / 3)]
    assert figures((2, 2), (3, 4)) == [50, 0, 0]
    assert figures() == [0, 0, 0]


def test_spans_of_turns_and_of_running_text(tmp_path: Path) -> None:
    """Running text needs the sentences of `hat preprocess`."""
    text = "We met.\n\n\u200b\n\nIt is yellow. Who wants it?"
    spans = [[{"text": "yellow", "start": text.index("yellow")}]]
    rows = [{"id": "a", "questions": ["colour ?"], "text": text, "spans": spans}]
    for split in ("train", "valid"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [{**rows[0], "id": split}])
    write_lines(tmp_path / "raw/test.jsonl", rows)
    flags = ["--kind", "evidence", "--splitter", "punctuation", "--num-codes", 10]
    assert hat("preprocess", tmp_path / "raw", *flags, "--out", tmp_path / "data") == 0
    questions = [{"question": "colour ?", "probabilities": [0.1, 0.9, 0.5], "passages": [{"first": 1, "last": 2}]}]
    line: Line = {"id": "a", "threshold": 0.5, "questions": questions}
    path = write_lines(tmp_path / "p.jsonl", [line])
    words = [path, "--bootstrap-samples", 0, "--references"]
    record, *_ = score(tmp_path, *words, tmp_path / "data/text/test.jsonl")
    means = [each["mean"] for each in record[str(path)]["figures"].values()]
    assert means == pytest.approx([100, 200 / 3, 100, 100, 100])
    error = refusal("score", "evidence", *words, tmp_path / "raw/test.jsonl")
    assert "running text, whose sentences are not known here: take text/SPLIT.jsonl of hat preprocess" in error
    questions[0]["probabilities"] = [0.1]  # the others were truncated
    questions[0]["passages"] = []
    write_lines(path, [line])
    record, *_ = score(tmp_path, *words, tmp_path / "data/text/test.jsonl")
    assert [each["mean"] for each in record[str(path)]["figures"].values()] == [50, 0, 0, 0, 0]
    turns = [{"role": "PM", "text": "We met."}, {"role": "UI", "text": "It is yellow."}, {"role": "PM", "text": "\x07"}]
    spans = [[{"text": "yellow.\n", "start": 14}], [{"text": "\x07", "start": 22}]]
    write_lines(tmp_path / "own.jsonl", [{"id": "a", "questions": ["colour ?", "?"], "turns": turns, "spans": spans}])
    questions[0] |= {"probabilities": [0.2, 0.1, None]}
    questions.append({"question": "?", "probabilities": [0.2, 0.1, None], "passages": []})
    write_lines(path, [line])
    record, _, notes = score(tmp_path, *words, tmp_path / "own.jsonl")
    assert record[str(path)]["figures"]["average precision"]["mean"] == 50
    assert "1 units or spans of the evidence have no text and are skipped" in notes


CHANGES: list[tuple[Any, str]] = [
    (lambda lines: lines.pop(), "lacks 1 of 8 ids, the first is 'd"),
    (lambda lines: lines.append({**lines[0], "id": "x"}), "lacks 1 of 9 ids, the first is 'x'"),
    (lambda lines: lines.append(lines[0]), "for the second time"),
    (lambda lines: lines[0]["questions"].pop(), " questions, and document 'd"),
    (lambda lines: lines[0]["questions"][0].update(question="other"), "question 1: it is 'other', and in document 'd"),
    (lambda lines: lines[0]["questions"][0]["probabilities"].pop(), "turns or sentences; were they divided otherwise?"),
    (
        lambda lines: lines[0]["questions"][0]["probabilities"].__setitem__(0, 1.5),
        "each of probabilities must be a number from 0",
    ),
    (
        lambda lines: lines[0]["questions"][0]["probabilities"].__setitem__(0, "1"),
        "each of probabilities must be a number from 0",
    ),
    (lambda lines: lines[0]["questions"][0].update(threshold=None), "threshold must be a number from 0 to 1, not None"),
    (lambda lines: lines[0]["questions"][0].pop("threshold"), "threshold must be a number from 0 to 1, not None"),
    (lambda lines: lines[0]["questions"][0].pop("line_threshold"), "line_threshold must be a number from 0 to 1"),
    (lambda lines: lines[0]["questions"][0].update(answer_probability=2), "answer_probability must be a number from 0"),
    (lambda lines: lines[0]["questions"][0]["line_probabilities"].append(1), "line_probabilities, and document 'd"),
    (lambda lines: lines[0].pop("questions"), "there is no questions"),
    (
        lambda lines: lines[0]["questions"][0].update(passages=[{"first": 1, "last": 0}]),
        "the passage 1 to 0 is none of",
    ),
    (
        lambda lines: lines[0]["questions"][0].update(passages=[{"first": 0, "last": 99}]),
        "passage 0 to 99 is none of 0",
    ),
    (lambda lines: lines[0]["questions"][0].update(passages=[{"first": 0}]), "there is no last"),
]


def test_predictions_that_do_not_fit_are_refused_in_one_line(tmp_path: Path) -> None:
    draw = random.Random(5)
    documents = draw_documents(draw, 8)
    lines = draw_predictions(draw, documents)
    references = write_lines(tmp_path / "test.jsonl", documents)
    for number, (change, message) in enumerate(CHANGES):
        changed = copy.deepcopy(lines)
        change(changed)
        path = write_lines(tmp_path / f"{number}.jsonl", changed)
        error = refusal("score", "evidence", path, "--references", references)
        assert len(error.splitlines()) == 1, (message, error)
        assert message in error, (message, error)
        assert f"{number}.jsonl" in error or "test.jsonl lacks" in error
    words = ["score", "evidence", write_lines(tmp_path / "p.jsonl", lines), "--references"]
    for wrong, message in (
        (
            [{**each, "evidence": [[] for _ in each["evidence"]], "lines": None} for each in documents],
            "no question has evidence",
        ),
        (
            [{k: v for k, v in each.items() if k not in ("evidence", "lines")} for each in documents],
            "has neither evidence nor spans nor lines",
        ),
        ([{"id": "d0", "text": "x", "label": "y"}], "unknown key 'label'"),
        ([], "is empty"),
    ):
        assert message in refusal(*words, write_lines(tmp_path / "wrong.jsonl", wrong))
    over = ["--baselines", "--out", references]
    assert "test.jsonl" in refusal(*words, write_lines(tmp_path / "other.jsonl", documents), *over)
    assert read_lines(references) == documents


def test_baselines_are_systems_beside_the_others(tmp_path: Path) -> None:
    draw = random.Random(7)
    documents, valid = draw_documents(draw, 9), draw_documents(draw, 9)
    path = write_lines(tmp_path / "p.jsonl", draw_predictions(draw, documents))
    references = write_lines(tmp_path / "test.jsonl", documents)
    words = [path, "--references", references, "--bootstrap-samples", 9, "--baselines"]
    record, printed, notes = score(tmp_path, *words)
    titles = [rule.title for rule in RULES.values()]
    assert list(record) == [str(path), *titles]
    assert "the best for the references, which favours them" in notes
    assert score(tmp_path, *words)[1] == printed  # the same numbers are drawn
    chosen = [record["BM25"]["chosen"][name]["settings"]["words"] for name in ("passages", "lines")]
    assert chosen == ["all", "all"]  # the questions that are scored have no say in it
    validation = write_lines(tmp_path / "valid.jsonl", valid)
    other, printed, notes = score(tmp_path, *words)
    assert f"chosen on {validation}, rare words of the questions of {validation}" in printed
    assert "favours" not in notes
    for title in titles:
        assert other[title]["chosen"].keys() == {"passages", "lines"}
        assert title in printed.rpartition("settings of the baselines")[2]
    before, after = (each["random"]["figures"] for each in (record, other))
    assert after["average precision"] == before["average precision"]
    assert after["F1"]["mean"] <= before["F1"]["mean"]
    train = write_lines(tmp_path / "train.jsonl", draw_documents(draw, 30))
    for named in ([], [train]):
        _, printed, _ = score(tmp_path, *words, *named)
        assert f"chosen on {validation}, rare words of the questions of {train}" in printed
