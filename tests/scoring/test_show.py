"""`hat show` prints one document with its summary."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
from sacrebleu.metrics import CHRF

from hat_fairseq import cli
from hat_fairseq.scoring import show
from hat_fairseq.scoring.rouge import rouge

DOCUMENT = {"id": "m1", "turns": [{"role": "PM", "text": "Hello ."}] * 5, "target": ["They met .", "They left ."]}


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], **options: object) -> str:
    (tmp_path / "documents.jsonl").write_text(json.dumps(DOCUMENT) + "\n")
    (tmp_path / "hypotheses.jsonl").write_text(json.dumps({"id": "m1", "text": "A meeting ."}) + "\n")
    paths = {"documents": str(tmp_path / "documents.jsonl"), "hypotheses": str(tmp_path / "hypotheses.jsonl")}
    show.main(
        Namespace(**{**paths, "id": None, "worst": None, "best": None, "segments": False, "sentences": 2, **options})
    )
    return capsys.readouterr().out


def test_source_reference_and_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(tmp_path, capsys).splitlines()
    assert lines == [
        "--- m1: 5 sentences or turns",
        "  PM: Hello .",
        "  PM: Hello .",
        "  [3 more]",
        "--- reference",
        "  They met . They left .",
        "--- generated",
        "  A meeting .",
    ]


def test_unknown_documents_and_missing_ids_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no document 'm2'"):
        run(tmp_path, capsys, id="m2")
    plain = tmp_path / "plain.txt"
    plain.write_text("A meeting .\n")
    with pytest.raises(ValueError, match="no ids"):
        run(tmp_path, capsys, hypotheses=str(plain))


def test_the_worst_and_the_best_by_the_score_of_hat_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = {"a": "The cat sat .", "b": "The dogs ran home .", "c": "Blue buttons .", "d": "The cat sat ."}
    texts = {"a": "The cat slept .", "b": "The dog ran home .", "c": "Nothing .", "d": "The cat slept ."}
    documents, hypotheses = tmp_path / "documents.jsonl", tmp_path / "hypotheses.jsonl"
    lines = (json.dumps({**DOCUMENT, "id": key, "target": [text]}) for key, text in targets.items())
    documents.write_text("\n".join(lines))
    hypotheses.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in texts.items()))

    def shown(*flags: str) -> list[str]:
        words = ["show", "--documents", str(documents), "--hypotheses", str(hypotheses), *flags]
        assert cli.main(words) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith(("===", "---"))]

    def score(key: str) -> str:
        return f"=== ROUGE-1 {rouge([texts[key]], [[targets[key]]]).scores['rouge1'].mean:.2f}"

    parts = ["--- reference", "--- generated"]
    block = {key: [score(key), f"--- {key}: 5 sentences or turns", *parts] for key in texts}
    assert score("c") == "=== ROUGE-1 0.00" and score("b") == "=== ROUGE-1 100.00"  # stems
    assert shown("--worst", "2") == block["c"] + block["a"]  # of equals the first
    assert shown("--best", "3") == block["b"] + block["a"] + block["d"]
    assert shown("--worst", "9") == block["c"] + block["a"] + block["d"] + block["b"]
    words = ["show", "--documents", str(documents), "--hypotheses", str(hypotheses)]
    assert cli.main([*words, "--worst", "0"]) == 2 and "at least 1" in capsys.readouterr().err
    documents.write_text(json.dumps({"id": "a", "text": "Hello ."}) + "\n")
    assert cli.main([*words, "--best", "1"]) == 2
    assert "document 'a' has no target to score against" in capsys.readouterr().err


def test_other_languages_are_ranked_by_chrf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ROUGE ignores letters outside a-z."""
    (tmp_path / "pipeline.json").write_text(json.dumps({"settings": {"target_language": "zh"}}))
    out = run(tmp_path, capsys, best=1)
    assert out.startswith("=== chrF2 ")


def test_translations_segment_by_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns of 36 places, in which a Chinese letter takes two; the scores are sacrebleu's."""
    sources = ["早上好。" * 7, "我们开始。"]
    document = {"id": "d", "sentences": sources, "target": ["Good morning. " * 5, "We begin."]}
    others = [{**document, "id": "e", "target": ["Good night.", "We begin."]}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [document, *others]))
    rows = [{"id": name, "text": "x", "segments": ["Good morning.", "We \x1b[31mbegin."]} for name in "de"]
    (tmp_path / "h.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["show", "--segments", "--documents", f"{tmp_path}/d.jsonl", "--hypotheses", f"{tmp_path}/h.jsonl"]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    scores = [CHRF().sentence_score(*pair).score for pair in (("Good morning.", ["Good morning. " * 5]),)]
    assert lines[:2] == ["--- d: 2 segments: source | generated | reference", f"[1] chrF2 {scores[0]:.2f}"]
    assert lines[2] == f"{sources[0][:18]} | {'Good morning.':36} | Good morning. Good morning. Good"
    assert lines[3] == f"{sources[0][18:]}{' ' * 16} | {' ' * 36} | morning. Good morning. Good morning."
    assert lines[4].startswith("[2] chrF2 ") and lines[5].startswith("我们开始。") and "\x1b" not in lines[5]
    assert cli.main([*words, "--worst", "1", "--sentences", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("=== chrF2 ") and "--- d: 2" in out and "  [1 more]" in out and "[2]" not in out
    (tmp_path / "h.jsonl").write_text(json.dumps({"id": "d", "segments": ["One."]}) + "\n")
    assert cli.main(words) == 2
    assert "(2 of the source, 1 generated, 2 of the reference); leave --segments out" in capsys.readouterr().err
    (tmp_path / "h.jsonl").write_text(json.dumps({"id": "d", "text": "One."}) + "\n")
    assert cli.main(words) == 2 and "no 'segments' among its keys" in capsys.readouterr().err
