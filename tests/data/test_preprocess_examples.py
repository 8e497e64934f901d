"""`hat preprocess` with examples of every kind: its files, what fairseq reads of them, its account, its refusals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from example_data import BINARIZED, OPTIONS, Preprocess
from fairseq.data import Dictionary, data_utils

from hat_fairseq import cli
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.labels import read_label_dictionary
from hat_fairseq.data.outputs import files_below
from hat_fairseq.data.packing import pack_rows
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.rows import read_ids

CLASSES = ["in%20cs", "in%20de", "in%20en"]


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a refused command."""
    assert cli.main(["preprocess", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("text", "mlm")])
def test_the_files_are_the_encoded_examples(kind: str, preprocessed: Preprocess, folders: Path) -> None:
    out = preprocessed(kind)
    pipeline = TextPipeline.load(out / "bin")
    assert pipeline.settings.kind == kind
    for split in ("train", "valid", "test"):
        examples = list(read_records(folders / kind / f"{split}.jsonl", kind))
        assert list(read_records(out / "text" / f"{split}.jsonl", kind)) == examples
        rows = [row for example in examples for row in pipeline.rows(example)]
        lines = (out / "text" / f"{split}.source").read_text().splitlines()
        assert lines == [" ".join(row.tokens) for row in rows]
        ids = read_ids(out / "bin" / f"{split}.ids")
        assert [(i.document_id, i.number, i.count, i.segments) for i in ids] == [
            (row.id, row.part, row.num_parts, row.segments) for row in rows
        ]
        labelled = split != "test" or kind in ("qa", "document_qa")
        assert (out / "text" / f"{split}.label").exists() == labelled
        if kind in BINARIZED:
            assert (out / "bin" / "label" / f"{split}.idx").exists() == labelled
        if labelled:
            labels = (out / "text" / f"{split}.label").read_text().splitlines()
            assert labels == [" ".join(row.label or []) for row in rows]


@pytest.mark.parametrize("kind", BINARIZED)
@pytest.mark.parametrize("split", ["train", "valid"])
def test_fairseq_reads_back_what_was_written(kind: str, split: str, preprocessed: Preprocess) -> None:
    out = preprocessed(kind)
    input0 = out / "bin" if kind == "mlm" else out / "bin" / "input0"
    for folder, stream in ((input0, "source"), *([] if kind == "mlm" else [(out / "bin" / "label", "label")])):
        dictionary = Dictionary.load(str(folder / "dict.txt"))
        dataset = data_utils.load_indexed_dataset(str(folder / split), dictionary, "mmap")
        lines = (out / "text" / f"{split}.{stream}").read_text().splitlines()
        assert len(dataset) == len(lines) > 0
        for ids, line in zip(dataset, lines, strict=True):
            tokens = [token if token in dictionary else "<unk>" for token in line.split()]
            assert [dictionary[index] for index in ids] == [*tokens, "</s>"]
            assert stream == "source" or "<unk>" not in tokens


def test_the_labels_are_the_sorted_training_labels(preprocessed: Preprocess) -> None:
    def labels(kind: str) -> list[str]:
        out = preprocessed(kind)
        return read_label_dictionary(out / ("bin/label/dict.txt" if kind in BINARIZED else "text/label.labels"))

    assert labels("classification") == ["in cs", "in de", "in en"]
    assert labels("sequence") == labels("byte_sequence") == ["cs", "de", "en"]
    assert labels("choice") == ["right", "wrong"]
    assert labels("segments") == ["de", "en"]
    assert labels("tokens") == ["100 %", "<pad>", "capital letter"]
    assert labels("qa") == [str(position) for position in range(80)]


def test_fairseqs_own_task_reads_the_directory(preprocessed: Preprocess) -> None:
    from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

    out = preprocessed("classification")
    cfg = SentencePredictionConfig(data=str(out / "bin"), num_classes=3, max_positions=512, no_shuffle=True)
    cfg.regression_target, cfg.seed = False, 1
    task = SentencePredictionTask.setup_task(cfg)
    task.load_dataset("valid")
    samples = [task.dataset("valid")[index] for index in range(len(task.dataset("valid")))]
    labels = (out / "text" / "valid.label").read_text().split()
    assert [int(sample["target"]) for sample in samples] == [CLASSES.index(label) for label in labels]
    rows = (out / "text" / "valid.source").read_text().splitlines()
    assert [len(sample["net_input.src_tokens"]) for sample in samples] == [len(row.split()) + 1 for row in rows]


