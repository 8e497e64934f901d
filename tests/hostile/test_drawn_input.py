"""Drawn input: an error is a ValueError with the place, and what is not refused comes back unchanged."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from byte_level_bpe import write_byte_level_bpe
from drawn import draws, few_draws
from fairseq.data import Dictionary as FairseqDictionary
from hypothesis import given
from hypothesis import strategies as st

from hat_fairseq.cli import build_parser
from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.dictionary import Dictionary, label_of, label_token
from hat_fairseq.data.files import read_json
from hat_fairseq.data.gpt2_bpe import read_gpt2
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.parallel import read_parallel
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.data.text import escape_control_tokens, normalise, restore_control_tokens
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe
from hat_fairseq.kernels.attention import Windows
from hat_fairseq.modules.block_sparse import BlockPattern, visible_blocks
from hat_fairseq.modules.pooling import cells_of
from hat_fairseq.modules.segments import slots_at_markers, slots_of_length

AWKWARD = st.sampled_from(["One two. Three!", "<s> a <\\pad>", "a@@ b@@", "\u2028\r\n\t\0", "的。是", "e\u0301🙂"])
TEXT = st.text(st.characters(), max_size=12) | AWKWARD  # with lone surrogates
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.lists(TEXT, max_size=3)
ANSWERS = st.lists(st.fixed_dictionaries({"text": TEXT, "start": st.integers(-1, 3)}), max_size=2)
ANNOTATION = st.fixed_dictionaries({}, optional={"paragraph": st.integers(-1, 2), "spans": ANSWERS, "yes_no": TEXT})
TURN = st.fixed_dictionaries({"text": TEXT}, optional={"role": TEXT, "speaker": TEXT})
USUAL = dict.fromkeys(("sentences", "segments", "words", "tokens", "paragraphs", "choices", "labels"), TEXTS) | {
    "answers": ANSWERS,
    "annotations": st.lists(ANNOTATION, max_size=2),
    "turns": st.lists(TURN, max_size=3),
    "pixels": st.lists(st.integers(-1, 256)),
    "label": st.integers(-1, 2) | TEXT,
    "meta": st.dictionaries(TEXT, JSON, max_size=2),
}
SIZES = st.integers(1, 12)
SCORED = ("question", "paragraphs", "text", "target", "label", "labels", "answers", "answer", "annotations", "meta")
METRICS = ["rouge", "bleu", "classification", "squad", "triviaqa"]


def objects(keys: list[str]) -> st.SearchStrategy[dict]:
    """Objects that are nearly records: values of the usual form, or one of any."""
    records = st.fixed_dictionaries({"id": TEXT}, optional={key: USUAL.get(key, TEXT) for key in (*keys, "meta")})
    wrong = st.dictionaries(st.sampled_from(keys) | TEXT, JSON, max_size=1)
    return records | st.tuples(records, wrong).map(lambda both: both[0] | both[1])


def refused_or(read: Callable[[], object], *words: object) -> object:
    """What is read; None if it is refused with one of the words."""
    try:
        return read()
    except ValueError as error:
        assert any(str(word) in str(error) for word in words), repr(error)
        return None


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as path:
        yield Path(path)


READERS: dict[str, Callable[[Path], object]] = {
    "a.jsonl": lambda path: list(read_records(path)),
    "a.csv": lambda path: list(read_records(path)),
    "a.jsonl.gz": lambda path: list(read_records(path)),
    "a.json": read_json,
    "a.source": lambda path: list(read_parallel(path, path)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@draws
@given(st.binary(max_size=40) | st.lists(st.sampled_from(b'{}[]":,\n\r0-eN\xff\xef\xbb\xbf\\u d8"')).map(bytes))
def test_readers_of_files(name: str, folder: Path, content: bytes) -> None:
    path = folder / name
    path.write_bytes(gzip.compress(content) + content[:3] if name.endswith("gz") else content)
    refused_or(lambda: READERS[name](path), path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@draws
@given(st.data())
def test_records(kind: str, folder: Path, data: st.DataObject) -> None:
    """A record that is read, written and read again is the same."""
    path = folder / "a.jsonl"
    keys = [each.name for each in fields(KINDS[kind].record) if each.init and each.name not in ("id", "origin")]
    path.write_text(json.dumps(data.draw(objects(keys))) + "\n")
    if read := refused_or(lambda: list(read_records(path, kind)), path):
        (record,) = read
        path.write_text(json_line(record) + "\n", encoding="utf-8")
        (again,) = read_records(path, kind)
        assert again == record
        assert json.dumps(again.meta) == json.dumps(record.meta)


@pytest.mark.slow
@draws
@given(
    st.lists(st.tuples(st.text(max_size=4), st.integers() | st.text("0123_-+ ²٣", max_size=3), st.booleans())),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_dictionaries(folder: Path, lines: list, end: str) -> None:
    """What is read has fairseq's numbers; what fairseq refuses is refused."""
    path = folder / "dict.txt"
    text = "\n".join(f"{word} {count}{' #fairseq:overwrite' * more}" for word, count, more in lines) + end
    path.write_bytes(text.encode())
    dictionary = refused_or(lambda: Dictionary.load(path), path)
    try:
        expected = FairseqDictionary.load(str(path))
    except (ValueError, RuntimeError):
        assert dictionary is None
    else:
        assert isinstance(dictionary, Dictionary)
        assert dictionary.ids == expected.indices


