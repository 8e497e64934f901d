"""The readers of Long Range Arena on tiny releases, what they refuse, and the data that is drawn here."""

from __future__ import annotations

import gzip
import os
import statistics
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from releases import PER_BATCH, RELEASES, pickled, pictures, write_release

import make_lra
import pathfinder
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from listops import Limits, expressions

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SPLITS = ("train", "valid", "test")


def read(name: str, split: str, root: Path, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))


def value_of(expression: str) -> int:
    """The obvious evaluator: a stack of operators with what they have been given so far."""
    stack: list[list[Any]] = [[]]
    for symbol in expression.split():
        if symbol.startswith("["):
            stack.append([symbol])
        elif symbol in ("]", "X"):
            operator, *values = stack.pop()
            functions: dict[str, Callable[[list[int]], float]] = {
                "[MIN": min,
                "[MAX": max,
                "[MED": statistics.median,
                "[SM": lambda values: sum(values) % 10,
                "[FIRST": lambda values: values[0],
                "[LAST": lambda values: values[-1],
            }
            stack[-1].append(int(functions[operator](values)))
        elif symbol not in "()":
            stack[-1].append(int(symbol))
    ((value,),) = stack
    return int(value)


def test_the_evaluator_agrees_with_the_published_expressions() -> None:
    text = gzip.decompress((SAMPLES / "listops_d8.tsv.gz").read_bytes()).decode()
    rows = [line.split("\t") for line in text.splitlines()]
    assert len(rows) == 250 and [value_of(text) for _, text in rows] == [int(label) for label, _ in rows]


def test_drawn_expressions_have_the_published_values_and_lengths() -> None:
    """Table 11 of the ERNIE-Sparse paper has the percentiles 954, 1,646 and 1,800 of the training lengths."""
    drawn = list(islice(expressions(np.random.default_rng(5), Limits()), 1500))
    assert all(value_of(text) == value for text, value in drawn[:300])
    lengths = [len(text.split()) for text, _ in drawn]
    assert min(lengths) > 500 and max(lengths) < 2000
    assert np.allclose(np.percentile(lengths, [50, 90, 95]), [954, 1646, 1800], rtol=0.04)
    depths = [max(np.cumsum([s.startswith("[") - (s == "]") for s in text.split()])) for text, _ in drawn[:300]]
    assert max(depths) == 9 and len({text for text, _ in drawn}) == 1500  # digits at depth 10


