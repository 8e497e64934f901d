"""Rows and labels of every kind of example, with every kind of BPE, on real texts."""

from collections import Counter
from typing import Any

import pytest
import torch

from hat_fairseq.data.bpe import Bpe, LearnedBpe
from hat_fairseq.data.dictionary import label_of
from hat_fairseq.data.kinds import Candidates, Choice, Document, LabelledSegments, LabelledText, LabelledWords, Question
from hat_fairseq.data.long_input import LongInputError
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.rows import Row
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.modules.segments import slots_at_markers

MARKERS = ("<s>", "</s>")


@pytest.fixture(scope="module")
def bpes(bpes: list[Bpe], sentencepiece_bpe: Bpe) -> list[Bpe]:
    return [*bpes, sentencepiece_bpe]


def pipeline(bpe: Bpe, kind: str, **settings: Any) -> TextPipeline:
    return TextPipeline(Settings(kind=kind, **settings), bpe)


def parts_of(row: Row) -> list[list[str]]:
    """The tokens of each part."""
    tokens = row.tokens
    for index in range(len(tokens)):
        if tokens[index : index + 2] == ["</s>", "</s>"]:
            return [tokens[:index], tokens[index + 2 :]]
    return [tokens]


def decoded(bpe: Bpe, tokens: list[str]) -> str:
    return clean(bpe.decode(token for token in tokens if token not in MARKERS))


def clean(text: str) -> str:
    return " ".join(text.split())


def whole(text: str | tuple[str, ...]) -> str:
    return clean(text if isinstance(text, str) else " ".join(text))


def test_words_keep_their_labels(bpes: list[Bpe], examples: dict[str, list[Record]]) -> None:
    """Words put together again from the labelled pieces are the words with their labels."""
    for bpe in bpes:
        for settings in [{}, {"segments": "packed", "segment_length": 9}, {"max_source_tokens": 51}]:
            encoder = pipeline(bpe, "tokens", long_source="truncate", **settings)
            lost = 0
            for example in examples["tokens"]:
                (row,) = encoder.rows(example)
                assert len(row.label or []) == len(row.tokens)
                assert row.tokens[0] == "<s>"
                words: list[tuple[str, list[str]]] = []
                for token, label in zip(row.tokens, row.label or [], strict=True):
                    if label != "<pad>":
                        words.append((label_of(label), [token]))
                    elif token not in MARKERS:
                        words[-1][1].append(token)
                expected = list(zip(example.parts[0], example.labels or (), strict=True))[: len(words)]
                found = [(decoded(bpe, tokens), label) for label, tokens in words]
                assert found[:-1] == expected[:-1]  # the last one may be cut
                assert expected[-1][0].startswith(found[-1][0].rstrip("\ufffd"))
                assert found[-1][1] == expected[-1][1]
                lost += len(example.labels or ()) - len(words)
                if "segment_length" in settings:
                    assert all(len(segment.split()) < 9 for segment in " ".join(row.tokens).split("<s>"))
            assert encoder.counts["labels_lost"] == lost
            assert (lost > 0) == ("max_source_tokens" in settings)


