"""`HatTokenizer`: for every kind of data, BPE, splitter and policy the ids of `hat preprocess`, and its texts."""

import json
import shutil
from pathlib import Path
from typing import Any

import labelled
import pytest
from hat_tokenizers import SENTENCES, TEXT, bpe_of, exported

from hat_fairseq import cli
from hat_fairseq.data.dictionary import EOS, PAD, UNKNOWN, Dictionary
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.weights.names import DEMO

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq.hf import HatTokenizer  # noqa: E402

DOCUMENTS: list[Any] = [
    {"sentences": SENTENCES},
    {"text": TEXT},
    {"sentences": ["One .", "Two ."], "question": "Who spoke ?"},
]
KINDS = {  # options of hat preprocess
    "choice": "",
    "tokens": "",
    "qa": "--splitter punctuation --max-source-tokens 51 --long-source chunk --window-overlap 12",
    "document_qa": "--max-source-tokens 91 --long-source chunk --window-overlap 50",
    "mlm": "",
}


def ids_of(pipeline: TextPipeline, dictionary: Dictionary, record: dict[str, Any]) -> list[int]:
    (row,) = pipeline.encode(record_from_json({"id": "1", **record}, "here", pipeline.kind))
    return [*map(dictionary.ids.__getitem__, row.tokens), EOS]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "tokenizer"), [("learned", "moses"), ("gpt2", "none"), ("sentencepiece", "jieba")])
def test_ids_and_texts_are_those_of_the_pipeline(kind: str, tokenizer: str, tmp_path: Path) -> None:
    languages = {"source_language": "de", "target_language": "zh" if tokenizer == "jieba" else "de"}
    words = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    pipeline = TextPipeline(Settings(splitter="punctuation", **languages, **words), bpe_of(kind, tmp_path))
    peer, dictionary = exported(tmp_path, pipeline)
    encoded = peer([SENTENCES, TEXT, DOCUMENTS[2]], return_tensors="pt")
    assert encoded["attention_mask"].equal(encoded["input_ids"].ne(PAD).long())
    assert not encoded["attention_mask"].all()
    for number, document in enumerate(DOCUMENTS):
        length = int(encoded["attention_mask"][number].sum())
        ids = encoded["input_ids"][number, :length].tolist()
        assert ids == ids_of(pipeline, dictionary, document)
        assert UNKNOWN in ids
        tokens = [token for token in pipeline.bpe.encode(TEXT) if token in dictionary.ids]
        ids = [dictionary.ids[token] for token in tokens]
        assert peer.decode([2, *ids, 2, 1]) == pipeline.decode(" ".join(tokens))
        assert peer.batch_decode([ids]) == [peer.decode(ids)]
    assert (peer.bos_token_id, peer.pad_token_id, peer.eos_token_id, peer.unk_token_id) == (0, 1, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_hat_preprocess(kind: str, ami: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        labelled.write(kind, ami / f"text/{split}.jsonl", tmp_path / f"raw/{split}.jsonl")
    data, out = tmp_path / "data", tmp_path / "out"
    words = f"preprocess {tmp_path / 'raw'} --kind {kind} --out {data} --vocabulary {ami / 'bin'} --workers 1"
    assert cli.main([*words.split(), *KINDS[kind].split()]) == 0
    shutil.copytree(data / "bin", out, ignore=lambda _, names: [n for n in names if n.startswith(("test", "train"))])
    dictionary = next(path for path in (data / "bin/input0/dict.txt", data / "bin/dict.txt") if path.is_file())
    shutil.copyfile(dictionary, out / "dict.source.txt")
    tokenizer = HatTokenizer(str(out / "pipeline.json"))
    records = [json.loads(line) for line in (tmp_path / "raw/test.jsonl").read_text().splitlines()]
    encoded = tokenizer(records, padding=False, return_overflowing_tokens=True)
    numbers, lines = tokenizer.source.ids, (data / "text/test.source").read_text().splitlines()
    assert encoded["input_ids"] == [[*(numbers[token] for token in line.split()), EOS] for line in lines]
    ids = [records[number]["id"] for number in encoded["overflow_to_sample_mapping"]]
    if kind != "mlm":  # whose rows have no ids
        assert ids == [line.split("\t")[0] for line in (data / "text/test.ids").read_text().splitlines()]
    assert (len(ids) > len(records)) == (kind not in ("tokens", "mlm"))


def test_a_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    pipeline = TextPipeline(Settings(max_source_tokens=7, long_source="truncate"), bpe_of("learned", tmp_path))
    peer, _ = exported(tmp_path, pipeline, 500)
    peer.save_pretrained(tmp_path / "again")
    copy = transformers.AutoTokenizer.from_pretrained(tmp_path / "again", trust_remote_code=True)
    assert copy([SENTENCES])["input_ids"] == peer([SENTENCES])["input_ids"]
    assert copy.limit == 500
    assert len(copy([SENTENCES])["input_ids"][0]) == 7
    assert sorted(path.name for path in (tmp_path / "again").glob("*.py")) == ["modeling_hat.py"]


@pytest.mark.parametrize("name", ["bin/bpe.codes", "bin/dict.target.txt", "hat_fairseq.json", "bin"])
def test_a_saved_tokenizer_has_no_file_that_a_link_led_to(name: str, tmp_path: Path) -> None:
    model = Path(shutil.copytree(DEMO, tmp_path / "model"))
    (model / name).rename(private := tmp_path / "private")
    (model / name).symlink_to(private)
    tokenizer = HatTokenizer.from_pretrained(model)
    with pytest.raises(ValueError, match=f"{name} is a link, which is not followed"):
        tokenizer.save_pretrained(tmp_path / "out")
    assert not (tmp_path / "out/hat_fairseq.json").exists()
    assert not (tmp_path / "out/bin").exists()


def test_what_cannot_be_encoded_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"role_in_text": True, "max_source_tokens": 20, "long_source": "chunk"}
    peer, _ = exported(tmp_path, TextPipeline(Settings(**options), bpe_of("learned", tmp_path)))
    turn = {"role": "PM", "text": "Fine ."}
    assert peer([[turn]])["input_ids"] == peer([{"turns": [turn]}])["input_ids"]
    for documents, words in (
        ("one string", "document '1' has no roles"),
        ([[{"role": "PM", "text": " \t\u200b\ufeff"}]], "document '1' has an empty source"),
        ([[turn], ["Without a role ."]], "document '2' has no roles"),
        ([[turn] * 6], "document 1 becomes 3 rows: give return_overflowing_tokens=True"),
        ([{"turns": [turn], "title": "x"}], "document 1: unknown key 'title'"),
    ):
        with pytest.raises(ValueError, match=words):
            peer(documents)
    with pytest.raises(ValueError, match="unknown arguments max_len: "):
        peer([[turn]], max_len=3)
    assert peer(text_target=["One string has no roles, and is a target ."])["input_ids"]
    (ids,) = peer([[turn]])["input_ids"]
    peer.limit = len(ids)
    assert peer([[turn]])["input_ids"] == [ids]
    peer.limit -= 1
    with pytest.raises(ValueError, match=f"document 1: {len(ids)} tokens are more than the model takes, {peer.limit}"):
        peer([[turn]])
