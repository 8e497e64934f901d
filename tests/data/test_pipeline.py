import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hat_fairseq.data.bpe import Bpe, LearnedBpe
from hat_fairseq.data.gpt2_bpe import read_gpt2
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.long_input import LongInputError
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record, Turn
from hat_fairseq.data.rows import BOS_TOKEN
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe

ROLES = ("ID", "ME", "PM", "UI")
LITERALS = "the <s> tag, <pad> <mask> </s> <unk> and <\\s> in x<s>y"


@pytest.fixture(scope="module")
def gpt2_bpe(gpt2_files: tuple[Path, Path]) -> TokenizerBpe:
    return read_gpt2(*gpt2_files)


def clean(text: str) -> str:
    return " ".join(text.split())


def test_a_meeting_there_and_back(bpes: list[Bpe], meetings: list[Record]) -> None:
    for bpe in bpes:
        pipeline = TextPipeline(Settings(), bpe)
        for meeting in meetings:
            (encoded,) = pipeline.encode(meeting)
            assert (encoded.id, encoded.number, encoded.count) == (meeting.id, 0, 1)
            assert encoded.tokens[0] == BOS_TOKEN
            assert encoded.tokens.count(BOS_TOKEN) == len(meeting.elements or ())
            assert all(token == clean(token) and token for token in encoded.tokens)
            assert pipeline.decode(" ".join(encoded.tokens)) == clean(" ".join(meeting.elements or ()))
            (row,) = pipeline.rows(meeting)
            assert pipeline.decode(" ".join(row.streams["target"])) == clean(" ".join(meeting.target or ()))


def test_a_question_is_the_first_sentence(bpes: list[Bpe], meetings: list[Record]) -> None:
    for bpe in bpes:
        asked = replace(meetings[0], question="What  did they\tdecide?")
        sentences = ("What did they decide?", *(meetings[0].elements or ()))
        pipeline = TextPipeline(Settings(), bpe)
        prepared = pipeline.prepare(asked).record
        assert (prepared.roles or ())[0] == "question"
        assert len(prepared.parts) == 1
        assert pipeline.prepare(prepared).record == prepared
        assert pipeline.encode(asked) == pipeline.encode(meetings[0].with_sentences(sentences, None, None))
        text = TextPipeline(Settings(splitter="punctuation"), bpe)
        running = text.prepare(Document("a", question="Who?", text="One. Two.")).record
        assert running.elements == ("Who?", "One.", "Two.")
        with pytest.raises(ValueError, match="has a question, and --aligned is for translations"):
            TextPipeline(Settings(aligned=True), bpe).prepare(Document("a", question="Who?", sentences=("x",)))


def test_what_a_model_generates_stays_on_one_line_and_has_no_tabs(gpt2_bpe: TokenizerBpe) -> None:
    tokens = gpt2_bpe.encode(" One\n\ntwo\tthree\u2028four\u00a0five ")
    assert TextPipeline(Settings(), gpt2_bpe).decode(" ".join(tokens)) == "One two three four five"


def test_too_long_is_an_error_by_default(learned_bpe: LearnedBpe, meetings: list[Record]) -> None:
    pipeline = TextPipeline(Settings(max_source_tokens=101, max_target_tokens=11), learned_bpe)
    with pytest.raises(LongInputError, match="document 'ES2005b' .*: its source is too long: .* limit of 101;"):
        pipeline.encode(meetings[0])
    with pytest.raises(LongInputError, match="document 'ES2005b' .*: its target is too long"):
        TextPipeline(Settings(max_target_tokens=11), learned_bpe).rows(meetings[0])


def test_long_targets_can_be_truncated(learned_bpe: LearnedBpe, meetings: list[Record]) -> None:
    pipeline = TextPipeline(Settings(max_target_tokens=11, long_target="truncate"), learned_bpe)
    whole = learned_bpe.encode(" ".join(meetings[0].target or ()))
    assert pipeline.rows(meetings[0])[0].streams["target"] == whole[:10]
    cut = {"target_documents_over_limit": 1, "target_tokens_truncated": len(whole) - 10}
    assert pipeline.counts == Counter(cut, roles_left_out=len(meetings[0].roles))  # type: ignore[attr-defined]


