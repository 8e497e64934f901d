"""sentencepiece as BPE: pieces, spans of characters, binary data; on Wikipedia in eleven languages."""

import random
import re
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import refusal, write_lines
from fairseq.data import Dictionary
from sentencepiece import SentencePieceProcessor
from sentencepiece_model import peer_tokenizer, tydi, tydi_lines, write_model

from hat_fairseq.data.kinds import LabelledText, LabelledWords, Question
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Answer
from hat_fairseq.data.sentencepiece_bpe import MODEL, SentencePieceBpe
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.data.tokenizer_bpe import SPACE

# Several characters become one, one becomes several, some vanish, some become spaces, some have no piece.
AWKWARD = [
    "e\u0301tude ﬁne aﬃx… ½ ﷺ ㍿ ｶﾞ ｗｉｄｅ１９０１",
    "น้ำ ทำ กำไร",
    "\u200bab\u200bc \ufeff d\u200b \u00adx ´ ¨y",
    "▁a▁ b▁",
    "＜s＞ ＜/s＞＜mask＞ ＜sep＞",
    "🙂🙂 👩‍👩‍👧 1️⃣ ሴ ᎠᎡ",
    "한국어 각 각",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("xlmr"))


@pytest.fixture(scope="module")
def bpe(model: Path) -> SentencePieceBpe:
    return SentencePieceBpe(model)


def noise() -> list[str]:
    """Random characters without white space, half of them from the sample."""
    generator = random.Random(5)
    known = "".join(sorted(set("".join(tydi_lines()))))
    texts = []
    for _ in range(600):
        drawn = [
            generator.choice(known) if generator.random() < 0.5 else chr(generator.randrange(0x21, 0xD800))
            for _ in range(15)
        ]
        kept = "".join(c if not c.isspace() else " " for c in drawn if not "\x7f" <= c <= "\x9f")
        texts.append(" ".join(kept.split()))
    return texts


def normal(text: str) -> str:
    """What the normalisation of XLM-RoBERTa leaves: NFKC, and spaces for characters of no width."""
    return " ".join(unicodedata.normalize("NFKC", re.sub("[\u200b-\u200f\ufeff\u2581]", " ", text)).split())


def folded(text: str) -> str:
    """The decomposed letters of a text, without spaces."""
    return unicodedata.normalize("NFKD", normal(text)).replace(" ", "")


def test_ids_are_those_of_transformers(model: Path, bpe: SentencePieceBpe, tmp_path: Path) -> None:
    peer = peer_tokenizer(model)
    (tmp_path / "dict.txt").write_text("".join(f"{piece} 1\n" for piece in bpe.pieces()), encoding="utf-8")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    dictionary.add_symbol("<mask>")
    assert len(dictionary) == len(peer)
    assert peer.convert_tokens_to_ids(dictionary.symbols) == [*range(len(peer))]
    unknown = 0
    for text in tydi_lines():
        ids = [dictionary.index(token) for token in bpe.encode(text)]
        assert ids == peer(text, add_special_tokens=False)["input_ids"], text
        unknown += ids.count(dictionary.unk())
    assert 0 < unknown < 2000


def test_decoding_gives_the_normalised_text(bpe: SentencePieceBpe) -> None:
    for text in tydi_lines():
        assert bpe.decode(bpe.encode(text)) == normal(text)
    plain = SentencePieceProcessor(model_file=str(bpe.files[0]))
    for text in [*AWKWARD, *noise()]:
        if bpe.encode(text) != ["<unk>"]:
            assert bpe.decode(bpe.encode(text)) == plain.decode(plain.encode(text, out_type=str)), text
    assert bpe.decode(["▁a", "<unk>", "▁b"]) == "a<unk> b"
    sentences = ["Yksi lause.", "和文は続く。", "3"]
    tokens = [token for sentence in sentences for token in bpe.encode(bpe.separator + sentence)]
    assert bpe.decode(tokens) == " ".join(sentences)


def test_every_character_belongs_to_the_tokens_made_of_it(bpe: SentencePieceBpe) -> None:
    """Against sentencepiece itself, which is asked what the characters of each token are on their own."""
    plain = SentencePieceProcessor(model_file=str(bpe.files[0]))
    exact = total = 0
    for text in [*tydi_lines(), *AWKWARD, *noise()]:
        tokens, letters = bpe.encode(text), text.replace(" ", "")
        extents = bpe.extents(tokens, text)
        assert len(extents) == len(tokens)
        covered = 0
        for token, (begin, end) in zip(tokens, extents, strict=True):
            assert (begin == end) == (not token.strip(SPACE)), (text, token)
            assert begin <= covered <= end, (text, token)
            covered = max(covered, end)
            if begin < end and token != "<unk>":
                whole = plain.normalize(letters[begin:end]).replace(SPACE, "")
                piece = token.replace(SPACE, "")
                assert piece in whole, (text, token, letters[begin:end])
                exact += piece == whole
                total += 1
        assert covered == len(letters), text
    assert exact > 0.98 * total > 10_000