@pytest.fixture(scope="module")
def gpt2(folder: Path) -> TokenizerBpe:
    write_byte_level_bpe(folder / "bpe")
    return read_gpt2(folder / "bpe/encoder.json", folder / "bpe/vocab.bpe")


@pytest.mark.slow
@few_draws
@given(TEXTS, TEXT | st.text(max_size=40))
def test_bpes_give_texts_back(gpt2: TokenizerBpe, lines: list[str], text: str) -> None:
    text = normalise(text, Counter())
    bpe = LearnedBpe.learn([*(normalise(line, Counter()) for line in lines), "a aa aaa aa"], 20)
    assert bpe.decode(bpe.encode(text)) == text == gpt2.decode(gpt2.encode(text))


@pytest.mark.slow
@draws
@given(TEXT | st.text(max_size=40))
def test_texts_come_back(text: str) -> None:
    text = normalise(text, Counter())
    assert normalise(text, Counter()) == text == text.encode().decode()
    assert "\n" not in text
    assert restore_control_tokens(escape_control_tokens(text)) == text
    assert not text or (label_of(label_token(text)) == text and len(label_token(text).split()) == 1)


ROWS = st.lists(st.lists(st.sampled_from([0, 5, 6]), min_size=1, max_size=20), min_size=1, max_size=3)


@pytest.mark.slow
@draws
@given(ROWS, SIZES, SIZES, SIZES)
def test_grids_windows_cells_and_blocks(rows: list[list[int]], size: int, reach: int, stride: int) -> None:
    """Every token is in the segments, windows, cells and blocks in which it should be, once; 0 is a marker."""
    length = max(map(len, rows))
    tokens = torch.tensor([row + [1] * (length - len(row)) for row in rows])
    for grid in (slots_of_length(tokens, 1, size), slots_at_markers(tokens, 0, 1, size)):
        slots = grid.scatter(tokens, 1)
        assert slots.ne(1).sum() == sum(map(len, rows))
        assert grid.gather(slots.flatten(1).unsqueeze(-1)).squeeze(-1).masked_fill(tokens.eq(1), 1).equal(tokens)
    windows = Windows(size, size, reach, size + 2 * reach)
    queries, keys = windows.positions(length, length, tokens.device)
    assert queries.flatten()[:length].tolist() == list(range(length))
    for near in range(-reach, reach + 1):
        assert (queries + near).eq(keys).sum(-1).eq(1).all()
    cells = cells_of(tokens.ne(1), length, size)
    for cell in range(cells.size(1)):
        expected = tokens[:, cell : cell + size].ne(1)
        assert cells[:, cell, : expected.size(1)].equal(expected)
        assert not cells[:, cell, expected.size(1) :].any()
    pattern = BlockPattern(4, 2 * (reach % 3) + 1, size % 4, stride % 3, reach % 2)
    blocks = pattern.dense + 1 + length
    ends = {*range(pattern.first), *range(blocks - pattern.last, blocks)}
    for block, row in enumerate(visible_blocks(pattern, blocks, 1, 0)[0].tolist()):
        seen = [other for other in row if other >= 0]
        around = {*range(max(0, block - reach % 3), min(blocks, block + reach % 3 + 1))}
        assert len(set(seen)) == len(seen)
        assert around | ends <= {*seen} <= {*range(blocks)}


@pytest.mark.parametrize("metric", METRICS)
@few_draws
@given(st.lists(objects(SCORED), min_size=1, max_size=3), st.booleans(), st.none() | st.binary(max_size=30))
def test_scores(metric: str, folder: Path, records: list, lines: bool, damaged: bytes | None) -> None:
    """`hat score` on files of one content, or with a damaged one."""
    paths = [folder / f"{side}.{'jsonl' if lines else 'json'}" for side in "hr"]
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    for path, data in zip(paths, (content, damaged or content), strict=True):
        path.write_bytes(data)
    words = [metric, str(paths[0]), "--references", str(paths[1]), "--bootstrap-samples", "0"]
    args = PARSER.parse_args(["score", *words])
    refused_or(lambda: args.run(args), folder, "reference 1 ", "no documents to score")


PARSER = build_parser("score")
