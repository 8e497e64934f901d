"""Texts in twelve languages through `hat preprocess` and `hat score`.

What is written comes back, sentences are found, a perfect output scores 100, and another text does not. The figures of
the other text are in `golden/languages.json`; `HAT_GOLDEN=1` writes them anew.
"""

import json
import os
from pathlib import Path

import pytest
from commands import REPOSITORY, hat, write_lines

from hat_fairseq.data.pipeline import TextPipeline

TEXTS = json.loads((REPOSITORY / "tests/samples/languages.json").read_text(encoding="utf-8"))
GOLDEN = REPOSITORY / "tests/golden/languages.json"
WITHOUT_SPACE_AFTER_SENTENCE = ("ja", "zh")


def running(language: str, sentences: list[str]) -> str:
    return ("" if language in WITHOUT_SPACE_AFTER_SENTENCE else " ").join(sentences)


def scores(metric: str, work: Path, *flags: object) -> dict[str, float]:
    paths = (work / "h.jsonl", "--references", work / "r.jsonl", "--out", work / "s.json")
    assert hat("score", metric, *paths, "--bootstrap-samples", 0, *flags) == 0
    record = json.loads((work / "s.json").read_text())
    (system,) = (record.get("systems") or record).values()
    figures = system["scores"]
    names = {"rouge": ("rouge1", "rougeLsum"), "bleu": ("document BLEU", "chrF2"), "qa": ("exact", "f1")}[metric]
    values = (figures[name] for name in names)
    numbers = (value.get("score", value.get("mean")) if isinstance(value, dict) else value for value in values)
    return {f"{metric} {name}": round(number, 2) for name, number in zip(names, numbers, strict=True)}


@pytest.mark.parametrize("language", TEXTS)
def test_what_is_written_comes_back_and_scores_100(language: str, tmp_path: Path) -> None:
    documents = [running(language, sentences) for sentences in TEXTS[language]]
    rows = [{"id": str(n), "text": text, "target": text} for n, text in enumerate(documents)]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"data/{split}.jsonl", rows)
    code = ("--source-language", language, "--target-language", language)
    assert hat("preprocess", tmp_path / "data", "--out", tmp_path / "out", "--splitter", "punctuation", *code) == 0
    prepared = [json.loads(line) for line in (tmp_path / "out/text/test.jsonl").read_text().splitlines()]
    assert [record["sentences"] for record in prepared] == TEXTS[language]

    pipeline = TextPipeline.load(tmp_path / "out/bin")
    decoded = [pipeline.decode(line) for line in (tmp_path / "out/text/test.target").read_text().splitlines()]
    assert decoded == documents  # without a word tokenizer everything comes back as it was written

    answers = [{"id": str(n), "answer": sentences[-1]} for n, sentences in enumerate(TEXTS[language])]
    golds = [
        {"id": row["id"], "question": "?", "text": text, "answers": [{"text": gold, "start": text.index(gold)}]}
        for row, text in zip(rows, documents, strict=True)
        for gold in [TEXTS[language][int(row["id"])][-1]]
    ]
    figures: dict[str, float] = {}
    for order, wanted in ((1, 100.0), (-1, None)):
        for metric in ("bleu", "rouge"):
            targets = [row | {"target": sentences} for row, sentences in zip(rows, TEXTS[language], strict=True)]
            write_lines(tmp_path / "r.jsonl", targets)
            texts = [{"id": row["id"], "text": text} for row, text in zip(rows, decoded[::order], strict=True)]
            write_lines(tmp_path / "h.jsonl", texts)
            characters = ("--tokenize", "char") if (metric, language) == ("bleu", "ja") else ()  # without MeCab, too
            figures |= scores(metric, tmp_path, *characters)
        write_lines(tmp_path / "r.jsonl", golds)
        other = [each["answer"] for each in answers][::order]
        write_lines(tmp_path / "h.jsonl", [{**a, "answer": text} for a, text in zip(answers, other, strict=True)])
        figures |= scores("qa", tmp_path)
        assert wanted is None or set(figures.values()) == {wanted}, figures
    assert all(figure < 50 for figure in figures.values()), figures  # of the other text

    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("HAT_GOLDEN"):
        golden[language] = figures
        GOLDEN.write_text(json.dumps(dict(sorted(golden.items())), indent=2, ensure_ascii=False) + "\n")
    assert figures == golden[language]
