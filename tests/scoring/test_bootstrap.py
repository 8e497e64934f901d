from __future__ import annotations

import numpy as np
import pytest

from hat_fairseq.scoring.report import bootstrap_mean


def test_interval_agrees_with_the_normal_approximation():
    values = np.random.default_rng(1).normal(30, 8, 2000)
    interval = bootstrap_mean(values, samples=1000, seed=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_seed_decides():
    values = np.arange(20.0)
    assert bootstrap_mean(values, 200, seed=3) == bootstrap_mean(values, 200, seed=3)
    assert bootstrap_mean(values, 200, seed=3) != bootstrap_mean(values, 200, seed=4)


def test_equal_values_have_no_width():
    interval = bootstrap_mean(np.full(7, 12.5), 50, seed=0)
    assert (interval.mean, interval.low, interval.high) == (12.5, 12.5, 12.5)
    assert str(interval) == "12.50 [12.50, 12.50]"


def test_without_resampling():
    interval = bootstrap_mean(np.array([1.0, 2.0]), 0, seed=0)
    assert (interval.low, interval.high) == (None, None)
    assert str(interval) == "1.50"


def test_nothing_to_score():
    with pytest.raises(ValueError, match="no documents"):
        bootstrap_mean(np.array([]), 10, seed=0)
