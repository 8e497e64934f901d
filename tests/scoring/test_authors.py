"""`hat score` of our prediction lines prints the figures that the authors' scripts compute of the official files.

Answers and annotations are drawn. The figures of three scripts are in `golden/authors_scores.json`; `HAT_AUTHORS=DIR`
runs them and writes that file anew. DIR holds `evaluate-v2.0.py` (SQuAD), `triviaqa_evaluation.py` and `tydi_eval.py`
with the modules that they import. The script of Natural Questions is a package.
"""

import ast
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY, hat, write_lines

from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.official import write_official_answers

GOLDEN = REPOSITORY / "tests/golden/authors_scores.json"
WORDS = ["the", "The", "a", "of", "Paris,", "paris", "New-York", "New_York"]
WORDS += ["(1998)", "1998", "..", "Ål", "don't", "O’N"]
LANGUAGES = ["arabic", "english", "finnish", "thai"]
TOKENS = [1, 2, 3, 4, 7, 8, 9]  # of a paragraph's words; the others are tags

Record = dict[str, Any]


def scores(folder: Path, metric: str, records: list[Record], lines: list[Record]) -> Record:
    files = [write_lines(folder / "p.jsonl", lines), "--references", write_lines(folder / "r.jsonl", records)]
    flags = ["--bootstrap-samples", 0, "--json", folder / "s.json"]
    assert hat("score", metric, "--hypotheses", *files, *flags) == 0
    (record,) = json.loads((folder / "s.json").read_text()).values()
    return record["scores"]


def authors_figures(name: str, run: Callable[[Callable[..., str]], Record]) -> Record:
    """The figures in the golden file, which `run` computes anew by scripts."""
    golden = json.loads(GOLDEN.read_text())

    def script(*command: object) -> str:
        path = Path(os.environ["HAT_AUTHORS"], str(command[0]))
        words = [sys.executable, path, *map(str, command[1:])]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    if "HAT_AUTHORS" in os.environ:
        golden[name] = run(script)
        lines = [f'"{key}": {json.dumps(golden[key])}' for key in sorted(golden)]
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return golden[name]


def text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 3)))


@pytest.mark.parametrize("seed", [0, 1])
def test_squad(seed: int, tmp_path: Path) -> None:
    """A third of the questions has no answer; many no-answer scores are equal."""
    draw, records, lines = random.Random(seed), [], []
    for number in range(500):
        golds = [text(draw) for _ in range(draw.choice([0, 1, 3]))]
        context, answers = "-", []
        for gold in golds:
            answers.append({"text": gold, "start": len(context)})
            context += gold
        records.append({"id": str(number), "question": "?", "text": context, "answers": answers})
        score = draw.randint(-4, 6) / 2 if seed else draw.gauss(0, 2)
        answer = draw.choice([text(draw), "", *golds])
        lines.append({"id": str(number), "answer": answer, "no_answer_score": score})
    draw.shuffle(lines)

    def run(script: Callable[..., str]) -> Record:
        asked = [{**record, "is_impossible": not record["answers"]} for record in records]
        data = {"data": [{"paragraphs": [{"context": "", "qas": asked}]}]}
        for name, content in (
            ("data", data),
            ("answers", {line["id"]: line["answer"] for line in lines}),
            ("odds", {line["id"]: line["no_answer_score"] for line in lines}),
        ):
            (tmp_path / name).write_text(json.dumps(content))
        return json.loads(script("evaluate-v2.0.py", tmp_path / "data", tmp_path / "answers", "-n", tmp_path / "odds"))

    figures = scores(tmp_path, "squad", records, lines)
    assert figures == pytest.approx(authors_figures(f"squad {seed}", run), rel=1e-12)
    assert figures["exact"] < figures["best_exact"]


