"""The original ROUGE-1.5.5. Where it cannot run, the first test still shows that its absence is explained."""

import pytest

from hat_fairseq.scoring import perl
from hat_fairseq.scoring.rouge import METRICS, PRESETS, rouge

lacking = perl.missing()
needs_perl = pytest.mark.skipif(bool(lacking), reason=f"lacks {', '.join(lacking)}: {perl.INSTALL}")


def test_what_is_missing_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="lacks .*perl.*pip install.*libxml-parser-perl"):
        rouge(["a"], [["a"]], backend="perl")


@needs_perl
def test_the_leads_of_the_ami_meetings(leads: list[str], targets: list) -> None:
    report = rouge(leads, targets, **PRESETS["files2rouge"], backend="perl")
    assert [report.scores[metric].mean for metric in METRICS] == pytest.approx([29.31, 4.84, 20.95], abs=0.01)
    original, python = rouge(leads, targets, backend="perl"), rouge(leads, targets)
    for metric in METRICS:
        for limit, tolerance in (("mean", 0.3), ("low", 1), ("high", 1)):
            expected = getattr(python.scores[metric], limit)
            assert getattr(original.scores[metric], limit) == pytest.approx(expected, abs=tolerance)


@needs_perl
def test_markup_letters_outside_a_z_and_empty_texts() -> None:
    text = "Größe < 5 &amp; <S>"
    report = rouge([text, ""], [[text], ["word"]], backend="perl", bootstrap_samples=10)
    assert 0 < report.scores["rouge1"].high <= 100
    assert report.empty_hypotheses == report.non_ascii_documents == 1
