"""`hat score` of our prediction lines prints the figures that the authors' scripts compute of the official files.

Answers and annotations are drawn. The figures of two scripts are in `golden/authors_scores.json`; `HAT_AUTHORS=DIR`
runs them and writes that file anew. DIR holds `evaluate-v2.0.py` (SQuAD) and `triviaqa_evaluation.py` with the modules
that they import.
"""

import ast
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

GOLDEN = REPOSITORY / "tests/golden/authors_scores.json"
WORDS = ["the", "The", "a", "of", "Paris,", "paris", "New-York", "New_York"]
WORDS += ["(1998)", "1998", "..", "Ål", "don't", "O’N"]

Record = dict[str, Any]


def scores(folder: Path, metric: str, records: list[Record], lines: list[Record]) -> Record:
    files = [write_lines(folder / "p.jsonl", lines), "--references", write_lines(folder / "r.jsonl", records)]
    flags = ["--bootstrap-samples", 0, "--out", folder / "s.json"]
    assert hat("score", metric, *files, *flags) == 0
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
    assert figures["predicted"] == len(lines) < 500
    assert 10 < figures["exact_match"] < 90
