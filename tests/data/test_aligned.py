from dataclasses import replace

import pytest

from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import BOS_TOKEN
from hat_fairseq.data.text import SEPARATOR, split_segments

LITERALS = "the <s> tag, <pad> and <sep> in x<sep>y"


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
    tokenizer: str, limit: int, bpe: LearnedBpe, translations: list[Record]
) -> None:
    words = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    limits = {f"max_{what}_tokens": limit + 1 for what in ("source", "target")} | {"max_chunk_tokens": 2 * limit + 1}
    pipeline = TextPipeline(settings(**limits, **words), bpe)
    unlimited = settings(long_source="error", max_source_tokens=None, max_target_tokens=None, **words)
    whole = TextPipeline(unlimited, bpe)
    removed = {"source": 0, "target": 0}
    for page in translations:
        encoder = pipeline.encoder()
        rows = pipeline.kind.encode(encoder, pipeline.prepare(page))
        (expected,) = whole.rows(page)
        sources, targets = divided(expected.tokens[1:], BOS_TOKEN), divided(expected.streams["target"], SEPARATOR)
        # A segment that is longer than a chunk is truncated at twice its limit.
        short = [[BOS_TOKEN, *source][: 2 * limit] for source in sources], [target[: 2 * limit] for target in targets]
        assert [token for row in rows for token in row.tokens] == sum(short[0], [])
        assert [each for row in rows for each in divided(row.streams["target"], SEPARATOR)] == short[1]
        removed["source"] += len(expected.tokens) - sum(map(len, short[0]))
        removed["target"] += sum(map(len, targets)) - sum(map(len, short[1]))
        for number, row in enumerate(rows):
            target = row.streams["target"]
            assert (row.id, row.number, row.count) == (page.id, number, len(rows))
            assert row.tokens[0] == BOS_TOKEN
            assert row.segments == target.count(SEPARATOR) + 1
            assert max(len(row.tokens), len(target)) <= (limit if row.segments > 1 else 2 * limit)
        assert encoder.totals["source_tokens"] == sum(map(len, sources))
        assert encoder.totals["target_tokens"] == sum(map(len, targets))
    assert all(pipeline.counts[f"{side}_tokens_truncated"] == number for side, number in removed.items())
    assert pipeline.counts["segments_longer_than_chunk"] > 0 or limit > 10
    assert pipeline.counts["chunks"] == 0 or limit < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["moses", "jieba", "none"])
def test_control_tokens_on_both_sides_are_only_text(tokenizer: str, bpe: LearnedBpe) -> None:
    pipeline = TextPipeline(settings(source_tokenizer=tokenizer, target_tokenizer=tokenizer), bpe)
    (part,) = pipeline.rows(Document("a", sentences=(LITERALS, "x"), target=(LITERALS, "<sep>")))
    target = part.streams["target"]
    assert [token for token in part.tokens if token in ("<s>", "<pad>", "<sep>")] == [BOS_TOKEN, BOS_TOKEN]
    assert target.count(SEPARATOR) == 1
    decoded = split_segments(pipeline.decode(" ".join(target)))
    assert [text.replace(" ", "") for text in decoded] == [LITERALS.replace(" ", ""), "<sep>"]
    source = pipeline.decode(" ".join(part.tokens), side="source")
    assert source.replace(" ", "") == LITERALS.replace(" ", "") + "x"


def test_documents_without_target_are_cut_by_their_source(bpe: LearnedBpe, translations: list[Record]) -> None:
    pipeline = TextPipeline(settings(max_source_tokens=31, max_target_tokens=31, max_chunk_tokens=31), bpe)
    unlimited = TextPipeline(settings(max_source_tokens=None, max_target_tokens=None), bpe)
    for page in translations:
        parts = pipeline.encode(replace(page, target=None))
        assert all(part.tokens[0] == BOS_TOKEN and (len(part.tokens) <= 30 or part.segments == 1) for part in parts)
        assert sum(part.segments for part in parts) == len(page.elements or ())
    assert pipeline.counts["segments_longer_than_chunk"] > 0
    differ = 0
    for page in translations:
        alone, prepared = pipeline.encode(replace(page, target=None)), pipeline.prepare(page).record
        tested, trained = pipeline.rows(prepared, chunk_by_source=True), pipeline.rows(prepared)
        assert pipeline.encode(page) == alone
        assert [row.tokens for row in alone] == [row.tokens for row in tested]
        targets = [each for row in tested for each in divided(row.streams["target"], SEPARATOR)]
        (whole,) = unlimited.rows(prepared)
        assert targets == divided(whole.streams["target"], SEPARATOR)  # as in training
        differ += [row.tokens for row in tested] != [row.tokens for row in trained]
    assert differ, "the reference never decides"


@pytest.mark.parametrize("most", [12, 21, 40])
@pytest.mark.parametrize("limits", [(61, 61), (31, None), (None, None)])
def test_only_a_segment_that_is_a_chunk_by_itself_is_truncated(
    most: int, limits: tuple[int | None, int | None], bpe: LearnedBpe, translations: list[Record]
) -> None:
    """Also where --max-chunk-tokens is the lowest limit: segment i of both sides is always in the same chunk."""
    source, target = limits
    pipeline = TextPipeline(settings(max_source_tokens=source, max_target_tokens=target, max_chunk_tokens=most), bpe)
    whole = TextPipeline(settings(long_source="error", max_source_tokens=None, max_target_tokens=None), bpe)
    for page in translations:
        (expected,) = whole.rows(page)
        sources, targets = divided(expected.tokens[1:], BOS_TOKEN), divided(expected.streams["target"], SEPARATOR)
        first = 0
        for row in pipeline.kind.encode(pipeline.encoder(), pipeline.prepare(page)):
            in_row = slice(first, first + row.segments)
            first += row.segments
            read, written = divided(row.tokens[1:], BOS_TOKEN), divided(row.streams["target"], SEPARATOR)
            if row.segments > 1:
                assert (read, written) == (sources[in_row], targets[in_row])
            assert max(len(row.tokens), len(row.streams["target"])) < most
        assert first == len(sources)
