"""sentencepiece as BPE: pieces, spans of characters, binary data; on Wikipedia in eleven languages."""

from __future__ import annotations

import json
import pickle
import random
import re
import shutil
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils
from sentencepiece import SentencePieceProcessor
from sentencepiece_model import SAMPLE, peer_tokenizer, tydi, tydi_lines, write_model

from hat_fairseq import cli
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.kinds import LabelledText, LabelledWords, Question
from hat_fairseq.data.options import Settings
from hat_fairseq.data.parallel import ordered_map
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Answer
from hat_fairseq.data.sentencepiece_bpe import MODEL, SPACE, SentencePieceBpe

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
    assert len(dictionary) == len(peer) and peer.convert_tokens_to_ids(dictionary.symbols) == [*range(len(peer))]
    unknown = 0
    for text in tydi_lines():
        ids = [dictionary.index(token) for token in bpe.encode(text)]
        assert ids == peer(text, add_special_tokens=False)["input_ids"], text
        unknown += ids.count(dictionary.unk())
    assert 0 < unknown < 2000


def test_decoding_gives_the_normalised_text(bpe: SentencePieceBpe) -> None:
    for text in tydi_lines():
        assert bpe.decode(bpe.encode(text)) == normal(text)
    plain = SentencePieceProcessor(model_file=str(bpe.model))
    for text in [*AWKWARD, *noise()]:
        if bpe.encode(text) != ["<unk>"]:
            assert bpe.decode(bpe.encode(text)) == plain.decode(plain.encode(text, out_type=str)), text
    assert bpe.decode(["▁a", "<unk>", "▁b"]) == "a<unk> b"
    sentences = ["Yksi lause.", "和文は続く。", "3"]
    tokens = [token for sentence in sentences for token in bpe.encode(bpe.separator + sentence)]
    assert bpe.decode(tokens) == " ".join(sentences)


def test_every_character_belongs_to_the_tokens_made_of_it(bpe: SentencePieceBpe) -> None:
    """Against sentencepiece itself, which is asked what the characters of each token are on their own."""
    plain = SentencePieceProcessor(model_file=str(bpe.model))
    exact = total = 0
    for text in [*tydi_lines(), *AWKWARD, *noise()]:
        tokens, letters = bpe.encode(text), text.replace(" ", "")
        extents = bpe.extents(tokens, text)
        assert len(extents) == len(tokens)
        covered = 0
        for token, (begin, end) in zip(tokens, extents, strict=True):
            assert (begin == end) == (not token.strip(SPACE)) and begin <= covered <= end, (text, token)
            covered = max(covered, end)
            if begin < end and token != "<unk>":
                whole = plain.normalize(letters[begin:end]).replace(SPACE, "")
                piece = token.replace("<\\", "<").replace(SPACE, "") if "＜" in text else token.replace(SPACE, "")
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
    assert bpe.encode("\u200b\u200b") == ["<unk>"] and bpe.extents(["<unk>"], "\u200b\u200b") == [(0, 2)]
    assert bpe.encode("") == [] and bpe.extents([], "") == []
    record = LabelledWords("a", ("ja", "\u200b", "nein"), labels=("x", "y", "z"))
    (row,) = TextPipeline(Settings(kind="tokens"), bpe).rows(record)
    assert [label for label in row.label or [] if label != "<pad>"] == ["x", "y", "z"]


def test_full_width_control_tokens_are_only_text(tmp_path: Path) -> None:
    """Where their letters have no pieces, sentencepiece returns `<s>` as one unknown piece."""
    lines = [line for line in tydi_lines() if not set(line) & set("<>smak/")]
    bpe = SentencePieceBpe(write_model(tmp_path, lines, vocab_size=600))
    (row,) = TextPipeline(Settings(kind="classification"), bpe).rows(
        LabelledText("a", segments=("＜s＞", "＜mask＞ <s>"))
    )
    assert [token for token in row.tokens if token in ("<s>", "<mask>")] == ["<s>", "<s>"]
    assert bpe.encode("＜s＞")[-1] == "<\\s>" and bpe.decode(bpe.encode("＜s＞")) == "<s>"
    assert bpe.extents(bpe.encode("＜s＞"), "＜s＞")[-1] == (0, 3)
    assert TextPipeline(Settings(), bpe).decode(" ".join(row.tokens[1:])) == "<s> <mask> <s>"


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
                spanned = text[row.spans[first][0] : row.spans[last][1]]
                assert row.spans[first][0] <= start < row.spans[first][1], answer
                assert row.spans[last][0] < end <= row.spans[last][1], answer
                kept = [token for token in tokens if token not in ("<s>", "</s>")]
                assert folded(bpe.decode(kept)) in folded(spanned) and folded(answer.text) in folded(spanned)
                inside += spanned == answer.text
                checked += 1
    assert checked >= 90 and inside > 10