@pytest.mark.slow
def test_answers_are_where_the_row_says(bpes: list[Bpe], questions: list[Record]) -> None:
    for bpe in bpes:
        for settings in [
            {"segments": "sentences", "splitter": "library"},
            {"segments": "packed", "segment_length": 24, "splitter": "punctuation"},
            {"segments": "none"},
            {"segments": "sentences", "splitter": "library", "source_tokenizer": "moses"},
        ]:
            encoder = pipeline(bpe, "qa", max_source_tokens=81, long_source="chunk", window_overlap=30, **settings)
            assert sum(len(example.answers or ()) for example in questions) >= 15
            windows = 0
            for example in questions:
                question, context = example.parts
                assert isinstance(context, str)
                rows = encoder.rows(example)
                windows += len(rows)
                covered: set[int] = set()
                with_answer = 0
                for number, row in enumerate(rows):
                    assert (row.number, row.count) == (number, len(rows))
                    assert len(row.tokens) <= 80
                    assert row.label is not None
                    assert len(row.characters) == len(row.tokens)
                    if "source_tokenizer" not in settings:
                        assert decoded(bpe, parts_of(row)[0]) == whole(question)
                    covered.update(i for span in row.characters if span for i in range(*span))
                    wanted = [(answer.start, answer.start + len(answer.text)) for answer in example.answers or ()]
                    places = list(map(int, row.label))
                    pairs = list(zip(places[::2], places[1::2], strict=True))
                    assert len(pairs) == len(set(pairs)) <= max(1, len(wanted))
                    with_answer += pairs != [(0, 0)]
                    for start, end in pairs if pairs != [(0, 0)] else []:
                        first, last = row.characters[start], row.characters[end]
                        assert first
                        assert last
                        found = context[first[0] : last[1]]
                        if "source_tokenizer" not in settings:
                            assert clean(decoded(bpe, row.tokens[start : end + 1])) == clean(found)
                        # The first and the last token may stand for more than the answer, never for less.
                        assert any(first[0] <= begin < first[1] and last[0] < stop <= last[1] for begin, stop in wanted)
                assert with_answer > 0
                assert covered == {i for i, character in enumerate(context) if not character.isspace()}
            assert windows > len(questions) + 5
            assert encoder.counts["answers_in_no_row"] == encoder.counts["answers_not_found"] == 0


AWKWARD = (
    "A <s> tag,\tthe <\\s> too.\x00 It\u2028costs\u00a05\u202f€; na\u00efve 日本 \U0001f642 x\x07\x9fy <pad>. The end"
)


def test_answers_in_awkward_text(bpes: list[Bpe]) -> None:
    """Control tokens, vanishing characters, characters of several bytes."""
    for bpe in bpes:
        for text in ["<s> tag", "<\\s>", "5\u202f€", "日", "\U0001f642", "xy", "x\x07y", "<pad>", "end"]:
            if text not in AWKWARD:
                text = AWKWARD[AWKWARD.index("x\x07") : AWKWARD.index("y <") + 1]
            start = AWKWARD.index(text)
            example = Question("a", "What?", AWKWARD, answers=(Answer(text, start),))
            (row,) = pipeline(bpe, "qa", splitter="punctuation").rows(example)
            assert row.label is not None
            first, last = (row.characters[int(position)] for position in row.label)
            assert first
            assert last
            assert first[0] <= start < first[1]
            assert last[0] < start + len(text) <= last[1]
            if bpe.kind == "gpt2":  # all bytes of a character belong to the answer
                begin, end = map(int, row.label)
                assert "\ufffd" not in bpe.decode(row.tokens[begin : end + 1])
                # Each of the other answers begins and ends with a token.
                assert text in ("日", "xy") or (first[0], last[1]) == (start, start + len(text))


def test_candidates_are_in_one_row_and_are_never_truncated(learned_bpe: LearnedBpe) -> None:
    record = Candidates(
        "a",
        question="who is it",
        segments=("one text", "and one more text"),
        candidates=("red cat", "a dog", "it"),
        label=1,
    )
    (row,) = pipeline(learned_bpe, "candidates").rows(record)
    parts = " ".join(row.tokens).split(" </s>")
    texts = [[bpe_text(learned_bpe, each) for each in part.split("<s>")[1:]] for part in parts]
    assert texts == [["who is it"], ["red cat", "a dog", "it"], [], ["one text", "and one more text"]]
    assert [token for token, span in zip(row.tokens, row.elements, strict=True) if span is not None] == ["<s>"] * 3
    assert [span for span in row.elements if span is not None] == [0, 1, 2]
    assert row.label == ["1"]
    whole, head = len(row.tokens), row.tokens.index("</s>", row.tokens.index("</s>") + 1)
    for limit in range(head + 4, whole + 1):
        encoder = pipeline(learned_bpe, "candidates", max_source_tokens=limit + 1, long_source="truncate")
        (short,) = encoder.rows(record)
        # The last token but the marker of a sentence without words, which is removed.
        assert short.tokens[: head + 2] == row.tokens[: head + 2]
        assert limit - 1 <= len(short.tokens) <= limit
        assert encoder.counts["source_tokens_truncated"] == whole - len(short.tokens)
    for policy, limit, message in (("truncate", head + 3, "leaves no room"), ("error", whole, "more than the limit")):
        with pytest.raises(ValueError, match=message):
            pipeline(learned_bpe, "candidates", max_source_tokens=limit, long_source=policy).rows(record)