def test_control_tokens_in_the_text_are_only_text(bpes: list[Bpe]) -> None:
    for bpe in bpes:
        pipeline = TextPipeline(Settings(), bpe)
        document = Document("a", sentences=(LITERALS, "<s>"), target=(LITERALS,))
        (encoded,) = pipeline.encode(document)
        assert [token for token in encoded.tokens if token.startswith("<") and token.endswith(">")] == [
            BOS_TOKEN,
            BOS_TOKEN,
        ]
        assert pipeline.decode(" ".join(encoded.tokens)) == f"{LITERALS} <s>"
        pipeline.counts.clear()
        assert pipeline.decode(" ".join(pipeline.rows(document)[0].streams["target"])) == LITERALS
        assert pipeline.counts["control_tokens_escaped"] == 15


@pytest.mark.parametrize(
    "document",
    [Document("a", text=" \r\n"), Document("a", sentences=()), Document("a", sentences=("", "\x00\t"), target=("x",))],
)
def test_empty_documents_are_refused(document: Any, learned_bpe: LearnedBpe) -> None:
    with pytest.raises(EmptyDocumentError, match="document 'a' has an empty source"):
        TextPipeline(Settings(splitter="punctuation"), learned_bpe).encode(document)


def test_empty_sentences_are_dropped_with_their_roles_and_counted(learned_bpe: LearnedBpe) -> None:
    pipeline = TextPipeline(Settings(roles=True, role_labels=ROLES), learned_bpe)
    document = Document("a", turns=(Turn("x", role="PM"), Turn(" ", role="ME"), Turn("y", role="UI")), target=("", "z"))
    prepared = pipeline.prepare(document).record
    assert (prepared.elements, prepared.roles, prepared.target) == (("x", "y"), ("PM", "UI"), ("z",))
    assert pipeline.counts == Counter(sentences_empty=1, target_sentences_empty=1)


def test_saved_and_loaded_is_the_same(bpes: list[Bpe], meetings: list[Record], tmp_path: Path) -> None:
    for bpe in bpes:
        words = {"source_tokenizer": "moses", "target_language": "de", "target_separator": True}
        settings = Settings(
            roles=True, role_labels=ROLES, role_in_text=True, max_source_tokens=201, long_source="chunk", **words
        )
        pipeline = TextPipeline(settings, bpe)
        pipeline.save(tmp_path)
        loaded = TextPipeline.load(tmp_path)
        assert loaded.settings == settings
        assert loaded.encode(meetings[1]) == pipeline.encode(meetings[1])
        assert loaded.counts == pipeline.counts


def test_a_changed_directory_is_refused(learned_bpe: LearnedBpe, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pipeline\.json is missing"):
        TextPipeline.load(tmp_path)
    TextPipeline(Settings(), learned_bpe).save(tmp_path)
    codes = tmp_path / "bpe.codes"
    codes.write_bytes(codes.read_bytes()[:-1] + b"1\n")
    with pytest.raises(ValueError, match=r"bpe\.codes is missing or was changed"):
        TextPipeline.load(tmp_path)
    earlier = (tmp_path / "pipeline.json").read_text().replace('"format": 4', '"format": 1')
    (tmp_path / "pipeline.json").write_text(earlier)
    with pytest.raises(
        ValueError, match="has format 1, this version needs 4.*make the data again.*: hat preprocess READER --out"
    ):
        TextPipeline.load(tmp_path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"splitter": "nltk"}, "--splitter must be one of given, punctuation, library, not 'nltk'"),
        ({"source_tokenizer": "spacy"}, "--source-tokenizer must be one of none, moses, jieba, not 'spacy'"),
        ({"long_target": "chunk"}, "--long-target must be one of error, truncate, not 'chunk'"),
        ({"negative_windows": math.nan}, "--negative-windows must be a number, not nan"),
        ({"max_source_tokens": 2}, "--max-source-tokens must be at least 3, not 2"),
    ],
)
def test_bad_settings_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**setting)


@pytest.mark.parametrize(("language", "text"), [("zh", "今天 很好。明天会下雨。"), ("th", "今天 很好。 明天会下雨。")])
def test_chinese_sentences_come_back_without_spaces_between_them(language: str, text: str) -> None:
    bpe = LearnedBpe.learn(["今天 很好。", "明天会下雨。"], 20)
    pipeline = TextPipeline(Settings(target_language=language, source_language=language), bpe)
    sentences = ("今天 很好。", "明天会下雨。")
    (row,) = pipeline.rows(Document("a", sentences=sentences, target=sentences))
    assert pipeline.decode(" ".join(row.streams["target"])) == text
    assert pipeline.decode(" ".join(row.tokens), "source") == text
