"""Pathfinder images of 32 x 32 pixels: are two dots the ends of one dashed curve? (Linsley et al. 2018.)

An image has two long curves of 14 paddles, five distractors of 4 paddles, and two dots. The first dot is on the
beginning of a long curve. The second one is on the end of the same curve (label 1) or of the other one (label 0). The
numbers are those of `curv_contour_length_14`, the hard part of Long Range Arena: paddles 2 pixels long and 0.5 wide, 1
pixel between a paddle and the turning point before and after it, dots of radius 1.5, beginnings 7 pixels apart and 14
from the border. The direction changes by an angle with the density cos² between -90 and 90 degrees.

What differs from the published generator: points and angles are real numbers, where it rounds to pixels; paddles keep
2 pixels between each other, where it dilates masks; pixels are antialiased by their distance from a paddle, where it
scales drawings down; and where a curve cannot go on, both long curves are drawn anew from an earlier paddle on, not the
whole image. Images of the two are not meant to be mixed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIZE, BORDER = 32, 1.0
LENGTH, WIDTH, MARGIN = 2.0, 0.5, 1.0
PADDLES, DISTRACTORS, DISTRACTOR_PADDLES = 14, 5, 4
APART = 7.0  # the beginnings of the two long curves
CLEARANCE = 2.0  # between paddles that do not follow each other
RADIUS, CONTRAST = 1.5, 1.5
TRIES, DISTRACTOR_TRIES = 12, 5  # of a paddle; of a distractor, which may be left out

Points = NDArray[np.float64]


class Drawing(NamedTuple):
    """(32, 32) pixels from 0 to 255, and whether the dots are on one curve."""

    pixels: NDArray[np.uint8]
    label: int


def draw(rng: np.random.Generator) -> Drawing:
    """Draw one image; each label has the probability 0.5."""
    label = int(rng.integers(2))
    curves = _long_curves(rng)
    paddles = np.concatenate(curves)
    for _ in range(DISTRACTORS):
        for _ in range(DISTRACTOR_TRIES):
            start = rng.uniform(BORDER, SIZE - BORDER, 2)
            if (curve := _curve(rng, start, DISTRACTOR_PADDLES, paddles)) is not None:
                paddles = np.concatenate([paddles, curve])
                break
    first = int(rng.integers(2))
    dots = curves[first][0, 0], curves[first if label else 1 - first][-1, 1]
    return Drawing(_rendered(paddles, np.stack(dots)), label)


def _long_curves(rng: np.random.Generator) -> list[Points]:
    """Draw two curves that begin near each other and grow in turns; if one is stuck, both lose their last paddles."""
    start = rng.uniform(2 * APART, SIZE - 2 * APART, 2)
    around = rng.uniform(0, 2 * np.pi)
    starts = start, start + APART * np.array([np.sin(around), np.cos(around)])
    curves = [np.empty((0, 2, 2)), np.empty((0, 2, 2))]
    while len(curves[1]) < PADDLES:
        which = int(len(curves[0]) > len(curves[1]))
        curve = _extended(rng, curves[which], starts[which], curves[1 - which])
        if curve is None:
            left = max(0, len(curves[1]) - 1 - int(rng.exponential(1)))
            curves = [each[:left] for each in curves]
        else:
            curves[which] = curve
    return curves


def _curve(rng: np.random.Generator, start: Points, paddles: int, others: Points) -> Points | None:
    curve: Points | None = np.empty((0, 2, 2))
    while curve is not None and len(curve) < paddles:
        curve = _extended(rng, curve, start, others)
    return curve


def _extended(rng: np.random.Generator, curve: Points, start: Points, others: Points) -> Points | None:
    """Return the curve (n, 2, 2), beginning and end of each paddle, with one more; None if there is no room for it."""
    if len(curve):
        step = curve[-1, 1] - curve[-1, 0]
        turns = np.arcsin(np.sqrt(rng.beta(1.5, 1.5, TRIES))) * 2 - np.pi / 2  # of the density cos²
        angles = np.arctan2(step[0], step[1]) + turns
        pivot = curve[-1, 1] + MARGIN * step / LENGTH
    else:
        angles, pivot = rng.uniform(0, 2 * np.pi, TRIES), start
    directions = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    begins = pivot + (MARGIN if len(curve) else 0) * directions
    candidates = np.stack([begins, begins + LENGTH * directions], axis=1)  # (TRIES, 2, 2)
    inside = ((candidates > BORDER) & (candidates < SIZE - 1 - BORDER)).all(axis=(1, 2))
    taken = np.concatenate([curve[:-1], others])
    if len(taken):
        points = np.concatenate([candidates, candidates.mean(axis=1, keepdims=True)], axis=1).reshape(-1, 2)
        nearest = _distances(points, taken).min(axis=1).reshape(TRIES, 3).min(axis=1)
        inside &= nearest >= CLEARANCE
    return np.concatenate([curve, candidates[inside.argmax()][None]]) if inside.any() else None


def _distances(points: Points, paddles: Points) -> Points:
    """Map (P, 2) points and (n, 2, 2) paddles -> (P, n) distances."""
    (from_y, from_x), (step_y, step_x) = paddles[:, 0].T, (paddles[:, 1] - paddles[:, 0]).T
    y, x = points[:, :1] - from_y, points[:, 1:] - from_x
    shares = np.clip((y * step_y + x * step_x) / LENGTH**2, 0, 1)
    return np.hypot(y - shares * step_y, x - shares * step_x)


def _rendered(paddles: Points, dots: Points) -> NDArray[np.uint8]:
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    lines = CONTRAST * (WIDTH / 2 + 0.5 - _distances(grid, paddles).min(axis=1))
    to_dots = np.sqrt(((grid[:, None] - dots) ** 2).sum(axis=2)).min(axis=1)
    light = np.maximum(lines, RADIUS + 0.5 - to_dots).clip(0, 1)
    return np.rint(255 * light).astype(np.uint8).reshape(SIZE, SIZE)
