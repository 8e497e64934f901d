"""`hat score evidence`: its figures against loops over drawn predictions, its baselines, and what is refused."""

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
from sklearn.feature_extraction.text import TfidfVectorizer

from hat_fairseq.data.language import words_of
from hat_fairseq.scoring.baselines import Tfidf, best_of_chunk, chunk_numbers, first_chunk
from hat_fairseq.scoring.evidence import FIGURES, f1
from hat_fairseq.scoring.evidence_score import best_threshold

Line = dict[str, Any]
TEXT = "remote control button yellow rubber wood price market meeting monday design user battery"
WORDS = TEXT.split()


def draw_documents(draw: random.Random, count: int) -> list[Line]:
    """Some turns have no text, some questions no evidence, and some evidence no text."""
    documents = []
    for number in range(count):
        units = [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(draw.randint(2, 14))]
        texts = [text if draw.random() < 0.8 else draw.choice(["", " ", "\u200b"]) for text in units[:-1]] + units[-1:]
        asked = [" ".join(draw.choices(WORDS, k=3)) for _ in range(draw.randint(1, 4))]
        gold = [[n for n in range(len(texts)) if draw.random() < draw.choice([0, 0.3, 0.7])] for _ in asked]
        documents.append({"id": f"d{number}", "questions": asked, "sentences": texts, "evidence": gold})
    return documents


def draw_predictions(draw: random.Random, documents: list[Line]) -> list[Line]:
    """Few different probabilities, so there are ties; the ends of some documents were truncated."""
    lines = []
    for document in documents:
        count, threshold = len(document["sentences"]), draw.choice([0, 0.3, 0.5])
        kept = draw.choice([count, count, draw.randint(1, count)])
        known = [n for n, text in enumerate(document["sentences"]) if text.strip(" \u200b") and n < kept]
        questions = []
        for question in document["questions"]:
            scores: list[float | None] = [None] * count
            for n in known:
                scores[n] = draw.choice([0, 0.1, 0.3, 0.5, 1])
            chosen = [n for n in known if (scores[n] or 0) >= threshold]
            passages = [{"first": n, "last": n} for n in chosen]
            for place in range(len(passages) - 1, 0, -1):  # joined where nothing with text is between
                if known.index(chosen[place]) == known.index(chosen[place - 1]) + 1:
                    passages[place - 1]["last"] = passages.pop(place)["last"]
            draw.shuffle(passages)
            questions.append({"question": question, "probabilities": scores, "passages": passages})
        lines.append({"id": document["id"], "threshold": threshold, "questions": questions})
    draw.shuffle(lines)
    return lines


def dense_figures(documents: list[Line], predictions: list[Line]) -> list[float]:
    """The definitions, unit by unit."""
    by_id = {line["id"]: line for line in predictions}
    precisions, f1s, predicted, right, golds, found = [], [], 0, 0, 0, 0
    for document in documents:
        line = by_id[document["id"]]
        known = [n for n, text in enumerate(document["sentences"]) if text.strip(" \u200b")]
        for answer, evidence in zip(line["questions"], document["evidence"], strict=True):
            gold, scores = set(known) & set(evidence), answer["probabilities"]
            if gold:
                ranked = sorted(known, key=lambda n: (scores[n] is None, -(scores[n] or 0), n))
                at = [
                    sum(n in gold for n in ranked[:k]) / k for k in range(1, len(ranked) + 1) if ranked[k - 1] in gold
                ]
                precisions.append(sum(at) / len(at))
                chosen = {n for n in known if scores[n] is not None and scores[n] >= line["threshold"]}
                f1s.append(2 * len(chosen & gold) / (len(chosen) + len(gold)))
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
    mean = lambda values: sum(values) / len(values) if values else 0  # noqa: E731
    return [100 * each for each in (mean(precisions), mean(f1s), precision, recall, harmonic)]


