"""The call of `HatTokenizer` is that of every tokenizer of transformers: each argument has an effect, or is refused."""

import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hat_tokenizers import bpe_of

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.dictionary import EOS, PAD, UNKNOWN, Dictionary
from hat_fairseq.data.kinds.windows import kept_characters
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline
from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.data.text import escape_control_tokens

transformers = pytest.importorskip("transformers", reason="make setup")
from transformers.tokenization_utils_base import PreTrainedTokenizerBase  # noqa: E402

from hat_fairseq import hf  # noqa: E402

TEXT = "The river rose . Nobody – not “Åsa” – left the old town, 3 % did .\n\nWhy <s> not ?  They were x@@ tired 🙂 ."
LONG = " ".join(f"Sentence {number} says little ." for number in range(12))
SHORT = "Nobody left ."
MASKED = "Nobody <mask> . The <mask><mask> town"
Make = Callable[..., Any]


@pytest.fixture(scope="module")
def bpes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bpe]:
    return cache(lambda kind: bpe_of(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture
def make(bpes: Callable[[str], Bpe], tmp_path: Path) -> Make:
    """Makes an exported tokenizer for the kind of data and the settings."""

    def made(
        kind: str = "text", bpe: str = "learned", limit: int | None = None, mask: bool = False, **more: Any
    ) -> Any:
        out = tmp_path / f"{len([*tmp_path.iterdir()])}"
        out.mkdir()
        more = {"splitter": "punctuation", "line_breaks": "paragraphs"} | more
        pipeline = TextPipeline(Settings(kind=kind, **more), bpes(bpe))
        pipeline.save(out)
        texts = map(escape_control_tokens, (TEXT, LONG, SHORT, MASKED, *MASKED.split("<mask>")))
        tokens = {token for text in texts for token in pipeline.bpe.encode(text)}
        Dictionary((token, 1) for token in sorted(tokens)).save(out / "dict.source.txt")
        hf.HatTokenizer(str(out / FILE_NAME), limit, has_mask=mask).save_pretrained(out)
        return transformers.AutoTokenizer.from_pretrained(out)

    return made


def preprocessed(tokenizer: Any, stream: str = "source", **record: Any) -> list[list[int]]:
    """The rows of ids that `hat preprocess` writes of a record."""
    pipeline = tokenizer.pipeline
    read = record_from_json({"id": "1", **record}, "here", pipeline.kind)
    ids = {"source": tokenizer.source.ids, "target": tokenizer.target.ids}[stream]
    return [[*map(ids.__getitem__, row.streams[stream]), EOS] for row in pipeline.rows(read)]


# Of each argument of a call of transformers a value, and what it does: other rows, a column that is more or less, or a
# refusal that names it.
ROWS, REFUSED = "rows", "refused"
ARGUMENTS: dict[str, tuple[Any, str]] = {
    "text": ([[LONG], [SHORT]], ROWS),
    "text_pair": ([SHORT, SHORT], ROWS),
    "text_target": ([SHORT, SHORT], "labels"),
    "text_pair_target": ([SHORT, SHORT], REFUSED),
    "add_special_tokens": (False, ROWS),
    "padding": (True, ROWS),
    "truncation": ("only_second", REFUSED),
    "max_length": (5, ROWS),
    "stride": (3, REFUSED),
    "is_split_into_words": (True, ROWS),
    "pad_to_multiple_of": (8, ROWS),
    "padding_side": ("up", REFUSED),
    "return_tensors": ("np", ROWS),
    "return_token_type_ids": (True, REFUSED),
    "return_attention_mask": (False, "attention_mask"),
    "return_overflowing_tokens": (True, "overflow_to_sample_mapping"),
    "return_special_tokens_mask": (True, "special_tokens_mask"),
    "return_offsets_mapping": (True, "offset_mapping"),
    "return_length": (True, "length"),
    "verbose": (False, "its own test"),
    "tokenizer_kwargs": ({"max_length": 5}, ROWS),
    "kwargs": ({"truncate": True}, REFUSED),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_each_argument_of_transformers_has_an_effect_or_is_refused(name: str, make: Make) -> None:
    names = [name for name in inspect.signature(PreTrainedTokenizerBase.__call__).parameters if name != "self"]
    assert names == [*ARGUMENTS]
    tokenizer, batch = make(limit=500), {"text": [SHORT, TEXT]}
    plain, (value, effect) = tokenizer(**batch), ARGUMENTS[name]
    given = batch | (value if name == "kwargs" else {name: value})
    if effect == REFUSED:
        with pytest.raises(ValueError, match="truncate" if name == "kwargs" else name):
            tokenizer(**given)
    elif effect == ROWS:
        assert str(tokenizer(**given)["input_ids"]) != str(plain["input_ids"])
    elif name != "verbose":
        assert (effect in tokenizer(**given)) != (effect in plain)


def test_warnings_are_given_once_or_not_at_all(make: Make, caplog: Any) -> None:
    tokenizer = make(splitter="given")
    for verbose, number in ((False, 0), (True, 1), (True, 0)):
        caplog.clear()
        assert tokenizer(SHORT, verbose=verbose).data == tokenizer([SHORT], is_split_into_words=True).data
        assert ["a string is taken as one sentence" in record.message for record in caplog.records] == [True] * number
    tokenizer([SHORT, LONG], padding=True, max_length=4)
    assert "max_length=4 has no effect" in caplog.text
    tokenizer.truncation_side = "left"
    with pytest.raises(ValueError, match="truncation_side='left'"):
        tokenizer([[SHORT]], max_length=4)


@pytest.mark.parametrize(
    ("kind", "first", "second", "record"),
    [
        ("text", SHORT, TEXT, {"question": SHORT, "text": TEXT}),
        ("classification", TEXT, SHORT, {"text": TEXT, "second": SHORT}),
        ("qa", SHORT, TEXT, {"question": SHORT, "text": TEXT}),
        ("document_qa", SHORT, [SHORT, LONG], {"question": SHORT, "paragraphs": [SHORT, LONG]}),
        ("evidence", SHORT, [SHORT, LONG], {"questions": [SHORT], "sentences": [SHORT, LONG]}),
    ],
)
def test_a_pair_is_the_record_of_both_texts(kind: str, first: Any, second: Any, record: Any, make: Make) -> None:
    tokenizer = make(kind)
    (row,) = preprocessed(tokenizer, **record)
    assert tokenizer(first, second)["input_ids"] == row
    assert tokenizer([first, first], [second, second])["input_ids"] == [row, row]
    assert tokenizer([*zip([first], [second], strict=True)])["input_ids"] == [row]
    with pytest.raises(ValueError, match="text_pair is for 1 documents, and text has 2"):
        tokenizer([first, first], [second])


@pytest.mark.parametrize(("kind", "warned"), [("classification", True), ("text", True), ("qa", False)])
def test_a_second_text_that_the_training_may_not_have_had(
    kind: str, warned: bool, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = make(kind)
    for _ in range(2):
        tokenizer(SHORT, TEXT)
    said = [each.message for each in caplog.records if "trained on single texts" in each.message]
    assert len(said) == warned


def test_a_pair_of_other_kinds(make: Make) -> None:
    tokenizer = make("choice")
    rows = preprocessed(tokenizer, text=TEXT, choices=[SHORT, "Why not ?"])
    assert tokenizer([TEXT, TEXT], [SHORT, "Why not ?"])["input_ids"] == rows
    assert tokenizer([(TEXT, SHORT), (TEXT, "Why not ?")])["input_ids"] == rows
    for kind in ("mlm", "tokens", "segments"):
        one = make(kind)
        with pytest.raises(ValueError, match=f"text_pair: the kind {kind} reads one text"):
            one([SHORT], [SHORT])
        assert one([(SHORT, TEXT)])["input_ids"] == one([[SHORT, TEXT]])["input_ids"]  # a document in pieces


def test_a_string_a_batch_and_a_document_in_pieces(make: Make) -> None:
    tokenizer = make()
    (row,), (pieces,) = preprocessed(tokenizer, text=TEXT), preprocessed(tokenizer, sentences=[SHORT, TEXT])
    assert tokenizer(TEXT)["input_ids"] == row == tokenizer({"text": TEXT})["input_ids"] == tokenizer.encode(TEXT)
    assert tokenizer([TEXT, SHORT])["input_ids"] == [row, *preprocessed(tokenizer, text=SHORT)]
    assert tokenizer([[SHORT, TEXT]])["input_ids"] == [pieces]
    assert tokenizer([SHORT, TEXT], is_split_into_words=True)["input_ids"] == pieces
    assert tokenizer([[SHORT, TEXT]], is_split_into_words=True)["input_ids"] == [pieces]
    assert tokenizer(np.array([SHORT, TEXT]))["input_ids"] == tokenizer((SHORT, TEXT))["input_ids"]
    assert tokenizer(TEXT, return_tensors="pt")["input_ids"].tolist() == [row]
    turns = [{"role": "A", "text": SHORT}, {"role": "B", "text": TEXT}]
    assert tokenizer(turns, is_split_into_words=True)["input_ids"] == pieces == tokenizer([turns])["input_ids"][0]
    with pytest.raises(ValueError, match="a turn is no document"):
        tokenizer(turns)
    words = make("tokens")
    assert (
        words(" Nobody   left .")["input_ids"] == words(["Nobody", "left", "."], is_split_into_words=True)["input_ids"]
    )


def test_targets_are_those_of_hat_preprocess(make: Make) -> None:
    tokenizer = make(target_separator=True, max_target_tokens=24, long_target="truncate")
    targets = ["The town .\nNobody left .", [SHORT, "", LONG]]
    rows = [preprocessed(tokenizer, "target", text=TEXT, target=target)[0] for target in targets]
    both = tokenizer([TEXT, SHORT], text_target=targets)
    assert both["labels"] == rows
    assert both["input_ids"] == tokenizer([TEXT, SHORT])["input_ids"]
    assert len(rows[1]) == 24
    assert tokenizer(text_target=targets)["input_ids"] == rows
    (whole,) = preprocessed(tokenizer, "target", text=TEXT, target=LONG)
    assert tokenizer(text_target=LONG, max_length=7)["input_ids"] == [*whole[:6], EOS]
    cut = tokenizer([LONG], text_target=[LONG], max_length=9, max_target_length=5)
    assert [len(cut[name][0]) for name in ("input_ids", "labels")] == [9, 5]
    padded = tokenizer([TEXT, SHORT], text_target=[SHORT, "The town left ."], return_tensors="pt")["labels"]
    assert padded.ne(-100).sum(1).tolist() != [padded.size(1)] * 2
    assert padded.ne(PAD).all()
    with pytest.raises(ValueError, match="text_target is for 1 documents, and text has 2"):
        tokenizer([TEXT, SHORT], text_target=[SHORT])
    with pytest.raises(ValueError, match="document 1 has a target, and text_target is another one"):
        tokenizer({"text": TEXT, "target": SHORT}, text_target=SHORT)
    with pytest.raises(ValueError, match="text_target: data of the kind qa have no texts as targets"):
        make("qa")(SHORT, TEXT, text_target=SHORT)


def test_targets_of_aligned_chunks(make: Make) -> None:
    tokenizer = make(splitter="given", aligned=True, long_source="chunk", max_source_tokens=16)
    source, target = [SHORT, LONG[:30], SHORT, SHORT], ["The town .", "left .", "Nobody .", "not ?"]
    encoded = tokenizer([source], text_target=[target], return_overflowing_tokens=True)
    for name, stream in (("input_ids", "source"), ("labels", "target")):
        assert encoded[name] == preprocessed(tokenizer, stream, sentences=source, target=target)
    assert len(encoded["labels"]) > 1 == len(tokenizer(text_target=[target])["input_ids"])


def test_a_text_of_unknown_tokens_is_warned_of_once(make: Make, caplog: Any) -> None:
    tokenizer = make()
    tokenizer([SHORT, "Καλημέρα σας κύριε ."])
    tokenizer("Καλημέρα σας κύριε .")
    (message,) = [each.message for each in caplog.records if "in the dictionary" in each.message]
    assert message.startswith("document 2: ")
    assert message.endswith("its result is worth little")


def test_truncation_is_that_of_hat_preprocess(make: Make, caplog: Any) -> None:
    whole, cut = make(limit=40), make(max_source_tokens=12, long_source="truncate")
    with pytest.raises(
        ValueError, match="document 1: .* tokens are more than the model takes, 40; give truncation=True"
    ):
        whole(LONG)
    (row,) = preprocessed(cut, text=LONG)
    assert whole(LONG, truncation=True, max_length=12)["input_ids"] == row == cut(LONG)["input_ids"]
    assert [record.message for record in caplog.records if "texts lose" in record.message][0].startswith(
        "texts lose: source_sentences_truncated"
    )
    assert len(caplog.records) == 2
    assert whole(LONG, max_length=12)["input_ids"] == row
    assert len(caplog.records) == 2
    assert whole.pipeline.counts["source_tokens_truncated"] > 0
    assert len(whole(LONG, truncation=True)["input_ids"]) <= 40
    assert cut(LONG, truncation=True, max_length=100)["input_ids"] == row  # the lower limit holds
    assert whole(SHORT, add_special_tokens=False, max_length=2)["input_ids"] == whole(SHORT)["input_ids"][1:3]
    with pytest.raises(ValueError, match="max_length=2: .* must be at least 3"):
        whole(SHORT, max_length=2)
    with pytest.raises(ValueError, match="tokens with </s> are more than the limit of 12.*truncation=True does that"):
        make(max_source_tokens=12)(LONG)
    chunks = whole([LONG, "left"], truncation=True, max_length=12, return_overflowing_tokens=True)
    expected = preprocessed(make(max_source_tokens=12, long_source="chunk"), text=LONG)
    assert chunks["input_ids"] == [*expected, whole("left")["input_ids"]]
    assert len(expected) > 3
    assert chunks["overflow_to_sample_mapping"] == [0] * len(expected) + [1]


def test_windows_with_stride(make: Make) -> None:
    tokenizer = make("qa")
    windows = {"max_source_tokens": 30, "long_source": "chunk", "window_overlap": 6}
    rows = preprocessed(make("qa", **windows), question=SHORT, text=LONG)
    options = {"truncation": "only_second", "max_length": 30, "stride": 6, "return_overflowing_tokens": True}
    encoded = tokenizer([SHORT], [LONG], return_offsets_mapping=True, padding="max_length", **options)
    assert [[number for number in row if number != PAD] for row in encoded["input_ids"]] == rows
    assert len(rows) > 2
    for number, (row, offsets) in enumerate(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)):
        assert len(row) == 30 == len(offsets)
        parts = encoded.sequence_ids(number)
        said = [
            (SHORT, LONG)[part][begin:end]
            for part, (begin, end) in zip(parts, offsets, strict=True)
            if part is not None
        ]
        tokens = [t.removesuffix("@@") for t in encoded.tokens(number) if t not in ("<s>", "</s>", "<pad>")]
        assert said == tokens
        assert {0, 1} < {*parts}
    for more, words in (
        ({"truncation": "only_first"}, "truncation='only_first': these rows of the kind qa are cut 'only_second'"),
        ({"return_overflowing_tokens": False}, "stride=6 has an effect with truncation=True"),
    ):
        with pytest.raises(ValueError, match=words):
            tokenizer([SHORT], [LONG], **options | more)
    with pytest.raises(ValueError, match="the kind classification has no chunks, so what is cut off would be lost"):
        make("classification")([LONG], truncation=True, max_length=9, return_overflowing_tokens=True)


@pytest.mark.parametrize("bpe", ["learned", "gpt2", "sentencepiece"])
def test_offsets_are_characters_of_the_text_as_given(bpe: str, make: Make) -> None:
    for tokenizer in (make(bpe=bpe), make("classification", bpe), make("mlm", bpe, max_source_tokens=12)):
        for text in (TEXT, LONG):
            encoded = tokenizer([text], return_offsets_mapping=True, return_overflowing_tokens=True)
            spans = [span for row in encoded["offset_mapping"] for span in row if span != (0, 0)]
            covered = {at for begin, end in spans for at in range(begin, end) if not text[at].isspace()}
            assert covered == set(kept_characters(text))
            assert spans == sorted(spans)
            assert all(end >= begin for begin, end in spans)
            assert all(b[0] >= a[0] for a, b in pairwise(spans))
            if bpe == "learned" and "@" not in text:
                tokens = [
                    t for n in range(len(encoded["input_ids"])) for t in encoded.tokens(n) if t not in ("<s>", "</s>")
                ]
                assert [text[b:e] for b, e in spans] == [token.removesuffix("@@") for token in tokens]


@pytest.mark.parametrize("bpe", ["learned", "gpt2", "sentencepiece"])
def test_words_of_tokens(bpe: str, make: Make) -> None:
    tokenizer = make("tokens", bpe)
    words = ["Nobody", "left", "Åsa", "."]
    encoded = tokenizer([words, words[:2]], is_split_into_words=True, return_offsets_mapping=True, padding=True)
    for number, given in enumerate((words, words[:2])):
        ids = [each for each in encoded.word_ids(number) if each is not None]
        assert sorted({*ids}) == [*range(len(given))]
        assert ids == sorted(ids)
        row = tokenizer.rows(given)[0]  # the labels of the training stand at the first pieces
        assert [n for n, each in enumerate(row.elements) if each is not None] == [
            encoded.word_ids(number).index(each) for each in range(len(given))
        ]
    text = "  Nobody  left Åsa ."
    running = tokenizer(text, return_offsets_mapping=True)
    ends: dict[int, int] = {}
    for word, (begin, end) in zip(running.word_ids(), running["offset_mapping"], strict=True):
        if word is not None:
            ends[word] = end
            assert text[begin:end] in words[word]
    assert [text[:end].split()[-1] for end in ends.values()] == words
    with pytest.raises(ValueError, match="give return_offsets_mapping=True or is_split_into_words=True"):
        tokenizer([words]).word_ids()
    with pytest.raises(ValueError, match="the places of tokens of the kind byte_sequence are not known"):
        make("byte_sequence")([SHORT], return_offsets_mapping=True)
    text_tokenizer = make(bpe=bpe)
    with pytest.raises(ValueError, match="word_ids: this text was not given in sentences"):
        text_tokenizer(TEXT, return_offsets_mapping=True).word_ids()
    beside = text_tokenizer({"question": SHORT, "sentences": [SHORT, TEXT]}, return_offsets_mapping=True)
    own = [word for word, part in zip(beside.word_ids(), beside.sequence_ids(), strict=True) if part == 1]
    assert {*own} == {0, 1}
    assert own == sorted(own)
    assert {w for w, part in zip(beside.word_ids(), beside.sequence_ids(), strict=True) if part != 1} == {None}


def test_special_tokens_are_those_of_the_dictionary(make: Make, tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)
    auto = transformers.AutoTokenizer
    assert auto.from_pretrained(tmp_path, bos_token="<s>", pad_token="<pad>")(SHORT).data == make()(SHORT).data
    for name, token in (("bos_token", "[CLS]"), ("pad_token", "</s>"), ("unk_token", "?")):
        with pytest.raises(ValueError, match=f"{name}={re.escape(repr(token))}: the dictionary and the model have"):
            auto.from_pretrained(tmp_path, **{name: token})


@pytest.mark.parametrize("kind", ["text", "classification", "qa"])
def test_the_number_of_markers(kind: str, make: Make) -> None:
    """As scripts for pairs subtract it from the greatest length."""
    tokenizer = make(kind)
    for texts in (["left .", "Nobody ."],) if kind == "qa" else (["left ."], ["left .", "Nobody ."]):
        lengths = [len(tokenizer(*texts, add_special_tokens=marked)["input_ids"]) for marked in (True, False)]
        assert lengths[0] - lengths[1] == tokenizer.num_special_tokens_to_add(pair=len(texts) == 2)


@pytest.mark.parametrize("bpe", ["learned", "gpt2"])
def test_offsets_after_several_questions(bpe: str, make: Make) -> None:
    """Elements are questions in the first part of a row, and turns or sentences in the second one, without roles."""
    questions = ["Who  left ?", "Where is Åsa ?"]
    turns = [{"role": "Chair", "text": "Nobody  left ."}, {"role": "UI", "text": " "}, {"role": "Åsa", "text": "Why ?"}]
    sentences, text = ["Nobody  left .", "", "Why ?"], "Nobody  left . Why ? Åsa did ."
    given: list[tuple[str, Any]] = [("turns", turns), ("sentences", sentences), ("text", text)]
    for key, document in given:
        tokenizer = make("evidence", bpe, splitter="punctuation")
        encoded = tokenizer({"questions": questions, key: document}, return_offsets_mapping=True)
        plain = tokenizer({"questions": questions, key: document})
        assert encoded["input_ids"] == plain["input_ids"]
        covered: dict[tuple[int, int | None], set[int]] = {}
        for place in encoded._places[0]:
            if place is not None:
                covered.setdefault((place.part, place.element), set()).update(range(place.begin, place.end))
        parts = [questions, [text] if key == "text" else [*map(str, sentences)]]
        names = {(0, 0), (0, 1), *([(1, None)] if key == "text" else [(1, 0), (1, 2)])}
        assert covered.keys() == names
        for (part, element), places in covered.items():
            said = parts[part][element or 0]
            assert {at for at in places if not said[at].isspace()} == set(kept_characters(said))
        assert {*encoded.sequence_ids()} == {None, 0, 1}


def test_offsets_of_turns_with_roles(make: Make) -> None:
    tokenizer = make(role_in_text=True)
    turns = [{"role": "Chair", "text": "Nobody  left ."}, {"role": "Åsa", "text": "Why ?"}]
    encoded = tokenizer({"question": SHORT, "turns": turns}, return_offsets_mapping=True)
    columns = encoded.tokens(), encoded.sequence_ids(), encoded["offset_mapping"]
    before = [token for token, part, _ in zip(*columns, strict=True) if part is None]
    assert "".join(before).replace("@@", "") == "<s>question:<s>Chair:<s>Åsa:</s>"  # markers and roles are in no text
    question, document = ([span for _, part, span in zip(*columns, strict=True) if part == n] for n in range(2))
    assert "".join(SHORT[begin:end] for begin, end in question) == "Nobodyleft."
    second = next(n for n, span in enumerate(document) if n and span[0] == 0)
    for turn, spans in zip(turns, (document[:second], document[second:]), strict=True):
        assert "".join(turn["text"][begin:end] for begin, end in spans) == "".join(turn["text"].split())


@pytest.mark.parametrize("bpe", ["learned", "gpt2", "sentencepiece"])
def test_a_mask_in_a_text(bpe: str, make: Make) -> None:
    tokenizer = make("mlm", bpe, mask=True)
    text = MASKED
    encoded = tokenizer(text, return_offsets_mapping=True)
    assert encoded["input_ids"].count(tokenizer.mask_token_id) == 3
    assert UNKNOWN not in encoded["input_ids"]
    masks = [text[b:e] for t, (b, e) in zip(encoded.tokens(), encoded["offset_mapping"], strict=True) if t == "<mask>"]
    assert masks == ["<mask>"] * 3
    assert tokenizer.decode(encoded["input_ids"]) == "Nobody <mask> . The <mask> <mask> town"
    rest = [token for token in encoded.tokens() if token not in ("<s>", "</s>", "<mask>")]
    assert rest == tokenizer.tokenize("Nobody .") + tokenizer.tokenize("The town") or bpe != "learned"
    literal = tokenizer(text, split_special_tokens=True)["input_ids"]
    assert literal == preprocessed(tokenizer, text=text)[0]
    assert tokenizer.mask_token_id not in literal
    assert make("mlm", bpe).tokenize(text) == tokenizer.tokenize(text, split_special_tokens=True)
    labelled = make("classification", bpe, mask=True)
    ids = labelled(text)["input_ids"]
    assert ids == preprocessed(labelled, text=text)[0]
    assert labelled.mask_token_id not in ids


def test_padding_on_the_left(make: Make) -> None:
    tokenizer = make()
    right = tokenizer([SHORT, TEXT], padding=True, return_special_tokens_mask=True, return_offsets_mapping=True)
    left = tokenizer(
        [SHORT, TEXT], padding=True, padding_side="left", return_special_tokens_mask=True, return_offsets_mapping=True
    )
    number = right["attention_mask"][0].count(0)
    assert number > 5
    for name, column in right.items():
        assert left[name][0] == column[0][-number:] + column[0][:-number]
        assert left[name][1] == column[1]
    tokenizer.padding_side = "left"
    assert tokenizer([SHORT, TEXT], padding=True)["input_ids"] == left["input_ids"]
    with pytest.raises(ValueError, match="padding_side='left': an encoder reads rows from their first token on"):
        make("mlm")([SHORT, TEXT], padding=True, padding_side="left")


def test_what_comes_after_ids(make: Make) -> None:
    tokenizer = make()
    ids = tokenizer(text_target="Nobody left the town .")["input_ids"]
    assert tokenizer.decode([*ids, -100, -100]) == "Nobody left the town ." == tokenizer.decode(np.array([-100, *ids]))
    assert tokenizer.batch_decode(np.array([[*ids, -100]]), skip_special_tokens=True) == ["Nobody left the town ."]
    assert (tokenizer.decode([UNKNOWN]), tokenizer.decode([UNKNOWN], skip_special_tokens=True)) == ("<unk>", "")
    with pytest.raises(ValueError, match="100000 is no id of the dictionary"):
        tokenizer.decode([100000])
    with pytest.raises(ValueError, match="unknown arguments skip of decode"):
        tokenizer.decode(ids, skip=True)
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(SHORT)) == tokenizer.encode(
        SHORT, add_special_tokens=False
    )
    before = tokenizer.all_special_tokens
    for refused in (lambda: tokenizer.add_tokens(["[A]"]), lambda: tokenizer.add_special_tokens({"cls_token": "[A]"})):
        with pytest.raises(ValueError, match=r"add_tokens: '\[A\]' is not in the dictionary"):
            refused()
    assert tokenizer.add_tokens(tokenizer.tokenize(SHORT)) == 0
    assert tokenizer.all_special_tokens == before
    for method in (tokenizer.build_inputs_with_special_tokens, tokenizer.prepare_for_model):
        with pytest.raises(ValueError, match="markers stand before sentences"):
            method([5, 6])


def encode_all(tokenizer: Any, texts: list[str]) -> Any:
    return tokenizer(texts, text_target=texts, truncation=True, max_length=9)["input_ids"], pickle.dumps(tokenizer)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@pytest.mark.slow
@pytest.mark.parametrize("bpe", ["learned", "gpt2", "sentencepiece"])
def test_other_processes_and_saving(bpe: str, make: Make, processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    """`datasets` keeps what a tokenizer has made under the hash of its pickle, so calls must not change that."""
    tokenizer = make(bpe=bpe, limit=200)
    before, attributes = pickle.dumps(tokenizer), pickle.dumps(vars(tokenizer))
    halves = [*processes.map(encode_all, [tokenizer] * 2, [[LONG, SHORT], [TEXT]])]
    expected = tokenizer([LONG, SHORT, TEXT], max_length=9)["input_ids"]
    assert halves[0][0] + halves[1][0] == expected
    assert pickle.dumps(tokenizer) == before
    assert pickle.dumps(vars(tokenizer)) == attributes  # what `datasets` pickles
    tokenizer.save_pretrained(tmp_path / "again")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert again(TEXT)["input_ids"] == tokenizer(TEXT)["input_ids"]
    assert again.model_max_length == 200 == again.limit
    lower = transformers.AutoTokenizer.from_pretrained(tmp_path / "again", model_max_length=20)
    assert len(lower(LONG, truncation=True)["input_ids"]) <= 20
