from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from hat_fairseq.data.parallel import ordered_map


def slow_at_first(number: int) -> tuple[int, int]:
    """Early items take longer, so that results are ready in another order than they are wanted."""
    if number % 160 == 0:
        time.sleep(0.05)
    return number, os.getpid()


def refuse_seven(number: int) -> int:
    if number == 7:
        raise ValueError("seven is refused")
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    results = list(ordered_map(slow_at_first, range(1000), workers))
    assert [number for number, _ in results] == list(range(1000))
    processes = {process for _, process in results}
    assert processes == {os.getpid()} if workers == 1 else os.getpid() not in processes


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_is_raised_here(workers: int) -> None:
    with pytest.raises(ValueError, match="seven is refused"):
        list(ordered_map(refuse_seven, range(1000), workers))


def test_little_is_read_ahead() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for number in range(100_000):
            read = number
            yield number

    results = ordered_map(refuse_seven, (item + 8 for item in items()), workers=2)
    assert next(results) == 8
    assert read < 1000