def test_triviaqa(tmp_path: Path) -> None:
    """Some questions have no prediction."""
    draw, records, lines = random.Random(0), [], []
    for number in range(500):
        answers = [draw.choice([text(draw), text(draw).lower(), ""]) for _ in range(draw.randint(1, 3))]
        meta = {"triviaqa": {"question": f"q{number}", "answers": answers}}
        records.append({"id": f"q{number}--a.txt", "question": "?", "text": "-", "meta": meta})
        if draw.random() < 0.9:
            lines.append({"id": f"q{number}--a.txt", "answer": draw.choice([text(draw), "", *answers])})

    def run(script: Callable[..., str]) -> Record:
        data = [{"QuestionId": m["question"], "Answer": {"NormalizedAliases": m["answers"]}}
                for m in (record["meta"]["triviaqa"] for record in records)]  # fmt: skip
        content = {"Data": data, "Domain": "Wikipedia", "VerifiedEval": False, "Version": 1.0}
        (tmp_path / "data").write_text(json.dumps(content))
        (tmp_path / "answers").write_text(json.dumps({line["id"].split("--")[0]: line["answer"] for line in lines}))
        files = ["--dataset_file", tmp_path / "data", "--prediction_file", tmp_path / "answers"]
        figures = ast.literal_eval(script("triviaqa_evaluation.py", *files).splitlines()[-1])
        return {name: figures[name] for name in ("exact_match", "f1")}

    figures, expected = scores(tmp_path, "triviaqa", records, lines), authors_figures("triviaqa", run)
    assert {name: figures[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert figures["predicted"] == len(lines) < 500 and 10 < figures["exact_match"] < 90


def answer(draw: random.Random) -> Record:
    """An answer on a page of three paragraphs of seven words."""
    kind, first = draw.choice(["none", "paragraph", "span", "span", "yes", "no"]), draw.randrange(3)
    words = (first, first + draw.randrange(2)) if kind == "span" else None
    return {"type": kind, "paragraph": None if kind == "none" else draw.randrange(3), "words": words}


def annotation(draw: random.Random, natural: bool, gold: Record) -> Record:
    """An answer in tokens, with other bytes, of Natural Questions, or in bytes, of TyDi QA."""
    number, (first, last) = gold["paragraph"], gold["words"] or (0, 0)
    yes_no = {"yes_no_answer": gold["type"].upper() if gold["type"] in ("yes", "no") else "NONE"}
    if not natural:
        begin = 100 * (number or 0)
        minimal = (begin + 4 * first, begin + 4 * last + 3) if gold["words"] else (-1, -1)
        names = ("plaintext_start_byte", "plaintext_end_byte")
        passage = {"candidate_index": -1 if number is None else number}
        return {"passage_answer": passage, "minimal_answer": dict(zip(names, minimal, strict=True)), **yes_no}

    def span(begin: int, end: int) -> Record:
        return {"start_token": begin, "end_token": end, "start_byte": 10 * begin, "end_byte": 10 * end}

    begin = 20 * (number or 0)
    spans = [span(begin + TOKENS[first], begin + TOKENS[last] + 1)] if gold["words"] else []
    spans += [span(90, 91)] * (bool(spans) and draw.random() < 0.3)
    long = dict.fromkeys(span(0, 0), -1) if number is None else span(begin, begin + 12)
    return {"long_answer": long, "short_answers": spans, **yes_no}


def pages(seed: int, dataset: str, annotators: int) -> tuple[list[Record], list[Record]]:
    """Records of 500 questions, and lines with right and wrong answers, many with equal scores."""
    draw, records, lines = random.Random(seed), [], []
    natural = dataset == "natural_questions"
    candidates = [[20 * n, 20 * n + 12, 20 * n + 1, 4, 20 * n + 7, 3] if natural else [n, 100 * n] for n in range(3)]
    paragraph = " ".join(f"é{word}" for word in range(7))  # a word has two letters and three bytes
    for number in range(-250, 250):
        golds = [answer(draw) if draw.random() < 0.7 else {"type": "none", "paragraph": None, "words": None}
                 for _ in range(annotators)]  # fmt: skip
        meta = {"example_id": number, "language": draw.choice(LANGUAGES), "candidates": candidates}
        meta |= {"question_text": "", "document_plaintext": ""}
        meta["annotations"] = [annotation(draw, natural, gold) for gold in golds]
        records.append({"id": str(number), "question": "?", "paragraphs": [paragraph] * 3, "meta": {dataset: meta}})
        right = draw.random() < 0.5
        guess = draw.choice(golds) if right else answer(draw)
        line = {"id": str(number), "type": guess["type"], "paragraph": guess["paragraph"], "start": None}
        line |= {f"{name}_score": draw.randint(-12, 12) / 4 + 2 * right for name in ("paragraph", "answer")}
        line |= {"answer": guess["type"] if guess["type"] in ("yes", "no") else "", "answer_paragraph": None}
        if guess["words"]:
            start, end = 3 * guess["words"][0], 3 * guess["words"][1] + 2
            line |= {"start": start, "answer": paragraph[start:end], "answer_paragraph": guess["paragraph"]}
        lines.append(line)
    return records, lines


def official(folder: Path, dataset: str, lines: list[Record]) -> Path:
    """The official file of these predictions on the records that were scored."""
    by_id = {line["id"]: line for line in lines}
    records = (record for record in read_records(folder / "r.jsonl", "document_qa") if record.id in by_id)
    return write_official_answers(folder, dataset, ((record, by_id[record.id]) for record in records))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_natural_questions(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if Path(path) != REPOSITORY / "preprocess"])
    monkeypatch.delitem(sys.modules, "natural_questions", raising=False)  # the reader of the same name
    util = pytest.importorskip("natural_questions.eval_utils")
    from absl import flags

    from natural_questions import nq_eval

    flags.FLAGS.mark_as_parsed()
    records, lines = pages(seed, "natural_questions", annotators=5)
    figures = scores(tmp_path, "natural_questions", records, lines)
    with gzip.open(tmp_path / "golds.gz", "wt") as file:
        file.writelines(json.dumps(record["meta"]["natural_questions"]) + "\n" for record in records)
    stats = nq_eval.score_answers(
        util.read_annotation_from_one_split(str(tmp_path / "golds.gz")),
        util.read_prediction_json(str(official(tmp_path, "natural_questions", lines))),
    )
    metrics = nq_eval.get_metrics_with_answer_stats(*stats)
    of_all = nq_eval.compute_final_f1(*stats)
    for kind, own in figures.items():
        best = f"{kind}-best-threshold"
        expected = {"f1": 100 * metrics[f"{best}-f1"], "threshold": metrics[best]}
        expected |= {name: 100 * metrics[f"{best}-{name}"] for name in ("precision", "recall")}
        expected |= {p: 100 * metrics[f"{kind}-recall-at-precision>={p}"] for p in own["recall_at_precision"]}
        expected |= {"f1_of_all": 100 * of_all[f"{kind}-answer-f1"]}
        own |= {"f1": own["f1"]["mean"], **own["recall_at_precision"]}
        assert {name: own[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        assert 5 < own["f1"] < 95


@pytest.mark.parametrize("seed", [0, 1])
def test_tydi_qa(seed: int, tmp_path: Path) -> None:
    """Some predictions are missing; with the second seed all of a language."""
    records, lines = pages(seed, "tydi_qa", annotators=3)
    thai = {record["id"] for record in records if record["meta"]["tydi_qa"]["language"] == "thai"}
    lines = [line for number, line in enumerate(lines) if number % 8 and not (seed and line["id"] in thai)]
    figures = scores(tmp_path, "tydi_qa", records, lines)

    def run(script: Callable[..., str]) -> Record:
        golds = write_lines(tmp_path / "golds.jsonl", [record["meta"]["tydi_qa"] for record in records])
        files = [f"--gold_path={golds}", f"--predictions_path={official(tmp_path, 'tydi_qa', lines)}", "--noverbose"]
        printed = script("tydi_eval.py", *files).splitlines()
        languages = [line.split(" & ")[1] for line in printed if line.startswith("Passage & ")]
        printed_figures = [json.loads(line) for line in printed if line.startswith("{")]
        every = zip([*languages, "averages"], printed_figures, strict=True)
        return {name: {key: round(value, 6) for key, value in each.items()} for name, each in every}

    official_figures = authors_figures(f"tydi_qa {seed}", run)
    averages = official_figures.pop("averages")
    for kind, own in figures.items():
        means = [own["f1"]["mean"], own["precision"], own["recall"]]
        expected = [100 * averages[f"avg_{kind}_{name}"] for name in ("f1", "precision", "recall")]
        assert means == pytest.approx(expected, abs=1e-4) and own["languages"].keys() == official_figures.keys()
        for language, best in own["languages"].items():
            names = [f"best-threshold{end}" for end in ("-f1", "-precision", "-recall")]
            names += [f"recall-at-precision>={precision}" for precision in best["recall_at_precision"]]
            expected = [100 * official_figures[language][f"{kind}-{name}"] for name in names]
            values = [best["f1"], best["precision"], best["recall"], *best["recall_at_precision"].values()]
            assert values == pytest.approx(expected, abs=1e-4)
            assert best["threshold"] == official_figures[language][f"{kind}-best-threshold"]
