"""Running text for models whose data had given sentences: the same as the sentences that the splitter finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import training_words
from fine_tuned import spread
from warm import WarmPython

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.text import split_sentences

TEXTS = ["The remote is yellow. Who wants a button? Nobody does.", "Good morning. We begin."]
ERROR = "running text has no given sentences; give sentences or turns, or --splitter punctuation"


def write(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps({"id": str(n), **row}) + "\n" for n, row in enumerate(records)))
    return path


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


def test_texts(warm: WarmPython, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw").mkdir()
    for split in ("train", "valid", "test"):
        rows = [{"sentences": split_sentences(text, "punctuation"), "target": text[:20]} for text in TEXTS]
        write(tmp_path / f"raw/{split}.jsonl", rows)
    prepare = "hat_fairseq.cli preprocess raw --out data --bpe learned --num-codes 40"
    warm.run(prepare.split(), tmp_path, tmp_path / "l")
    words = training_words(tmp_path / "data/bin", tmp_path / "save", "--max-update", 1, "--disable-validation")
    del words[(role := words.index("--role-stream")) : role + 2]
    warm.run(["fairseq_cli.train", *words], tmp_path, tmp_path / "l")
    spread(tmp_path / "save/checkpoint_last.pt")
    texts = write(tmp_path / "texts.jsonl", [{"text": text} for text in TEXTS])
    sentences = write(tmp_path / "sentences.jsonl", [{"sentences": split_sentences(t, "punctuation")} for t in TEXTS])
    model = ["--data", f"{tmp_path}/data/bin", "--device", "cpu", "--generation", '{"max_len_b": 6}']
    path, split = f"{tmp_path}/save/checkpoint_last.pt", ["--splitter", "punctuation"]
    for source, flags, out in ((sentences, [], "a"), (texts, split, "b")):
        words = ["summarize", "--path", path, "--input", str(source), "--out", f"{tmp_path}/{out}.jsonl"]
        assert cli.main([*words, *model, *flags]) == 0
        words = ["look", path, "--input", str(source), "--json", f"{tmp_path}/{out}.json"]
        assert cli.main([*words, *model, *flags]) == 0
    assert lines_of(tmp_path / "a.jsonl") == lines_of(tmp_path / "b.jsonl")
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    out = ["--out", f"{tmp_path}/c.jsonl"]
    assert cli.main(["summarize", "--path", path, "--input", str(texts), *out, *model]) == 2
    assert ERROR in capsys.readouterr().err
    loaded = hat_fairseq.load(path, tmp_path / "data/bin", "cpu")
    expected = [row["text"] for row in lines_of(tmp_path / "a.jsonl")]
    assert loaded.generate(TEXTS, splitter="punctuation", max_len_b=6) == expected and len(set(expected)) == 2
    for splitter, message in ((None, ERROR), ("words", "unknown sentence splitter 'words'")):
        with pytest.raises(ValueError, match=message):
            loaded.generate(TEXTS, splitter=splitter)


def test_labels(fine_tuned, tmp_path: Path) -> None:
    made = fine_tuned("classification")
    segments = write(tmp_path / "segments.jsonl", [{"segments": split_sentences(t, "punctuation")} for t in TEXTS])
    texts = write(tmp_path / "texts.jsonl", [{"text": text} for text in TEXTS])
    common = ["predict", str(made.checkpoint), "--data", f"{made.data}/bin", "--device", "cpu"]
    for source, flags, out in ((segments, [], "a"), (texts, ["--splitter", "punctuation"], "b")):
        assert cli.main([*common, *flags, str(source), "--details", "--out", f"{tmp_path}/{out}.jsonl"]) == 0
    assert lines_of(tmp_path / "a.jsonl") == lines_of(tmp_path / "b.jsonl")
    assert [len(row["segments"]) for row in lines_of(tmp_path / "a.jsonl")] == [3, 2]
    assert cli.main([*common, str(texts), "--out", f"{tmp_path}/c.jsonl"]) == 2
    model = hat_fairseq.load(made.checkpoint, made.data / "bin", "cpu")
    assert model.look(TEXTS[1], splitter="punctuation").unit == "segment"
    with pytest.raises(ValueError, match=ERROR):
        model.predict(TEXTS)
