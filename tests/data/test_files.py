"""Files and directories that are never half written, and never replace what somebody else made."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from hat_fairseq.data.checksums import Checksums
from hat_fairseq.data.files import files_below
from hat_fairseq.data.outputs import atomic_directory, atomic_file, check_output

MANIFEST_OF_A = json.dumps({"files": {"a": 0}, "sha256": {"a": hashlib.sha256(b"").hexdigest()}})


def write(folder: Path, **files: str) -> Path:
    """A finished directory whose manifest lists its files."""
    with atomic_directory(folder, "manifest.json") as directory:
        for name, text in files.items():
            (directory / name).write_text(text)
        (directory / "manifest.json").write_text(json.dumps(Checksums.of(directory).to_json()))
    return folder


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "mo[d]el.pt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left"), atomic_file(path) as file:
        file.write(b"ne")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    (tmp_path / f".mo[d]el.pt.partial-{'0' * 32}").touch()
    with atomic_file(path) as file:
        (partial,) = tmp_path.glob(".*")
        with atomic_file(path):  # of another process: what this one is writing stays
            assert partial.exists()
        file.write(b"new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_new_files_and_directories_have_the_usual_permissions(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.mkdir()
    (usual / "file").touch()
    with atomic_file(tmp_path / "file"):
        pass
    write(tmp_path / "folder")
    assert (tmp_path / "file").stat().st_mode == (usual / "file").stat().st_mode
    assert (tmp_path / "folder").stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize(
    "manifest",
    [None, "[]", "{}", '{"files": 3}', "not JSON", '{"files": {}, "sha256": ["a"]}', '{"sha256": {}}', MANIFEST_OF_A],
)
def test_a_directory_of_somebody_else_is_not_replaced(manifest: str | None, tmp_path: Path) -> None:
    """Work of another program may have a manifest.json, and a user may put a checkpoint into our directory."""
    folder = tmp_path / "data"
    (folder / "runs").mkdir(parents=True)
    (folder / "a").touch()
    (folder / "runs/checkpoint.pt").touch()
    if manifest is not None:
        (folder / "manifest.json").write_text(manifest)
    before = files_below(folder)
    never = atomic_directory(folder, "manifest.json", overwrite=True)
    with pytest.raises(ValueError, match="--overwrite does not replace it") as refused, never:
        pass
    assert files_below(folder) == before and list(tmp_path.iterdir()) == [folder]
    assert manifest != MANIFEST_OF_A or f"{folder}/runs/checkpoint.pt has changed" in str(refused.value)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", a="1")
    with pytest.raises(ValueError, match="mine has changed"), atomic_directory(folder, "manifest.json", overwrite=True):
        (folder / "mine").touch()
    assert files_below(folder) == ["a", "manifest.json", "mine"] and list(tmp_path.iterdir()) == [folder]


def test_an_output_replaces_no_input_and_nothing_without_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    check_output(path, False)
    path.touch()
    with pytest.raises(ValueError, match="exists; name another file, or replace it with --overwrite"):
        check_output(path, False)
    check_output(path, True, [None, tmp_path / "missing"])
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ValueError, match="--json .* is also an input of this command"):
        check_output(path, True, [tmp_path / "link"], "--json")
    with pytest.raises(ValueError, match="is also an input of this command"):
        check_output(path, True, [f"{tmp_path / 'missing'}{os.pathsep}{path}"])  # an ensemble
    with pytest.raises(ValueError, match="is a folder"):
        check_output(tmp_path, True)
    os.remove(path)
    with pytest.raises(ValueError, match="exists"):  # a link to nothing is somebody's
        check_output(tmp_path / "link", False)


def test_an_output_replaces_no_file_of_a_folder_that_is_read_or_written_by_hat(tmp_path: Path) -> None:
    (documents := tmp_path / "documents").mkdir()
    (documents / "train.jsonl").touch()
    (tmp_path / "link").symlink_to(documents)
    for path in (documents / "train.jsonl", tmp_path / "link/train.jsonl"):
        with pytest.raises(ValueError, match="train.jsonl is in .*documents, which is an input of this command"):
            check_output(path, True, [documents])
    check_output(documents / "new.jsonl", False, [documents])
    folder = write(tmp_path / "data", a="1")
    (folder / "results").mkdir()
    (folder / "results/mine").touch()
    for name in ("a", "manifest.json"):
        with pytest.raises(ValueError, match=f"--json .*/{name} belongs to {folder}, which hat has written"):
            check_output(folder / name, True, flag="--json")
    check_output(folder / "results/mine", True)
