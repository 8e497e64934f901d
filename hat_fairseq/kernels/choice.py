"""The choice between kernels that compute the same: the faster one here, timed once in a process for each purpose.

Which one that is depends on the processor, the number of threads and the version of torch. The first candidate is the
default. Another one is taken if it needs less than `SHARE` of the default's time; noise is usually smaller than that.
A choice is logged. The environment variable HAT_KERNELS fixes choices: `HAT_KERNELS="few_rows=mkl many_rows=onednn"`.
Kernels round differently, so a training that goes on from a checkpoint keeps the choices that it began with.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping

import torch

logger = logging.getLogger(__name__)
PURPOSES = ("few_rows", "many_rows", "int8_few_rows", "int8_many_rows")  # `linear.py`, `precision.py`
ROUNDS = 5  # in which each candidate is timed; the least time counts, for other processes only add to it
SHARE = 0.9  # of the default's time that another candidate may need
Choices = dict[str, str]  # purpose -> name of a candidate
_choices: Choices = {}


def fastest(purpose: str, candidates: Callable[[], Mapping[str, Callable[[], object]]]) -> str:
    """Returns the name of the fastest candidate; the first one stays if no other needs less than `SHARE` of its time.

    Args:
        candidates: makes the calls that are timed, by the name of their kernel, if there is no choice yet.
    Raises:
        ValueError: HAT_KERNELS names an unknown purpose or candidate.
    """
    if purpose not in _choices:
        calls, name = candidates(), fixed().get(purpose)
        if name is not None and name not in calls:
            raise ValueError(f"HAT_KERNELS: {purpose}={name} is unknown; choose one of {', '.join(calls)}")
        _choices[purpose] = name or _timed(purpose, calls)
    return _choices[purpose]


def chosen() -> Choices:
    """Returns the choices of this process up to now."""
    return dict(_choices)


def keep(choices: Choices) -> None:
    """Takes over the choices of another process where HAT_KERNELS says nothing else."""
    _choices.update({purpose: name for purpose, name in choices.items() if purpose not in fixed()})


def fixed() -> Choices:
    """Returns the choices of HAT_KERNELS; ValueError for an unknown purpose."""
    choices = dict(word.partition("=")[::2] for word in os.environ.get("HAT_KERNELS", "").split())
    if unknown := sorted(choices.keys() - PURPOSES):
        raise ValueError(
            f"HAT_KERNELS: {unknown[0]!r} is unknown; it has PURPOSE=KERNEL with one of {', '.join(PURPOSES)}"
        )
    return choices


@torch.no_grad()
def _timed(purpose: str, calls: Mapping[str, Callable[[], object]]) -> str:
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begin)
    least = {name: min(each) for name, each in seconds.items()}
    default, name = next(iter(least)), min(least, key=lambda name: least[name])
    if least[name] > SHARE * least[default]:
        name = default
    logger.info(f"kernel for {purpose}: {name} ({', '.join(f'{n} {1000 * s:.2f} ms' for n, s in least.items())})")
    return name
