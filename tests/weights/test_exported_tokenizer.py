"""The tokenizer that `hat export` writes: for every BPE, splitter and policy the ids of our pipeline, and its texts."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from byte_level_bpe import write_byte_level_bpe
from fairseq.data import Dictionary
from sentencepiece_model import write_model

from hat_fairseq.data.bpe import Bpe, Gpt2Bpe, LearnedBpe, SentencePieceBpe
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.data.text import escape_control_tokens
from hat_fairseq.tasks.cut_rows import cut_rows
from hat_fairseq.tasks.raw_documents import indexed
from hat_fairseq.weights.export_folder import Trained, write_tokenizer

transformers = pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")

TEXT = "Dr. No – naïve – said: “naïf”. It's 5 % of <s> and <\\pad>! 会議は終わった。次は?  \u2028 x@@ y@@z @@ end"
SENTENCES = ["Good\tmorning , all .", "  ", "Let's start: 1/2 <sep> of it …", "🙂 fine@@", TEXT]
DOCUMENTS: list[Any] = [
    {"sentences": SENTENCES},
    {"text": TEXT},
    {"sentences": ["One .", "Two ."], "question": "Who spoke ?"},
]


def bpe_of(kind: str, folder: Path) -> Bpe:
    if kind == "learned":
        return LearnedBpe.learn([TEXT, *SENTENCES, "start starts morning mornings"] * 3, 60)
    if kind == "gpt2":
        write_byte_level_bpe(folder / "gpt2")
        return Gpt2Bpe(folder / "gpt2/encoder.json", folder / "gpt2/vocab.bpe")
    return SentencePieceBpe(write_model(folder, [TEXT, *SENTENCES] * 20, vocab_size=90, character_coverage=1.0))


def exported(folder: Path, pipeline: TextPipeline, limits: list[tuple[int, str]]) -> tuple[Any, Dictionary]:
    """The tokenizer of a pipeline, and a dictionary of two thirds of the tokens of the documents."""
    data, out = folder / "bin", folder / "out"
    data.mkdir()
    out.mkdir()
    pipeline.save(data)
    texts = [escape_control_tokens(text) for text in (TEXT, *SENTENCES, "One . Two . Who spoke ?")]
    tokens = {token: 1 for text in texts for token in pipeline.bpe.encode(text)}
    for name in ("source", "target"):
        (data / f"dict.{name}.txt").write_text("".join(f"{t} 1\n" for t in sorted(tokens)[: len(tokens) * 2 // 3]))
    words = Dictionary.load(str(data / "dict.source.txt"))
    task = Namespace(source_dictionary=words, role_dictionary=None)
    write_tokenizer(out, Trained(None, None, task, 0, data), {"limits": limits})
    return transformers.AutoTokenizer.from_pretrained(out, trust_remote_code=True), words


@pytest.mark.parametrize("tokenizer", ["none", "moses", "jieba"])
@pytest.mark.parametrize("kind", ["learned", "gpt2", "sentencepiece"])
def test_ids_and_texts_are_those_of_the_pipeline(kind: str, tokenizer: str, tmp_path: Path) -> None:
    languages = {"source_language": "de", "target_language": "zh" if tokenizer == "jieba" else "de"}
    words = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    pipeline = TextPipeline(Settings(splitter="punctuation", **languages, **words), bpe_of(kind, tmp_path))
    peer, dictionary = exported(tmp_path, pipeline, [])
    given = [document.get("sentences", document) if len(document) == 1 else document for document in DOCUMENTS]
    given[1] = TEXT
    encoded = peer(given, return_tensors="pt")
    for number, document in enumerate(DOCUMENTS):
        (row,) = pipeline.encode(record_from_json({"id": "1", **document}, "here"))
        length = int(encoded["attention_mask"][number].sum())
        ids = encoded["input_ids"][number, :length].tolist()
        assert ids == [*map(dictionary.index, row.tokens), dictionary.eos()] and dictionary.unk() in ids
        tokens = [token for token in row.tokens if token in dictionary.indices]
        ids = list(map(dictionary.index, tokens))
        assert peer.decode([2, *ids, 2, 1]) == pipeline.decode(" ".join(tokens))
        assert peer.batch_decode([ids]) == [peer.decode(ids)]
    assert (peer.bos_token_id, peer.pad_token_id, peer.eos_token_id, peer.unk_token_id) == (0, 1, 2, 3)


@pytest.mark.parametrize("policy", ["truncate", "truncate-sentences"])
@pytest.mark.parametrize("limit", [3, 7, 12, 200])
def test_long_documents_are_cut_as_the_pipeline_does(policy: str, limit: int, tmp_path: Path) -> None:
    pipeline = TextPipeline(Settings(max_source_tokens=limit, long_source=policy), bpe_of("learned", tmp_path))
    peer, dictionary = exported(tmp_path, pipeline, [(500, "error")])
    sentences = ["start", "starts all .", "a b c", "d"]
    (row,) = pipeline.encode(record_from_json({"id": "1", "sentences": sentences}, "here"))
    expected = [*map(dictionary.index, row.tokens), dictionary.eos()]
    assert peer([sentences])["input_ids"] == [expected] == peer(["\n".join(sentences)])["input_ids"]
    again = tmp_path / "again"
    peer.save_pretrained(again)
    copy = transformers.AutoTokenizer.from_pretrained(again, trust_remote_code=True)
    assert copy([sentences])["input_ids"] == [expected]


@pytest.mark.parametrize("segments", ["sentences", "packed", "none"])
@pytest.mark.parametrize("limit", [None, 14])
def test_rows_of_one_or_two_parts(segments: str, limit: int | None, tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_source_tokens": limit, "long_source": "truncate"}
    settings = Settings(kind="classification", splitter="punctuation", segments=segments, segment_length=9, **options)
    pipeline = TextPipeline(settings, bpe_of("learned", tmp_path))
    peer, dictionary = exported(tmp_path, pipeline, [] if limit is None else [(limit - 1, "truncate")])
    documents = [{"text": TEXT}, {"segments": SENTENCES}, {"text": TEXT, "second": "start starts. Mornings end!"}]
    for number, (document, ids) in enumerate(zip(documents, peer(documents, padding=False)["input_ids"], strict=True)):
        (row,) = pipeline.encode(record_from_json({"id": "1", **document}, "here", "classification"))
        assert ids == [*map(dictionary.index, row.tokens), dictionary.eos()]
        assert ids.count(2) == (3 if number == 2 else 1)
    if limit is None:  # then what the model takes decides, as in `cut_rows`
        full = peer(documents[2:], padding=False)["input_ids"][0]
        peer.row_limit = (len(full) - 4, "truncate")
        row = torch.tensor(full)
        cut = cut_rows(
            indexed([row]),
            1,
            lambda tokens: len(tokens) <= len(full) - 4,
            "truncate",
            "longest",
            dictionary,
            "here",
        )[0][0]
        expected = [*full[: cut.start], *full[cut.stop :]]
        assert peer(documents[2:], padding=False)["input_ids"] == [expected]
        peer.row_limit = (10, "error")
        with pytest.raises(ValueError, match=f"{len(full)} tokens are more than the model takes, 10"):
            peer(documents[2:])


def test_what_cannot_be_encoded_is_refused(tmp_path: Path) -> None:
    pipeline = TextPipeline(Settings(role_in_text=True), bpe_of("learned", tmp_path))
    peer, _ = exported(tmp_path, pipeline, [(20, "chunk"), (10, "error")])
    turn = {"role": "PM", "text": "Fine ."}
    assert peer([[turn]])["input_ids"] == peer([{"turns": [turn]}])["input_ids"]
    for documents, words in (
        ("one string", "give a list of documents"),
        ([[{"role": "PM", "text": " \t"}]], "document 1 is empty"),
        ([[turn], ["Without a role ."]], "document 2: the model needs a role"),
        ([[turn] * 4], "more than 20; hat summarize makes chunks"),
        ([[{"role": "PM", "text": "a b c d e f g h i"}]], "more than 10; shorten it"),
        ([{"turns": [turn], "title": "x"}], "document 1: give one of text, sentences and turns"),
    ):
        with pytest.raises(ValueError, match=words):
            peer(documents)
    with pytest.raises(ValueError, match="unknown arguments max_length"):
        peer([[turn]], max_length=3)