def test_worker_processes_have_the_model(bpe: SentencePieceBpe, tmp_path: Path) -> None:
    lines = tydi_lines()[:40]
    expected = [bpe.encode(line) for line in lines]
    assert list(ordered_map(bpe.encode, lines, 2)) == expected
    gone = SentencePieceBpe(shutil.copy(bpe.model, tmp_path / MODEL))
    pickled = pickle.dumps(gone)
    (tmp_path / MODEL).unlink()
    assert [pickle.loads(pickled).encode(line) for line in lines] == expected


def preprocess(folder: Path, out: Path, *flags: str) -> int:
    return cli.main(["preprocess", str(folder), "--out", str(out), *flags])


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    for split in ("train", "test"):
        shutil.copy(SAMPLE, folder / f"{split}.jsonl.gz")
    return folder


QUESTIONS = ["--kind", "qa", "--splitter", "punctuation", "--max-source-tokens", "300", "--long-source", "chunk"]


def test_from_questions_to_binary_data(questions: Path, model: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    flags = [*QUESTIONS, "--bpe", "sentencepiece", "--bpe-dir", str(model.parent)]
    assert preprocess(questions, out, *flags, "--workers", "2") == 0
    record = json.loads((out / "bin/pipeline.json").read_text())
    assert record["bpe"] == {"kind": "sentencepiece", "sha256": {MODEL: sha256_of(model)}}
    assert (out / "bin" / MODEL).read_bytes() == model.read_bytes()
    assert json.loads((out / "manifest.json").read_text())["versions"]["sentencepiece"][0].isdecimal()
    dictionary = Dictionary.load(str(out / "bin/input0/dict.txt"))
    assert dictionary.symbols[4:] == list(SentencePieceBpe(model).pieces())
    peer, rows = peer_tokenizer(model), data_utils.load_indexed_dataset(str(out / "bin/input0/test"), dictionary)
    texts = [line.split() for line in (out / "text/test.source").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(texts) > 20
    for row, tokens in zip(rows, texts, strict=True):
        assert row.tolist() == [*peer.convert_tokens_to_ids(tokens), 2]
    # The model and its dictionary go on with the data; a changed model is refused.
    assert preprocess(questions, again, *QUESTIONS, "--splits", "test", "--vocabulary", str(out / "bin")) == 0
    for name in ("text/test.source", "bin/input0/test.bin", f"bin/{MODEL}"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    with open(again / "bin" / MODEL, "ab") as file:
        file.write(b"\n")
    with pytest.raises(ValueError, match=f"{MODEL} is missing or was changed after pipeline.json was written"):
        TextPipeline.load(again / "bin")


def test_a_dictionary_beside_the_model_is_the_one(questions: Path, model: Path, tmp_path: Path) -> None:
    """As in fairseq's releases, and for a model whose embedding was cut to some languages."""
    folder = Path(shutil.copytree(model.parent, tmp_path / "model"))
    pieces = list(SentencePieceBpe(model).pieces())[:-10]
    (folder / "dict.txt").write_text("".join(f"{piece} 7\n" for piece in pieces), encoding="utf-8")
    flags = [*QUESTIONS, "--bpe", "sentencepiece", "--bpe-dir", str(folder)]
    assert preprocess(questions, tmp_path / "out", *flags) == 0
    assert (tmp_path / "out/bin/input0/dict.txt").read_bytes() == (folder / "dict.txt").read_bytes()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "--bpe sentencepiece needs --bpe-dir DIR, the folder with sentencepiece.bpe.model"),
        ("--bpe-dir nowhere", "nowhere/sentencepiece.bpe.model is missing: --bpe-dir must have a sentencepiece model"),
        ("--bpe-dir {} --kind text --target-separator", "the dictionary of --bpe sentencepiece has no <sep>"),
    ],
)
def test_flags_that_do_not_fit(
    flags: str, message: str, questions: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*QUESTIONS, "--bpe", "sentencepiece", *flags.format(model.parent).split()]
    if "--kind text" in flags:
        given = given[4:]
        shutil.copy(questions / "train.jsonl.gz", tmp_path)
    assert preprocess(questions, tmp_path / "out", *given) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"add_dummy_prefix": False}, r"puts no space before the first word \(add_dummy_prefix\)"),
        ({"treat_whitespace_as_suffix": True}, r"puts no space before the first word \(add_dummy_prefix\)"),
        ({"byte_fallback": True}, "has pieces for bytes"),
        ({"user_defined_symbols": "<pad>"}, "has the piece '<pad>', which a dictionary of fairseq cannot have"),
    ],
    ids=str,
)
def test_models_that_cannot_be_used(settings: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{MODEL} {message}"):
        SentencePieceBpe(write_model(tmp_path, **settings)).pieces()


def test_a_damaged_model_and_a_missing_package(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / MODEL
    for content in (b"", b"a page of the web", model.read_bytes()[:20_000]):
        damaged.write_bytes(content)
        with pytest.raises(ValueError, match="is not a complete sentencepiece model: "):
            SentencePieceBpe(damaged)
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ValueError, match=r'package sentencepiece: pip install "hat_fairseq\[sentencepiece\]"'):
        SentencePieceBpe(model)
