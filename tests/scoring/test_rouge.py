from __future__ import annotations

import pytest
from rouge_score.rouge_scorer import RougeScorer

from hat_fairseq.scoring import rouge as scoring
from hat_fairseq.scoring.baselines import lead
from hat_fairseq.scoring.rouge import METRICS, score_documents
from hat_fairseq.scoring.rouge_settings import PRESETS, RougeSettings, split_summary


def rouge(hypotheses, references, settings=None):
    """The score against one reference of each document."""
    return scoring.rouge(hypotheses, [[reference] for reference in references], settings)


def figures(report):
    return [report.scores[metric].mean for metric in METRICS]


def test_by_hand():
    report = rouge(["the cat sat ."], ["the cat ate ."], RougeSettings(bootstrap_samples=0))
    assert figures(report) == pytest.approx([200 / 3, 50, 200 / 3])


@pytest.mark.parametrize("stem", [True, False])
def test_equals_rouge_score(stem, ami_test):
    hypotheses = [split_summary(lead(document, 150), "punctuation") for document in ami_test[:6]]
    references = [document.target for document in ami_test[:6]]
    scores = score_documents(hypotheses, references, stem)
    theirs = RougeScorer(list(METRICS), use_stemmer=stem)
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        expected = theirs.score("\n".join(reference), "\n".join(hypothesis))
        for metric in METRICS:
            assert scores[metric][number] == expected[metric].fmeasure


def test_lead_of_the_ami_meetings(ami_test):
    report = rouge([lead(document, 286) for document in ami_test], [document.target for document in ami_test])
    assert figures(report) == pytest.approx([29.37, 4.83, 27.79], abs=0.05)
    for metric in METRICS:
        assert report.scores[metric].low < report.scores[metric].mean < report.scores[metric].high


def test_a_constant_summary_of_the_ami_meetings(ami_train, ami_test):
    constant = next(document.target for document in ami_train if document.id == "ES2002b")
    settings = RougeSettings(hypothesis_sentences="given", bootstrap_samples=0)
    report = rouge([constant] * len(ami_test), [document.target for document in ami_test], settings)
    assert figures(report) == pytest.approx([46.47, 13.48, 44.56], abs=0.01)


def test_the_split_moves_only_rouge_l(ami_test):
    hypotheses, references = [lead(doc, 286) for doc in ami_test], [doc.target for doc in ami_test]
    split = figures(rouge(hypotheses, references, RougeSettings(bootstrap_samples=0)))
    whole = figures(rouge(hypotheses, references, RougeSettings(bootstrap_samples=0, hypothesis_sentences="none")))
    assert whole[:2] == split[:2]
    assert split[2] - whole[2] > 3


def test_presets():
    hypothesis, reference = ["One cat ran.", "Two dogs run."], ["Two dogs run.", "One cat runs."]
    scores = {name: figures(rouge([hypothesis], [reference], RougeSettings(**PRESETS[name]))) for name in PRESETS}
    assert scores["rouge-score"] == pytest.approx([100 * 5 / 6, 100 * 3 / 5, 100 * 5 / 6])
    # Without a space before its full stops a summary is one sentence, in which the two halves are in the wrong order.
    assert scores["files2rouge"] == pytest.approx([100 * 5 / 6, 100 * 3 / 5, 100 * 3 / 6])
    assert figures(rouge(["dogs"], ["dog"], RougeSettings(**PRESETS["files2rouge"])))[0] == 100
    assert figures(rouge(["dogs"], ["dog"], RougeSettings(**PRESETS["rouge-score"])))[0] == 0


def test_signature_names_everything():
    settings = RougeSettings(hypothesis_sentences="none", stem=False, bootstrap_samples=20, seed=5)
    signature = rouge(["a b"], ["a b"], settings).signature
    assert signature == (
        "backend: rouge-score 0.1.2 | stem: no | hypothesis-sentences: none | reference-sentences: given | "
        "bootstrap: 20 (95 %, seed 5) | documents: 1"
    )


def test_empty_and_foreign_text_is_counted():
    report = rouge(["", "a b", "Größe"], ["a b", "a b", "a b"], RougeSettings(bootstrap_samples=0))
    assert figures(report)[0] == pytest.approx(100 / 3)
    assert (report.empty_hypotheses, report.non_ascii_documents) == (1, 1)


def test_repeated_ngrams_by_hand():
    hypotheses = ["a b c A b c", "one", ["x y", "x y"], "no repeated words here"]  # 1 of 4, 0, 0 of 2, 0
    report = rouge(hypotheses, ["a b c"] * 3 + ["a a a a a"], RougeSettings(bootstrap_samples=0))
    assert report.repeated_trigrams == pytest.approx(100 * (1 / 4) / 4)
    assert report.repeated_in_references == pytest.approx(100 * (2 / 3) / 4)


def test_a_reference_that_cannot_be_scored():
    with pytest.raises(ValueError, match="reference 2 has no word.*天气"):
        rouge(["a", "a"], ["a", "天气很好。"])


def test_nothing_to_score():
    with pytest.raises(ValueError, match="no documents"):
        rouge([], [])
