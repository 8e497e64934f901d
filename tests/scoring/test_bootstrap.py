"""Intervals by resampling documents."""

from __future__ import annotations

import numpy as np
import pytest

from hat_fairseq.scoring.report import bootstrap_mean


def test_interval_agrees_with_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(30, 8, 2000)
    interval = bootstrap_mean(values, samples=1000, seed=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    limits = [values.mean() - half, values.mean() + half]
    assert [interval.low, interval.high] == pytest.approx(limits, abs=0.1 * half)
    assert interval == bootstrap_mean(values, 1000, seed=0) != bootstrap_mean(values, 1000, seed=1)


def test_equal_values_have_no_width_and_nothing_has_no_interval() -> None:
    assert str(bootstrap_mean(np.full(7, 12.5), 50, seed=0)) == "12.50 [12.50, 12.50]"
    assert str(bootstrap_mean(np.array([1.0, 2.0]), 0, seed=0)) == "1.50"
    with pytest.raises(ValueError, match="no documents"):
        bootstrap_mean(np.array([]), 10, seed=0)
