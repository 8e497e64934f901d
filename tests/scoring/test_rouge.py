"""`hat score rouge`: figures of rouge-score, sentences, presets, and several references."""

import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from commands import REPOSITORY, hat, write_lines
from rouge_score.rouge_scorer import RougeScorer

from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.marks import notes_on_marks
from hat_fairseq.scoring.rouge import METRICS, SENTENCE_METHODS, RougeReport, rouge, split_summary

TEXT = "Dr. Who came . He left... Then what ?\nNothing , really . \n\n"
HYPOTHESES = ["the cat sat on a mat .", "a dog ran away .", "nothing happened ."]
REFERENCES = [
    ["a cat sat there .", "the cat is on the mat ."],
    ["the dog ran ."],
    ["it rained .", "it", "nothing did ."],
]


def figures(report: RougeReport) -> list[float]:
    return [report.scores[metric].mean for metric in METRICS]


def test_repeated_words_are_counted() -> None:
    hypotheses = ["a b c A b c", "one", ["x y", "x y"], "no repeated words here"]  # 1 of 4, 0, 0 of 2, 0
    report = rouge(hypotheses, [["a b c"]] * 3 + [["a a a a a"]], bootstrap_samples=0)
    assert report.repeated_trigrams == pytest.approx(100 * (1 / 4) / 4)
    assert report.repeated_in_references == pytest.approx(100 * (2 / 3) / 4)
    report = rouge(["天" * 80, "ไป" * 3], ["今天天气很好。", "ไปไหน"], bootstrap_samples=0)
    assert report.repeated_trigrams == pytest.approx(100 * (77 / 78 + 2 / 4) / 2)
    assert not report.repeated_in_references


@pytest.mark.slow
@pytest.mark.parametrize("stem", [True, False])
@pytest.mark.parametrize("several", ["best", "mean"])
def test_figures_are_those_of_rouge_score(several: str, stem: bool, leads: list[str], targets: list) -> None:
    """Of meetings, and of texts with several references."""
    scorer, choose = RougeScorer(list(METRICS), use_stemmer=stem), max if several == "best" else statistics.mean
    hypotheses, references = [*HYPOTHESES, *leads[:6]], [*REFERENCES, *targets[:6]]
    expected = []
    for text, each in zip(hypotheses, references, strict=True):
        lines = "\n".join(split_summary(text, "punctuation"))
        scores = [scorer.score(target if isinstance(target, str) else "\n".join(target), lines) for target in each]
        expected.append([100 * choose([score[metric].fmeasure for score in scores]) for metric in METRICS])
    means = [sum(column) / len(expected) for column in zip(*expected, strict=True)]
    report = rouge(hypotheses, references, bootstrap_samples=0, several_references=several, stem=stem)
    assert figures(report) == pytest.approx(means)


def test_sentences(leads: list[str]) -> None:
    for method in SENTENCE_METHODS:
        assert all(" ".join(split_summary(lead, method)).split() == lead.split() for lead in leads[:5])
        assert split_summary(" \n ", method) == []
    with pytest.raises(ValueError, match="'nltk'.*punctuation"):
        split_summary("a", "nltk")


@pytest.mark.parametrize(
    ("method", "sentences"),
    [
        ("none", ["Dr. Who came . He left... Then what ? Nothing , really ."]),
        ("given", ["Dr. Who came . He left... Then what ?", "Nothing , really ."]),
        ("files2rouge", ["Dr. Who came .", "He left... Then what ? Nothing , really ."]),
        ("punctuation", ["Dr.", "Who came .", "He left...", "Then what ?", "Nothing , really ."]),
    ],
)
def test_sentences_of_a_summary_by_each_method(method: str, sentences: list[str]) -> None:
    assert split_summary(TEXT, method) == sentences
    assert split_summary(["a  b", "", "c\td"], method) == (["a b", "c d"] if method == "given" else ["a b c d"])


MARKED = (
    ["{}<q>{}", "{} <n> {}", "<S> {} </S> <S> {} </S>", "<s>{}</s><s>{}</s>", "<t> {} </t>\n<t> {} </t>"]
    + ["[CLS] {} [SEP] {} [SEP]", "{} [X_SEP] {}", "[unused0] {} [unused2] {} [unused1]", "<unused4>{}<unused4>{}"]
    + ["{} ##SENT## {}", "{} ||||| {}", "{} story_separator_special_tag {}", "{} NEWLINE_CHAR {}", "{} <doc-sep> {}"]
    + ["<p>{}</p><p>{}</p>", "{}<br />{}", "{}&lt;q&gt;{}", "{}\\n{}", "<pad> {}<sep>{}</s><pad>", "{}<|endoftext|>{}"]
)


