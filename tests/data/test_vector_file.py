"""The file of `--vectors`: what is read is what was written, and a file of something else is refused and kept."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hat_fairseq
from hat_fairseq.units.vector_file import VectorFile

MODEL = Path(hat_fairseq.__file__).with_name("meeting_model")

ENCODER = b"digest of an encoder"
VECTORS = {bytes([number] * 16): np.full((number, 4), number / 8, np.float16) for number in (1, 3, 2)}


def stored(path: Path, **changes: Any) -> Path:
    """A file of vectors, with other arrays, or without those that are None."""
    VectorFile(path).add(ENCODER, VECTORS)
    if changes:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        np.savez(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


def test_vectors_come_back_for_their_encoder_alone(tmp_path: Path) -> None:
    file = VectorFile(stored(tmp_path / "deep/v.npz"))
    assert {key: each.tolist() for key, each in file.read(ENCODER, 4).items()} == {
        key: each.tolist() for key, each in VECTORS.items()
    }
    assert file.read(b"digest of another one", 7) == {}
    assert VectorFile(tmp_path / "none.npz").read(ENCODER, 4) == {}
    with pytest.raises(ValueError, match=r"v\.npz has vectors of 4 channels, not 3"):
        file.read(ENCODER, 3)


def test_vectors_are_added_to_those_of_other_processes(tmp_path: Path) -> None:
    files = [VectorFile(stored(tmp_path / "v.npz")) for _ in range(2)]
    for number, file in enumerate(files):
        all_vectors = file.add(ENCODER, {bytes([9 + number] * 16): np.zeros((1, 4), np.float16)})
        assert len(all_vectors) == 4 + number
        assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]
    assert files[0].add(b"digest of another one", {b"k" * 16: np.zeros((1, 4), np.float16)}).keys() == {b"k" * 16}


def nan_in(path: Path) -> Path:
    return stored(path, vectors=np.array([[1, 2, 3, np.nan]] * 6, np.float16))


DAMAGED: dict[str, Callable[[Path], object]] = {
    "no mark": lambda path: stored(path, mark=None),
    "another mark": lambda path: stored(path, mark=np.array("mine")),
    "no keys": lambda path: stored(path, keys=None),
    "fewer keys": lambda path: stored(path, keys=np.zeros((2, 16), np.uint8)),
    "fewer vectors": lambda path: stored(path, vectors=np.zeros((5, 4), np.float16)),
    "a count of 0": lambda path: stored(path, counts=np.array([0, 4, 2])),
    "no numbers": nan_in,
    "compressed": lambda path: np.savez_compressed(path, **np.load(stored(path))),
    "empty": lambda path: path.write_bytes(b""),
    "no archive": lambda path: path.write_bytes(b"no zip"),
    "cut": lambda path: path.write_bytes(stored(path).read_bytes()[:-100]),
    "other numbers": lambda path: stored(path, vectors=np.zeros((6, 4), np.float32)),
    "other keys": lambda path: stored(path, keys=np.zeros((3, 16), np.int8)),
    "counts that are no whole numbers": lambda path: stored(path, counts=np.array([1.0, 3.0, 2.0])),
}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "--vectors .* is a folder"),
        (os.mkfifo, "--vectors .* is a device, a pipe or a socket"),
        (lambda path: shutil.copy(MODEL / "manifest.json", path.parent), "--vectors .*, which hat has written"),
    ],
)
def test_where_an_output_may_not_be_no_vectors_are_kept(make: Callable[[Path], object], message: str, tmp_path: Path):
    make(tmp_path / "v.npz")
    with pytest.raises(ValueError, match=message):
        VectorFile(tmp_path / "v.npz")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_of_something_else_is_refused_and_kept(name: str, tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    DAMAGED[name](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError, match=r"v\.npz has no vectors that this version writes: remove it"):
        VectorFile(path)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_added_vectors_stay_those_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may replace the file as soon as it has its name."""
    other, replace = stored(tmp_path / "other.npz", vectors=np.ones((6, 4), np.float16)), Path.replace

    def replaced_at_once(self: Path, target: Path) -> Path:
        replace(self, target)
        return replace(other, target)

    monkeypatch.setattr(Path, "replace", replaced_at_once)
    added = VectorFile(tmp_path / "v.npz").add(ENCODER, VECTORS)
    assert {key: each.tolist() for key, each in added.items()} == {k: v.tolist() for k, v in VECTORS.items()}