@pytest.mark.parametrize(
    ("text", "tokens", "extents"),
    [
        ("aﬃx １9", ["▁a", "f", "fi", "x", "▁", "19"], [(0, 1), (1, 2), (1, 2), (2, 3), (3, 3), (3, 5)]),
        ("e\u0301t", ["▁", "é", "t"], [(0, 0), (0, 2), (2, 3)]),
        ("น้ำ", ["▁น", "้\u0e4d", "า"], [(0, 1), (1, 3), (2, 3)]),
        ("ﷺ", ["▁صلى", "▁ال", "له▁عليه", "▁", "وسلم"], [(0, 1), (0, 1), (0, 1), (1, 1), (0, 1)]),
        ("\u200bab\u200bc\u200b", ["▁ab", "▁", "c"], [(0, 3), (3, 3), (3, 6)]),
        ("…", ["▁", ".", ".."], [(0, 0), (0, 1), (0, 1)]),
    ],
)
def test_extents_of_given_tokens(
    text: str, tokens: list[str], extents: list[tuple[int, int]], bpe: SentencePieceBpe
) -> None:
    assert bpe.extents(tokens, text) == extents


def test_text_of_which_nothing_is_left(bpe: SentencePieceBpe) -> None:
    assert bpe.encode("\u200b\u200b") == ["<unk>"]
    assert bpe.extents(["<unk>"], "\u200b\u200b") == [(0, 2)]
    assert bpe.encode("") == []
    assert bpe.extents([], "") == []
    record = LabelledWords("a", ("ja", "\u200b", "nein"), labels=("x", "y", "z"))
    with pytest.raises(EmptyDocumentError, match="its word 2 is empty"):
        TextPipeline(Settings(kind="tokens"), bpe).rows(record)


def test_full_width_control_tokens_are_only_text(tmp_path: Path) -> None:
    """Where their letters have no pieces, sentencepiece returns `<s>` as one unknown piece."""
    lines = [line for line in tydi_lines() if not set(line) & set("<>smak/")]
    bpe = SentencePieceBpe(write_model(tmp_path, lines, vocab_size=600))
    (row,) = TextPipeline(Settings(kind="classification"), bpe).rows(
        LabelledText("a", segments=("＜s＞", "＜mask＞ <s>"))
    )
    assert [token for token in row.tokens if token in ("<s>", "<mask>")] == ["<s>", "<s>"]
    assert bpe.encode("＜s＞") == ["▁", "<unk>"]
    assert bpe.extents(bpe.encode("＜s＞"), "＜s＞")[-1] == (0, 3)
    assert TextPipeline(Settings(), bpe).decode(" ".join(row.tokens[1:])) == "<unk> <unk> <s>"


@pytest.mark.parametrize("windows", [False, True])
def test_answers_in_eleven_languages(bpe: SentencePieceBpe, windows: bool) -> None:
    """The answers of TyDi QA, and five random spans of words or characters of each text."""
    generator = random.Random(3)
    limits = {"max_source_tokens": 250, "long_source": "chunk"} if windows else {}
    pipeline = TextPipeline(Settings(kind="qa", splitter="punctuation", **limits), bpe)
    checked = inside = 0
    for record in [*tydi(), *(Question(text, "?", text, answers=()) for text in AWKWARD)]:
        text = record.text or ""
        spans = [(answer.start, answer.start + len(answer.text)) for answer in record.answers or ()]
        for _ in range(5):
            start = generator.choice([i for i, character in enumerate(text) if not character.isspace()])
            end = next(i for i in range(min(start + 12, len(text)), start, -1) if not text[i - 1].isspace())
            spans.append((start, end))
        for start, end in spans:
            answer = Answer(text[start:end], start)
            rows = pipeline.rows(replace(record, answers=(answer,)))
            found = [row for row in rows if row.label != ["0", "0"]]
            assert found, (record.id, answer)
            for row in found:
                first, last = map(int, row.label or [])
                tokens = row.tokens[first : last + 1]
                spanned = text[row.characters[first][0] : row.characters[last][1]]
                assert row.characters[first][0] <= start < row.characters[first][1], answer
                assert row.characters[last][0] < end <= row.characters[last][1], answer
                kept = [token for token in tokens if token not in ("<s>", "</s>")]
                assert folded(bpe.decode(kept)) in folded(spanned)
                assert folded(answer.text) in folded(spanned)
                inside += spanned == answer.text
                checked += 1
    assert checked >= 90
    assert inside > 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"add_dummy_prefix": False}, r"puts no space before the first word \(add_dummy_prefix\)"),
        ({"treat_whitespace_as_suffix": True}, r"puts no space before the first word \(add_dummy_prefix\)"),
        ({"byte_fallback": True}, "has pieces for bytes"),
        ({"user_defined_symbols": "<pad>"}, "has the piece '<pad>', which a dictionary of fairseq cannot have"),
    ],
)
def test_models_that_cannot_be_used(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{MODEL} {message}"):
        SentencePieceBpe(write_model(tmp_path, **settings)).pieces()


def test_a_damaged_model_and_a_missing_package(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / MODEL
    own = model.read_bytes()
    end = own.index("\u2581the".encode())
    no_text = own[:end] + b"\xff" + own[end + 1 :]  # in a piece
    source = write_lines(tmp_path / "raw/train.jsonl", [{"text": "A text.", "target": "A."}])
    words = ["--splitter", "punctuation", "--bpe", "sentencepiece", "--bpe-dir", tmp_path, "--out", tmp_path / "out"]
    for content in (b"", b"a page of the web", own[:20_000], no_text):
        damaged.write_bytes(content)
        assert f"error: {damaged} is not a complete" in refusal("preprocess", source.parent, *words)
        with pytest.raises(ValueError, match="is not a complete sentencepiece model: "):
            SentencePieceBpe(damaged)
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ValueError, match=r'package sentencepiece: pip install "hat_fairseq\[data\]"'):
        SentencePieceBpe(model)
