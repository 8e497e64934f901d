"""Any tokenizer of `tokenizers` as BPE: the ids of transformers, the characters of each token, binary data."""

import json
import pickle
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import transformers
from commands import hat
from drawn import draws
from hypothesis import given
from hypothesis import strategies as st
from minilm import MINILM, needs_minilm
from sentencepiece_model import peer_tokenizer, tydi_lines, write_model
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers_on_the_spot import MAKERS, write_tokenizer, write_vocabulary

from hat_fairseq import cli
from hat_fairseq.data.dictionary import SPECIAL, Dictionary
from hat_fairseq.data.kinds import Question
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Answer
from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe
from hat_fairseq.data.text import CONTROL_TOKENS
from hat_fairseq.data.tokenizer_bpe import MASK, TokenizerBpe

NAMES = [*MAKERS, "vocab.txt", pytest.param("MiniLM", marks=needs_minilm)]
# Letters, marks and digits of ten scripts, then what is awkward everywhere.
SCRIPTS = {
    "Latin": "abcXYZßÄéñøşIİıſﬁ",
    "Greek": "αβγΩΣςήΐ",
    "Cyrillic": "абвЖЙёї",
    "Arabic": "ابتسلامـًٌّ٣",
    "Hebrew": "אבגםשּׁ",
    "Devanagari": "कखगािंड़्२",
    "Thai": "กขคำ้ๆ๓",
    "Hangul": "한국어각ᄀ",
    "Han": "中文字東京〇",
    "Kana": "あいアイガｶﾞー",
}
OTHER = "0129.,!?'\"-()[]<>/\\@#▁Ġ😀👩‍\u0301\u0308\u200b\u00ad½ﷺ…"
CHARACTERS = "".join(SCRIPTS.values()) + OTHER
texts = st.lists(st.text(CHARACTERS, min_size=1, max_size=12), min_size=1, max_size=6).map(" ".join)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("tokenizers")
    folders = {name: write_tokenizer(root / str(number), name) for number, name in enumerate(MAKERS)}
    folders["vocab.txt"] = write_vocabulary(root / "vocabulary", lowercase=False)
    return folders | ({} if MINILM is None else {"MiniLM": MINILM})


@pytest.fixture(scope="module")
def loaded(folders: dict[str, Path]) -> dict[str, tuple[TokenizerBpe, Any]]:
    """Each tokenizer, ours and that of transformers."""
    pairs = {}
    for name, folder in folders.items():
        files = [path for path in (folder / "tokenizer.json", folder / "vocab.txt") if path.is_file()]
        pairs[name] = TokenizerBpe.load(files[0]), transformers.AutoTokenizer.from_pretrained(folder)
    return pairs


def fairseq_ids(bpe: TokenizerBpe, text: str) -> list[int]:
    return [Dictionary.of(bpe.symbols).ids[token] for token in bpe.encode(text)]


