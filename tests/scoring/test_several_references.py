"""Several references of a document: ROUGE takes the best or the mean, BLEU all."""

from __future__ import annotations

import json

import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from hat_fairseq import cli
from hat_fairseq.scoring.bleu import DOCUMENT_BLEU, SENTENCE_BLEU, BleuSettings, Translation, bleu
from hat_fairseq.scoring.rouge import METRICS, rouge
from hat_fairseq.scoring.rouge_settings import RougeSettings

HYPOTHESES = ["the cat sat on a mat .", "a dog ran away .", "nothing happened ."]
REFERENCES = [
    ["a cat sat there .", "the cat is on the mat ."],
    ["the dog ran ."],
    ["it rained .", "it", "nothing did ."],
]


def jsonl(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path):
    """The same references as two files, the second in another order, and as lists in one file."""
    jsonl(tmp_path / "h.jsonl", *({"id": str(i), "text": text} for i, text in enumerate(HYPOTHESES)))
    jsonl(tmp_path / "a.jsonl", *({"id": str(i), "target": [each[0]]} for i, each in enumerate(REFERENCES)))
    rest = [{"id": str(i), "target": [[text] for text in each[1:]]} for i, each in enumerate(REFERENCES) if each[1:]]
    jsonl(tmp_path / "b.jsonl", *reversed([*rest, {"id": "1", "target": REFERENCES[1]}]))
    lists = [[[text] for text in each] for each in REFERENCES]
    lists[1] += lists[1]  # the second file needs a reference of every document
    jsonl(tmp_path / "all.jsonl", *({"id": str(i), "target": each} for i, each in enumerate(lists)))
    return tmp_path


@pytest.mark.parametrize("several", ["best", "mean"])
def test_rouge_of_each_document_is_the_best_or_the_mean(several: str) -> None:
    scorer = RougeScorer(list(METRICS), use_stemmer=True)
    settings = RougeSettings(bootstrap_samples=0, several_references=several)
    report = rouge(HYPOTHESES, REFERENCES, settings)
    for metric in METRICS:
        expected = []
        for text, each in zip(HYPOTHESES, REFERENCES, strict=True):
            scores = [scorer.score(reference, text)[metric].fmeasure for reference in each]
            expected.append(max(scores) if several == "best" else sum(scores) / len(scores))
        assert report.scores[metric].mean == pytest.approx(100 * sum(expected) / 3)
    assert report.signature.endswith(f" | documents: 3 | references: 6 ({several} of each document)")
    single = rouge(HYPOTHESES, [each[:1] for each in REFERENCES], settings)
    assert single.signature.endswith(" | documents: 3") and single.scores != report.scores


def test_bleu_takes_all() -> None:
    metric, settings = BLEU(), BleuSettings(bootstrap_samples=0)
    references = [[[text] for text in each] for each in REFERENCES]
    streams = [[each[number] if number < len(each) else None for each in REFERENCES] for number in range(3)]
    translations = [Translation(text, (text,)) for text in HYPOTHESES]
    reports, signatures = bleu({"x": translations}, references, settings)
    expected = metric.corpus_score(HYPOTHESES, streams)
    assert reports["x"].scores[DOCUMENT_BLEU].score == expected.score
    assert reports["x"].scores[SENTENCE_BLEU].score == expected.score  # each document is one segment
    assert "nrefs:var" in signatures[DOCUMENT_BLEU]
    resampled, _ = bleu({"x": translations}, references, BleuSettings(bootstrap_samples=20))
    assert resampled["x"].scores[DOCUMENT_BLEU].score == pytest.approx(expected.score)


def test_a_document_matches_where_one_reference_has_as_many_segments() -> None:
    two, one = ["a b c d", "e f g h"], ["a b c d e f g h"]
    translation = Translation("a b c d e f g h", ("a b c d e f g h",))
    settings = BleuSettings(bootstrap_samples=0)
    assert bleu({"x": [translation]}, [[two]], settings)[0]["x"].unmatched_documents == 1
    report = bleu({"x": [translation]}, [[two, one]], settings)[0]["x"]
    assert report.unmatched_documents == 0 and report.scores[SENTENCE_BLEU].score == pytest.approx(100)


@pytest.mark.parametrize("metric", ["rouge", "bleu"])
def test_files_and_lists_give_the_same_figures(files, metric: str, capsys) -> None:
    outputs = []
    for references in (["a.jsonl", "b.jsonl"], ["all.jsonl"]):
        words = ["--hypotheses", str(files / "h.jsonl"), "--references", *(str(files / name) for name in references)]
        assert cli.main(["score", metric, "--bootstrap-samples", "20", *words]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] and ("references: 7" in outputs[0] or "nrefs:var" in outputs[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rouge", "--hypotheses", "all.jsonl", "--references", "a.jsonl"], "only references may be several"),
        (["rouge", "--hypotheses", "h.jsonl", "--references", "a.jsonl", "short.jsonl"], "lacks 2 of 3 ids"),
        (["rouge", "--hypotheses", "h.jsonl", "--references", "a.jsonl", "b.jsonl", "--backend", "perl"],
         "the perl backend takes one reference per document"),
    ],
)  # fmt: skip
def test_what_is_refused(files, words: list[str], message: str, capsys) -> None:
    jsonl(files / "short.jsonl", {"id": "1", "target": "x"})
    lists = [{"id": str(i), "text": [[text] for text in each]} for i, each in enumerate(REFERENCES)]
    jsonl(files / "all.jsonl", *lists)
    given = [str(files / word) if word.endswith(".jsonl") else word for word in words]
    assert cli.main(["score", *given]) == 2
    assert message in capsys.readouterr().err


def test_labels_have_one_file_of_references(files, capsys) -> None:
    for metric in ("classification", "squad"):
        for references in (["a", "b"], ["a", "--references", "b"]):
            assert cli.main(["score", metric, "--hypotheses", "h", "--references", *references]) == 2
            assert capsys.readouterr().err == f"hat: error: {metric} takes one file of --references, not 2\n"