def test_make_lra_prints_baselines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their counts, from the files and with the evaluator above."""
    words = f"listops --out {tmp_path / 'out'} --sizes 900 70 300 --lengths 9 60"
    make_lra.main(words.split())

    def views(text: str) -> list[Any]:
        root, *symbols = text.split()
        depths = np.cumsum([s.startswith("[") - (s == "]") for s in symbols])
        own = " ".join(s for s, depth in zip(symbols, depths, strict=True) if depth == 0 and s.isdigit())
        return [(), root, (root, value_of(f"{root} {own} ]") if own else None)]

    counts: dict[Any, Counter[str]] = {}
    rows = {
        split: [line.split("\t") for line in (tmp_path / f"out/basic_{split}.tsv").read_text().splitlines()[1:]]
        for split in ("train", "val", "test")
    }
    for text, value in rows["train"]:
        for view in views(text):
            counts.setdefault(view, Counter())[value] += 1
    printed = capsys.readouterr().out
    for split, size in (("val", 70), ("test", 300)):
        right = [0, 0, 0]
        for text, value in rows[split]:
            for number, view in enumerate(views(text)):
                right[number] += counts.get(view, counts[()]).most_common(1)[0][0] == value
        names = ("constant", "root operator", "root operator and its digits")
        line = ", ".join(f"{name} {n} ({n / size:.2%})" for name, n in zip(names, right, strict=True))
        assert f"basic_{split}.tsv: baselines, right of {size}: {line}\n" in printed
        assert right[0] < right[1] < right[2]


def test_make_lra_and_its_readers(tmp_path: Path) -> None:
    def make(name: str, out: str, flags: str) -> Path:
        make_lra.main([name, "--out", str(tmp_path / out), *flags.split()])
        return tmp_path / out

    flags = "--sizes 40 5 6 --lengths 20 60"
    one, again = (make("listops", out, flags) for out in ("one", "again"))
    two = make("listops", "two", f"{flags} --seed 2")
    files = [(folder / "basic_train.tsv").read_text() for folder in (one, two, again)]
    assert files[0] == files[2] != files[1]
    records = [record for split in SPLITS for record in read("lra_listops", split, one)]
    assert len({record.parts for record in records}) == len(records) == 51
    for record in records:
        (tokens,) = record.parts
        assert 20 < len(tokens) < 60 and "]" not in tokens and value_of(" ".join(tokens)) == int(record.label or "")
    images = [make("pathfinder", f"images{n}", f"--images 6 --workers {n}") for n in "12"]
    assert sorted(p.name for p in (images[0] / "curv_contour_length_14/imgs/0").iterdir())[0] == "sample_0.png"
    assert read("lra_pathfinder", "train", images[0]) == read("lra_pathfinder", "train", images[1])
    with pytest.raises(SystemExit, match="one already exists; choose another directory"):
        make("listops", "one", flags)
    with pytest.raises(SystemExit, match="--lengths 1 5: only 400 different expressions were found"):
        make("listops", "short", "--lengths 1 5")


def test_published_files_with_parentheses_are_read_alike(tmp_path: Path) -> None:
    line = "( ( ( ( [MAX 2 ) ( ( ( [SM 9 ) 3 ) ] ) ) 0 ) ] )\t2\n"
    (tmp_path / "basic_val.tsv").write_text("Source\tTarget\n" + line)
    (record,) = read("lra_listops", "valid", tmp_path)
    assert record.parts == (("[MAX", "2", "[SM", "9", "3", "X", "0", "X"),) and record.label == "2"


def test_text_is_the_review_as_it_is() -> None:
    train, valid, test = (read("lra_text", split, RELEASES / "imdb") for split in SPLITS)
    assert len(train) == 8 and valid == test and len(test) == 4
    text = "A fine film about Anna Berg.<br /><br />Number 0 of the train part."
    assert (text,) in {record.parts for record in train}
    assert {record.label for record in train} == {"neg", "pos"}


def test_pairs_are_lines_of_five_columns(tmp_path: Path) -> None:
    write_release("lra_retrieval", tmp_path)
    records = read("lra_retrieval", "train", tmp_path)
    assert [(record.id, record.label) for record in records[:2]] == [("1-P0-Q0", "0"), ("2-P1-Q1", "1")]
    assert len(records) == 4 and all(text.startswith('"') for record in records for text in record.parts)


def test_pictures_are_grey_and_the_last_training_pictures_are_for_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_release("lra_image", tmp_path)
    reader = find_reader("lra_image")
    monkeypatch.setitem(reader.read.__globals__, "VALID", 2)
    splits = {split: list(reader.read(split, tmp_path, Counter())) for split in SPLITS}
    assert [len(records) for records in splits.values()] == [5 * PER_BATCH - 2, 2, PER_BATCH]
    assert [record.id for record in splits["valid"]] == ["data_batch_5-4", "data_batch_5-5"]
    assert [record.label for record in splits["test"]] == ["airplane", "truck", "cat"] * 2
    red, green, blue = pictures("test_batch")[0].astype(float).reshape(3, -1)
    luma = 0.2989 * red + 0.587 * green + 0.114 * blue
    grey = np.array(splits["test"][0].parts[0], dtype=int)
    assert (grey > luma - 1).all() and (grey <= luma + 0.5).all()


@pytest.mark.fault("Security", "a data set whose pickle names a function", "names both, nothing is run")
def test_a_pickle_that_names_a_function_is_refused_and_nothing_is_run(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "test_batch").write_bytes(pickled({b"data": Attack()}))
    with pytest.raises(ValueError, match=r"test_batch is no batch of CIFAR-10's python release: it names posix\.mkdir"):
        read("lra_image", "test", tmp_path)
    assert not (tmp_path / "made").exists()


def test_images_of_pathfinder(tmp_path: Path) -> None:
    write_release("lra_pathfinder", tmp_path)
    counts: Counter[str] = Counter()
    splits = {split: read("lra_pathfinder", split, tmp_path, counts) for split in SPLITS}
    assert [len(records) for records in splits.values()] == [15, 2, 2] and counts == {"empty_images_left_out": 1}
    image = pathfinder.draw(np.random.default_rng([1, 19]))
    assert splits["test"][1].parts == (tuple(map(str, image.pixels.ravel().tolist())),)
    assert splits["test"][1].label == str(image.label) and splits["test"][1].id == "imgs/0/sample_19.png"


def test_drawn_curves_are_long_and_keep_apart() -> None:
    """14 paddles each, 7 pixels apart at first; 2 pixels at most between consecutive paddles, at least to others."""
    for number in range(5):
        curves = pathfinder._long_curves(np.random.default_rng([7, number]))
        assert [curve.shape for curve in curves] == [(14, 2, 2)] * 2
        assert np.isclose(np.hypot(*(curves[0][0, 0] - curves[1][0, 0])), 7)
        for curve, other in (curves, curves[::-1]):
            assert np.allclose(np.hypot(*(curve[:, 1] - curve[:, 0]).T), 2) and 1 < curve.min() < curve.max() < 30
            gaps = np.hypot(*(curve[1:, 0] - curve[:-1, 1]).T)
            assert (gaps <= 2 + 1e-9).all() and (gaps >= np.sqrt(2) - 1e-9).all()  # it turns by 90 degrees at most
            ends = curve.reshape(-1, 1, 2)
            assert np.hypot(*(ends - other.reshape(1, -1, 2)).T).min() >= 2


def test_drawn_images_have_both_labels() -> None:
    images = [pathfinder.draw(np.random.default_rng([7, number])) for number in range(12)]
    assert {image.label for image in images} == {0, 1}
    assert all(0.1 < (image.pixels > 0).mean() < 0.6 and image.pixels.max() == 255 for image in images)
    assert len({image.pixels.tobytes() for image in images}) == 12


def batch(**given: Any) -> Callable[[Path], object]:
    """Replaces a batch by one of a single picture."""
    content = {"data": np.zeros((1, 3072), np.uint8), "labels": [1]} | given
    data = pickled({name.encode(): value for name, value in content.items()})
    return lambda root: (root / "data_batch_1").write_bytes(data)


def png(mode: str, width: int) -> Callable[[Path], object]:
    """Replaces an image by one of another mode or width."""
    return lambda root: Image.new(mode, (width, 32)).save(root / PNG)


META = "curv_contour_length_14/metadata/0.npy"
PNG = "curv_contour_length_14/imgs/0/sample_0.png"
REFUSED: list[tuple[str, Callable[[Path], object], str]] = [
    ("lra_listops", lambda root: (root / "basic_train.tsv").unlink(), r"basic_train\.tsv is missing; the folder must"),
    (
        "lra_listops",
        lambda root: (root / "basic_train.tsv").write_text("Source\tTarget\n[MAX 1 ]\t11\n"),
        r"basic_train\.tsv:2: the value is '11', not a digit",
    ),
    (
        "lra_listops",
        lambda root: (root / "basic_train.tsv").write_text("Source\tTarget\n[MAX 1 [SUM 2 ] ]\t1\n"),
        r"basic_train\.tsv:2: '\[SUM' is no digit, operator or bracket",
    ),
    (
        "lra_listops",
        lambda root: (root / "basic_train.tsv").write_text("Source\tTarget\n[MED 1 [MAX 2 4 ] ]\t1\n"),
        r"basic_train\.tsv:2: the expression has the value 2, not 1",
    ),
    (
        "lra_listops",
        lambda root: (root / "basic_train.tsv").write_text("Source\tTarget\n[MAX 1 ] ]\t1\n"),
        r"basic_train\.tsv:2: the expression has the value None, not 1",
    ),
    (
        "lra_retrieval",
        lambda root: (root / "new_aan_pairs.train.tsv").write_text("1.0\ta\tb\tc\n"),
        r"new_aan_pairs\.train\.tsv:1: 4 columns instead of 5; is the file cut off\?",
    ),
    (
        "lra_retrieval",
        lambda root: (root / "new_aan_pairs.train.tsv").write_text("2.0\ta\tb\tc\td\n"),
        r"train\.tsv:1: the label is '2\.0', not 0\.0 or 1\.0",
    ),
    (
        "lra_image",
        lambda root: (root / "data_batch_1").write_bytes((root / "data_batch_1").read_bytes()[:5000]),
        r"data_batch_1 is no batch of CIFAR-10's python release",
    ),
    ("lra_image", lambda root: (root / "data_batch_1").write_bytes(pickled({b"x": 1})), r"no batch of .*: b'data'"),
    ("lra_image", batch(labels=[1.0]), r"data_batch_1, picture 0: the class is 1\.0, not from 0 to 9"),
    ("lra_image", batch(labels=[None]), r"data_batch_1, picture 0: the class is None, not from 0 to 9"),
    ("lra_image", batch(labels=[]), r"data_batch_1 is no batch of CIFAR-10's python release: zip"),
    ("lra_image", batch(data=np.zeros((1, 384), np.int64)), r"data_batch_1 is no .*: its pixels are not bytes in rows"),
    ("lra_image", batch(data=np.zeros((3072, 2), np.uint8).T), r"data_batch_1 is no .*: its pixels are not bytes in"),
    (
        "lra_image",
        lambda root: (root / "data_batch_1").write_bytes(b"\x80\x04\x8e" + b"\xff" * 7 + b"\0."),  # petabytes
        r"data_batch_1 is no batch of CIFAR-10's python release: MemoryError",
    ),
    ("lra_pathfinder", lambda root: (root / META).unlink(), r"metadata has no \.npy files with lines; --root must be"),
    (
        "lra_pathfinder",
        lambda root: (root / META).write_text("imgs/0 a.png\n" * 10),
        r"0\.npy:1: expected folder, file, n",
    ),
    (
        "lra_pathfinder",
        png("L", 60_000),
        r"sample_0\.png: no greyscale PNG image .*: .* size \(60000, 32",
    ),
    (
        "lra_pathfinder",
        png("RGB", 32),
        r"sample_0\.png: no greyscale PNG image of .*: its mode is RGB, and",
    ),
    ("lra_pathfinder", lambda root: (root / PNG).write_bytes(b"GIF"), r"sample_0\.png: no greyscale PNG image"),
    (
        "lra_pathfinder",
        lambda root: (root / PNG).write_bytes((root / PNG).read_bytes()[:-30]),
        r"sample_0\.png: no greyscale PNG image of 32 x 32 pixels: .*truncated",
    ),
]


@pytest.mark.fault(
    "Input", "missing, damaged or other files of Long Range Arena", "refused with the file and the line or picture"
)
@pytest.mark.parametrize(("name", "change", "message"), REFUSED)
def test_what_is_no_release_is_refused(
    name: str, change: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    write_release(name, tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read(name, "train", tmp_path)