def bpe_text(bpe: LearnedBpe, tokens: str) -> str:
    return bpe.decode(tokens.split()).strip()


def test_a_row_has_all_its_answers_once(learned_bpe: LearnedBpe) -> None:
    text = "red and blue and red"
    answers = tuple(Answer(word, start) for word, start in (("red", 0), ("red", 17), ("blue", 8), ("red", 0)))
    encoder = pipeline(learned_bpe, "qa", splitter="punctuation")
    (row,) = encoder.rows(Question("a", "q", text, answers=answers))
    places = list(map(int, row.label or []))
    found = [(row.characters[a][0], row.characters[b][1]) for a, b in zip(places[::2], places[1::2], strict=True)]
    assert [text[begin:end] for begin, end in found] == ["red", "red", "blue"]
    assert found[1][0] == 17


def test_an_answer_that_vanishes_is_counted(learned_bpe: LearnedBpe) -> None:
    encoder = pipeline(learned_bpe, "qa", splitter="punctuation")
    (row,) = encoder.rows(Question("a", "q", "a \x07 b", answers=(Answer("\x07", 2),)))
    assert row.label == ["0", "0"]
    assert encoder.counts["answers_not_found"] == encoder.counts["examples_left_without_answer"] == 1


def test_without_answer_and_without_knowledge(learned_bpe: LearnedBpe) -> None:
    encoder = pipeline(learned_bpe, "qa", splitter="punctuation")
    for answers, label in (((), ["0", "0"]), (None, None)):
        (row,) = encoder.rows(Question("a", "q", "a b", answers=answers))
        assert row.label == label
    assert not +encoder.counts


def test_a_window_too_small_for_the_question(learned_bpe: LearnedBpe) -> None:
    encoder = pipeline(learned_bpe, "qa", splitter="punctuation", max_source_tokens=21, long_source="chunk")
    example = Question("a", "why " * 20, "a b", origin="x.jsonl:3")
    with pytest.raises(LongInputError, match=r"document 'a' \(x.jsonl:3\): windows are too small for its qu"):
        encoder.rows(example)
    # Beside a question that leaves little room, windows overlap less: counted.
    rows = encoder.rows(Question("a", "b " * 12, "a b c d e f g h i j k l"))
    assert len(rows) > 2
    assert encoder.counts["windows_with_less_overlap"] == len(rows)


@pytest.mark.parametrize(
    ("lengths", "policy", "kept"),
    [((90, 10), "truncate", (48, 10)), ((10, 90), "truncate", (10, 48)), ((90, 90), "truncate", (29, 29))],
)
def test_the_longest_part_gives_way(lengths: tuple[int, int], policy: str, kept: tuple[int, int]) -> None:
    encoder = pipeline(LearnedBpe([]), "classification", max_source_tokens=61, long_source=policy)
    example = LabelledText("a", segments=("x " * (lengths[0] - 1),), second=("y " * (lengths[1] - 1),))
    (row,) = encoder.rows(example)
    assert tuple(map(len, parts_of(row))) == kept
    assert encoder.counts == Counter(
        rows_over_limit=1, source_tokens_truncated=sum(lengths) - sum(kept), source_sentences_cut=1 + (kept == (29, 29))
    )


