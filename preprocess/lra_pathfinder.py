"""Pathfinder of Long Range Arena: are two dots the ends of one curve? (Linsley et al. 2018; Tay et al. 2021.)

`--root` is the folder `pathfinder32` of the authors' `lra_release.gz`
(https://github.com/google-research/long-range-arena), or what `examples/make_lra.py pathfinder` has drawn. Its part
`curv_contour_length_14`, the hard one, on which papers report, has 200,000 greyscale images `imgs/FOLDER/sample_N.png`.
`metadata/FOLDER.npy` are no numpy files but text: folder, file, number, label (1: on one curve), settings.

The first 80 % of the images are for training, the next 10 % for validation, in the order of the folders' numbers; each
label was drawn by itself, so there is no order in them. The authors divide in the order of tensorflow_datasets. Images
whose file is empty (the release has one, in its part `curv_baseline`) are left out and counted, as there.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import note_input, read_lines
from hat_fairseq.data.kinds import ByteSequence
from release import release_file, release_folder

KIND = "byte_sequence"
RELEASE = {"train": (160000, 159999), "valid": (20000,), "test": (20000,)}
SHARES = {"train": (0, 8), "valid": (8, 9), "test": (9, 10)}  # in tenths
PART = "curv_contour_length_14"
SIZE = 32  # pixels of a side
CONTENT = f"{PART}/imgs and {PART}/metadata, as pathfinder32 has them"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[ByteSequence]:
    """Yield the images of a split; an id is the folder and the file."""
    folder = release_folder(root, CONTENT) / PART
    files = sorted((folder / "metadata").glob("*.npy"), key=lambda file: (len(file.stem), file.stem))
    rows = [(f"{file}:{number}", line.split(" ")) for file in files for number, line in read_lines(file)]
    if not rows:
        raise ValueError(f"{folder / 'metadata'} has no .npy files with lines; --root must be a folder with {CONTENT}")
    begin, end = (len(rows) * share // 10 for share in SHARES[split])
    for where, row in rows[begin:end]:
        if len(row) < 4 or row[3] not in ("0", "1"):
            raise ValueError(f"{where}: expected folder, file, number and a label, 0 or 1, found {' '.join(row):.60}")
        path = release_file(folder / row[0] / row[1], CONTENT)
        note_input(path)
        if not path.stat().st_size:
            counts["empty_images_left_out"] += 1
            continue
        yield ByteSequence(f"{row[0]}/{row[1]}", pixels=tuple(_pixels(path)), label=row[3], origin=str(path))


def _pixels(path: Path) -> bytes:
    """Read the pixels of an image, line by line."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ValueError(f'{path} needs the package pillow: pip install "hat_fairseq[data]"') from error
    try:
        with Image.open(path, formats=["PNG"]) as image:
            if (image.mode, image.size) != ("L", (SIZE, SIZE)):
                raise ValueError(f"its mode is {image.mode}, and its size {image.size}, not L and {SIZE} x {SIZE}")
            return image.tobytes()
    except Exception as error:  # a damaged image may raise any
        raise ValueError(f"{path}: no greyscale PNG image of {SIZE} x {SIZE} pixels: {error}") from error
