"""The original ROUGE-1.5.5. Where it cannot run, the first test still shows that its absence is explained."""

from __future__ import annotations

import pytest

from hat_fairseq.scoring import perl
from hat_fairseq.scoring.baselines import lead
from hat_fairseq.scoring.rouge import METRICS, rouge
from hat_fairseq.scoring.rouge_settings import PRESETS, RougeSettings

lacking = perl.missing()
needs_perl = pytest.mark.skipif(bool(lacking), reason=f"lacks {', '.join(lacking)}: {perl.INSTALL}")


def test_what_is_missing_is_one_clear_error(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="lacks .*perl.*pip install.*libxml-parser-perl"):
        rouge(["a"], [["a"]], RougeSettings(backend="perl"))


@needs_perl
def test_agrees_with_rouge_score(ami_test):
    hypotheses, references = [lead(doc, 286) for doc in ami_test], [[doc.target] for doc in ami_test]
    original = rouge(hypotheses, references, RougeSettings(backend="perl"))
    ours = rouge(hypotheses, references)
    for metric in METRICS:
        assert original.scores[metric].mean == pytest.approx(ours.scores[metric].mean, abs=0.3)
        assert original.scores[metric].low == pytest.approx(ours.scores[metric].low, abs=1)
        assert original.scores[metric].high == pytest.approx(ours.scores[metric].high, abs=1)


@needs_perl
def test_as_files2rouge(ami_test):
    settings = RougeSettings(**PRESETS["files2rouge"], backend="perl")
    report = rouge([lead(doc, 286) for doc in ami_test], [[doc.target] for doc in ami_test], settings)
    assert [report.scores[metric].mean for metric in METRICS] == pytest.approx([29.31, 4.84, 20.95], abs=0.01)
    assert "ROUGE-1.5.5.pl -c 95 -r 1000 -n 2 -a -m" in report.signature
    assert "no WordNet exceptions" in report.signature


@needs_perl
@pytest.mark.parametrize(
    ("hypothesis", "reference", "stem", "score"),
    [
        ("Cats run .", "A cat runs .", True, 80),
        ("Cats run .", "A cat runs .", False, 0),
        ("Größe < 5 &amp; <S>", "Größe < 5 &amp; <S>", True, 100),
        ("", "word", True, 0),
    ],
)
def test_one_document(hypothesis, reference, stem, score):
    report = rouge([hypothesis], [[reference]], RougeSettings(backend="perl", stem=stem, bootstrap_samples=10))
    assert report.scores["rouge1"].mean == pytest.approx(score, abs=0.01)
    assert f"-r 10 -n 2 -a{' -m' if stem else ''} (" in report.signature
    assert report.empty_hypotheses == (hypothesis == "")


@needs_perl
def test_it_always_resamples():
    with pytest.raises(ValueError, match="at least 1 bootstrap sample"):
        rouge(["a"], [["a"]], RougeSettings(backend="perl", bootstrap_samples=0))