def score(folder: Path, *words: object) -> tuple[Line, str, str]:
    """The JSON, and what is printed to both streams."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as notes:
        assert hat("score", "evidence", *words, "--json", folder / "s.json", "--overwrite") == 0
    return json.loads((folder / "s.json").read_text()), out.getvalue(), notes.getvalue()


def test_figures_intervals_and_differences_are_those_of_loops(tmp_path: Path) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        documents = draw_documents(draw, 8)
        systems = {tmp_path / f"{n}.jsonl": draw_predictions(draw, documents) for n in ("one", "two")}
        references = write_lines(tmp_path / "test.jsonl", documents)
        for path, lines in systems.items():
            write_lines(path, lines)
        words = ["--hypotheses", *systems, "--references", references, "--bootstrap-samples", 20, "--seed", seed]
        record, printed, _ = score(tmp_path, *words)
        numbers, samples = np.random.default_rng(seed), []
        for _ in range(20):
            drawn = [documents[n] for n in numbers.integers(0, 8, 8)]
            samples.append([dense_figures(drawn, lines) for lines in systems.values()])
        limits = np.percentile(samples, [2.5, 97.5], axis=0)
        for number, (path, lines) in enumerate(systems.items()):
            own = record[str(path)]["figures"]
            assert list(own) == list(FIGURES)
            assert [own[name]["mean"] for name in FIGURES] == pytest.approx(dense_figures(documents, lines))
            for side, values in zip(("low", "high"), limits[:, number], strict=True):
                assert [own[name][side] for name in FIGURES] == pytest.approx(values)
        differences = record[str(tmp_path / "two.jsonl")]["differences"]
        pairs = np.diff(samples, axis=1)[:, 0]
        for name, low, high in zip(FIGURES, *np.percentile(pairs, [2.5, 97.5], axis=0), strict=True):
            assert [differences[name][side] for side in ("low", "high")] == pytest.approx([low, high], abs=1e-9)
        assert "differences" not in record[str(tmp_path / "one.jsonl")] and f"minus {tmp_path / 'one.jsonl'}" in printed


def test_the_whole_document_is_no_right_passage(tmp_path: Path) -> None:
    document = {"id": "a", "questions": ["q"], "sentences": list("abcdefgh"), "evidence": [[0, 1, 2, 6]]}
    references = write_lines(tmp_path / "test.jsonl", [document])

    def figures(*passages: tuple[int, int]) -> list[float]:
        found = [{"first": first, "last": last} for first, last in passages]
        question = {"question": "q", "probabilities": [0.5] * 8, "passages": found}
        path = write_lines(tmp_path / "p.jsonl", [{"id": "a", "threshold": 0.5, "questions": [question]}])
        record, *_ = score(tmp_path, "--hypotheses", path, "--references", references, "--bootstrap-samples", 0)
        return [record[str(path)]["figures"][name]["mean"] for name in FIGURES[2:]]

    assert figures((0, 7)) == [100, 100, 100]  # half of it is evidence here
    assert figures((1, 7)) == [0, 100, 0]
    assert figures((1, 2)) == [100, 50, pytest.approx(200 / 3)] and figures((2, 2), (3, 4)) == [50, 0, 0]
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
    words = ["--hypotheses", path, "--bootstrap-samples", 0, "--references"]
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
    assert "1 units or spans of the evidence have no text and are left out" in notes


CHANGES: list[tuple[Any, str]] = [
    (lambda lines: lines.pop(), "lacks 1 of 8 ids, the first is 'd"),
    (lambda lines: lines.append({**lines[0], "id": "x"}), "lacks 1 of 9 ids, the first is 'x'"),
    (lambda lines: lines.append(lines[0]), "for the second time"),
    (lambda lines: lines[0]["questions"].pop(), " questions, and document 'd"),
    (lambda lines: lines[0]["questions"][0].update(question="other"), "question 1: it is 'other', and in document 'd"),
    (lambda lines: lines[0]["questions"][0]["probabilities"].pop(), "turns or sentences; were they divided otherwise?"),
    (
        lambda lines: lines[0]["questions"][0]["probabilities"].__setitem__(0, 1.5),
        "probability must be a number from 0",
    ),
    (
        lambda lines: lines[0]["questions"][0]["probabilities"].__setitem__(0, "1"),
        "probability must be a number from 0",
    ),
    (lambda lines: lines[0].update(threshold=None), "threshold must be a number from 0 to 1, not None"),
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
        error = refusal("score", "evidence", "--hypotheses", path, "--references", references)
        assert len(error.splitlines()) == 1 and message in error, (message, error)
        assert f"{number}.jsonl" in error or "test.jsonl lacks" in error
    words = ["score", "evidence", "--hypotheses", write_lines(tmp_path / "p.jsonl", lines), "--references"]
    for wrong, message in (
        ([{**each, "evidence": [[] for _ in each["evidence"]]} for each in documents], "no question has evidence"),
        ([{k: v for k, v in each.items() if k != "evidence"} for each in documents], "has neither evidence nor spans"),
        ([{"id": "d0", "text": "x", "label": "y"}], "unknown key 'label'"),
        ([], "is empty"),
    ):
        assert message in refusal(*words, write_lines(tmp_path / "wrong.jsonl", wrong))
    valid = ["--valid", references]
    assert "--valid has no effect without --baselines" in refusal(*words, references, *valid)
    trained = ["--baselines", "random", "--train", references]
    assert "--train has no effect without --baselines first, tfidf" in refusal(*words, references, *trained)
    over = ["--baselines", "tfidf", "--valid", references, "--json", references, "--overwrite"]
    assert "test.jsonl" in refusal(*words, write_lines(tmp_path / "other.jsonl", documents), *over)
    assert read_lines(references) == documents


def test_words_are_weighted_as_by_scikit_learn() -> None:
    draw = random.Random(1)
    texts = [
        " ".join(draw.choices(["Ünder", "der", "Tisch", "我", "a-b", *WORDS], k=draw.randint(0, 9))) for _ in range(50)
    ]
    questions = ["who is under the Tisch", "remote remote control 我 我", "unknown"]
    peer = TfidfVectorizer(tokenizer=words_of, lowercase=False, sublinear_tf=True, token_pattern=None).fit(texts)
    expected = (peer.transform(questions) @ peer.transform(texts).T).toarray()
    assert np.abs(Tfidf(texts).cosines(questions, texts) - expected).max() < 1e-12 and expected.any()


def test_chunks_are_consecutive_units_of_about_512() -> None:
    draw = random.Random(2)
    for _ in range(50):
        sizes = [draw.choice([0, 1, 7, 100, 600]) for _ in range(draw.randint(1, 60))]
        scores = np.random.default_rng(len(sizes)).random((3, len(sizes)))
        numbers, before = [], 0
        for size in sizes:
            before += size
            numbers.append(max(0, before - 1) // 512)
        assert chunk_numbers(sizes).tolist() == numbers
        first, best = first_chunk(scores, sizes), best_of_chunk(scores, sizes)
        for q in range(3):
            for n, number in enumerate(numbers):
                assert first[q, n] == (scores[q, n] if number == 0 else 0)
                most = max(scores[q, m] for m in range(len(sizes)) if numbers[m] == number)
                assert best[q, n] == pytest.approx((most + scores[q, n] / 1000) / 1.001)


def test_the_best_threshold_is_as_good_as_any() -> None:
    """Of so few scores each one is among the quantiles."""
    draw = np.random.default_rng(3)
    for _ in range(20):
        scores, gold = draw.random((3, 2, 12)).round(1), draw.random((3, 2, 12)) < 0.3
        gold[0, 0] = False

        def mean(threshold: float, scores: Any = scores, gold: Any = gold) -> float:
            pairs = [(s, g) for s, g in zip(scores.reshape(6, -1), gold.reshape(6, -1), strict=True) if g.any()]
            return float(np.mean([f1(s >= threshold, g) for s, g in pairs]))

        assert mean(best_threshold(scores, gold)) == pytest.approx(max(map(mean, scores.ravel())))
    with pytest.raises(ValueError, match="no question has evidence, so no threshold can be chosen"):
        best_threshold(scores, gold & False)


@pytest.mark.slow
def test_baselines_are_systems_beside_the_others(tmp_path: Path) -> None:
    draw = random.Random(7)
    documents, valid = draw_documents(draw, 9), draw_documents(draw, 9)
    path = write_lines(tmp_path / "p.jsonl", draw_predictions(draw, documents))
    references = write_lines(tmp_path / "test.jsonl", documents)
    words = ["--hypotheses", path, "--references", references, "--bootstrap-samples", 9, "--baselines"]
    names = ["random", "first", "tfidf", "chunk"]
    record, printed, notes = score(tmp_path, *words, *names)
    titles = ["random", "TF-IDF, first 512 words", "TF-IDF", "TF-IDF, best of its 512 words"]
    assert list(record) == [str(path), *titles] and "the best for the references, which favours them" in notes
    assert score(tmp_path, *words, *names)[1] == printed  # the same numbers are drawn
    assert f"baselines: threshold of {references}, words of {references}" in printed
    files = ["--valid", write_lines(tmp_path / "valid.jsonl", valid), "--train", references]
    other, _, notes = score(tmp_path, *words, *names, *files)
    assert "favours" not in notes
    for title in titles:
        own, before = other[title]["figures"], record[title]["figures"]
        assert own["average precision"] == before["average precision"]
        assert own["F1"]["mean"] <= before["F1"]["mean"] + 1e-9
    assert record["TF-IDF"]["figures"]["average precision"]["mean"] == pytest.approx(expected_precision(documents))


def expected_precision(documents: list[Line]) -> float:
    """Of scikit-learn's cosines."""
    texts = [text for each in documents for text in each["sentences"] if text.strip(" \u200b")]
    peer = TfidfVectorizer(tokenizer=words_of, lowercase=False, sublinear_tf=True, token_pattern=None).fit(texts)
    lines = []
    for each in documents:
        scores = (peer.transform(each["questions"]) @ peer.transform(each["sentences"]).T).toarray().round(6)
        asked = zip(each["questions"], scores.tolist(), strict=True)
        found = [{"question": question, "probabilities": row, "passages": []} for question, row in asked]
        lines.append({"id": each["id"], "threshold": 0, "questions": found})
    return dense_figures(documents, lines)[0]
