"""A damaged file, or one that is no checkpoint, is one line before anything is built."""

import copy
import io
import shutil
import tarfile
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import USER_DIR
from fairseq import checkpoint_utils
from fairseq.data import indexed_dataset
from fairseq.models.bart import BARTModel
from omegaconf import OmegaConf

from hat_fairseq import cli
from hat_fairseq.fairseq_fixes.trust import CheckpointError, without_training
from hat_fairseq.model_folder import bare_checkpoint
from hat_fairseq.models.hat_transformer import HatBartModel
from hat_fairseq.weights.names import DEMO


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    torch.save(bare_checkpoint({"weight": torch.randn(100, 100)}), tmp_path / "model.pt")
    return tmp_path / "model.pt"


def test_a_flipped_bit_is_found(checkpoint: Path) -> None:
    """`torch.load` alone reads it without an error."""
    whole = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["model"]["weight"]
    content = bytearray(checkpoint.read_bytes())
    content[content.index(whole.numpy().tobytes()) + 20_002] ^= 16
    checkpoint.write_bytes(content)
    assert not torch.equal(torch.load(checkpoint, weights_only=True)["model"]["weight"], whole)
    with pytest.raises(
        CheckpointError, match=r"model.pt: damaged: .*/data/0; use another checkpoint, or copy it again"
    ):
        checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))


@pytest.mark.parametrize("form", ["namespace", "dictionary", "args"])
def test_settings_of_a_training_are_dropped(form: str, tmp_path: Path) -> None:
    """`vectors` of somebody else's checkpoint names a file that `train` writes."""
    settings = {"vectors": str(tmp_path / "written.npz"), "freeze_encoder": True, "encoder_layers": 2}
    state = bare_checkpoint({"weight": torch.zeros(1)})
    if form == "args":
        state["args"] = Namespace(arch="hat_units_tiny", task="document_evidence", criterion="evidence", **settings)
    else:
        model = {"_name": "hat_units_tiny", **settings}
        parts = {"task": {"_name": "document_evidence"}, "criterion": {"_name": "evidence"}}
        state["cfg"] = {**parts, "model": Namespace(**model) if form == "namespace" else model}
    loaded = without_training(as_loaded(state), {})
    stated = without_training(as_loaded(state), {"freeze_encoder": True})
    for each, left in ((loaded, {"encoder_layers"}), (stated, {"encoder_layers", "freeze_encoder"})):
        section = each["args"] if form == "args" else each["cfg"]["model"]
        names = vars(section).keys() if isinstance(section, Namespace) else section.keys()
        assert settings.keys() & names == left


def as_loaded(state: dict[str, Any]) -> dict[str, Any]:
    """A state as fairseq has it; each time another one."""
    state = copy.deepcopy(state)
    return state | {"cfg": OmegaConf.create(state["cfg"], flags={"allow_objects": True}) if state["cfg"] else None}


@pytest.mark.parametrize("below", ["", "checkpoints", "bin/mine"])
def test_no_training_writes_into_a_folder_of_a_model(below: str, tmp_path: Path) -> None:
    before = sorted(shutil.copytree(DEMO, tmp_path / "model").rglob("*"))
    with pytest.raises(CheckpointError, match=r"--save-dir .* is in .*model, which hat has written"):
        checkpoint_utils.verify_checkpoint_directory(str(tmp_path / "model" / below))
    assert sorted((tmp_path / "model").rglob("*")) == before
    checkpoint_utils.verify_checkpoint_directory(str(tmp_path / "other"))


@pytest.mark.parametrize("name", ["train.bin", "train.idx"])
@pytest.mark.parametrize("function", [indexed_dataset.dataset_exists, indexed_dataset.make_dataset])
def test_data_that_are_a_pointer_are_named(function: Any, name: str, tmp_path: Path) -> None:
    for each in ("train.bin", "train.idx"):
        (tmp_path / each).write_bytes(b"MMIDIDX")
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n")
    with pytest.raises(ValueError, match=rf"{name} is a Git LFS pointer, .*: run `git lfs pull`"):
        function(str(tmp_path / "train"), "mmap")


