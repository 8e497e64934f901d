"""The data of Long Range Arena that `make_lra.py` draws: values, lengths, baselines, curves, and their readers."""

import gzip
import statistics
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import make_lra
import numpy as np
import pathfinder
import pytest
from listops import Limits, expressions
from releases import SAMPLES

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record

SPLITS = ("train", "valid", "test")


def read(name: str, split: str, root: Path) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter()))


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
    assert len(rows) == 250
    assert [value_of(text) for _, text in rows] == [int(label) for label, _ in rows]


@pytest.mark.slow
def test_drawn_expressions_have_the_published_values_and_lengths() -> None:
    """Table 11 of the ERNIE-Sparse paper has the percentiles 954, 1,646 and 1,800 of the training lengths."""
    drawn = list(islice(expressions(np.random.default_rng(5), Limits()), 1500))
    assert all(value_of(text) == value for text, value in drawn[:300])
    lengths = [len(text.split()) for text, _ in drawn]
    assert min(lengths) > 500
    assert max(lengths) < 2000
    assert np.allclose(np.percentile(lengths, [50, 90, 95]), [954, 1646, 1800], rtol=0.04)
    depths = [max(np.cumsum([s.startswith("[") - (s == "]") for s in text.split()])) for text, _ in drawn[:300]]
    assert max(depths) == 9  # digits at depth 10
    assert len({text for text, _ in drawn}) == 1500


@pytest.mark.slow
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
        assert 20 < len(tokens) < 60
        assert "]" not in tokens
        assert value_of(" ".join(tokens)) == int(record.label or "")
    images = [make("pathfinder", f"images{n}", f"--images 6 --workers {n}") for n in "12"]
    assert sorted(p.name for p in (images[0] / "curv_contour_length_14/imgs/0").iterdir())[0] == "sample_0.png"
    assert read("lra_pathfinder", "train", images[0]) == read("lra_pathfinder", "train", images[1])
    with pytest.raises(SystemExit, match="one already exists; choose another directory"):
        make("listops", "one", flags)
    with pytest.raises(SystemExit, match="--lengths 1 5: only 400 different expressions were found"):
        make("listops", "short", "--lengths 1 5")


@pytest.mark.parametrize("number", range(5))
def test_drawn_curves_are_long_and_keep_apart(number: int) -> None:
    """14 paddles each, 7 pixels apart at first; 2 pixels at most between consecutive paddles, at least to others."""
    curves = pathfinder._long_curves(np.random.default_rng([7, number]))
    assert [curve.shape for curve in curves] == [(14, 2, 2)] * 2
    assert np.isclose(np.hypot(*(curves[0][0, 0] - curves[1][0, 0])), 7)
    for curve, other in (curves, curves[::-1]):
        assert np.allclose(np.hypot(*(curve[:, 1] - curve[:, 0]).T), 2)
        assert 1 < curve.min() < curve.max() < 30
        gaps = np.hypot(*(curve[1:, 0] - curve[:-1, 1]).T)
        assert (gaps <= 2 + 1e-9).all()
        assert (gaps >= np.sqrt(2) - 1e-9).all()  # it turns by 90 degrees at most
        ends = curve.reshape(-1, 1, 2)
        assert np.hypot(*(ends - other.reshape(1, -1, 2)).T).min() >= 2


@pytest.mark.slow
def test_drawn_images_have_both_labels() -> None:
    images = [pathfinder.draw(np.random.default_rng([7, number])) for number in range(12)]
    assert {image.label for image in images} == {0, 1}
    assert all(0.1 < (image.pixels > 0).mean() < 0.6 and image.pixels.max() == 255 for image in images)
    assert len({image.pixels.tobytes() for image in images}) == 12
