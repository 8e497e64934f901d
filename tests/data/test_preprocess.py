from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from hat_fairseq import cli
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.outputs import files_below
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records, record_to_json
from hat_fairseq.package_files import describe_files

REPOSITORY = Path(__file__).resolve().parents[2]
MEETINGS = ["--num-codes", "300", "--roles", "--role-in-text", "--max-source-tokens", "400", "--long-source", "chunk"]


def write(path: Path, documents: list[Record]) -> None:
    path.write_text("".join(json.dumps(record_to_json(document)) + "\n" for document in documents))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, meetings: list[Record]) -> Path:
    path = tmp_path_factory.mktemp("meetings")
    write(path / "train.jsonl", meetings[:5])
    write(path / "valid.jsonl", meetings[5:6])
    write(path / "test.jsonl", meetings[6:])
    return path


@pytest.fixture(scope="module")
def result(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "data bin"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert cli.main(["preprocess", str(folder), "--out", str(out), *MEETINGS]) == 0
    (out.parent / "printed").write_text(printed.getvalue())
    return out


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a refused command."""
    assert cli.main(["preprocess", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_every_stream_has_one_line_for_each_chunk(result: Path, meetings: list[Record]) -> None:
    text = result / "text"
    pipeline = TextPipeline.load(result / "bin")
    chunks = [chunk for meeting in meetings[6:] for chunk in pipeline.encode(meeting)]
    assert (text / "test.source").read_text().split("\n") == [*(" ".join(chunk.tokens) for chunk in chunks), ""]
    assert (text / "test.role").read_text().split("\n") == [*(" ".join(chunk.streams["role"]) for chunk in chunks), ""]
    assert (text / "test.ids").read_text() == "".join(
        f"{c.id}\t{c.part}\t{c.num_parts}\t{c.tokens.count('<s>')}\n" for c in chunks
    )
    assert len((text / "test.target").read_text().splitlines()) == len(chunks)
    assert list(read_records(text / "test.jsonl")) == [pipeline.prepare(meeting) for meeting in meetings[6:]]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_fairseq_reads_back_what_was_written(result: Path, split: str) -> None:
    for prefix, side in (("source-target", "source"), ("source-target", "target"), ("role-None", "role")):
        dictionary = Dictionary.load(str(result / "bin" / f"dict.{side}.txt"))
        dataset = data_utils.load_indexed_dataset(str(result / "bin" / f"{split}.{prefix}.{side}"), dictionary, "mmap")
        lines = (result / "text" / f"{split}.{side}").read_text().splitlines()
        assert len(dataset) == len(lines)
        for ids, line in zip(dataset, lines, strict=True):
            tokens = [token if token in dictionary else "<unk>" for token in line.split()]
            assert [dictionary[index] for index in ids] == [*tokens, "</s>"]


def test_the_manifest_accounts_for_everything(result: Path, meetings: list[Record]) -> None:
    manifest = json.loads((result / "manifest.json").read_text())
    train = manifest["splits"]["train"]
    tokens = [line.split() for line in (result / "text" / "train.source").read_text().splitlines()]
    assert train["documents"] == 5
    assert train["lines"] == len(tokens)
    assert train["source_tokens"]["total"] == sum(map(len, tokens)) + len(tokens)
    assert train["source_tokens"]["max"] == max(map(len, tokens)) + 1 <= 400
    assert (
        train["sentences"] == sum(line.count("<s>") for line in tokens) >= sum(len(m.sentences) for m in meetings[:5])
    )
    assert train["treatments"]["source_chunks"] == len(tokens)
    assert train["treatments"]["targets_repeated_for_chunks"] == len(tokens) - 5
    assert manifest["splits"]["test"]["treatments"]["source_tokens_unknown_to_dictionary"] > 0
    files = [name for name in files_below(result) if name != "manifest.json"]
    assert manifest["sha256"] == {name: sha256_of(result / name) for name in files}
    assert manifest["files"] == {name: (result / name).stat().st_size for name in files}
    assert manifest["versions"]["tokenizers"] != "not installed"


def test_two_workers_give_the_same_files(folder: Path, result: Path, tmp_path: Path) -> None:
    arguments = [
        "preprocess",
        str(folder),
        "--out",
        str(tmp_path / "out"),
        *MEETINGS,
        "--workers",
        "2",
    ]
    assert cli.main(arguments) == 0
    files = sorted(path.relative_to(result) for path in (result / "text").iterdir())
    assert files == sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out" / "text").iterdir())
    for file in [*files, Path("bin", "pipeline.json"), Path("bin", "bpe.codes")]:
        assert (tmp_path / "out" / file).read_bytes() == (result / file).read_bytes()


@pytest.mark.fault("Input", "a document without text", "refused with its id and line; --on-empty drop counts it")
def test_empty_documents_are_refused_or_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path / "train.jsonl",
        [Document("full", sentences=("a b",), target=("a",)), Document("empty", sentences=(" ",), target=("a",))],
    )
    arguments = [str(tmp_path), "--out", str(tmp_path / "out"), "--num-codes", "5"]
    assert f"document 'empty' ({tmp_path}/train.jsonl:2) has an empty source" in failure(arguments, capsys)
    assert cli.main(["preprocess", *arguments, "--on-empty", "drop"]) == 0
    train = json.loads((tmp_path / "out" / "manifest.json").read_text())["splits"]["train"]
    assert (train["documents"], train["treatments"]) == (1, {"documents_empty_dropped": 1})


@pytest.mark.fault("Input", "invalid UTF-8", "refused with file, line and byte")
@pytest.mark.fault(
    "Input", "a document without target, roles or sentences that the options need", "refused with its id and the flag"
)
@pytest.mark.fault("Input", "an empty split", "refused")
@pytest.mark.fault("Input", "a source longer than the limit", "refused with its id; truncate, drop or chunk by a flag")
@pytest.mark.parametrize(
    ("line", "arguments", "message"),
    [
        (b'{"id": "a", "text": "caf\xe9", "target": "x"}', [], r"train.jsonl:1: invalid UTF-8"),
        (b'{"id": "a", "text": "x. y", "target": "x"}', [], "or --splitter punctuation or --splitter library"),
        (b'{"id": "a", "sentences": ["x"], "target": "x"}', ["--splitter", "library"], "use --splitter given"),
        (b'{"id": "a", "sentences": ["x"]}', [], "train.jsonl:1) has no target"),
        (b'{"id": "a", "sentences": ["x"], "target": "x"}', ["--roles"], "use --no-roles"),
        (
            b'{"id": "a", "sentences": ["x y"], "target": "x"}',
            ["--max-source-tokens", "3"],
            "train.jsonl:1): its source is too long",
        ),
        (
            b'{"id": "a", "sentences": ["x y"], "target": "x"}',
            ["--workers", "0"],
            "--workers 0: the number of workers must be from 1 to 1,024",
        ),
        (b'{"id": "a", "sentences": ["x y"], "target": "x"}', ["--limit", "0"], "--limit must be at least 1, not 0"),
        (b"", [], "the split train has no documents"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes, arguments: list[str], message: str
) -> None:
    (tmp_path / "train.jsonl").write_bytes(line + b"\n" if line else b"")
    assert message in failure([str(tmp_path), "--out", str(tmp_path / "out"), *arguments], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]


@pytest.mark.fault(
    "Preprocessing", "--out exists", "refused; --overwrite replaces nothing that hat preprocess did not write"
)
@pytest.mark.fault("Preprocessing", "--overwrite on a folder of hat package", "refused")
@pytest.mark.fault("Preprocessing", "--overwrite on a result of which a file has changed", "refused")
def test_existing_directories_are_safe(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "already exists; choose another directory" in failure(["ami", "--out", str(result)], capsys)
    words = ["ami", "--out", str(tmp_path), "--overwrite", "--limit", "1"]
    (tmp_path / "thesis.tex").touch()
    assert "--overwrite does not replace it" in failure(words, capsys)
    (tmp_path / "manifest.json").write_text(json.dumps(package := describe_files(tmp_path)))
    assert "has no manifest.json of this command" in failure(words, capsys)
    (tmp_path / "manifest.json").write_text(json.dumps({**package, "reader": "ami"}))
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "thesis.tex has changed since manifest.json was written" in failure(words, capsys)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_overwrite_replaces_an_earlier_result(folder: Path, tmp_path: Path) -> None:
    arguments = ["preprocess", str(folder), "--out", str(tmp_path / "out"), "--num-codes", "20"]
    assert cli.main([*arguments, "--limit", "1"]) == 0
    assert cli.main([*arguments, "--overwrite"]) == 0
    assert len((tmp_path / "out" / "text" / "train.ids").read_text().splitlines()) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.fault("Input", "one test set with targets or labels, another without", "refused with both names")
@pytest.mark.parametrize("kind", ["text", "classification"])
def test_test_sets_with_and_without_what_is_right(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "target" if kind == "text" else "label"
    (tmp_path / "mine").mkdir()
    for split in ("train", "test", "test1"):
        line = {"id": split, "text": "One .", **({} if split == "test" else {key: "x"})}
        (tmp_path / f"mine/{split}.jsonl").write_text(json.dumps(line) + "\n")
    words = [str(tmp_path / "mine"), "--kind", kind, "--splitter", "punctuation", "--out", str(tmp_path / "out")]
    assert f"test1 has {key} and test has not: preprocess them from separate folders" in failure(words, capsys)


def test_only_the_named_splits_are_read(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others need not be there."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/test.jsonl").write_text(
        '{"id": "a", "turns": [{"role": "PM", "text": "Hello ."}], "target": "Hi ."}\n'
    )
    (tmp_path / "mine/train.jsonl").write_text("damaged\n")
    words = [str(tmp_path / "mine"), "--out", str(tmp_path / "out"), "--vocabulary", str(result / "bin")]
    assert "has train, test" in failure([*words, "--splits", "test", "valid"], capsys)
    assert cli.main(["preprocess", *words, "--splits", "test"]) == 0
    assert sorted(path.name for path in (tmp_path / "out/text").glob("*.ids")) == ["test.ids"]


@pytest.mark.fault("Input", "the same document in train and test", "counted by id and by source in the report")
@pytest.mark.parametrize("kind", ["text", "classification"])
def test_what_is_in_two_splits_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    folder, key = tmp_path / "mine", "target" if kind == "text" else "label"
    folder.mkdir()
    rows = {
        "train": [("a", "One ."), ("b", "Two .")],
        "valid": [("a", "Three .")],
        "test": [("c", "Two ."), ("b", "One .")],
    }
    for split, pairs in rows.items():
        lines = (json.dumps({"id": i, "text": text, key: "x"}) + "\n" for i, text in pairs)
        (folder / f"{split}.jsonl").write_text("".join(lines))
    words = ["preprocess", str(folder), "--out", str(tmp_path / "out"), "--splitter", "punctuation", "--num-codes", "5"]
    assert cli.main([*words, "--kind", kind]) == 0
    splits = json.loads((tmp_path / "out/manifest.json").read_text())["splits"]
    found = [splits[split]["treatments"] for split in ("train", "valid", "test")]
    names = "ids_in_an_earlier_split", "sources_in_an_earlier_split"
    assert [[split.get(name, 0) for name in names] for split in found] == [[0, 0], [1, 0], [1, 2]]
    assert re.search(r"sources in an earlier split +0 +0 +2\n", capsys.readouterr().out)


@pytest.mark.fault("Input", "a split all of whose documents are dropped", "refused")
@pytest.mark.parametrize("kind", ["text", "classification"])
@pytest.mark.parametrize("bpe", ["learned", "vocabulary"])
def test_a_split_of_which_nothing_is_left_is_an_error(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, bpe: str
) -> None:
    key, source = ("target", "sentences") if kind == "text" else ("label", "segments")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/train.jsonl").write_text(json.dumps({"id": "a", source: [" "], key: "x"}) + "\n")
    words = [str(tmp_path / "mine"), "--out", str(tmp_path / "out"), "--kind", kind]
    words += ["--vocabulary", str(result / "bin")] if bpe == "vocabulary" else []
    assert "every document was dropped (--on-empty drop" in failure([*words, "--on-empty", "drop"], capsys)


SLOW_READER = """
import time
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.kinds import Document

SPLITS = ("train",)

def read(split, root, counts):
    for number in range(40):
        yield Document(str(number), sentences=("a b",), target=("a",))
    (root / "reading").touch()
    time.sleep(600)
"""


@pytest.mark.fault("Preprocessing", "kill -9 of the command with workers", "its workers end too")
def test_a_killed_run_leaves_no_half_directory_and_no_workers(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_READER)
    command = [
        sys.executable,
        "-m",
        "hat_fairseq.cli",
        "preprocess",
        str(tmp_path / "slow.py"),
        "--root",
        str(tmp_path),
    ]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out"), "--workers", "2"], stdout=subprocess.PIPE, cwd=REPOSITORY
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "reading").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)  # returns when the last worker, too, has closed its copy of the pipe
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
