"""Draw the data of ListOps or Pathfinder, in the files of Long Range Arena's release.

    python examples/make_lra.py listops --out raw/lra_listops
    python examples/make_lra.py pathfinder --out raw/lra_pathfinder --workers 16

`hat preprocess lra_listops --root DIR` and `hat preprocess lra_pathfinder --root DIR` read them. The same options give
the same data, whatever the number of processes.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from listops import Limits, expressions
from pathfinder import Drawing, draw

from hat_fairseq.data.outputs import atomic_directory
from hat_fairseq.workers import Workers, progress

SPLITS = ("train", "val", "test")
HARD = "curv_contour_length_14"
PER_FOLDER = 1000
# continuity, paddles of a curve and of a distractor, length, width and margin of a paddle, number of contrasts
SETTINGS = "1.0 14 4 2 0.5 1 1"


def positive(text: str) -> int:
    """Return a whole number from 1 on; argparse refuses others."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def build_parser() -> argparse.ArgumentParser:
    """Build a parser with the names of both data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = parser.add_subparsers(dest="name", required=True)
    listops = names.add_parser("listops", help="draw expressions of lists of digits, with their values")
    pathfinder = names.add_parser("pathfinder", help="draw images of two dots, which a dashed curve may connect")
    for each in (listops, pathfinder):
        each.add_argument("--out", type=Path, required=True, help="the directory to create")
        each.add_argument(
            "--seed", type=int, default=1, metavar="N", help="the seed of the drawing (default: %(default)s)"
        )
    sizes = "the number of expressions of each split (default: 96000 2000 2000)"
    names_of_sizes, default = ("TRAIN", "VALID", "TEST"), (96000, 2000, 2000)
    listops.add_argument("--sizes", type=positive, nargs=3, default=default, metavar=names_of_sizes, help=sizes)
    lengths = "draw expressions with more than MIN and fewer than MAX symbols (default: 500 2000)"
    listops.add_argument("--lengths", type=positive, nargs=2, default=(500, 2000), metavar=("MIN", "MAX"), help=lengths)
    pathfinder.add_argument(
        "--images",
        type=positive,
        default=200000,
        metavar="N",
        help="the number of images of all splits (default: 200000)",
    )
    pathfinder.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="the number of processes (default: 1)"
    )
    return parser


def main(words: Sequence[str] | None = None) -> None:
    args = build_parser().parse_args(words)
    try:
        with atomic_directory(args.out) as folder:
            if args.name == "listops":
                write_listops(folder, args.sizes, Limits(*args.lengths), args.seed)
            else:
                write_pathfinder(folder, args.images, args.seed, args.workers)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"wrote {args.out}")


def write_listops(folder: Path, sizes: Sequence[int], limits: Limits, seed: int) -> None:
    """Write `basic_{train,val,test}.tsv`; no expression is in two of them."""
    drawn = expressions(np.random.default_rng(seed), limits)
    for split, size in zip(SPLITS, sizes, strict=True):
        name = f"basic_{split}.tsv"
        with open(folder / name, "w", encoding="utf-8", newline="\n") as file:
            file.write("Source\tTarget\n")
            for text, value in progress(islice(drawn, size), name, size):
                file.write(f"{text}\t{value}\n")


def write_pathfinder(folder: Path, images: int, seed: int, workers: int) -> None:
    """Write `curv_contour_length_14/{imgs,metadata}`, 1,000 images in each folder and file."""
    from PIL import Image

    drawn = Workers(workers).map(partial(_draw, seed), range(images))
    numbered = enumerate(progress(drawn, "pathfinder", images, "images"))
    (folder / HARD / "metadata").mkdir(parents=True)
    for first in range(0, images, PER_FOLDER):
        part = f"imgs/{first // PER_FOLDER}"
        (folder / HARD / part).mkdir(parents=True)
        lines = []
        for number, drawing in islice(numbered, PER_FOLDER):
            name = f"sample_{number - first}.png"
            Image.fromarray(drawing.pixels).save(folder / HARD / part / name)
            lines.append(f"{part} {name} {number - first} {drawing.label} {SETTINGS}\n")
        (folder / HARD / "metadata" / f"{first // PER_FOLDER}.npy").write_text("".join(lines), encoding="utf-8")


def _draw(seed: int, number: int) -> Drawing:
    return draw(np.random.default_rng([seed, number]))


if __name__ == "__main__":
    main()
