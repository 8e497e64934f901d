from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hat_fairseq.data.alignment import MisalignedError
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.options import Settings
from hat_fairseq.data.packing import group_within
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import BOS
from hat_fairseq.data.text import SEPARATOR, split_segments

LITERALS = "the <s> tag, <pad> and <sep> in x<sep>y"


def chunks_of(source: list[int], target: list[int], limits: tuple, between: int) -> list[list[int]]:
    """The numbers of the segments of each chunk; `between`: tokens between two target segments."""

    def cost(number: int, first: bool) -> tuple[int, int]:
        return source[number], target[number] + (0 if first else between)

    return list(group_within(range(len(source)), cost, limits))


def obvious_chunks(source: list[int], target: list[int], limits: tuple[int, int], between: int) -> list[list[int]]:
    """Numbers of the segments of each chunk: every time all of the chunk is added up anew."""

    def fits(chunk: list[int]) -> bool:
        total = sum(target[i] for i in chunk) + between * (len(chunk) - 1)
        return sum(source[i] for i in chunk) <= limits[0] and total <= limits[1]

    chunks: list[list[int]] = []
    for index in range(len(source)):
        if chunks and fits([*chunks[-1], index]):
            chunks[-1].append(index)
        else:
            chunks.append([index])
    return chunks


def test_equals_the_obvious_way_on_random_lengths() -> None:
    generator = random.Random(7)
    for _ in range(3000):
        number = generator.randint(1, 12)
        source = [generator.randint(1, 12) for _ in range(number)]
        target = [generator.randint(0, 12) for _ in range(number)]
        limits = generator.randint(1, 30), generator.randint(1, 30)
        between = generator.randint(0, 1)
        assert chunks_of(source, target, limits, between) == obvious_chunks(source, target, limits, between)


@pytest.mark.parametrize(
    ("source", "target", "limits", "between", "sizes"),
    [
        ([5], [5], (10, 10), 1, [1]),
        ([50], [5], (10, 10), 1, [1]),
        ([5, 5], [5, 5], (10, 10), 0, [2]),  # both fit exactly
        ([5, 5], [5, 5], (10, 10), 1, [1, 1]),  # but not with a separator
        ([5, 5], [5, 5], (10, 11), 1, [2]),
        ([3, 11, 3, 3], [1, 1, 1, 1], (10, 10), 0, [1, 1, 2]),
        ([1, 1, 1], [1, 11, 1], (10, 10), 0, [1, 1, 1]),
        ([4] * 33, [2] * 33, (64, 64), 1, [16, 16, 1]),
        ([4] * 33, [4] * 33, (64, 64), 1, [13, 13, 7]),
        ([4] * 33, [4] * 33, (None, None), 1, [33]),
        ([4, 4], [9, 9], (None, 10), 0, [1, 1]),
    ],
)
def test_awkward_cases(source: list, target: list, limits: tuple, between: int, sizes: list) -> None:
    assert list(map(len, chunks_of(source, target, limits, between))) == sizes


