"""Build the commands of a recipe: lists of words, its flags beside those that follow its name."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from . import files, update
from .files import NOTHING, Flags
from .steps import PYTHON
from .update import Flag, split, values_of

Value = str | list[str]
Values = Mapping[str, Value]  # of flags, by name

#: For each verb: the module and its first words, the sections it reads (a later one wins), its positional arguments.
COMMANDS = {
    "import": (("hat_fairseq.cli", "import"), ("import",), ("release",)),
    "preprocess": (("hat_fairseq.cli", "preprocess"), ("preprocess",), ("reader",)),
    "train": (("hat_fairseq.cli", "train"), ("task", "train"), ("data",)),
    "generate": (("hat_fairseq.cli", "generate"), ("generate",), ("model", "input")),
    "predict": (("hat_fairseq.cli", "predict"), ("predict",), ("model", "input")),
    "export": (("hat_fairseq.cli", "export"), ("export",), ("model",)),
}
SCORED = ("generate", "predict")  # verbs after which `hat score` runs, with the arguments `score` of the recipe
LONGEST = 100_000  # characters of a filled value; Linux takes no longer word of a command
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9-]*)\}")


def build_commands(verb: str, name: str, extra: Iterable[str] = ()) -> list[list[str]]:
    """Returns the commands of a recipe, each as a list of words: one, or with a score two.

    Args:
        verb: a key of `COMMANDS`.
        name: of a recipe in configs/, or a YAML file.
        extra: trailing flags. `--FLAG=null` removes the recipe's flag; positional arguments are given as flags, too,
            and an input that is a file has no split: `{split}` is the name of the file, and no results are replaced;
            --gpus, --update-batch-size and --update-max-tokens change the section `update`; others replace the recipe's
            flags of the same name and are appended.

    Raises:
        ValueError: an unknown or malformed recipe, no positional argument, or an infeasible update size.
    """
    module, _, positionals = COMMANDS[verb]
    flags, trailing = _flags_of(verb, name, extra)
    score = values_of(trailing).get("score", flags.pop("score", "")) if verb in SCORED else ""
    trailing = [flag for flag in trailing if flag.name != "score" or verb not in SCORED]
    stated = values_of(trailing)
    values = {"recipe": files.find(name).stem, "examples": str(files.EXAMPLES), **flags, **stated}
    references = None
    if "input" in positionals and "split" in flags and (file := Path(_fill(str(flags["input"]), values))).is_file():
        del flags["split"]  # which a file does not have
        flags.pop("overwrite", None)  # the file may have the name of a split, whose results stay
        values, references = {**values, "split": file.stem, **stated}, str(file)
    command = [*PYTHON, *module, *(_fill(str(flags[each]), values) for each in positionals)]
    command += _options(flags, {*positionals, *(flag.name for flag in trailing)}, values)
    command += [word for flag in trailing for word in flag.words]
    return [command, *_scores(score, values, references)]


def _flags_of(verb: str, name: str, extra: Iterable[str]) -> tuple[dict[str, Value], list[Flag]]:
    """Returns the recipe's flags for a verb, and the trailing ones that are no positional arguments."""
    _, sections, positionals = COMMANDS[verb]
    recipe = files.load(files.find(name))
    if verb in ("generate", "predict") and not recipe[verb]:
        raise ValueError(f"recipe {name!r} cannot {verb}: it has no section {verb!r}")
    own = {flag: value for section in sections for flag, value in recipe[section].items()}
    trailing = _remove(own, split(extra))
    flags = files.flags_with_value(own)
    flags |= {flag: value for flag, value in values_of(trailing).items() if flag in positionals}
    trailing = [flag for flag in trailing if flag.name not in positionals]
    for absent in (positional for positional in positionals if positional not in flags):
        raise ValueError(f"recipe {name!r} cannot {verb}: it has no {absent!r} in section {' or '.join(sections)}")
    if verb == "train":
        trailing = update.apply(flags, files.flags_with_value(recipe["update"]), trailing)
    return flags, trailing


def _options(flags: Values, without: set[str], values: Values) -> list[str]:
    """Returns the words of the recipe's flags that nothing replaces."""
    words = (word for flag, value in flags.items() if flag not in without for word in _words(flag, value))
    return [_fill(word, values) for word in words]


def _scores(score: Value, values: Values, references: str | None) -> list[list[str]]:
    """Returns the command of `hat score` with the arguments of the recipe, if it has any."""
    if isinstance(score, list) or score in NOTHING:
        return []
    words = [_fill(word, values) for word in shlex.split(score)]
    if "{out}" not in score and "--references" not in words:
        words += _files_of_score(values, references)
    return [[*PYTHON, "hat_fairseq.cli", "score", *words]]


def _files_of_score(values: Values, references: str | None) -> list[str]:
    """Returns what `hat score` reads and writes; `references`: a file, or None for the split of the input."""
    out = _fill("{out}", values)
    if out == "-":
        raise ValueError("--out -: results on the standard output are not scored: add --score=null")
    if references is None:
        folder = Path(_fill("{input}", values))
        text = (folder.parent if folder.name == "bin" else folder) / "text"
        references = str(text / _fill("{split}.jsonl", values))
    return [out, "--references", references, "--out", str(Path(out).with_suffix(".score.json"))]


def _remove(flags: Flags, trailing: Sequence[Flag]) -> list[Flag]:
    """Removes from `flags` every flag that is given as `--FLAG=null`; returns the other trailing flags."""
    removed = [flag for flag in trailing if flag.words[0].endswith("=null")]
    for flag in removed:
        if flags.pop(flag.name, None) is None:
            raise ValueError(f"{flag.words[0]}: the recipe has no flag --{flag.name} to remove")
    return [flag for flag in trailing if flag not in removed]


def _fill(word: str, values: Values, below: tuple[str, ...] = ()) -> str:
    """Returns `word` with every `{flag}` replaced by the value of that flag."""
    length = 0

    def value_of(match: re.Match[str]) -> str:
        nonlocal length
        flag = match[1]
        value = values.get(flag, "null")
        if isinstance(value, list) or value in NOTHING or flag in below:
            raise ValueError(f"{word!r}: --{flag} has no value to put there")
        filled = _fill(value, values, (*below, flag))
        if (length := length + len(filled)) > LONGEST:
            raise ValueError(f"{word!r}: with the values of its flags it has more than {LONGEST:,} characters")
        return filled

    return _PLACEHOLDER.sub(value_of, word)


def _words(flag: str, value: Value) -> list[str]:
    if value == "true":
        return [f"--{flag}"]
    return [f"--{flag}", *([value] if isinstance(value, str) else value)]
