"""What one update of a recipe sees: from its section `update` to --update-freq and --distributed-world-size.

The section says how much text goes into an update and on how many GPUs, `{batch-size: 128, gpus: 2}` in documents or
`{max-tokens: 131072, gpus: 8}` in tokens; the flag of the same name in `train` says how much one GPU takes at a time.
So the update stays what it was when the number of GPUs or the size of a batch changes. Part of recipe.py: knows neither
fairseq nor torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

#: How an update is counted: flag of what one GPU takes at a time, and what it counts.
UNITS = {"batch-size": "documents", "max-tokens": "tokens"}
KEYS = (*UNITS, "gpus")

Flags = dict[str, str | list[str]]


def apply(flags: Flags, section: Mapping[str, str | list[str]], extra: Sequence[str]) -> list[str]:
    """Adds --update-freq and --distributed-world-size to a training's ``flags``.

    Args:
        flags: of the recipe; changed in place.
        section: the recipe's `update`; empty if it does not say.
        extra: trailing flags; --gpus, --update-batch-size and --update-max-tokens win over the section.

    Returns:
        ``extra`` without the three flags that only recipes have.

    Raises:
        ValueError: an unknown key, no whole number, or an update that is no whole number of batches.
    """
    if unknown := sorted(section.keys() - set(KEYS)):
        raise ValueError(f"section 'update': unknown {unknown[0]!r} (known: {', '.join(KEYS)})")
    said = given(extra)
    said_gpus = said.get("gpus") or said.get("distributed-world-size") or section.get("gpus")
    gpus = 1 if said_gpus is None else _number(said_gpus, "gpus")
    if said_gpus is not None:
        flags["distributed-world-size"] = str(gpus)
    asked: Flags = {unit: said[f"update-{unit}"] for unit in UNITS if f"update-{unit}" in said}
    totals = asked or {unit: section[unit] for unit in UNITS if section.get(unit, "null") != "null"}
    if asked and "update-freq" in said:
        raise ValueError(f"--update-freq and --update-{next(iter(asked))} both say what an update is: give one of them")
    if len(totals) == 2:
        raise ValueError("an update is counted in documents or in tokens, not in both: batch-size or max-tokens")
    if totals and "update-freq" not in said:
        ((unit, total),) = totals.items()
        if "update-freq" in flags:
            raise ValueError("--update-freq follows from the section 'update': leave it out of the section 'train'")
        _drop_other_unit(flags, unit, said, bool(asked))
        per_gpu = said.get(unit) or flags.get(unit)
        if per_gpu is None:
            raise ValueError(f"an update of {total} {UNITS[unit]} needs --{unit}: what one GPU takes at a time")
        total_number = _number(total, f"update-{unit}")
        flags["update-freq"] = str(_batches(unit, total_number, _number(per_gpu, unit), gpus))
    return _without_own(extra)


def given(extra: Sequence[str]) -> dict[str, str]:
    """Values of the flags in ``extra``, as `--flag value` or `--flag=value`; the last one wins, a bare flag is left
    out."""
    values = {}
    for word, following in itertools.pairwise([*extra, "--"]):
        flag, equals, value = word.partition("=")
        if flag.startswith("--") and (equals or not following.startswith("--")):
            values[flag[2:].replace("_", "-")] = value if equals else following
    return values


def describe(command: Sequence[str]) -> str:
    """What one update of a training command sees, e.g. "8 GPUs x 1,024 tokens x 16 = 131,072 tokens an update".

    Empty where the command does not say.
    """
    flags = given(command)
    units = [unit for unit in UNITS if flags.get(unit, "").isdecimal()]
    gpus, freq = flags.get("distributed-world-size", ""), flags.get("update-freq", "")
    if not (units and gpus.isdecimal() and freq.isdecimal()):
        return ""
    size, what = int(flags[units[0]]), UNITS[units[0]]
    one = what.removesuffix("s") if size == 1 else what
    where = f"{gpus} {'processes' if '--cpu' in command else 'GPUs'} x " if gpus != "1" else ""
    most = "at most " if len(units) == 2 else ""  # --batch-size limits a batch, and so does --max-tokens
    return f"{where}{size:,} {one} x {freq} = {most}{int(gpus) * size * int(freq):,} {what} an update"


def _drop_other_unit(flags: Flags, unit: str, said: Mapping[str, str], switched: bool) -> None:
    """A limit in the other unit makes batches smaller, so that an update would no longer be what was said."""
    (other,) = UNITS.keys() - {unit}
    if switched:
        flags.pop(other, None)
    if other in said or other in flags:
        raise ValueError(
            f"an update is counted in {UNITS[unit]}, which --{other} would make fewer: leave it out, count with "
            f"--update-{other}, or give --update-freq"
        )


def _batches(unit: str, total: int, per_gpu: int, gpus: int) -> int:
    """How many batches on each GPU make an update of ``total``."""
    if total % (per_gpu * gpus) == 0:
        return total // (per_gpu * gpus)
    ways = []
    if total % gpus == 0:
        ways.append(f"--{unit} {_listed(_divisors(total // gpus), per_gpu)}")
    if total % per_gpu == 0:
        ways.append(f"--gpus {_listed(_divisors(total // per_gpu), gpus)}")
    step = per_gpu * gpus
    ways.append(f"--update-{unit} {_listed([n * step for n in (total // step, total // step + 1) if n], total)}")
    raise ValueError(
        f"{total:,} {UNITS[unit]} an update are no whole number of times {per_gpu:,} on {gpus} GPU{'s' * (gpus > 1)}: "
        f"possible are {'; '.join(ways)}"
    )


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _listed(numbers: Sequence[int], near: int) -> str:
    """The six of ``numbers`` that are nearest to ``near``, in order."""
    nearest = sorted(sorted(numbers, key=lambda number: abs(number - near))[:6])
    return ", ".join(map(str, nearest[:-1])) + (" or " if len(nearest) > 1 else "") + str(nearest[-1])


def _number(text: str | list[str], flag: str) -> int:
    if not (isinstance(text, str) and text.isdecimal() and int(text) > 0):
        raise ValueError(f"--{flag} must be a whole number above 0, not {text!r}")
    return int(text)


def _without_own(extra: Sequence[str]) -> list[str]:
    own = {"--gpus", *(f"--update-{unit}" for unit in UNITS)}
    kept: list[str] = []
    words = iter(extra)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in own:
            kept.append(word)
        elif not equals and not next(words, "--").isdecimal():
            raise ValueError(f"{flag} needs a whole number")
    return kept