def settings(**changes: object) -> Settings:
    common = {"target_language": "de", "source_tokenizer": "moses", "target_tokenizer": "moses", "aligned": True}
    limits = {"max_source_tokens": 61, "max_target_tokens": 61, "long_source": "chunk", "target_separator": True}
    return Settings(**{**common, **limits, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bpe(pages: list[dict[str, list[str]]]) -> LearnedBpe:
    return LearnedBpe.learn([text for page in pages for side in ("en", "de") for text in page[side]], num_codes=600)


def divided(tokens: list[str], separator: str) -> list[list[str]]:
    """The tokens of each segment."""
    return [segment.split() for segment in " ".join(["", *tokens, ""]).split(f" {separator} ")]


@pytest.mark.parametrize("tokenizer", ["moses", "none"])
@pytest.mark.parametrize("limit", [10, 60, 100_000])
def test_the_chunks_together_are_the_document(
    bpe: LearnedBpe, translations: list[Record], limit: int, tokenizer: str
) -> None:
    words = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    pipeline = TextPipeline(
        settings(max_source_tokens=limit + 1, max_target_tokens=limit + 1, max_chunk_tokens=2 * limit + 1, **words), bpe
    )
    whole = TextPipeline(settings(long_source="error", max_source_tokens=None, max_target_tokens=None, **words), bpe)
    removed = {"source": 0, "target": 0}
    for page in translations:
        encoder = pipeline.encoder()
        rows = encoder.kind.encode(encoder, pipeline.prepare(page))
        (expected,) = whole.rows(page)
        sources, targets = divided(expected.tokens[1:], BOS), divided(expected.streams["target"], SEPARATOR)
        # A segment that is longer than a chunk is truncated at twice its limit.
        short = [[BOS, *source][: 2 * limit] for source in sources], [target[: 2 * limit] for target in targets]
        assert [token for row in rows for token in row.tokens] == sum(short[0], [])
        assert [each for row in rows for each in divided(row.streams["target"], SEPARATOR)] == short[1]
        removed["source"] += len(expected.tokens) - sum(map(len, short[0]))
        removed["target"] += sum(map(len, targets)) - sum(map(len, short[1]))
        for number, row in enumerate(rows):
            target = row.streams["target"]
            assert (row.id, row.part, row.num_parts) == (page.id, number, len(rows))
            assert row.tokens[0] == BOS
            assert row.segments == target.count(SEPARATOR) + 1
            assert max(len(row.tokens), len(target)) <= (limit if row.segments > 1 else 2 * limit)
        assert encoder.totals["source_tokens"] == sum(map(len, sources))
        assert encoder.totals["target_tokens"] == sum(map(len, targets))
    assert all(pipeline.counts[f"{side}_tokens_truncated"] == number for side, number in removed.items())
    assert pipeline.counts["segments_longer_than_chunk"] > 0 or limit > 10
    assert pipeline.counts["chunks"] == 0 or limit < 100_000


def test_segments_come_back_one_by_one(bpe: LearnedBpe, translations: list[Record]) -> None:
    pipeline = TextPipeline(settings(max_target_tokens=201), bpe)
    same = total = 0
    for page in translations:
        targets = [" ".join(row.streams["target"]) for row in pipeline.rows(pipeline.prepare(page))]
        segments = [text for target in targets for text in split_segments(pipeline.decode(target))]
        clean = [" ".join(text.split()) for text in page.target or ()]
        assert [text.replace(" ", "") for text in segments] == [text.replace(" ", "") for text in clean]
        same += sum(map(str.__eq__, segments, clean))
        total += len(clean)
    assert same / total > 0.85


@pytest.mark.parametrize("tokenizer", ["moses", "jieba", "none"])
def test_control_tokens_on_both_sides_are_only_text(bpe: LearnedBpe, tokenizer: str) -> None:
    pipeline = TextPipeline(settings(source_tokenizer=tokenizer, target_tokenizer=tokenizer), bpe)
    (part,) = pipeline.rows(Document("a", sentences=(LITERALS, "x"), target=(LITERALS, "<sep>")))
    target = part.streams["target"]
    assert [token for token in part.tokens if token in ("<s>", "<pad>", "<sep>")] == [BOS, BOS]
    assert target.count(SEPARATOR) == 1
    decoded = split_segments(pipeline.decode(" ".join(target)))
    assert [text.replace(" ", "") for text in decoded] == [LITERALS.replace(" ", ""), "<sep>"]
    source = pipeline.decode(" ".join(part.tokens), side="source")
    assert source.replace(" ", "") == LITERALS.replace(" ", "") + "x"


def test_without_separator_the_target_is_running_text(bpe: LearnedBpe) -> None:
    pipeline = TextPipeline(settings(target_separator=False), bpe)
    (row,) = pipeline.rows(Document("a", sentences=("Open it.", "Close it."), target=("Öffnen.", "Schließen.")))
    assert SEPARATOR not in row.streams["target"]
    assert pipeline.decode(" ".join(row.streams["target"])) == "Öffnen. Schließen."


def test_documents_without_target_are_cut_by_their_source(bpe: LearnedBpe, translations: list[Record]) -> None:
    pipeline = TextPipeline(settings(max_source_tokens=31, max_target_tokens=31, max_chunk_tokens=31), bpe)
    unlimited = TextPipeline(settings(max_source_tokens=None, max_target_tokens=None), bpe)
    for page in translations:
        parts = pipeline.encode(replace(page, target=None))
        assert all(part.tokens[0] == BOS and (len(part.tokens) <= 30 or part.segments == 1) for part in parts)
        assert sum(part.segments for part in parts) == len(page.sentences or ())
    assert pipeline.counts["segments_longer_than_chunk"] > 0
    differ = 0
    for page in translations:
        alone, prepared = pipeline.encode(replace(page, target=None)), pipeline.prepare(page)
        tested, trained = pipeline.rows(prepared, by_source=True), pipeline.rows(prepared)
        assert pipeline.encode(page) == alone
        assert [row.tokens for row in alone] == [row.tokens for row in tested]
        targets = [each for row in tested for each in divided(row.streams["target"], SEPARATOR)]
        (whole,) = unlimited.rows(prepared)
        assert targets == divided(whole.streams["target"], SEPARATOR)  # as in training
        differ += [row.tokens for row in tested] != [row.tokens for row in trained]
    assert differ, "the reference never decides"


def test_misaligned_documents_are_refused(bpe: LearnedBpe) -> None:
    with pytest.raises(MisalignedError, match="document 'a': 2 source and 1 target segments"):
        TextPipeline(settings(), bpe).encode(Document("a", sentences=("x", "y"), target=("z",)))
