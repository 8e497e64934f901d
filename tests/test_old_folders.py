"""Folders of `hat package` and `hat export` of earlier versions give what they gave, and are exported anew."""

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import hat, read_lines, refusal, write_lines
from fairseq import checkpoint_utils

from hat_fairseq.data.checksums import Checksums
from hat_fairseq.inference.jobs import ModelFiles
from hat_fairseq.model_folder import ModelFolder, check_files
from hat_fairseq.register import register

transformers = pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")

register()

FIXTURES = Path(__file__).parent / "fixtures"
LABELLED = ("package", "export", "export_roberta")  # the last one is transformers' own RoBERTa


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("old")
    for name in ("v0.4_export", "v0.5_folders"):
        with tarfile.open(FIXTURES / f"{name}.tar.gz") as archive:
            archive.extractall(place, filter="data")
    return place


@pytest.fixture(scope="module")
def expected(folders: Path) -> dict[str, Any]:
    return json.loads((folders / "v0.5/expected.json").read_text())


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_the_recorded_ones_also_after_an_export(
    name: str, folders: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    folder, new, documents = folders / "v0.5" / name, tmp_path / "new", FIXTURES / "v0.3/raw/classification/train.jsonl"
    assert hat("export", folder, "--out", new) == 0
    check_files(new)
    for number, path in enumerate((folder, new)):
        assert hat("predict", path, documents, "--out", out := tmp_path / f"{number}.jsonl", "--device", "cpu") == 0
        assert [line["probabilities"] for line in read_lines(out)] == [
            pytest.approx(each, abs=1e-5) for each in expected[name]
        ]
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(new, trust_remote_code=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(new, trust_remote_code=True)
    texts = [{key: row[key] for key in row.keys() - {"label"}} for row in read_lines(documents)]
    with torch.no_grad():
        scores = peer(**tokenizer(texts, return_tensors="pt")).logits.softmax(dim=-1)
    for row, each in zip(scores.tolist(), expected[name], strict=True):
        assert {peer.config.id2label[i]: x for i, x in enumerate(row)} == pytest.approx(each, abs=1e-5)


def test_a_killed_command_goes_on(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links to the files of these folders are elsewhere in each process."""
    files = ModelFiles(str(folders / "v0.5" / "export"), None, "cpu", "fp32", None)
    before, places = files.content_now(), files.files()
    monkeypatch.setattr("hat_fairseq.model_folder._LINKED", {})
    assert files.files() != places and files.content_now() == before


def test_texts_are_the_recorded_ones(folders: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    """With the options of the folder; the export of 0.4 is of the same checkpoint, and of other options."""
    documents = FIXTURES / "v0.3/raw/documents/train.jsonl"
    options = ["--beam", 2, "--max-len-b", 12, "--min-len", 3]
    for number, (name, flags) in enumerate((("v0.5/export_roles", []), ("v0.4_export", options))):
        out = tmp_path / f"{number}.jsonl"
        words = ["generate", folders / name, documents, "--out", out, "--device", "cpu"]
        assert hat(*words, *flags) == 0
        assert [line["text"] for line in read_lines(out)] == expected["export_roles"]


@pytest.mark.parametrize("name", ["v0.4_export", *(f"v0.5/{name}" for name in ("export_roles", *LABELLED))])
def test_fairseq_loads_it_as_a_checkpoint(name: str, folders: Path) -> None:
    tensors = ModelFolder.open(folders / name).tensors()
    (model,), *_ = checkpoint_utils.load_model_ensemble_and_task([str(folders / name)])
    assert model.state_dict().keys() == tensors.keys()
    assert all(torch.equal(tensor, tensors[own]) for own, tensor in model.state_dict().items())
    reference = {"v0.4_export": "hat_transformer_roles", "v0.5/package": "hat_roberta"}.get(name)
    if reference:
        before = torch.load(FIXTURES / f"v0.3/{reference}.pt", weights_only=True)["model"]
        assert before.keys() == tensors.keys() and all(torch.equal(each, tensors[own]) for own, each in before.items())


def test_a_tokenizer_of_0_5_is_saved_as_one_of_today(folders: Path, tmp_path: Path) -> None:
    """As after a training by transformers that began with an export of 0.5."""
    old = folders / "v0.5/export"
    for auto in (transformers.AutoModelForSequenceClassification, transformers.AutoTokenizer):
        auto.from_pretrained(old, trust_remote_code=True).save_pretrained(tmp_path / "saved")
    rows = read_lines(FIXTURES / "v0.3/raw/classification/train.jsonl")
    write_lines(tmp_path / "in.jsonl", rows)
    for path, out in ((old, "old.jsonl"), (tmp_path / "saved", "saved.jsonl")):
        assert hat("predict", path, tmp_path / "in.jsonl", "--out", tmp_path / out, "--device", "cpu") == 0
    assert read_lines(tmp_path / "old.jsonl") == read_lines(tmp_path / "saved.jsonl")


@pytest.mark.fault(
    "Checkpoints", "a package of 0.5 that is not whole, or was changed", "one line that names it, exit 2"
)
def test_a_package_that_is_not_as_it_was_written(folders: Path, tmp_path: Path) -> None:
    documents = FIXTURES / "v0.3/raw/classification/train.jsonl"
    for number, (change, message) in enumerate(
        (
            (None, "manifest.json is missing: not a whole folder"),
            ({"tied": {"x": "y"}}, "'x' cannot be tied to 'y'"),
            ({"x": 2}, "unknown key 'x'"),
        )
    ):
        folder = Path(shutil.copytree(folders / "v0.5/package", tmp_path / f"P{number}"))
        (folder / "manifest.json").unlink()
        if change is not None:
            config = json.loads((folder / "config.json").read_text())
            (folder / "config.json").write_text(json.dumps(config | change))
            (folder / "manifest.json").write_text(json.dumps(Checksums.of(folder).to_json()))
        error = refusal("predict", folder, documents, "--out", tmp_path / "out.jsonl", "--device", "cpu")
        assert message in error and str(folder) in error and not (tmp_path / "out.jsonl").exists()
