"""BPE and dictionary of an earlier run: from pre-training to fine-tuning, and from training data to other test data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_data import Preprocess

from hat_fairseq import cli
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.kinds import LabelledSegments
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import record_to_json


def write(folder: Path, kind: str, **splits: list[Record]) -> str:
    folder.mkdir()
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record_to_json(row)) + "\n" for row in rows))
    return str(folder)


@pytest.fixture
def pretraining(preprocessed: Preprocess) -> Path:
    return preprocessed("mlm") / "bin"


@pytest.fixture
def fine_tuning(preprocessed: Preprocess) -> Path:
    return preprocessed("segments") / "bin"


def settings(bin_directory: Path) -> dict:
    return json.loads((bin_directory / "pipeline.json").read_text())["settings"]


def test_pretraining_to_fine_tuning_to_other_test_data(
    pretraining: Path, fine_tuning: Path, examples: dict[str, list[Record]], tmp_path: Path
) -> None:
    assert (fine_tuning / "input0" / "dict.txt").read_bytes() == (pretraining / "dict.txt").read_bytes()
    assert sha256_of(fine_tuning / "bpe.codes") == sha256_of(pretraining / "bpe.codes")
    assert settings(fine_tuning)["source_tokenizer"] == "moses" and settings(fine_tuning)["kind"] == "segments"
    folder = write(tmp_path / "texts", "segments", test=examples["segments"][:2])
    command = [
        "preprocess",
        folder,
        "--kind",
        "segments",
        "--out",
        str(tmp_path / "out"),
        "--vocabulary",
        str(fine_tuning),
    ]
    assert cli.main([*command]) == 0  # where fairseq-preprocess finds its fixed dictionaries
    found = {
        "input0/dict.txt": "bin/input0/dict.txt",
        "label/dict.txt": "text/label.labels",
        "bpe.codes": "bin/bpe.codes",
    }
    for name, copy in found.items():
        assert (tmp_path / "out" / copy).read_bytes() == (fine_tuning / name).read_bytes()


def test_documents_with_targets_give_and_take_vocabularies(
    pretraining: Path, translations: list[Record], tmp_path: Path
) -> None:
    (tmp_path / "texts").mkdir()
    lines = "".join(json.dumps(record_to_json(document)) + "\n" for document in translations)
    (tmp_path / "texts" / "train.jsonl").write_text(lines)
    command = ["preprocess", str(tmp_path / "texts"), "--out", str(tmp_path / "a"), "--vocabulary", str(pretraining)]
    assert cli.main(command) == 0
    for side in ("source", "target"):
        assert (tmp_path / "a" / "bin" / f"dict.{side}.txt").read_bytes() == (pretraining / "dict.txt").read_bytes()
    (tmp_path / "a" / "bin" / "dict.txt").unlink()  # as where the BPE was learned
    again = [*command[:3], str(tmp_path / "b"), "--vocabulary", str(tmp_path / "a" / "bin")]
    assert cli.main(again) == 0
    assert (tmp_path / "b" / "text" / "train.source").read_bytes() == (
        tmp_path / "a" / "text" / "train.source"
    ).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bpe", "gpt2"], "--bpe gpt2 contradicts --vocabulary {}, which has --bpe learned; leave it out"),
        (["--num-codes", "9"], "--num-codes and --vocabulary {} contradict each other"),
        (
            ["--source-tokenizer", "none"],
            "none contradicts --vocabulary {}, which has --source-tokenizer moses",
        ),
        (["--vocabulary", "nowhere"], "pipeline.json is missing"),
    ],
)
def test_contradictions_are_refused(
    arguments: list[str],
    message: str,
    pretraining: Path,
    examples: dict[str, list[Record]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = write(tmp_path / "texts", "segments", train=examples["segments"])
    command = [folder, "--kind", "segments", "--out", str(tmp_path / "out"), "--vocabulary", str(pretraining)]
    assert cli.main(["preprocess", *command, *arguments]) == 2
    assert message.format(pretraining) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_labels_that_the_earlier_run_lacks_are_refused(
    fine_tuning: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "texts", "segments", test=[LabelledSegments("x", ("a", "b"), labels=("de", "fr"))])
    command = [
        "preprocess",
        folder,
        "--kind",
        "segments",
        "--out",
        str(tmp_path / "out"),
        "--vocabulary",
        str(fine_tuning),
    ]
    assert cli.main(command) == 2
    message = "the label 'fr', which the data of --vocabulary does not have; it has 'de', 'en'"
    assert message in capsys.readouterr().err


@pytest.fixture
def whole(translations: list[Record], tmp_path: Path) -> tuple[Path, Path]:
    """A folder with documents, and what was preprocessed from it with nothing left at its default."""
    folder, out = tmp_path / "documents", tmp_path / "first"
    folder.mkdir()
    lines = "".join(json.dumps(record_to_json(document)) + "\n" for document in translations)
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(lines)
    given = "--aligned --target-separator --source-tokenizer moses --target-tokenizer moses --target-language de "
    given += "--max-source-tokens 61 --max-target-tokens 71 --long-source chunk --num-codes 50"
    assert cli.main(["preprocess", str(folder), "--out", str(out), *given.split()]) == 0
    return folder, out


def test_the_whole_pipeline_is_taken_over(whole: tuple[Path, Path], tmp_path: Path) -> None:
    folder, first = whole
    (folder / "train.jsonl").unlink()
    given = ["preprocess", str(folder), "--out", str(tmp_path / "again"), "--vocabulary", str(first / "bin")]
    assert cli.main([*given, "--target-language", "de"]) == 0
    assert settings(tmp_path / "again/bin") == settings(first / "bin")
    for stream in ("source", "target", "ids"):
        assert (tmp_path / f"again/text/test.{stream}").read_bytes() == (first / f"text/test.{stream}").read_bytes()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--target-tokenizer none",
            "none contradicts --vocabulary {}, which has --target-tokenizer moses",
        ),
        ("--target-language en", "--target-language en contradicts --vocabulary {}, which has --target-language de"),
        ("--no-aligned", "--no-aligned contradicts --vocabulary {}, which has --aligned"),
        ("--no-target-separator", "--no-target-separator contradicts --vocabulary {}, which has --target-separator"),
        (
            "--max-source-tokens 60",
            "60 contradicts --vocabulary {}, which has --max-source-tokens 61",
        ),
        ("--splitter punctuation", "--splitter punctuation contradicts --vocabulary {}, which has --splitter given"),
        ("--roles", "--roles contradicts --vocabulary {}, which has --no-roles"),
    ],
)
def test_both_values_of_a_contradiction_are_named(whole, tmp_path: Path, capsys, flags: str, message: str) -> None:
    folder, first = whole
    given = ["preprocess", str(folder), "--out", str(tmp_path / "again"), "--vocabulary", str(first / "bin")]
    assert cli.main([*given, *flags.split()]) == 2
    assert message.format(first / "bin") in capsys.readouterr().err


def test_the_roles_are_taken_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "documents").mkdir()

    def preprocess(out: str, roles: str, *flags: str) -> int:
        turns = [{"role": role, "text": "Good morning everybody ."} for role in roles]
        line = json.dumps({"id": "a", "turns": turns, "target": ["Hello ."]}) + "\n"
        (tmp_path / "documents/train.jsonl").write_text(line)
        given = ["preprocess", str(tmp_path / "documents"), "--out", str(tmp_path / out), *flags]
        return cli.main(given)

    assert preprocess("first", "ABC", "--roles", "--num-codes", "9") == 0
    assert preprocess("again", "CA", "--vocabulary", str(tmp_path / "first/bin")) == 0
    assert settings(tmp_path / "again/bin")["role_labels"] == ["A", "B", "C"]
    name = "bin/dict.role.txt"
    assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert preprocess("other", "AD", "--vocabulary", str(tmp_path / "first/bin")) == 2
    assert "has the role 'D'; known are A, B, C" in capsys.readouterr().err
