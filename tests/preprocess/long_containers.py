"""Tiny releases of WikiHop, TriviaQA and the categories of arXiv, in their formats, filled with the sample texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from preprocess.encoder_containers import SPLITS, articles, biographies, of

CATEGORIES = ("cs.AI", "cs.CE", "cs.CV", "cs.DS", "cs.IT", "cs.NE", "cs.PL", "cs.SY", "math.AC", "math.GR", "math.ST")


def name_of(number: int) -> str:
    return " ".join(biographies()[number % len(biographies())][0].split()[:2])


def wikihop_question(number: int, split: str) -> dict[str, Any]:
    """Whose biography this is; the names of two to four people are the candidates."""
    candidates = sorted({name_of(number + step).lower() for step in range(2 + number % 3)})
    supports = [" ".join(biographies()[number]), " ".join(biographies()[number - 1][1:])]
    query = {"id": f"WH_{split}_{number}", "query": f"person_of_page {number}", "answer": name_of(number).lower()}
    return {**query, "candidates": candidates, "supports": supports, "annotations": [["follows"]]}


def write_wikihop(root: Path) -> None:
    """6 and 3 questions."""
    root.mkdir(parents=True, exist_ok=True)
    for split, name in {"train": "train", "valid": "dev"}.items():
        (root / f"{name}.json").write_text(json.dumps([wikihop_question(n, name) for n in SPLITS[split]]))


def triviaqa_question(number: int, sentences: tuple[str, ...]) -> dict[str, Any]:
    """Whose biography this is: the answer is on the first page, and not on the second."""
    name = " ".join(sentences[0].split()[:2])
    answer = {"Value": name.upper(), "Aliases": [f"The {name}", "nobody at all"], "Type": "WikipediaEntity"}
    answer["NormalizedAliases"] = [name.lower(), "nobody at all"]
    pages = [{"DocSource": "TagMe", "Filename": f"Page_{page}.txt", "Title": name} for page in (number, "none")]
    question = {"Question": "Who is this?", "QuestionId": f"tc_{number}", "Answer": answer, "EntityPages": pages}
    return {**question, "SearchResults": [], "QuestionPartOfVerifiedEval": bool(number % 2)}


def write_triviaqa(root: Path) -> None:
    """6 and 3 questions with two pages each."""
    pages = root / "evidence/wikipedia"
    pages.mkdir(parents=True, exist_ok=True)
    (root / "qa").mkdir(exist_ok=True)
    (pages / "Page_none.txt").write_text("A page about\nnothing of that kind .\n", encoding="utf-8")
    for split, name in {"train": "train", "valid": "dev"}.items():
        for number, sentences in zip(SPLITS[split], of(split), strict=True):
            (pages / f"Page_{number}.txt").write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
        questions = [triviaqa_question(n, each) for n, each in zip(SPLITS[split], of(split), strict=True)]
        release = {"Data": questions, "Domain": "Wikipedia", "VerifiedEval": False, "Version": 1.0}
        (root / f"qa/wikipedia-{name}.json").write_text(json.dumps(release), encoding="utf-8")


def write_arxiv_categories(root: Path) -> None:
    """44 papers, the first ones of two categories the same."""
    texts = ["\n".join(record["paragraphs"]) for record in articles()]
    for place, label in enumerate(CATEGORIES):
        (root / label).mkdir(parents=True, exist_ok=True)
        for paper in range(4):
            number = 0 if paper == 0 and place < 2 else 4 * place + paper
            text = f"{label} {number}\n{texts[number % len(texts)]}"
            (root / label / f"15{number:02}.0{number:04}v{1 + place}.txt").write_text(text, encoding="utf-8")


WRITERS = {"wikihop": write_wikihop, "triviaqa": write_triviaqa, "arxiv_categories": write_arxiv_categories}
