"""Answers in whole documents against what the model says of each window alone, and the options that choose them."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fine_tuned import FineTuned
from preprocess.question_containers import WRITERS

from hat_fairseq import cli
from hat_fairseq.data.kinds import DocumentQuestion
from hat_fairseq.data.kinds.document_questions import answer_document, choose_annotation
from hat_fairseq.data.kinds.spans import AnswerOptions, DocumentWindow, ScoredSpan, WindowAnswers, n_best_spans
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.data.rows import read_ids
from hat_fairseq.inference.labels import Predictor
from hat_fairseq.inference.loading import load

Make = Callable[[str], FineTuned]
TYPES = ("none", "span", "paragraph", "yes", "no")


def hat(*words: object) -> int:
    return cli.main([str(word) for word in words])


def predict(made: FineTuned, out: Path, *flags: object) -> list[dict[str, Any]]:
    assert hat("predict", made.checkpoint, made.data, "--out", out, "--device", "cpu", *flags) == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@torch.no_grad()
def by_hand(made: FineTuned, longest: int) -> list[dict[str, Any]]:
    """Every span and every paragraph of every line of text/test.source, by itself and without padding."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(made.checkpoint)], {"data": str(made.data / "bin")}
    )
    documents: dict[str, list[dict[str, Any]]] = {}
    lines = (made.data / "text/test.source").read_text().splitlines()
    for line, chunk in zip(lines, read_ids(made.data / "bin/test.ids"), strict=True):
        words = line.split()
        tokens = torch.tensor([[*map(task.source_dictionary.index, words), task.source_dictionary.eos()]])
        heads = list(model.classification_heads)
        found = {name: t[0] for name, t in model.eval()(tokens, classification_head_name=heads)[0].items()}
        spans, types = found["answer_span"], found["answer_type"]
        markers = [place for place, word in enumerate(words) if word == "<s>"][1:]
        ends = [*markers[1:], len(words)]
        any_type = float(types[1:].logsumexp(0) - types[0])
        window: dict[str, Any] = {"types": types.tolist(), "spans": [], "paragraphs": []}
        null = float(spans[0].sum())
        for place, (marker, end) in enumerate(zip(markers, ends, strict=True)):
            score = float(found["answer_paragraph"][place])
            window["paragraphs"].append((score + any_type, score, said(words[marker + 1 : end])))
            for i in range(marker + 1, end):
                for j in range(i, min(end, i + longest)):
                    score = float(spans[i, 0] + spans[j, 1]) - null + float(types[1] - types[0])
                    window["spans"].append((score, said(words[i : j + 1])))
        documents.setdefault(chunk.document_id, []).append(window)
    records = []
    for name, windows in documents.items():
        chosen = max(windows, key=lambda window: max(window["paragraphs"]))
        paragraph_score, logit, paragraph = max(chosen["paragraphs"])
        answer_score, answer = max(span for window in windows for span in window["spans"])
        kind = max(range(1, 5), key=chosen["types"].__getitem__)
        if kind > 2:
            answer_score, answer = logit + chosen["types"][kind] - chosen["types"][0], TYPES[kind]
        records.append(
            {
                "id": name,
                "type": TYPES[kind] if kind > 2 else "span",
                "paragraph": paragraph,
                "paragraph_score": paragraph_score,
                "answer": answer,
                "answer_score": answer_score,
                "windows": len(windows),
            }
        )
    return records


def said(tokens: list[str]) -> str:
    return "".join(" ".join(tokens).replace("@@ ", "").removesuffix("@@").split())


@pytest.mark.parametrize("kind", [None, "no", "yes"])
def test_answers_are_the_best_of_all_windows(kind: str | None, fine_tuned: Make, tmp_path: Path) -> None:
    """Also of a model that likes to say `yes` or `no`."""
    made = fine_tuned("document_qa")
    if kind:
        state = torch.load(made.checkpoint, weights_only=True)
        state["model"]["classification_heads.answer_type.out_proj.bias"][TYPES.index(kind)] += 40
        torch.save(state, tmp_path / "biased.pt")
        made = FineTuned(made.kind, made.raw, made.data, tmp_path / "biased.pt")
    found, wanted = predict(made, tmp_path / "p.jsonl", "--max-answer-length", 4), by_hand(made, 4)
    raw = [json.loads(line) for line in (made.raw / "test.jsonl").open()]
    assert [record["id"] for record in found] == [record["id"] for record in raw] == [w["id"] for w in wanted]
    assert max(record["windows"] for record in wanted) > 1
    assert {record["type"] for record in found} == {kind or "span"}
    for record, expected, example in zip(found, wanted, raw, strict=True):
        assert record["type"] == expected["type"]
        assert record["paragraph_score"] == pytest.approx(expected["paragraph_score"], abs=1e-3)
        assert record["answer_score"] == pytest.approx(expected["answer_score"], abs=1e-3)
        assert said([example["paragraphs"][record["paragraph"]]]) == expected["paragraph"]
        assert said([record["answer"]]) == expected["answer"]
        if record["type"] == "span":
            text = example["paragraphs"][record["answer_paragraph"]]
            assert text[record["start"] :].startswith(record["answer"])
        else:
            assert record["answer_paragraph"] is record["start"] is None
    again = predict(made, tmp_path / "one.jsonl", "--max-answer-length", 4, "--batch-size", 1)
    for one, other in zip(again, found, strict=True):
        for key in one:
            assert one[key] == (pytest.approx(other[key], abs=1e-4) if key.endswith("_score") else other[key])