def test_packed_rows_split_no_sentence(preprocessed: Preprocess, folders: Path) -> None:
    out = preprocessed("mlm")
    assert sorted(path.name for path in (out / "bin").iterdir()) == sorted(
        ["pipeline.json", "bpe.codes", "dict.txt"]
        + [f"{split}.{ending}" for split in ("train", "valid", "test") for ending in ("bin", "idx")]
    )
    pipeline = TextPipeline.load(out / "bin")
    whole = TextPipeline(replace(pipeline.settings, max_source_tokens=None), pipeline.bpe)
    documents = []
    for example in read_records(folders / "mlm" / "train.jsonl", "mlm"):
        (row,) = whole.rows(example)
        documents.append([unit.split() for unit in " ".join(row.tokens).split("<s>") if unit])
    rows = [line.split() for line in (out / "text" / "train.source").read_text().splitlines()]
    assert rows == list(pack_rows(documents, 120, True, Counter()))
    assert 10 < len(rows) < sum(len(document) for document in documents) and max(map(len, rows)) <= 120


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_the_manifest_accounts_for_everything(kind: str, preprocessed: Preprocess, folders: Path) -> None:
    out = preprocessed(kind)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["options"]["kind"] == kind
    files = [name for name in files_below(out) if name != "manifest.json"]
    assert manifest["sha256"] == {name: sha256_of(out / name) for name in files}
    train = manifest["splits"]["train"]
    rows = [line.split() for line in (out / "text" / "train.source").read_text().splitlines()]
    examples = list(read_records(folders / kind / "train.jsonl", kind))
    assert train["documents"] == len(examples) and train["lines"] == len(rows)
    assert train["source_tokens"]["total"] == sum(map(len, rows)) + len(rows)
    assert train["sentences"] == sum(row.count("<s>") for row in rows)
    labels = {
        "classification": len(examples),
        "choice": len(examples),
        "candidates": len(examples),
        "segments": sum(len(example.labels or ()) for example in examples),
        "tokens": sum(len(example.labels or ()) for example in examples),
        "qa": len(examples),
        "document_qa": len(examples),
        "sequence": len(examples),
        "byte_sequence": len(examples),
        "byte_pair": len(examples),
        "mlm": 0,
    }
    assert sum(train["labels"].values()) == labels[kind]
    treatments = train["treatments"]
    if kind in ("qa", "document_qa"):
        several = [row for row in read_ids(out / "bin" / "train.ids") if row.count > 1]
        assert treatments["windows"] == len(several) > treatments["examples_cut_into_windows"] > 0
    if kind == "tokens":
        written = [token for line in (out / "text" / "train.label").read_text().splitlines() for token in line.split()]
        assert treatments["labels_lost"] == labels[kind] - sum(token != "<pad>" for token in written) > 0
    if kind != "mlm":
        pipeline = TextPipeline.load(out / "bin")
        for example in examples:
            pipeline.rows(example)
        assert dict(+pipeline.counts) == {name: number for name, number in treatments.items() if "unknown" not in name}


@pytest.mark.parametrize("kind", ["qa", "document_qa", "mlm"])
def test_two_workers_give_the_same_files(kind: str, preprocessed: Preprocess, folders: Path, tmp_path: Path) -> None:
    command = ["preprocess", str(folders / kind), "--kind", kind, "--out", str(tmp_path / "out"), "--num-codes", "300"]
    assert cli.main([*command, *OPTIONS[kind], "--workers", "2"]) == 0
    out = preprocessed(kind)
    for file in sorted(path.relative_to(out) for path in (out / "text").iterdir()):
        assert (tmp_path / "out" / file).read_bytes() == (out / file).read_bytes()
    for name in ("pipeline.json", "bpe.codes"):
        assert (tmp_path / "out" / "bin" / name).read_bytes() == (out / "bin" / name).read_bytes()


