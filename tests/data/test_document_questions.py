"""Questions on whole documents: windows of paragraphs, what their tokens stand for, labels, share of negatives."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.kinds import DocumentQuestion
from hat_fairseq.data.kinds.document_questions import choose_annotation
from hat_fairseq.data.long_input import LongInputError
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Annotation, Answer, Record
from hat_fairseq.data.rows import Row

Examples = dict[str, list[Record]]


def pipeline(bpe: Bpe, tokens: int | None = None, policy: str = "chunk", **settings: Any) -> TextPipeline:
    return TextPipeline(Settings(kind="document_qa", max_source_tokens=tokens, long_source=policy, **settings), bpe)


def letters(text: str) -> str:
    return "".join(text.split())


def paragraphs_of(record: Record) -> tuple[str, ...]:
    assert record.elements is not None
    return record.elements


def pieces(row: Row) -> list[tuple[int, int, list[Any]]]:
    """Number of each paragraph, where its marker is, and the characters of its tokens."""
    places = [i for i, element in enumerate(row.elements) if element is not None]
    return [
        (row.elements[place] or 0, place, row.characters[place + 1 : end])
        for place, end in zip(places, [*places[1:], len(row.tokens)], strict=True)
    ]


@pytest.mark.slow
def test_windows_are_paragraphs_after_the_question(bpes: list[Bpe], examples: Examples) -> None:
    for bpe in bpes:
        for tokens, overlap in [(None, 0), (301, 0), (301, 128), (301, 290), (91, 40)]:
            encoder = pipeline(bpe, tokens, window_overlap=overlap)
            several = 0
            for record in examples["document_qa"]:
                rows, texts = encoder.rows(record), paragraphs_of(record)
                seen: dict[int, set[int]] = {number: set() for number in range(len(texts))}
                for number, row in enumerate(rows):
                    assert (row.number, row.count) == (number, len(rows))
                    assert tokens is None or len(row.tokens) < tokens
                    end = row.tokens.index("</s>")
                    assert row.tokens[0] == "<s>"
                    assert row.tokens[end : end + 3] == ["</s>", "</s>", "<s>"]
                    assert row.tokens[1:end] == rows[0].tokens[1:end]
                    assert set((row.elements + row.characters)[: end + 2]) == {None}
                    assert letters(bpe.decode(row.tokens[1:end])) == letters(str(record.parts[0]))
                    for paragraph, place, spans in pieces(row):
                        assert row.tokens[place] == "<s>"
                        said = bpe.decode(row.tokens[place + 1 : place + 1 + len(spans)])
                        known = [span for span in spans if span]  # a token of spaces stands for nothing
                        within = letters(texts[paragraph][known[0][0] : known[-1][1]])
                        assert letters(said).strip("\ufffd") in within  # a byte-level BPE may divide a character
                        assert len(letters(said)) >= len(within)
                        seen[paragraph] |= {i for span in known for i in range(*span)}
                for number, text in enumerate(texts):  # nothing is lost but spaces
                    assert {i for i, c in enumerate(text) if not c.isspace()} <= seen[number]
                several += len(rows) > 1
            assert (several > 5) == (tokens is not None)
            if overlap == 290:
                assert encoder.counts["windows_with_less_overlap"] > 0


def test_the_label_is_in_every_window_that_has_the_answer(bpes: list[Bpe], examples: Examples) -> None:
    for bpe in bpes:
        for tokens in [None, 601, 91]:
            encoder = pipeline(bpe, tokens, window_overlap=60)
            types: Counter[str] = Counter()
            for record in examples["document_qa"]:
                wanted = (record.annotations or ())[1]
                found = False
                lengths = [len(spans) for _, _, spans in pieces(pipeline(bpe).rows(record)[0])]
                for row in encoder.rows(record):
                    start, end, marker, kind = row.label or []
                    types[kind] += 1
                    if kind == "none":
                        assert (start, end, marker) == ("0", "0", "0")
                        there = [len(spans) for number, _, spans in pieces(row) if number == wanted.paragraph]
                        assert not there or (
                            wanted.spans and there[0] < lengths[wanted.paragraph or 0]
                        )  # in another piece
                        continue
                    found = True
                    markers = [i for i, token in enumerate(row.tokens) if token == "<s>"]
                    assert row.elements[markers[int(marker)]] == wanted.paragraph
                    if kind != "span":
                        assert (start, end) == ("0", "0")
                        assert kind == (wanted.yes_no or "paragraph")
                        assert not wanted.spans
                        continue
                    text = paragraphs_of(record)[wanted.paragraph or 0]
                    answer = text[wanted.spans[0].start : wanted.spans[-1].end]
                    assert letters(answer) in letters(bpe.decode(row.tokens[int(start) : int(end) + 1]))
                    assert markers[int(marker)] < int(start) <= int(end)
                if tokens is None:
                    assert found == (wanted.paragraph is not None)
            assert set(types) == {"none", "span", "paragraph", "yes"}


def test_a_paragraph_longer_than_a_window_is_the_answer_in_each_of_its_pieces(
    bpes: list[Bpe], examples: Examples
) -> None:
    for bpe in bpes:
        record = examples["document_qa"][0]
        text = paragraphs_of(record)[0]
        long = DocumentQuestion(
            "a", question="Why ?", paragraphs=("Short .", text, "End ."), annotations=(Annotation(1),)
        )
        rows = pipeline(bpe, 41, window_overlap=5).rows(long)
        assert len(rows) > 4
        for row in rows:
            numbers = [number for number, _, _ in pieces(row)]
            expected = ["0", "0", str(numbers.index(1) + 1), "paragraph"] if 1 in numbers else ["0", "0", "0", "none"]
            assert row.label == expected
        word = Answer(text.split()[0], text.index(text.split()[0]))
        encoder = pipeline(bpe, 41, window_overlap=5)
        rows = encoder.rows(replace(long, annotations=(Annotation(1, (word,)),)))
        assert [row.label[3] for row in rows if row.label].count("span") == 1
        everything = Answer(text.strip(), text.index(text.strip()))
        assert {row.label[3] for row in encoder.rows(replace(long, annotations=(Annotation(1, (everything,)),)))} == {
            "none"
        }
        assert encoder.counts["examples_left_without_answer"] == 1


def test_truncation_loses_answers_and_says_so(bpes: list[Bpe], examples: Examples) -> None:
    for bpe in bpes:
        encoder = pipeline(bpe, 101, "truncate")
        rows = [row for record in examples["document_qa"] for row in encoder.rows(record)]
        assert len(rows) == len(examples["document_qa"])
        assert all(len(row.tokens) <= 100 for row in rows)
        lost = encoder.counts["examples_left_without_answer"]
        answered = sum(record.annotations[1].paragraph is not None for record in examples["document_qa"])
        assert 0 < lost == answered - sum(row.label[3] != "none" for row in rows)
        with pytest.raises(LongInputError, match="is too long"):
            pipeline(bpe, 101, "error").rows(examples["document_qa"][0])
        with pytest.raises(LongInputError, match="windows are too small for its question of"):
            pipeline(bpe, 6).rows(examples["document_qa"][0])


def test_which_annotation_is_trained_on() -> None:
    """The first paragraph, but rather one with a short answer; from its first span to its last."""
    word = Answer("a", 0)
    assert choose_annotation(()) == choose_annotation((Annotation(),)) == Annotation()
    first, second, short = Annotation(1), Annotation(4, yes_no="no"), Annotation(3, (word,))
    assert choose_annotation((Annotation(), second, first)) == first
    assert choose_annotation((Annotation(), second, short, first, Annotation(7, (word,)))) == short
    record = DocumentQuestion(
        "a", question="q", paragraphs=("a b c", "d"), annotations=(Annotation(0, (Answer("c", 4), Answer("b", 2))),)
    )
    assert record.annotations
    assert choose_annotation(record.annotations).spans[0].end == 5