def test_thresholds_leave_out_what_has_lower_scores(fine_tuned: Make, tmp_path: Path) -> None:
    made = fine_tuned("document_qa")
    found = predict(made, tmp_path / "p.jsonl")
    paragraph, answer = (sorted(r[f"{name}_score"] for r in found)[len(found) // 2] for name in ("paragraph", "answer"))
    flags = ["--paragraph-threshold", paragraph, "--answer-threshold", answer, "--overwrite"]
    some = predict(made, tmp_path / "p.jsonl", *flags)
    types = set()
    for record, before in zip(some, found, strict=True):
        has_paragraph, has_answer = before["paragraph_score"] >= paragraph, before["answer_score"] >= answer
        assert record["paragraph"] == (before["paragraph"] if has_paragraph else None)
        assert record["answer"] == (before["answer"] if has_answer else "")
        assert record["type"] == (before["type"] if has_answer else "paragraph" if has_paragraph else "none")
        assert has_answer or record["start"] is record["answer_paragraph"] is None
        types.add(record["type"])
    assert types >= {"none", "span", "paragraph"}


def test_raw_examples_are_answered_as_the_split_is_predicted(fine_tuned: Make, tmp_path: Path) -> None:
    """Without annotations, which are not looked at; with the best short answers."""
    made = fine_tuned("document_qa")
    lines = [json.loads(line) for line in (made.raw / "test.jsonl").open()]
    for line in lines:
        del line["annotations"]
    lines[0]["meta"] = {"source": "mine"}
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [made.checkpoint, tmp_path / "raw.jsonl", "--data", made.data / "bin", "--details", "--n-best", 3]
    assert hat("predict", *words, "--out", tmp_path / "c.jsonl", "--batch-size", 3, "--device", "cpu") == 0
    found = [json.loads(line) for line in (tmp_path / "c.jsonl").open()]
    wanted = predict(made, tmp_path / "p.jsonl")
    assert found[0].pop("meta") == {"source": "mine"}
    for record, expected in zip(found, wanted, strict=True):
        best = record.pop("n_best")
        assert len(best) == 3 and [b["score"] for b in best] == sorted((b["score"] for b in best), reverse=True)
        assert record["type"] != "span" or best[0]["text"] == record["answer"]
        for key, value in expected.items():
            assert record[key] == (pytest.approx(value, abs=1e-4) if key.endswith("_score") else value)


def test_an_ensemble_is_the_mean_of_the_logits(fine_tuned: Make, tmp_path: Path) -> None:
    """With itself it changes nothing; with a model whose heads say the opposite all scores are 0."""
    made = fine_tuned("document_qa")
    state = torch.load(made.checkpoint, weights_only=True)
    for name, tensor in state["model"].items():
        if "out_proj" in name and "classification_heads" in name:
            state["model"][name] = -tensor
    other = tmp_path / "other.pt"
    torch.save(state, other)
    both = FineTuned(made.kind, made.raw, made.data, Path(f"{made.checkpoint}:{other}"))
    for record in predict(both, tmp_path / "p.jsonl"):
        assert record["answer_score"] == pytest.approx(0, abs=1e-4)
        assert record["paragraph_score"] == pytest.approx(math.log(4), abs=1e-4)


def test_a_span_is_in_one_part() -> None:
    generator = np.random.default_rng(0)
    parts = np.array([0, 0, 1, 1, 1, 2, 3, 3])
    for _ in range(30):
        start, end = generator.normal(size=(2, 8)).astype(np.float32)
        all_spans = [
            (float(start[i] + end[j]), i, j) for i in range(8) for j in range(i, min(8, i + 3)) if parts[i] == parts[j]
        ]
        spans = n_best_spans(start, end, 5, 3, parts)
        assert [pair[1:] for pair in spans] == [span[1:] for span in sorted(all_spans, reverse=True)[:5]]


def test_truncated_paragraphs_are_no_answers(fine_tuned: Make) -> None:
    """Every length of a row is tried."""
    made = fine_tuned("document_qa")
    examples = list(read_records(made.raw / "test.jsonl", "document_qa"))
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    for limit in range(40, 52):
        settings = replace(model.pipeline.settings, max_source_tokens=limit, long_source="truncate")
        model.pipeline.settings = settings
        predictions = list(model.predictions(examples, 4, options=AnswerOptions(max_answer_length=4)))
        for example, prediction in zip(examples, predictions, strict=True):
            (row,) = model.pipeline.rows(example)
            numbers = {span for span in row.spans if isinstance(span, int)}
            assert prediction.paragraph in numbers and prediction.answer_paragraph in {None, *numbers}
            assert len(numbers) < len(example.sentences)


def test_windows_without_text_do_not_count() -> None:
    """The best window is one with text, and of equal paragraphs in two windows the better one counts."""
    empty = DocumentWindow(WindowAnswers(-9.0, []), {}, [0.0] * 5)
    low = DocumentWindow(WindowAnswers(1.0, [ScoredSpan(3.0, 0, 1, 1)]), {0: -1.0, 1: 2.0}, [0.0, 1.0, 0.0, 0.0, 0.0])
    high = DocumentWindow(WindowAnswers(1.0, [ScoredSpan(2.0, 2, 3, 1)]), {1: 5.0, 2: 1.0}, [0.0, 4.0, 0.0, 0.0, 0.0])
    record = DocumentQuestion("q", "which?", ("a b", "c d", "e"))
    answer = answer_document(record, [empty, low, high], AnswerOptions(n_best=2))
    assert answer.paragraph == 1 and (answer.answer, answer.start) == ("d", 2)
    assert answer.paragraph_score == pytest.approx(5 + math.log(math.exp(4) + 3))
    best = [(each["text"], each["score"]) for each in answer.n_best]
    assert best == [("d", pytest.approx(5.0)), ("c", pytest.approx(3.0))]


def windows_for(record: Record, draw: random.Random) -> list[DocumentWindow]:
    """Two windows whose scores prefer the annotated answer, of a few different values, so that many are equal."""
    gold = choose_annotation(record.annotations or ())
    texts, windows = record.sentences or (), []
    for _ in range(2):
        number = draw.choice([gold.paragraph or 0, draw.randrange(len(texts))])
        begin, end = 0, len(texts[number].split()[0])
        if gold.spans and number == gold.paragraph:
            begin, end = gold.spans[0].start, gold.spans[0].start + len(gold.spans[0].text)
        likely = draw.random() < (0.7 if number == gold.paragraph else 0.2)
        score = 4 * likely + draw.randint(-3, 3) / 7
        types = draw.choice([[0.0, 1.0, 0.3, -1.0, -2.0], [1.1, 0.2, 0.7, 0.1, -0.3], [0.0, -1.0, 0.0, 2.0, 0.5]])
        windows.append(
            DocumentWindow(WindowAnswers(0.0, [ScoredSpan(score, begin, end, number)]), {number: score}, types)
        )
    return windows


@pytest.mark.parametrize("dataset", ["natural_questions", "tydi_qa"])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_printed_thresholds_give_the_best_f1(
    dataset: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given to `hat predict` as `hat score` prints them, F1 of all is the best F1; several scores are the threshold."""
    WRITERS[dataset](tmp_path / "release")
    draw, records = random.Random(seed), []
    for number, record in enumerate(20 * list(find_reader(dataset).read("valid", tmp_path / "release", Counter()))):
        meta = (record.meta or {})[dataset] | {"example_id": number, "language": "thai"}
        records.append(replace(record, id=str(number), meta={dataset: meta}))
    lines = [json_line(record) + "\n" for record in records]
    (tmp_path / "valid.jsonl").write_text("".join(lines), encoding="utf-8")
    documents = [(record, windows_for(record, draw)) for record in records]

    def scores(**options: float) -> tuple[list[dict[str, Any]], list[str], list[dict[str, Any]]]:
        """With these options: the answers, the printed thresholds, and the figures of long and of short answers."""
        answers = [answer_document(*document, AnswerOptions(**options)).to_json() for document in documents]
        lines = (json.dumps(answer) + "\n" for answer in answers)
        (tmp_path / "p.jsonl").write_text("".join(lines))
        files = [
            "--hypotheses",
            tmp_path / "p.jsonl",
            "--references",
            tmp_path / "valid.jsonl",
            "--json",
            tmp_path / "s.json",
        ]
        assert hat("score", dataset, *files, "--overwrite", "--bootstrap-samples", 0) == 0
        (written,) = json.loads((tmp_path / "s.json").read_text()).values()
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        if dataset == "natural_questions":
            figures = [{**kind, "f1": kind["f1"]["mean"]} for kind in written["scores"].values()]
            return answers, [row[5] for row in rows[1:3]], figures
        return answers, rows[-1][5::4], [kind["languages"]["thai"] for kind in written["scores"].values()]

    answers, thresholds, best = scores()
    _, _, applied = scores(paragraph_threshold=float(thresholds[0]), answer_threshold=float(thresholds[1]))
    for name, before, after in zip(("paragraph", "answer"), best, applied, strict=True):
        assert sum(answer[f"{name}_score"] == before["threshold"] for answer in answers) > 1
        assert before["f1_of_all"] < before["f1"] == after["f1"] == after["f1_of_all"]
