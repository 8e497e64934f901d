"""Files and directories that are never half written, and never replace what somebody else made."""

import errno
import hashlib
import itertools
import json
import os
import resource
import signal
import socket
import stat
from pathlib import Path

import pytest
import torch

from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.data.files import files_below
from hat_fairseq.data.outputs import atomic_directory, atomic_file, check_output

MANIFEST_OF_A = json.dumps({"files": {"a": 0}, "sha256": {"a": hashlib.sha256(b"").hexdigest()}})


def write(folder: Path, **files: str) -> Path:
    """A finished directory whose manifest lists its files."""
    with atomic_directory(folder, "manifest.json") as directory:
        for name, text in files.items():
            (directory / name).write_text(text)
        (directory / "manifest.json").write_text(json.dumps(checksums_of(directory)))
    return folder


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "mo[d]el.pt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left"), atomic_file(path) as file:
        file.write(b"ne")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / f".mo[d]el.pt.partial-{'0' * 32}").touch()
    with atomic_file(path) as file:
        (partial,) = tmp_path.glob(".*")
        with atomic_file(path):  # of another process: what this one is writing stays
            assert partial.exists()
        file.write(b"new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


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
    assert files_below(folder) == before
    assert list(tmp_path.iterdir()) == [folder]
    assert manifest != MANIFEST_OF_A or f"{folder}/runs/checkpoint.pt has changed" in str(refused.value)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", a="1")
    with pytest.raises(ValueError, match="mine has changed"), atomic_directory(folder, "manifest.json", overwrite=True):
        (folder / "mine").touch()
    assert files_below(folder) == ["a", "manifest.json", "mine"]
    assert list(tmp_path.iterdir()) == [folder]


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


@pytest.mark.parametrize("name", ["a", "manifest.json", "new.jsonl", "results/new.jsonl", "results/mine"])
def test_nothing_is_written_into_a_folder_that_has_a_manifest(name: str, tmp_path: Path) -> None:
    """It would no longer be what its manifest says, and every command refuses such a model."""
    folder = write(tmp_path / "data", a="1")
    (folder / "results").mkdir()
    (folder / "results/mine").touch()
    (tmp_path / "link").symlink_to(folder)
    for path in (folder / name, tmp_path / "link" / name):
        with pytest.raises(ValueError, match=f"--json {path} is in {folder}, which hat has written"):
            check_output(path, True, flag="--json")
    with pytest.raises(ValueError, match=f"results/b is in {folder}, which hat has written"):
        write(folder / "results/b")
    check_output(tmp_path / "new.jsonl", False)


@pytest.mark.parametrize("kind", ["device", "pipe", "socket", "folder", "link to a device", "link to a folder"])
def test_what_is_no_regular_file_is_never_replaced(kind: str, tmp_path: Path) -> None:
    path, target = tmp_path / "out", tmp_path / "target" if kind.startswith("link") else tmp_path / "out"
    if kind.endswith("device"):
        try:
            os.mknod(target, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:  # only root makes devices
            path.symlink_to("/dev/null")
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(target))
    else:
        target.mkdir()
    if kind.startswith("link") and not path.is_symlink():
        path.symlink_to(target)
    before = os.lstat(path)
    with pytest.raises(ValueError, match=f"--out {path} is a (device|folder)"):
        check_output(path, True)
    with pytest.raises(ValueError, match=f"{path} is a (device|folder)"), atomic_file(path) as file:
        file.write(b"lost")
    assert os.path.samestat(before, os.lstat(path))
    assert not list(tmp_path.glob(".*"))


def test_a_pipe_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(ValueError, match="is a device, a pipe or a socket"), atomic_file(path) as file:
        file.write(b"lost")
        os.mkfifo(path)
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


def replace(folder: Path) -> None:
    with atomic_directory(folder, "manifest.json", overwrite=True) as directory:
        (directory / "b").write_text("new")
        (directory / "manifest.json").write_text(json.dumps(checksums_of(directory)))


@pytest.mark.parametrize("killed_after", [1, 2])
def test_a_folder_that_a_killed_process_moved_aside_is_put_back_or_removed(killed_after: int, tmp_path: Path) -> None:
    """Between the two renames, and after them."""
    folder = write(tmp_path / "data", a="1")
    if os.fork() == 0:
        rename, renames = Path.rename, itertools.count(1)

        def killed(self: Path, target: Path) -> Path:
            renamed = rename(self, target)
            if next(renames) == killed_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return renamed

        Path.rename = killed  # type: ignore[method-assign]
        replace(folder)
    os.wait()
    assert folder.exists() == (killed_after == 2)
    assert len(list(tmp_path.glob(".data.replaced-*"))) == 1
    with pytest.raises(ValueError, match="already exists"):
        write(folder, a="2")
    assert files_below(folder) == [["a"], ["b"]][killed_after - 1] + ["manifest.json"]
    assert list(tmp_path.iterdir()) == [folder]
    replace(folder)
    assert files_below(folder) == ["b", "manifest.json"]
    assert list(tmp_path.iterdir()) == [folder]


def test_nothing_is_put_back_while_another_process_writes(tmp_path: Path) -> None:
    """It may be between its renames."""
    folder = write(tmp_path / "data", a="1")
    with atomic_directory(folder, "manifest.json", overwrite=True) as directory:
        (directory / "manifest.json").write_text(json.dumps(checksums_of(directory)))
        aside = folder.rename(tmp_path / f".data.replaced-{'0' * 32}")
        with pytest.raises(ValueError, match="another process is writing"):
            replace(folder)
        assert aside.exists()
        assert not folder.exists()
    assert files_below(folder) == ["manifest.json"]


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EFBIG, "File too large"), True),
        (Exception("File too large (os error 27)"), True),  # as tokenizers and safetensors write it
        (Exception("Error while serializing: I/O error: No space left on device (os error 28)"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (Exception("Permission denied (os error 13)"), False),
    ],
)
def test_the_error_of_a_full_disk_names_the_file(error: Exception, named: bool, tmp_path: Path) -> None:
    with pytest.raises(type(error) if not named else OSError) as raised, atomic_file(path := tmp_path / "out"):
        raise error
    assert (getattr(raised.value, "filename", None) == str(path)) == named


def test_torch_s_error_of_a_full_disk_names_the_file(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised, atomic_file(path := tmp_path / "out") as file:
            torch.save(torch.ones(99_999), file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.filename == str(path)
    assert not list(tmp_path.iterdir())