def test_other_files_are_one_line(checkpoint: Path) -> None:
    folder, content = checkpoint.with_name("folder.pt"), checkpoint.read_bytes()
    folder.mkdir()
    path = checkpoint.with_name("other.pt")
    for part, message in (
        (b"not a checkpoint\n", "not a checkpoint of torch"),
        (b"", r"not a complete checkpoint \(0 bytes\)"),
        (content[:40], r"not a complete checkpoint \(40 bytes\)"),
        (content[:20_000], r"not a complete checkpoint \(20000 bytes\)"),  # in which torch finds nothing to name
    ):
        path.write_bytes(part)
        with pytest.raises(CheckpointError, match=f"other.pt: {message}"):
            checkpoint_utils.load_checkpoint_to_cpu(str(path))
    with pytest.raises(CheckpointError, match="folder.pt: a directory; give the checkpoint in it"):
        checkpoint_utils.load_checkpoint_to_cpu(str(folder))
    (folder / "bin").mkdir()
    with pytest.raises(CheckpointError, match="folder.pt: data of hat preprocess, no model"):
        checkpoint_utils.load_checkpoint_to_cpu(str(folder))


REFUSED = {
    "raw": (lambda path, state: path.write_bytes(b"\x80\x02cos\nmkdir\nX\x01\x00\x00\x00a\x85R."), "os.mkdir"),
    "zip": (lambda path, state: torch.save({"model": Path("a")}, path), "refused, because it holds more than tensors"),
    "legacy": (lambda path, state: torch.save(Path("a"), path, _use_new_zipfile_serialization=False), "more than tens"),
    "list": (lambda path, state: torch.save([1], path), "no checkpoint of fairseq"),
    "tensor": (lambda path, state: torch.save(torch.zeros(2), path), "no model can be built from it"),
    "script": (lambda path, state: torch.jit.script(torch.nn.Linear(2, 2)).save(str(path)), "compressed"),
    "packed": (lambda path, state: pack(state, path), "compressed, which torch.save does not do"),
}


def pack(source: Path, path: Path) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))


@pytest.mark.fault("Security", "pickles of every format, TorchScript, compressed checkpoints", "one line, exit 2")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plain_checkpoint(
    name: str, checkpoint: Path, ami: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkpoint.with_name("other.pt")
    words = ["export", path, "--data", ami / "bin", "--out", path.parent / "out"]
    write, message = REFUSED[name]
    write(path, checkpoint)
    assert cli.main([*map(str, words)]) == 2
    error = capsys.readouterr().err
    assert f"{path}: " in error
    assert message in error
    assert error.count("\n") == 1
    assert not (path.parent / "out").exists()


@pytest.mark.fault("Security", "a text file as a checkpoint", "one line, exit 1")
def test_commands_of_fairseq_print_one_line(run, ami: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken.pt"
    path.write_text("not a checkpoint\n")
    flags = [ami / "bin", "--user-dir", USER_DIR, "--task", "document_to_text", "--path", path]
    generate = run("fairseq-generate", *flags, check=False)
    expected = f"hat_fairseq: error: {path}: not a checkpoint of torch"
    assert generate.returncode == 1
    assert generate.stderr.splitlines()[-1] == expected
    assert "Traceback" not in generate.stderr
    path.unlink()
    missing = f"hat_fairseq: error: Model file not found: {path}"
    assert run("fairseq-generate", *flags, check=False).stderr.splitlines() == [missing]
    assert run("fairseq-validate", *flags, "--batch-size", 1, check=False).stderr.splitlines() == [missing]
    (line,) = run("fairseq-validate", *flags, check=False).stderr.splitlines()  # an assertion of several lines
    assert line == "fairseq: error: Must specify batch size either with --max-tokens or --batch-size"


def test_checkpoints_of_old_torch_are_read(checkpoint: Path) -> None:
    state = torch.load(checkpoint, weights_only=True)
    torch.save(state, checkpoint, _use_new_zipfile_serialization=False)
    assert "weight" in checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["model"]


@pytest.mark.fault("Security", "an archive for `from_pretrained`", "refused, not unpacked")
def test_archives_are_not_unpacked(tmp_path: Path) -> None:
    """fairseq's `from_pretrained` writes what an archive names, wherever that is, and removes the archive."""
    archive = tmp_path / "folder/model.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as file:
        for name in ("model/model.pt", f"../{tmp_path.name}-outside"):
            file.addfile(tarfile.TarInfo(name), io.BytesIO())
    for model in (HatBartModel, BARTModel):
        with pytest.raises(CheckpointError, match=r"model.tar.gz is not a folder: unpack an archive yourself"):
            model.from_pretrained(str(archive))
    assert archive.is_file()


@pytest.mark.slow
def test_folders_are_read(train, ami: Path, tmp_path: Path) -> None:
    flags = ["--arch", "hat_bart_base", "--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 24]
    flags += ["--decoder-embed-dim", 24, "--max-update", 1, "--disable-validation"]
    train(tmp_path, *flags)
    hub = HatBartModel.from_pretrained(str(tmp_path), "checkpoint_last.pt", str(ami / "bin"))
    assert isinstance(hub.models[0], HatBartModel)