@pytest.mark.parametrize("marked", MARKED)
def test_marks_between_sentences_end_them_and_are_no_words(marked: str, tmp_path: Path, capsys) -> None:
    texts, references = ("The cat sat.", "A dog ran."), ("It rained.", "Dogs ran home.")
    for method in ("given", "punctuation", "library"):
        assert split_summary(marked.format(*texts), method) == [*texts]
        assert split_summary([marked.format(*texts), "End."], method) == [*texts, "End."]
    assert split_summary(marked.format("The cat", "A dog"), "punctuation") == ["The cat", "A dog"]
    assert split_summary(marked.format(*texts), "none") == [" ".join(texts)]
    plain, with_marks = (
        rouge([one], [[other]], reference_sentences="punctuation")
        for one, other in ((" ".join(texts), " ".join(references)), (marked.format(*texts), marked.format(*references)))
    )
    assert plain.scores == with_marks.scores
    assert figures(plain)[0] > 0
    assert ("marks" in plain.signature.settings, "marks" in with_marks.signature.settings) == (False, True)
    files = (write_lines(tmp_path / "h.jsonl", [{"id": "x", "text": marked.format(*texts)}]), tmp_path / "r.jsonl")
    write_lines(files[1], [{"id": "x", "target": [marked.format(*references)]}])
    assert hat("score", "rouge", files[0], "--references", files[1]) == 0
    notes = capsys.readouterr().err.splitlines()
    named = [note for note in notes if note.endswith("marks between sentences, which are not compared as words")]
    assert [note.partition(": ")[0] for note in named] == [str(files[1]), str(files[0])]


def test_a_reference_of_one_line_is_split_as_the_hypotheses_are() -> None:
    hypotheses = ["Rain fell in the night. The council approved the plan on Monday."]
    sentences = ["The council met on Monday.", "It approved the plan.", "Rain fell all night."]
    given, lines, text = (
        rouge(hypotheses, [[each]]) for each in (sentences, "\n".join(sentences), " ".join(sentences))
    )
    assert given.scores == lines.scores == text.scores
    assert [each.signature.settings["reference-sentences"] for each in (given, lines, text)] == [
        *("given", "given", "given or punctuation")
    ]
    assert rouge(hypotheses, [" ".join(sentences)], hypothesis_sentences="given").scores != text.scores


@pytest.mark.parametrize(
    "text", ["[t]he cat", "5 < n > 3", "C:\\new\\notes", "\\nabla f = 0", "a || b", "c ## d", "<3"]
)
def test_what_only_resembles_a_mark_stays(text: str) -> None:
    assert split_summary(text, "given") == [text]
    assert notes_on_marks("h", [text]) == []


def test_an_unknown_mark_is_named() -> None:
    (note,) = notes_on_marks("h.txt", ["The <unk> of <unk>", ["The <unk>", "and <city>"], "a", "<x1>, <x2>"])
    assert note.startswith(
        "h.txt: <unk> (in 2 of its texts), <city> (in 1 of its texts), <x1> (in 1 of its texts) and 1"
    )


@pytest.mark.slow
def test_the_baselines(tmp_path: Path) -> None:
    """The lead, without roles, is as long as the mean summary; the constant is the summary most similar to others."""
    summaries = ["a cat sat there .", "the cats sat .", "cats sat on mats .", "it rained ."]
    turns = [{"role": "A", "text": "one two three"}, {"role": "B", "text": "four five"}]
    rows = ({"id": str(n), "turns": turns, "target": [text]} for n, text in enumerate(summaries))
    files = [write_lines(tmp_path / "d.jsonl", rows)] * 2
    subprocess.run([sys.executable, REPOSITORY / "examples/baselines.py", *files, tmp_path], check=True)
    lead, constant = (next(read_records(tmp_path / f"{name}.jsonl")).text for name in ("lead", "constant"))
    assert lead == "one two three four"
    assert constant == "the cats sat ."
