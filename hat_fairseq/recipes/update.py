"""Flags of a command line, and --update-freq and --distributed-world-size from a recipe's section `update`.

The section states the size of an update and the number of GPUs: `{batch-size: 128, gpus: 2}` in documents or
`{max-tokens: 131072, gpus: 8}` in tokens. The flag of the same name in `train` states the batch of one GPU. The size of
an update is therefore independent of the number of GPUs and of the batch size.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .files import Flags

#: The flag that limits a batch of one GPU, and what it counts.
UNITS = {"batch-size": "documents", "max-tokens": "tokens"}
#: Flags that only recipes have.
OWN = ("gpus", *(f"update-{unit}" for unit in UNITS))


class Flag(NamedTuple):
    """One flag, e.g. `--batch-size 4`."""

    name: str  # with dashes; empty for words before the first flag
    values: list[str]
    words: list[str]  # as the user wrote it


def split(words: Iterable[str]) -> list[Flag]:
    """Returns the flags of a command line in order; the words after a flag are its values."""
    flags: list[Flag] = []
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            flags.append(Flag(name.replace("_", "-"), [value] if equals else [], [word]))
        elif flags:
            flags[-1].values.append(word)
            flags[-1].words.append(word)
        else:
            flags.append(Flag("", [word], [word]))
    return flags


def values_of(flags: Iterable[Flag]) -> dict[str, str]:
    """Returns the first value of every flag that has one; of two flags of one name the last wins."""
    return {flag.name: flag.values[0] for flag in flags if flag.values}


def apply(flags: Flags, section: Flags, extra: Sequence[Flag]) -> list[Flag]:
    """Adds --update-freq and --distributed-world-size to the flags of a training, in place.

    Args:
        flags: of the recipe.
        section: the recipe's `update`.
        extra: trailing flags, which win; they are returned without those that only recipes have.

    Raises:
        ValueError: an unknown key, a value that is no whole number, or an infeasible update size.
    """
    if unknown := sorted(section.keys() - {*UNITS, "gpus"}):
        raise ValueError(f"section 'update': unknown {unknown[0]!r} (known: {', '.join(UNITS)}, gpus)")
    if wrong := [flag.name for flag in extra if flag.name in OWN and len(flag.values) != 1]:
        raise ValueError(f"--{wrong[0]} needs one whole number")
    extra_flags = values_of(extra)
    gpus = extra_flags.get("gpus") or extra_flags.get("distributed-world-size") or section.get("gpus")
    if gpus is not None:
        flags["distributed-world-size"] = str(_number(gpus, "gpus"))
    asked: Flags = {unit: extra_flags[f"update-{unit}"] for unit in UNITS if f"update-{unit}" in extra_flags}
    totals = asked or {unit: section[unit] for unit in UNITS if unit in section}
    if len(totals) == 2:
        raise ValueError("an update is counted in documents or in tokens: give batch-size or max-tokens, not both")
    if asked and "update-freq" in extra_flags:
        raise ValueError(f"--update-freq and --update-{next(iter(asked))} both set the size of an update: give one")
    if totals and "update-freq" not in extra_flags:
        ((unit, total),) = totals.items()
        if asked:  # the recipe may count in the other unit
            (other,) = UNITS.keys() - {unit}
            flags.pop(other, None)
        flags["update-freq"] = str(_update_freq(unit, total, flags | extra_flags))
    return [flag for flag in extra if flag.name not in OWN]


def describe(command: Sequence[str]) -> str:
    """Returns the size of an update, e.g. "8 GPUs x 1,024 tokens x 16 = 131,072 tokens an update".

    Empty where the training command does not determine it.
    """
    flags = values_of(split(command))
    units = [unit for unit in UNITS if flags.get(unit, "").isdecimal()]
    gpus, freq = flags.get("distributed-world-size", ""), flags.get("update-freq", "")
    if not (units and gpus.isdecimal() and freq.isdecimal()):
        return ""
    size, what = int(flags[units[0]]), UNITS[units[0]]
    one = what.removesuffix("s") if size == 1 else what
    where = f"{gpus} {'processes' if '--cpu' in command else 'GPUs'} x " if gpus != "1" else ""
    most = "at most " if len(units) == 2 else ""  # --batch-size limits a batch, and so does --max-tokens
    return f"{where}{size:,} {one} x {freq} = {most}{int(gpus) * size * int(freq):,} {what} an update"


def _update_freq(unit: str, total: str | list[str], flags: Mapping[str, str | list[str]]) -> int:
    """The number of batches of each GPU that make up an update of `total`."""
    (other,) = UNITS.keys() - {unit}
    if "update-freq" in flags:
        raise ValueError("--update-freq follows from the section 'update': remove it from the section 'train'")
    if other in flags:
        raise ValueError(
            f"an update is counted in {UNITS[unit]}, and --{other} would make it smaller: remove --{other}, "
            f"count with --update-{other}, or give --update-freq"
        )
    if unit not in flags:
        raise ValueError(f"an update of {total} {UNITS[unit]} needs --{unit}, the batch of one GPU")
    size, batch = _number(total, f"update-{unit}"), _number(flags[unit], unit)
    gpus = int(str(flags.get("distributed-world-size", 1)))
    if size % (batch * gpus):
        count = f"{gpus} GPUs x {batch:,}" if gpus > 1 else f"{batch:,}"
        raise ValueError(f"an update of {size:,} {UNITS[unit]} is not a multiple of {count}")
    return size // (batch * gpus)


def _number(text: str | list[str], flag: str) -> int:
    if not (isinstance(text, str) and text.isdecimal() and int(text) > 0):
        raise ValueError(f"--{flag} must be a whole number above 0, not {text!r}")
    return int(text)