READER = """
from hat_fairseq.data.kinds import LabelledText

KIND = "classification"
DEFAULTS = {"segments": "none", "num_codes": 10}
RELEASE = {"train": (3,)}

def read(split, root, counts):
    counts["seen"] += 2
    for number in range(2):
        yield LabelledText(f"{split}{number}", text="What is it? A text .", label="a" if split == "test" else "b")
"""


def test_a_reader_states_its_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(READER)
    command = [str(tmp_path / "mine.py"), "--out", str(tmp_path / "out")]
    assert "train has 2 documents, a complete release 3" in failure(command, capsys)
    unseen = "test: document 'test0' has the label 'a', which the training part does not have; it has 'b'"
    assert unseen in failure([*command, "--partial"], capsys)
    assert "yields data of --kind classification, not qa" in failure([*command, "--kind", "qa"], capsys)
    (tmp_path / "mine.py").write_text(READER.replace('"a" if split == "test" else "b"', '"b"'))
    assert cli.main(["preprocess", *command, "--limit", "1"]) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["options"]["segments"] == "none" and manifest["splits"]["train"]["lines"] == 1
    assert manifest["splits"]["train"]["treatments"] == {"seen": 2}


TRAIN = '{"id": "a", "text": "x", "label": "b"}\n'


@pytest.mark.parametrize(
    ("kind", "lines", "arguments", "message"),
    [
        (
            "classification",
            '{"id": "a", "text": "x"}\n' + TRAIN.replace('"a"', '"c"'),
            [],
            "'c' ({}:2) has label, ",
        ),
        ("classification", TRAIN * 2, [], "document 'a' ({}:2) occurs twice"),
        (
            "classification",
            '{"id": "a", "text": " ", "label": "b"}',
            [],
            "has an empty part: no sentence with text in it; ",
        ),
        (
            "classification",
            TRAIN,
            [],
            "or --splitter punctuation or --splitter library; or --segments none",
        ),
        ("classification", TRAIN, ["--aligned"], "--aligned has no effect with --kind classification; remove it"),
        ("classification", TRAIN, ["--long-source", "chunk"], "--long-source chunk is not for --kind classification"),
        ("segments", '{"id": "a", "segments": ["x"]}', ["--segments", "packed"], "each segment keeps its own marker"),
        ("mlm", '{"text": "x"}', ["--long-source", "truncate"], "documents go on in the next row"),
        ("text", '{"id": "a", "text": "x"}', ["--segments", "none"], "--segments none has no effect with --kind text"),
        (
            "qa",
            '{"id": "a", "text": "x y", "question": "q", "answers": [{"text": "y", "start": 1}]}',
            [],
            "{}:1: document 'a': the answer 'y' does not stand at character 1",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    kind: str, lines: str, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.jsonl").write_text(lines)
    command = [str(tmp_path), "--kind", kind, "--out", str(tmp_path / "out")]
    assert message.format(tmp_path / "train.jsonl") in failure([*command, *arguments], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]


def test_empty_examples_can_be_dropped(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(TRAIN + '{"id": "e", "text": "x", "second": " ", "label": "c"}\n')
    command = [
        "preprocess",
        str(tmp_path),
        "--kind",
        "classification",
        "--out",
        str(tmp_path / "out"),
        "--num-codes",
        "9",
    ]
    assert cli.main([*command, "--segments", "none", "--on-empty", "drop"]) == 0
    train = json.loads((tmp_path / "out" / "manifest.json").read_text())["splits"]["train"]
    assert (train["documents"], train["labels"]) == (1, {"b": 1})
    assert train["treatments"] == {"documents_empty_dropped": 1}
    assert (tmp_path / "out" / "text" / "label.labels").read_text() == "b 1\n"


SLOW_READER = READER.replace(
    "    for number", "    (root / 'reading').touch()\n    import time; time.sleep(600)\n    for number"
)
