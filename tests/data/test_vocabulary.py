"""`--vocabulary`: what an earlier run has decided is taken over, and what contradicts it is refused."""

import json
import shutil
from pathlib import Path

import pytest
from commands import hat, refusal

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line


def settings(folder: Path) -> dict:
    return json.loads((folder / "bin/pipeline.json").read_text())["settings"]


@pytest.fixture(scope="module")
def whole(translations: list[Record], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with documents, and what was preprocessed from it with nothing left at its default."""
    folder = tmp_path_factory.mktemp("documents")
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text("".join(json_line(document) + "\n" for document in translations))
    flags = "--aligned --target-separator --source-tokenizer moses --target-tokenizer moses --target-language de "
    flags += "--max-source-tokens 61 --max-target-tokens 71 --long-source chunk --num-codes 50"
    assert hat("preprocess", folder, "--out", folder / "first", *flags.split()) == 0
    return folder, folder / "first"


def test_the_whole_pipeline_is_taken_over(whole: tuple[Path, Path], tmp_path: Path) -> None:
    folder, first = whole
    flags = ["--vocabulary", first / "bin", "--target-language", "de"]
    (tmp_path / "blind").mkdir()
    shutil.copy(folder / "test.jsonl", tmp_path / "blind")
    assert hat("preprocess", tmp_path / "blind", "--out", tmp_path / "again", *flags) == 0
    assert settings(tmp_path / "again") == settings(first)
    for stream in ("source", "target", "ids"):
        assert (tmp_path / f"again/text/test.{stream}").read_bytes() == (first / f"text/test.{stream}").read_bytes()


CONTRADICTIONS = {
    "--bpe gpt2": "--bpe gpt2 contradicts --vocabulary {}, which has --bpe learned; remove it",
    "--roles text": "--roles text contradicts --vocabulary {}, which has --roles none",
    "--num-codes 9": "--num-codes and --vocabulary {} contradict each other",
    "--target-tokenizer none": "none contradicts --vocabulary {}, which has --target-tokenizer moses",
    "--no-aligned": "--no-aligned contradicts --vocabulary {}, which has --aligned",
    "--max-source-tokens 60": "60 contradicts --vocabulary {}, which has --max-source-tokens 61",
    "--roles": "--roles stream contradicts --vocabulary {}, which has --roles none",
}


def test_contradictions_are_refused(whole: tuple[Path, Path], tmp_path: Path) -> None:
    folder, first = whole
    words = ["preprocess", folder, "--out", tmp_path / "again", "--vocabulary", first / "bin"]
    for flags, message in CONTRADICTIONS.items():
        assert message.format(first / "bin") in refusal(*words, *flags.split())
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("kind", "flags", "names", "message"),
    [
        ("text", ["--roles"], ["bin/dict.role.txt"], "has the role 'D'; known are A, B, C"),
        ("segments", [], ["bin/label/dict.txt"], "label 'D', which the data of --vocabulary does not have; it has 'A'"),
    ],
)
def test_roles_and_labels_stay_and_others_are_refused(
    kind: str, flags: list[str], names: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def preprocess(out: str, split: str, roles: str, *flags: object) -> int:
        turns = [{"role": role, "text": "Good morning everybody ."} for role in roles]
        segments = {"segments": ["Good morning ."] * len(roles), "labels": list(roles)}
        record = {"turns": turns, "target": ["Hello ."]} if kind == "text" else segments
        (raw := tmp_path / f"raw_{out}").mkdir()
        (raw / f"{split}.jsonl").write_text(json.dumps({"id": "a", **record}) + "\n")
        return hat("preprocess", raw, "--kind", kind, "--out", tmp_path / out, *flags)

    assert preprocess("first", "train", "ABC", "--num-codes", 9, *flags) == 0
    assert preprocess("again", "test", "CA", "--vocabulary", tmp_path / "first/bin") == 0
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert preprocess("other", "test", "AD", "--vocabulary", tmp_path / "first/bin") == 2
    assert message in capsys.readouterr().err
