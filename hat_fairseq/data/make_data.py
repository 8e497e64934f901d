"""Draw the data of ListOps or Pathfinder, in the files of Long Range Arena's release.

`hat preprocess lra_listops --root DIR` and `hat preprocess lra_pathfinder --root DIR` read them. The same options give
the same files, whatever the number of processes.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from hat_fairseq.data.formats.listops import Limits, expressions
from hat_fairseq.data.formats.listops_baselines import BASELINES, Baselines
from hat_fairseq.data.formats.pathfinder import Image, draw_image
from hat_fairseq.data.formats.png import write_png
from hat_fairseq.data.outputs import atomic_directory
from hat_fairseq.data.parallel import ordered_map, progress

SPLITS = ("train", "val", "test")
SIZES, IMAGES = (96000, 2000, 2000), 200000
HARD = "curv_contour_length_14"
PER_FOLDER = 1000
# continuity, paddles of a curve and of a distractor, length, width and margin of a paddle, number of contrasts
SETTINGS = "1.0 14 4 2 0.5 1 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=("listops", "pathfinder"), help="what to draw")
    parser.add_argument("--out", type=Path, required=True, help="directory to create")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(default: %(default)s)")
    group = parser.add_argument_group("listops")
    sizes = "expressions of each split (default: 96000 2000 2000)"
    group.add_argument("--sizes", type=int, nargs=3, metavar=("TRAIN", "VALID", "TEST"), help=sizes)
    lengths = "they have more than MIN and fewer than MAX symbols (default: 500 2000)"
    group.add_argument("--lengths", type=int, nargs=2, metavar=("MIN", "MAX"), help=lengths)
    group = parser.add_argument_group("pathfinder")
    group.add_argument("--images", type=int, metavar="N", help="of all splits (default: 200000)")
    group.add_argument("--workers", type=int, metavar="N", help="processes (default: 1)")


def main(args: argparse.Namespace) -> int:
    others = ("images", "workers") if args.name == "listops" else ("sizes", "lengths")
    for name in others:
        if getattr(args, name) is not None:
            raise ValueError(f"--{name} has no effect with {args.name}; remove it")
    sizes, images = args.sizes or SIZES, IMAGES if args.images is None else args.images
    for name, value, least in (("sizes", min(sizes), 1), ("images", images, 1), ("seed", args.seed, 0)):
        if value < least:
            raise ValueError(f"--{name} {value}: it must be at least {least}")
    with atomic_directory(args.out) as folder:
        if args.name == "listops":
            write_listops(folder, sizes, Limits(*(args.lengths or ())), args.seed)
        else:
            write_pathfinder(folder, images, args.seed, 1 if args.workers is None else args.workers)
    print(f"wrote {args.out}")
    return 0


def write_listops(folder: Path, sizes: Iterable[int], limits: Limits, seed: int) -> None:
    """Writes `basic_{train,val,test}.tsv`, and prints how often baselines are right in the last two.

    No expression is in two of them. ValueError for limits without a length.
    """
    if not 0 <= limits.min_length < limits.max_length - 1:
        raise ValueError(
            f"--lengths {limits.min_length} {limits.max_length}: MIN must be at least 0, and MAX at least MIN + 2"
        )
    drawn, baselines = expressions(np.random.default_rng(seed), limits), Baselines()
    for split, size in zip(SPLITS, sizes, strict=True):
        name, right = f"basic_{split}.tsv", Counter[str]()
        part = progress(islice(drawn, size), name, size)
        with open(folder / name, "w", encoding="utf-8", newline="\n") as file:
            file.write("Source\tTarget\n")
            for text, value in part:
                file.write(f"{text}\t{value}\n")
                if split == "train":
                    baselines.learn(text, value)
                else:
                    right.update(baselines.right(text, value))
        if split != "train":
            counts = ", ".join(f"{each} {right[each]} ({right[each] / size:.2%})" for each in BASELINES)
            print(f"{name}: baselines, right of {size}: {counts}")


def write_pathfinder(folder: Path, images: int, seed: int, workers: int) -> None:
    """Writes `curv_contour_length_14/{imgs,metadata}`, 1,000 images in each folder and file."""
    drawn = ordered_map(partial(_image, seed), range(images), workers)
    numbered = enumerate(progress(drawn, "pathfinder", images, "images"))
    (folder / HARD / "metadata").mkdir(parents=True)
    for first in range(0, images, PER_FOLDER):
        part = f"imgs/{first // PER_FOLDER}"
        (folder / HARD / part).mkdir(parents=True)
        lines = []
        for number, image in islice(numbered, PER_FOLDER):
            name = f"sample_{number - first}.png"
            (folder / HARD / part / name).write_bytes(write_png(image.pixels))
            lines.append(f"{part} {name} {number - first} {image.label} {SETTINGS}\n")
        (folder / HARD / "metadata" / f"{first // PER_FOLDER}.npy").write_text("".join(lines), encoding="utf-8")


def _image(seed: int, number: int) -> Image:
    return draw_image(np.random.default_rng([seed, number]))
