from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hat_fairseq.data.aligned import chunk_segments
from hat_fairseq.data.alignment import MisalignedError
from hat_fairseq.data.document import Document
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.pipeline import BOS, Settings, TextPipeline
from hat_fairseq.data.text import SEPARATOR, split_segments

LITERALS = "the <s> tag, <pad> and <sep> in x<sep>y"


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
        chunks, too_long = chunk_segments(source, target, *limits, between)
        assert [list(range(number))[chunk] for chunk in chunks] == obvious_chunks(source, target, limits, between)
        assert too_long == sum(s > limits[0] or t > limits[1] for s, t in zip(source, target, strict=True))


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
        ([4] * 33, None, (64, 1), 1, [16, 16, 1]),
        ([4] * 33, [4] * 33, (None, None), 1, [33]),
        ([4, 4], [9, 9], (None, 10), 0, [1, 1]),
    ],
)
def test_awkward_cases(source: list, target: list | None, limits: tuple, between: int, sizes: list) -> None:
    chunks, _ = chunk_segments(source, target, *limits, between)
    assert [chunk.stop - chunk.start for chunk in chunks] == sizes


def settings(**changes: object) -> Settings:
    common = {"target_language": "de", "source_tokenizer": "moses", "target_tokenizer": "moses", "aligned": True}
    limits = {"max_source_tokens": 60, "max_target_tokens": 60, "long_source": "chunk", "target_separator": True}
    return Settings(**{**common, **limits, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bpe(pages: list[dict[str, list[str]]]) -> LearnedBpe:
    return LearnedBpe.learn([text for page in pages for side in ("en", "de") for text in page[side]], num_codes=600)


@pytest.mark.parametrize("tokenizer", ["moses", "none"])
@pytest.mark.parametrize("limit", [10, 60, 100_000])
def test_the_chunks_together_are_the_document(
    bpe: LearnedBpe, translations: list[Document], limit: int, tokenizer: str
) -> None:
    words = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    pipeline = TextPipeline(settings(max_source_tokens=limit, max_target_tokens=limit, **words), bpe)
    whole = TextPipeline(settings(long_source="error", max_source_tokens=None, max_target_tokens=None, **words), bpe)
    for page in translations:
        pair = pipeline.encode_pair(pipeline.prepare(page))
        (expected,) = whole.encode(page)
        assert [token for part in pair.parts for token in part.tokens] == expected.tokens
        targets = [token for target in pair.targets for token in (SEPARATOR, *target)]
        assert targets[1:] == whole.encode_pair(page).targets[0]
        for number, (part, target) in enumerate(zip(pair.parts, pair.targets, strict=True)):
            assert (part.id, part.chunk, part.num_chunks) == (page.id, number, len(pair.parts))
            assert part.tokens[0] == BOS
            assert part.sentences == target.count(SEPARATOR) + 1
            assert part.sentences == 1 or max(len(part.tokens), len(target)) <= limit
        assert pair.source_tokens == len(expected.tokens) - len(page.sentences or ())
        assert pair.target_tokens == len(targets) - len(page.target or ())
    assert pipeline.counts["segments_longer_than_chunk"] > 0 or limit > 10
    assert pipeline.counts["chunks"] == 0 or limit < 100_000


def test_segments_come_back_one_by_one(bpe: LearnedBpe, translations: list[Document]) -> None:
    pipeline = TextPipeline(settings(), bpe)
    same = total = 0
    for page in translations:
        pair = pipeline.encode_pair(pipeline.prepare(page))
        segments = [text for target in pair.targets for text in split_segments(pipeline.decode(" ".join(target)))]
        clean = [" ".join(text.split()) for text in page.target or ()]
        assert [text.replace(" ", "") for text in segments] == [text.replace(" ", "") for text in clean]
        same += sum(map(str.__eq__, segments, clean))
        total += len(clean)
    assert same / total > 0.85


@pytest.mark.parametrize("tokenizer", ["moses", "jieba", "none"])
def test_control_tokens_on_both_sides_are_only_text(bpe: LearnedBpe, tokenizer: str) -> None:
    pipeline = TextPipeline(settings(source_tokenizer=tokenizer, target_tokenizer=tokenizer), bpe)
    pair = pipeline.encode_pair(Document("a", sentences=(LITERALS, "x"), target=(LITERALS, "<sep>")))
    (part,), (target,) = pair.parts, pair.targets
    assert [token for token in part.tokens if token in ("<s>", "<pad>", "<sep>")] == [BOS, BOS]
    assert target.count(SEPARATOR) == 1
    decoded = split_segments(pipeline.decode(" ".join(target)))
    assert [text.replace(" ", "") for text in decoded] == [LITERALS.replace(" ", ""), "<sep>"]
    source = pipeline.decode(" ".join(part.tokens), side="source")
    assert source.replace(" ", "") == LITERALS.replace(" ", "") + "x"


def test_without_separator_the_target_is_running_text(bpe: LearnedBpe) -> None:
    pipeline = TextPipeline(settings(target_separator=False), bpe)
    pair = pipeline.encode_pair(Document("a", sentences=("Open it.", "Close it."), target=("Öffnen.", "Schließen.")))
    assert SEPARATOR not in pair.targets[0]
    assert pipeline.decode(" ".join(pair.targets[0])) == "Öffnen. Schließen."


def test_documents_without_target_are_cut_by_their_source(bpe: LearnedBpe, translations: list[Document]) -> None:
    pipeline = TextPipeline(settings(max_source_tokens=30, max_target_tokens=30), bpe)
    for page in translations:
        parts = pipeline.encode(replace(page, target=None))
        assert all(part.tokens[0] == BOS and (len(part.tokens) <= 30 or part.sentences == 1) for part in parts)
        assert sum(part.sentences for part in parts) == len(page.sentences or ())
    assert pipeline.counts["segments_longer_than_chunk"] > 0
    differ = 0
    for page in translations:
        alone, prepared = pipeline.encode(replace(page, target=None)), pipeline.prepare(page)
        pair = pipeline.encode_pair(prepared, by_source=True)
        assert pipeline.encode(page) == alone == pair.parts
        trained = pipeline.encode_pair(prepared)
        targets = [[t for target in both.targets for t in target if t != SEPARATOR] for both in (pair, trained)]
        assert targets[0] == targets[1]
        differ += pair.parts != trained.parts
    assert differ, "the reference never decides"


def test_misaligned_documents_are_refused(bpe: LearnedBpe) -> None:
    with pytest.raises(MisalignedError, match="document 'a': 2 source and 1 target segments"):
        TextPipeline(settings(), bpe).encode(Document("a", sentences=("x", "y"), target=("z",)))
