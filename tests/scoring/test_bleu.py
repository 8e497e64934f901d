"""`hat score bleu`: sacrebleu's own command gives the same figures; what matches and what does not is counted."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from commands import hat, refusal, write_lines
from sacrebleu.metrics import BLEU

from hat_fairseq.scoring.bleu import CHRF2, DOCUMENT_BLEU, SENTENCE_BLEU, BleuReport, Translation, bleu, compare
from hat_fairseq.scoring.report import least_p_value

REFERENCES = [[["The cat sat on the mat .", "It slept there ."]], [["A dog ran through the whole house ."]]]


def translation(*segments: str) -> Translation:
    return Translation(" ".join(segments), segments)


def report_of(documents: list[Translation], references: list, bootstrap_samples: int = 0) -> BleuReport:
    return bleu(documents, references, bootstrap_samples=bootstrap_samples)


@pytest.mark.slow
def test_figures_intervals_and_p_values_are_those_of_sacrebleus_command(targets: list, tmp_path: Path) -> None:
    """Of real texts that lose every fifth, and every second word."""

    def losing(every: int) -> list[Translation]:
        lines = ([" ".join(w for i, w in enumerate(s.split()) if (i + 1) % every) for s in doc] for (doc,) in targets)
        return [translation(*segments) for segments in lines]

    systems = {"good": losing(5), "bad": losing(2)}
    same = {"same": systems["good"]}
    reports = compare(systems | same, targets, bootstrap_samples=200, seed=7)
    signatures = reports["good"].signature.settings
    texts = {"r": [" ".join(segments) for (segments,) in targets]}
    texts |= {name: [document.text for document in documents] for name, documents in systems.items()}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def sacrebleu(*flags: str) -> str:
        command = [sys.executable, "-m", "sacrebleu", "r", "-m", "bleu", "chrf", "-w", "4", *flags]
        environment = {**os.environ, "SACREBLEU_SEED": "7"}
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout

    figures = json.loads(sacrebleu("-i", "good", "--confidence", "--confidence-n", "200", "-f", "json"))
    for metric, expected in zip((DOCUMENT_BLEU, CHRF2), figures, strict=True):
        assert sorted(signatures[metric].split("|")) == sorted(expected["signature"].split("|"))
    # (its JSON output fails with numpy 2)
    table = sacrebleu("-i", "good", "bad", "--paired-bs", "--paired-bs-n", "200", "-f", "text")
    rows = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", table)
    p_values = [None, None, *re.findall(r"\(p = ([\d.]+)\)", table)]
    scores = [reports[name].scores[metric] for name in systems for metric in (DOCUMENT_BLEU, CHRF2)]
    for figure, row, p_value in zip(scores, rows, p_values, strict=True):
        expected = [float(value) for value in row]
        assert [figure.score, figure.mean, figure.half_width] == pytest.approx(expected, abs=1e-4)
        assert figure.p_value == (None if p_value is None else pytest.approx(float(p_value), abs=1e-4))
    assert scores[2].p_value < 0.05
    assert reports["same"].same_as_first
    assert reports["same"].scores[CHRF2].p_value is None


def test_a_document_is_one_string() -> None:
    """Segments cut elsewhere cost nothing in document BLEU, and the document does not count in s-BLEU."""
    cut_elsewhere = translation("The cat sat", "on the mat . It slept", "there .")
    report = report_of([cut_elsewhere, translation("A dog ran .")], REFERENCES)
    metric = BLEU()
    expected = metric.corpus_score([cut_elsewhere.text, "A dog ran ."], [[" ".join(r) for (r,) in REFERENCES]])
    assert report.scores[DOCUMENT_BLEU].score == expected.score
    assert report.scores[SENTENCE_BLEU].score == metric.corpus_score(["A dog ran ."], [REFERENCES[1][0]]).score
    assert (report.unmatched_documents, report.unmatched_segments) == (1, 2)
    assert (report.documents, report.segments, report.without_segments) == (2, 3, 0)
    assert SENTENCE_BLEU not in report_of([cut_elsewhere], REFERENCES[:1]).scores
    report = report_of([Translation("", None), translation("A dog ran through the whole house .")], REFERENCES)
    assert (report.without_segments, report.unmatched_documents, report.empty_hypotheses) == (1, 1, 1)
    assert report.scores[SENTENCE_BLEU].score == pytest.approx(100)
    assert report.scores[DOCUMENT_BLEU].score < 50


def test_figures_are_those_of_sacrebleu_also_of_tags() -> None:
    texts, references = (
        ["Press the <br> tag to break lines in the page"],
        ["Press the <p> tag to break lines in the page"],
    )
    report = compare({"a": texts}, references, bootstrap_samples=0)["a"]
    assert report.scores[DOCUMENT_BLEU].score == sacrebleu.corpus_bleu(texts, [references]).score < 90


@pytest.mark.parametrize("documents", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("changed", [1, 2, 3, 8])
def test_no_p_value_is_below_what_the_documents_can_carry(documents: int, changed: int, tmp_path: Path, capsys) -> None:
    """The least one is that of exchanging the texts of the two systems in each document in which they differ."""
    references = [f"document {number} has one sentence about rain in the town" for number in range(documents)]
    changed = min(changed, documents)
    worse = [text.replace("rain in", "x") if number < changed else text for number, text in enumerate(references)]
    second = compare({"a": references, "b": worse}, references, bootstrap_samples=200)["b"].scores
    p_values = [second[name].p_value for name in (DOCUMENT_BLEU, CHRF2)]
    if documents == 1:
        assert p_values == [None, None]
        assert second[CHRF2].half_width is None
        return
    assert min(p_values) >= 2.0 ** (1 - changed) == least_p_value(changed)
    names = []
    for name, texts in (("a", references), ("b", worse), ("r", references)):
        names.append(tmp_path / name)
        names[-1].write_text("".join(f"{text}\n" for text in texts))
    assert hat("score", "bleu", *names[:2], "--references", names[2]) == 0
    assert f"b: only {changed} document" in capsys.readouterr().err


def test_all_references_count() -> None:
    texts = ["the cat sat on a mat .", "a dog ran away .", "nothing happened ."]
    each = [["a cat sat there .", "the cat is on the mat ."], ["the dog ran ."], ["it rained .", "it", "nothing did ."]]
    streams = [[one[number] if number < len(one) else None for one in each] for number in range(3)]
    references = [[[text] for text in one] for one in each]
    expected = BLEU().corpus_score(texts, streams).score
    for samples in (0, 20):
        report = report_of(list(map(translation, texts)), references, samples)
        assert report.scores[DOCUMENT_BLEU].score == report.scores[SENTENCE_BLEU].score == pytest.approx(expected)
    two, one = ["a b c d", "e f g h"], ["a b c d e f g h"]  # one reference with as many segments is enough
    assert report_of([translation(*one)], [[two]]).unmatched_documents == 1
    assert report_of([translation(*one)], [[two, one]]).scores[SENTENCE_BLEU].score == pytest.approx(100)


SCORE = ("score", "bleu", "--bootstrap-samples", 0)


def test_tokenised_text_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": text, "text": text, "target": text} for text in ("A .", "B .")]
    path = write_lines(tmp_path / "x.jsonl", rows)
    assert hat(*SCORE, path, "--references", path) == 0
    assert "x.jsonl: 2 of 2 documents end in a full stop after a space" in capsys.readouterr().err


@pytest.mark.fault("Scoring", "references of two languages", "names both and the option, exit 2")
def test_references_of_two_languages_are_refused(tmp_path: Path) -> None:
    row = {"id": "x", "text": "Fine weather.", "target": "今天天气很好。"}
    for language in ("zh", "de"):
        (tmp_path / language / "bin").mkdir(parents=True)
        write_lines(tmp_path / language / "text/test.jsonl", [row])
        settings = {"settings": {"target_language": language}}
        (tmp_path / language / "bin/pipeline.json").write_text(json.dumps(settings))
    files = sorted(tmp_path.glob("*/text/*"))
    words = [*SCORE, write_lines(tmp_path / "h.jsonl", [{"id": "x", "text": "天"}]), "--references", *files]
    assert "the references are of the languages de, zh: choose one with --language" in refusal(*words)
    assert hat(*words, "--language", "de") == 0


@pytest.mark.fault(
    "Scoring", "BLEU of Chinese references whose language is not stated", "tokenizer by script, and a line"
)
@pytest.mark.skipif(any(map(importlib.util.find_spec, ("MeCab", "mecab_ko"))), reason="these tokenizers are installed")
@pytest.mark.parametrize(
    ("text", "flags", "tokenizer", "reason"),
    [
        ("今天的天气非常好。我们用 Python 工作。", [], "zh", "tokenizer zh: 68% of the references' letters"),
        ("今天的天气非常好。", ["--language", "en"], "13a", ""),
        ("今日はとても天気がいいです。", [], "char", "sacrebleu[ja] is not installed"),
        ("오늘은 날씨가 아주 좋습니다.", [], "char", "sacrebleu[ko] is not installed"),
        ("Der Hund läuft durch das Haus, und die Katze schläft. 你好", [], "13a", ""),
    ],
)
def test_the_tokenizer_follows_the_script_of_the_references(
    text: str, flags: list[Any], tokenizer: str, reason: str, tmp_path: Path, capsys
) -> None:
    references = write_lines(tmp_path / "r.jsonl", [{"id": "x", "target": [text]}])
    hypotheses = write_lines(tmp_path / "h.jsonl", [{"id": "x", "text": text[:-2] + text[-1]}])
    assert hat(*SCORE, hypotheses, "--references", references, *flags) == 0
    out = capsys.readouterr().out
    assert f"tok:{tokenizer}|" in out
    assert reason in out
    assert ("tokenizer " in out) == bool(reason)


@pytest.mark.fault("Scoring", "the package of a tokenizer is missing", "names it with its pip command, exit 2")
@pytest.mark.skipif(any(map(importlib.util.find_spec, ("MeCab", "mecab_ko"))), reason="these tokenizers are installed")
@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_missing_tokenizer_is_named(language: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"id": "x", "text": "a", "target": "a"}])
    error = refusal(*SCORE, path, "--references", path, "--language", language)
    assert f"pip install sacrebleu[{language}]" in error
