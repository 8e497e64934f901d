"""BLEU of documents: sacrebleu's own command gives the same figures; what matches and what does not is counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hat_fairseq.scoring import bleu as scoring
from hat_fairseq.scoring.bleu import CHRF2, DOCUMENT_BLEU, SENTENCE_BLEU, BleuSettings, Translation, make_bleu

REFERENCES = [["The cat sat on the mat .", "It slept there ."], ["A dog ran through the whole house ."]]
PLAIN = BleuSettings(bootstrap_samples=0)


def bleu(systems, references, settings):
    """The score against one reference of each document."""
    return scoring.bleu(systems, [[segments] for segments in references], settings)


def translation(*segments: str) -> Translation:
    return Translation(" ".join(segments), segments)


@pytest.fixture(scope="module")
def meetings(ami_test):
    """Real reference texts, and two systems: one that loses every fifth word, one that loses every second one."""
    references = [list(document.target) for document in ami_test]

    def losing(every: int) -> list[Translation]:
        return [
            translation(*(" ".join(w for i, w in enumerate(s.split()) if (i + 1) % every) for s in segments))
            for segments in references
        ]

    return references, losing(5), losing(2)


def sacrebleu(folder: Path, references, systems, *flags: str) -> str:
    """What sacrebleu's own command prints for one line a document."""
    texts = {"r": [" ".join(segments) for segments in references]}
    texts |= {name: [document.text for document in documents] for name, documents in systems.items()}
    for name, lines in texts.items():
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "r", "-i", *systems, "-m", "bleu", "chrf", "-w", "4", *flags]
    environment = {**os.environ, "SACREBLEU_SEED": "7"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=True).stdout


def test_equals_sacrebleus_command(meetings, tmp_path):
    references, good, _ = meetings
    reports, signatures = bleu({"good": good}, references, BleuSettings(bootstrap_samples=100, seed=7))
    flags = ["--confidence", "--confidence-n", "100", "-f", "json"]
    theirs = json.loads(sacrebleu(tmp_path, references, {"good": good}, *flags))
    for metric, expected in zip((DOCUMENT_BLEU, CHRF2), theirs, strict=True):
        figure = reports["good"].scores[metric]
        assert figure.score == pytest.approx(expected["score"], abs=1e-4)
        assert figure.mean == pytest.approx(expected["confidence_mean"], abs=1e-4)
        assert figure.half_width == pytest.approx(expected["confidence_var"], abs=1e-4)
        assert figure.p_value is None
        assert sorted(signatures[metric].split("|")) == sorted(expected["signature"].split("|"))


def test_the_paired_bootstrap_is_sacrebleus(meetings, tmp_path):
    references, good, bad = meetings
    systems = {"good": good, "bad": bad, "same": good}
    reports, _ = bleu(systems, references, BleuSettings(bootstrap_samples=200, seed=7))
    # (its JSON output fails with numpy 2)
    table = sacrebleu(
        tmp_path, references, {"good": good, "bad": bad}, "--paired-bs", "--paired-bs-n", "200", "-f", "text"
    )
    figures = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", table)
    p_values = re.findall(r"\(p = ([\d.]+)\)", table)
    ours = [reports[name].scores[metric] for name in ("good", "bad") for metric in (DOCUMENT_BLEU, CHRF2)]
    expected = [pytest.approx([float(value) for value in row], abs=1e-4) for row in figures]
    assert [[figure.score, figure.mean, figure.half_width] for figure in ours] == expected
    assert [figure.p_value for figure in ours[:2]] == [None, None]
    assert [figure.p_value for figure in ours[2:]] == pytest.approx([float(value) for value in p_values], abs=1e-4)
    assert reports["bad"].scores[DOCUMENT_BLEU].p_value < 0.05
    assert reports["same"].same_as_first and reports["same"].scores[CHRF2].p_value is None
    assert os.environ.get("SACREBLEU_SEED") != "7"


def test_a_document_is_one_string():
    """Segments cut elsewhere cost nothing in document BLEU, and the document does not count in s-BLEU."""
    cut_elsewhere = translation("The cat sat", "on the mat . It slept", "there .")
    reports, signatures = bleu({"x": [cut_elsewhere, translation("A dog ran .")]}, REFERENCES, PLAIN)
    report = reports["x"]
    metric = make_bleu(PLAIN)
    expected = metric.corpus_score([cut_elsewhere.text, "A dog ran ."], [[" ".join(r) for r in REFERENCES]])
    assert report.scores[DOCUMENT_BLEU].score == expected.score
    assert report.scores[SENTENCE_BLEU].score == metric.corpus_score(["A dog ran ."], [REFERENCES[1]]).score
    assert (report.unmatched_documents, report.unmatched_segments) == (1, 2)
    assert (report.documents, report.segments, report.without_segments) == (2, 3, 0)
    assert signatures[SENTENCE_BLEU] == signatures[DOCUMENT_BLEU]
    alone = bleu({"x": [cut_elsewhere]}, REFERENCES[:1], PLAIN)[0]["x"]
    assert alone.scores[DOCUMENT_BLEU].score == pytest.approx(100)
    assert SENTENCE_BLEU not in alone.scores


def test_unknown_segments_match_nothing_and_empty_texts_are_counted():
    documents = [Translation("", None), translation("A dog ran through the whole house .")]
    report = bleu({"x": documents}, REFERENCES, PLAIN)[0]["x"]
    assert (report.without_segments, report.unmatched_documents, report.empty_hypotheses) == (1, 1, 1)
    assert report.scores[SENTENCE_BLEU].score == pytest.approx(100)
    assert report.scores[DOCUMENT_BLEU].score < 50


def test_tokenizer_and_case():
    references, hypothesis = [["今天天气很好。"]], [translation("今天天气不好。")]
    scores = {
        name: bleu({"x": hypothesis}, references, BleuSettings(name, bootstrap_samples=0))[0]["x"].scores[DOCUMENT_BLEU]
        for name in ("13a", "zh", "char")
    }
    assert scores["13a"].score == 0 and scores["zh"].score == scores["char"].score > 30
    upper = [translation(" ".join(segments).upper()) for segments in REFERENCES]
    lower = BleuSettings(lowercase=True, bootstrap_samples=0)
    reports, signatures = bleu({"x": upper}, REFERENCES, lower)
    assert reports["x"].scores[DOCUMENT_BLEU].score == pytest.approx(100)
    assert reports["x"].scores[CHRF2].score == pytest.approx(100)
    assert all("case:lc" in signature for signature in signatures.values())


def test_errors():
    with pytest.raises(ValueError, match="unknown tokenizer '14a' .*13a"):
        make_bleu(BleuSettings("14a"))
    with pytest.raises(ValueError, match="no documents"):
        bleu({"x": []}, [], PLAIN)
    with pytest.raises(ValueError, match="reference 2 is empty"):
        bleu({"x": [translation("a")] * 2}, [["a"], ["", ""]], PLAIN)