@pytest.mark.parametrize(
    ("task", "example", "settings", "error", "message"),
    [
        (
            "classification",
            LabelledText("a", text="x"),
            {},
            ValueError,
            "document 'a': running text .* or `hat preprocess --segments none`",
        ),
        (
            "classification",
            LabelledText("a", text="x. y", second=" "),
            {"segments": "none"},
            EmptyDocumentError,
            "an empty field 'second'",
        ),
        (
            "classification",
            LabelledText("a", segments=("", "\t")),
            {},
            EmptyDocumentError,
            "'a' has an empty field 'segments'",
        ),
        ("segments", LabelledSegments("a", ("x", "\x00")), {}, EmptyDocumentError, "'a': its segment 2 is empty"),
        ("tokens", LabelledWords("a", ("", "x")), {}, EmptyDocumentError, "'a': its word 1 is empty"),
        ("classification", Document("a", text="x"), {}, ValueError, "is a Document, and the kind classification has L"),
        (
            "qa",
            Question("a", "q", "x " * 90),
            {"max_source_tokens": 51, "segments": "none"},
            LongInputError,
            "'a': its source is too long: 96 tokens .* choose --long-source truncate or truncate-sentences or chunk",
        ),
        (
            "choice",
            Choice("a", text="x y", choices=("z " * 90, "z")),
            {"max_source_tokens": 51, "segments": "none", "long_source": "truncate"},
            LongInputError,
            "leaves no room for both",
        ),
    ],
)
def test_what_cannot_be_encoded(
    task: str, example: Any, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pipeline(LearnedBpe([]), **{"kind": task, **settings}).encode(example)


def slots_of(row: Row, segment_length: int) -> int:
    """The number of segments that an encoder over segments makes of a row."""
    ids = torch.tensor([[1 if token == "<s>" else 2 for token in (*row.tokens, "</s>")]])
    return slots_at_markers(ids, bos=1, pad=0, length=segment_length).size // segment_length


@pytest.mark.parametrize(
    ("kind", "segments", "policy"),
    [
        ("classification", "sentences", "truncate"),
        ("classification", "packed", "truncate-sentences"),
        ("choice", "packed", "truncate"),
        ("segments", "sentences", "truncate-sentences"),
        ("tokens", "sentences", "truncate"),
        ("qa", "sentences", "truncate"),
        ("qa", "sentences", "chunk"),
        ("qa", "packed", "chunk"),
        ("mlm", "sentences", "error"),
        ("mlm", "packed", "error"),
    ],
)
def test_rows_have_at_most_so_many_segments(
    learned_bpe: LearnedBpe, request: pytest.FixtureRequest, kind: str, segments: str, policy: str
) -> None:
    records = request.getfixturevalue("questions") if kind == "qa" else request.getfixturevalue("examples")[kind]
    settings = {"segments": segments, "segment_length": 24, "splitter": "library", "long_source": policy}
    whole, short = (pipeline(learned_bpe, kind, max_segments=most, **settings) for most in (None, 5))
    pairs = [(each, whole.rows(record)) for record in records for each in short.rows(record)]
    assert max(slots_of(row, 24) for row, _ in pairs) == 5 < max(slots_of(row, 24) for _, rows in pairs for row in rows)
    if policy.startswith("truncate"):
        cut = [(row, rows[row.number]) for row, rows in pairs if row.tokens != rows[row.number].tokens]
        assert short.counts["rows_over_limit"] == len(cut) > 0
        lost = sum(len(before.tokens) - len(row.tokens) for row, before in cut)
        assert short.counts["source_tokens_truncated"] == lost
        for less in (0, 1):  # the least limit with which nothing is lost
            most = short.needed["--max-segments"] - less
            other = pipeline(learned_bpe, kind, max_segments=most, **settings)
            rows = [[row.tokens for record in records for row in each.rows(record)] for each in (other, whole)]
            assert (rows[0] == rows[1]) == (not less)
        refusing = pipeline(learned_bpe, kind, max_segments=5, **settings | {"long_source": "error"})
        with pytest.raises(LongInputError, match="segments are more than the limit of 5; raise --max-segments, or "):
            for record in records:
                refusing.rows(record)
