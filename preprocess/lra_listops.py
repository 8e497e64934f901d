"""ListOps of Long Range Arena: the value, 0 to 9, of a nested expression (Nangia and Bowman 2018; Tay et al. 2021).

`--root` is a folder with `basic_train.tsv`, `basic_val.tsv` and `basic_test.tsv`: a line `Source`, tab, `Target`, then
96,000, 2,000 and 2,000 expressions with their values. They are in `lra_release.gz` of the authors
(https://github.com/google-research/long-range-arena, Apache 2.0), or drawn: `examples/make_lra.py listops`.

As in the authors' pipeline, parentheses are removed, `]` becomes `X`, and the tokens are what white space separates.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from hat_fairseq.data.kinds import SymbolSequence
from release import read_tsv, release_file, release_folder

KIND = "sequence"
RELEASE = {"train": (96000,), "valid": (2000,), "test": (2000,)}
FILES = {"train": "basic_train.tsv", "valid": "basic_val.tsv", "test": "basic_test.tsv"}
CONTENT = "basic_train.tsv, basic_val.tsv and basic_test.tsv, as `examples/make_lra.py listops` writes them"
SYMBOLS = str.maketrans({"(": "", ")": "", "]": "X"})
VALUES = tuple(map(str, range(10)))
#: What the operators compute, also two that the published generator knows and does not draw.
FUNCTIONS: dict[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: int(median(values)),
    "[SM": lambda values: sum(values) % 10,
    "[FIRST": lambda values: values[0],
    "[LAST": lambda values: values[-1],
}
KNOWN = {*VALUES, *FUNCTIONS, "X"}


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[SymbolSequence]:
    """Yield the expressions of a split; an id is the number of the line."""
    path = release_file(release_folder(root, CONTENT) / FILES[split], CONTENT)
    for number, row in read_tsv(path, ("Source", "Target")):
        if row["Target"] not in VALUES:
            raise ValueError(f"{path}:{number}: the value is {row['Target']!r:.60}, not a digit")
        tokens = tuple(row["Source"].translate(SYMBOLS).split())
        if unknown := [token for token in tokens if token not in KNOWN]:
            raise ValueError(f"{path}:{number}: {unknown[0]!r:.60} is no digit, operator or bracket of ListOps")
        if str(value_of(tokens)) != row["Target"]:
            raise ValueError(f"{path}:{number}: the expression has the value {value_of(tokens)}, not {row['Target']}")
        yield SymbolSequence(f"{split}-{number}", tokens, label=row["Target"], origin=f"{path}:{number}")


def value_of(tokens: Sequence[str]) -> int | None:
    """Evaluate an expression of digits, operators and other tokens, which close a bracket; None if it has no value."""
    arguments: list[list[int]] = [[]]  # of the operators that are open, and the value of all
    operators: list[str] = []
    for token in tokens:
        if token in FUNCTIONS:
            operators.append(token)
            arguments.append([])
        elif token.isdigit():
            arguments[-1].append(int(token))
        elif operators and arguments[-1]:
            value = FUNCTIONS[operators.pop()](arguments.pop())
            arguments[-1].append(value)
        else:
            return None
    return arguments[0][0] if not operators and len(arguments[0]) == 1 else None