def has_special_name(text: str) -> bool:
    """Whether transformers would find a control token in the text."""
    return any(name in text for name in (*CONTROL_TOKENS, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_transformers(name: str, loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    bpe, peer = loaded[name]
    numbers = Dictionary.of(bpe.symbols).ids

    def check(text: str) -> None:
        if has_special_name(text):
            return
        rows = peer(text, add_special_tokens=False)["input_ids"]
        ids = [numbers[token] for token in bpe.encode(text)]
        assert [bpe.rows[index] for index in ids] == rows or (not rows and ids in ([], [3])), text

    for line in tydi_lines():
        check(line)
    draws(given(texts)(check))()


@pytest.mark.parametrize("name", NAMES)
def test_every_character_has_a_token(name: str, loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    """Tokens stand for characters in their order, each character for one token or for parts of it."""
    bpe, _ = loaded[name]

    def check(text: str) -> None:
        text = " ".join(text.split())
        tokens, letters = bpe.encode(text), text.replace(" ", "")
        covered = 0
        for begin, end in bpe.extents(tokens, text):
            assert begin <= covered <= end or begin == end == covered, (text, tokens)
            assert begin == covered or covered - begin == 1, (text, tokens)  # two share a character, not more
            covered = max(covered, end)
        assert covered == len(letters), (text, tokens)

    for line in tydi_lines():
        check(line)
    draws(given(texts)(check))()


def test_extents_of_given_texts(loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    for name, text, parts in [
        ("uncased WordPiece", "É te\u0301 \u200bX\u200b", ["É", "t", "e\u0301", "\u200bX\u200b"]),
        ("cased WordPiece", "😀a b", ["😀a", "b"]),  # an unknown word
        ("byte-level BPE", "ሴ", ["ሴ", "ሴ", "ሴ"]),  # a token for each byte
        ("Unigram", "a ﬁ", ["", "a", "", "ﬁ", "ﬁ"]),
    ]:
        bpe, letters = loaded[name][0], text.replace(" ", "")
        spans = bpe.extents(bpe.encode(text), text)
        assert [letters[begin:end] for begin, end in spans] == parts, name
    bpe = loaded["byte-level BPE"][0]
    assert bpe.separator == " "
    assert bpe.encode("the") != bpe.encode(" the")
    for sentence in ("the", " the"):  # the tokens of a sentence are those with the space before it
        assert bpe.extents(bpe.encode(sentence), "the")[-1][1] == 3


@pytest.mark.parametrize("name", NAMES)
def test_decoding_loses_what_is_said_and_nothing_else(name: str, loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    bpe, _ = loaded[name]
    assert bpe.loses == (("case", "accents") if name in ("uncased WordPiece", "MiniLM") else ())
    sentences = ["Yksi Lause", "ja toinen", "Été 3"]
    tokens = [
        token for number, text in enumerate(sentences) for token in bpe.encode(bpe.separator * bool(number) + text)
    ]
    joined = " ".join(sentences)
    if bpe.loses:
        joined = "".join(c for c in unicodedata.normalize("NFD", joined.lower()) if not unicodedata.combining(c))
    assert bpe.decode(tokens).strip(" ") == joined
    lost = {"capital_letters_lowered": 3, "accents_removed": 2} if bpe.loses else {}
    counts = sum((bpe.losses(text) for text in sentences), bpe.losses(""))
    assert counts == lost
    pipeline = TextPipeline(Settings(), bpe)
    assert pipeline.decode(" ".join(tokens)) == joined
    assert pipeline.counts == {f"texts_decoded_without_{what}": 1 for what in bpe.loses}


def test_a_special_entry_is_never_found_in_a_text(loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    for bpe, peer in loaded.values():
        text = "a [SEP] b </s> [CLS][MASK] <mask> [PAD]"
        assert not {*bpe.encode(text)} & {*CONTROL_TOKENS} - {"<unk>"}
        assert {peer.sep_token_id, peer.mask_token_id} & {*peer(text, add_special_tokens=False)["input_ids"]}
        copy = pickle.loads(pickle.dumps(bpe))  # as another process gets it
        assert copy.encode(text) == bpe.encode(text)
        assert copy.separator == bpe.separator


def test_the_dictionary_has_the_order_of_the_rows(loaded: dict[str, tuple[TokenizerBpe, Any]], tmp_path: Path) -> None:
    for bpe, peer in loaded.values():
        special = [peer.cls_token_id, peer.pad_token_id, peer.sep_token_id, peer.unk_token_id]
        assert bpe.rows[:4] == special
        assert bpe.rows[-1] == peer.mask_token_id
        assert bpe.rows[4:-1] == sorted(bpe.rows[4:-1])
        assert sorted(bpe.rows) == [*range(len(peer))]
        assert len(bpe.symbols) == len(peer) - 5
        Dictionary.of(bpe.symbols).save(tmp_path / "dict.txt")
        assert Dictionary.load(tmp_path / "dict.txt").symbols == [*SPECIAL, *bpe.symbols]


def test_entries_that_no_dictionary_can_have() -> None:
    """Gaps in the numbers, entries with white space, and one with the name of a control token that is not its own."""
    entries = {"[UNK]": 0, "a": 1, "a b": 2, "\u2028": 4, "<s>": 5, "[CLS]": 6, "": 7, "[SEP]": 9}
    tokenizer = Tokenizer(models.WordLevel(entries, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("|", "removed")
    tokenizer.add_tokens([AddedToken("new", normalized=False)])
    bpe = TokenizerBpe(tokenizer)
    assert bpe.symbols == ["a", "<row:2>", "<row:4>", "<row:5>", "<row:7>", "new"]
    assert bpe.rows == [6, None, 9, 0, 1, 2, 4, 5, 7, 8]
    assert bpe.encode("a|a b|\u2028|?x") == ["a", "<row:2>", "<row:4>", "?x"]
    assert bpe.encode("[SEP]|[CLS]|[UNK]|y z") == [
        "[SEP]",
        "[CLS]",
        "[UNK]",
        "<unk>",
    ]  # text, unknown to the dictionary
    assert bpe.decode(["a", "<row:2>", "<unk>"]) == "a a b <unk>"


def test_the_ids_of_xlm_roberta(tmp_path: Path) -> None:
    """A ligature with a mark after it loses a character that sentencepiece keeps."""
    model = write_model(tmp_path)
    pieces, own = SentencePieceBpe(model), TokenizerBpe(peer_tokenizer(model).backend_tokenizer)
    assert own.symbols == list(pieces.pieces())
    assert [own.encode(line) for line in tydi_lines()] == [pieces.encode(line) for line in tydi_lines()]
    assert "".join(own.encode("\ufb01\u064c")) == "▁fi"
    assert "".join(pieces.encode("\ufb01\u064c")) == "▁fi\u064c"


def test_texts_of_which_nothing_is_left(loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    bpe, _ = loaded["uncased WordPiece"]
    assert bpe.encode("\u200b\u0301") == ["<unk>"]
    assert bpe.extents(["<unk>"], "\u200b\u0301") == [(0, 2)]
    assert bpe.encode("") == [] == bpe.extents([], "")


def test_answers_keep_their_characters(loaded: dict[str, tuple[TokenizerBpe, Any]]) -> None:
    text = "Die Straße in Zu\u0308rich.  Ñandú — 東京タワー und \t Émile."
    for bpe, _ in loaded.values():
        pipeline = TextPipeline(Settings(kind="qa", splitter="punctuation"), bpe)
        for words in ("Straße", "Zu\u0308rich", "Ñandú", "Émile"):
            answer = Answer(words, text.index(words))
            (row,) = pipeline.rows(Question("a", question="Wo?", text=text, answers=(answer,)))
            first, last = map(int, row.label or [])
            assert text[row.characters[first][0] : row.characters[last][1]].strip(".") == words


@pytest.mark.slow
def test_preprocess_from_a_folder(folders: dict[str, Path], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lines = [
        {"id": "a", "sentences": ["Ein Été.", "😀x zwei"], "target": ["Drei."]},
        {"id": "b", "sentences": ["<s> Vier"], "target": ["5"]},
    ]
    for split in ("train", "valid"):
        (data / f"{split}.jsonl").write_text(
            "".join(json.dumps(line | {"id": split + line["id"]}) + "\n" for line in lines)
        )
    out = tmp_path / "out"
    flags = ["--bpe", "tokenizer", "--bpe-dir", folders["uncased WordPiece"]]
    assert hat("preprocess", f"{data}/", "--out", out, *flags) == 0
    treatments = json.loads((out / "manifest.json").read_text())["splits"]["train"]["treatments"]
    assert treatments["capital_letters_lowered"] == 4
    assert treatments["accents_removed"] == 2
    assert treatments["source_tokens_unknown_to_dictionary"]
    assert "😀x" in (out / "text/train.source").read_text()
    bpe = TokenizerBpe.load(folders["uncased WordPiece"] / "tokenizer.json")
    assert Dictionary.load(out / "bin/dict.source.txt").symbols[4:] == bpe.symbols
    assert MASK not in bpe.symbols
    pipeline = TextPipeline.load(out / "bin")
    assert pipeline.bpe.encode("Ein Été.") == bpe.encode("Ein Été.")
    again = tmp_path / "again"
    assert hat("preprocess", f"{data}/", "--out", again, "--vocabulary", out / "bin", "--workers", 2) == 0
    for name in ("train.source-target.source.bin", "dict.source.txt", "bpe.json"):
        assert (again / "bin" / name).read_bytes() == (out / "bin" / name).read_bytes()


@pytest.mark.slow
def test_folders_that_cannot_be_used(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(words: str, *flags: str) -> None:
        assert cli.main(["preprocess", "ami", "--out", str(tmp_path / "out"), "--bpe", "tokenizer", *flags]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
        assert not (tmp_path / "out").exists()

    folder = tmp_path / "broken"
    folder.mkdir()
    refused("--bpe tokenizer needs --bpe-dir DIR, the folder with tokenizer.json or vocab.txt")
    here = ("--bpe-dir", str(folder))
    refused("has no tokenizer.json and no vocab.txt", *here)
    (folder / "vocab.txt").write_text("a\nb\n")
    refused("vocab.txt has no entry for unknown words, so they would be lost", *here)
    record = json.loads((folders["uncased WordPiece"] / "tokenizer.json").read_text())
    for change in ({"normalizer": {"type": "Martian"}}, {"model": {"type": "WordPiece"}}):
        (folder / "tokenizer.json").write_text(json.dumps(record | change))
        refused("tokenizer.json is no tokenizer that the installed tokenizers can read: ", *here)
    (folder / "tokenizer.json").write_text('{"model"')
    refused("tokenizer.json is no tokenizer that the installed tokenizers can read: ", *here)
    Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])).save(str(folder / "tokenizer.json"))
    refused("has no entry for unknown words, so they would be lost", *here)
