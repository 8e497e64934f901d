"""Replacing a function of fairseq by a wrapper of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

APPLIED = "_hat_fairseq"  # marks a replaced function, so that a second call replaces nothing


def replace(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Sets `owner.name` to `wrapper(original, ...)`, once.

    Args:
        owner: module or class of fairseq.
        name: of its function.
        wrapper: gets the original function before the arguments.
    """
    original = getattr(owner, name)
    if hasattr(original, APPLIED):
        return

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(replacement, APPLIED, True)
    setattr(owner, name, replacement)
