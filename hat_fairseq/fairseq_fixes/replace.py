"""`replaces`: replaces a function of fairseq by a wrapper, once per process."""

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
_waiting: list[tuple[Any, str, Function]] = []


def replaces(owner: Any, name: str) -> Callable[[Function], Function]:
    """Marks a function as wrapper: after `apply_all`, `owner.name` is `wrapper(original, ...)`.

    Args:
        owner: module or class of fairseq.
        name: of its function.
    """

    def mark(wrapper: Function) -> Function:
        _waiting.append((owner, name, wrapper))
        return wrapper

    return mark


def apply_all() -> None:
    """Installs all wrappers in the order of their definition; each of them once."""
    while _waiting:
        owner, name, wrapper = _waiting.pop(0)
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(_bind(wrapper, original)))


def _bind(wrapper: Function, original: Function) -> Function:
    return lambda *args, **kwargs: wrapper(original, *args, **kwargs)
