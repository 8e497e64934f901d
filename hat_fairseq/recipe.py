#!/usr/bin/env python3
"""Turn configs/NAME.yaml into one printed fairseq command and run it.

    python hat_fairseq/recipe.py {preprocess,train,generate,predict} NAME [flags of the command ...]
    DRY_RUN=1 python hat_fairseq/recipe.py train NAME            only prints, ready to paste

A recipe has the sections `preprocess`, `task` (shared by training and generation), `train`, `update` and either
`generate` (texts), `predict` (labels, answers) or, for pre-training, none of the two, and a list `base` of files
(relative to it) that it builds on: a later base wins over an earlier one, the recipe over all of them.
Keys are the flags' own names, values are passed on as written, except that `true` gives the bare flag, `false` and
`null` take a base's flag away, and a list gives several values. `data` (for preprocess: `reader`) is the positional
argument. `{recipe}` stands for NAME, `{max-update}` for the value that the flag --max-update has in the end.

`update` says what one update of training sees (recipe_update.py); --gpus, --update-batch-size and --update-max-tokens
after NAME change it. `score` in `predict` is what follows `hat score`: a second command, run when the first one has
succeeded. Other flags given after NAME come last, so they win over the recipe's; `--FLAG=null` takes the recipe's flag
away. Knows neither fairseq nor torch: only yaml.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

if __package__:
    from . import recipe_update
else:  # run as a file
    import recipe_update  # type: ignore[no-redef]

PACKAGE = Path(__file__).resolve().parent
CONFIGS = PACKAGE.parent / "configs"

SECTIONS = ("preprocess", "task", "train", "update", "generate", "predict")
#: For each command: how python calls it, the sections it takes (a later one wins), the key of its positional argument.
COMMANDS = {
    "preprocess": (("hat_fairseq.cli", "preprocess"), ("preprocess",), "reader"),
    "train": (("fairseq_cli.train",), ("task", "train"), "data"),
    "generate": (("hat_fairseq.cli", "generate"), ("task", "generate"), "data"),
    "predict": (("hat_fairseq.cli", "predict"), ("predict",), "data"),
}

NOTHING = ("false", "null", "~", "")
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9-]*)\}")

Flags = dict[str, str | list[str]]
Recipe = dict[str, Flags]


def main(argv: list[str]) -> int:
    """Print the command of a recipe and, unless DRY_RUN=1, become it; of two commands run one and become the other."""
    try:
        if len(argv) < 2 or argv[0] not in COMMANDS:
            raise ValueError(f"usage: recipe.py {{{','.join(COMMANDS)}}} NAME [flags]; recipes: {', '.join(names())}")
        commands = build_commands(argv[0], argv[1], argv[2:])
    except (ValueError, OSError) as error:
        print(f"recipe: error: {error}", file=sys.stderr)
        return 2
    if os.environ.get("RANK", "0") == "0":  # torchrun starts every process with the same words
        comment = recipe_update.describe(commands[0])
        print(*([f"# {comment}"] if comment else []), " &&\n".join(map(render, commands)), sep="\n", flush=True)
    if os.environ.get("DRY_RUN", "0") not in ("", "0"):
        return 0
    for command in commands[:-1]:
        if status := subprocess.call(command):
            return status
    os.execv(commands[-1][0], commands[-1])


def names() -> list[str]:
    """Return the names of the recipes, sorted."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def build_command(verb: str, name: str, extra: Iterable[str] = ()) -> list[str]:
    """Return the first of ``build_commands``."""
    return build_commands(verb, name, extra)[0]


def build_commands(verb: str, name: str, extra: Iterable[str] = ()) -> list[list[str]]:
    """Return one command, for ``predict`` with a score two: the arguments to execute, the interpreter first.

    Args:
        verb: a key of ``COMMANDS``.
        name: of a recipe in configs/.
        extra: trailing flags; ``--FLAG=null`` removes the recipe's flag, --gpus and the like change what an update
            sees, everything else is appended.

    Raises:
        ValueError: unknown recipe, malformed YAML, no positional argument, or an update that cannot be had.
    """
    if name not in names():
        raise ValueError(f"no recipe {name!r} in {CONFIGS}: there are {', '.join(names()) or 'none'}")
    module, sections, positional = COMMANDS[verb]
    recipe = load(CONFIGS / f"{name}.yaml")
    flags: Flags = {}
    for section in sections:
        flags.update(recipe[section])
    appended = []
    for argument in extra:
        if argument.startswith("--") and argument.endswith("=null"):
            _remove(flags, argument)
        else:
            appended.append(argument)
    if verb in ("generate", "predict") and not recipe[verb]:
        raise ValueError(f"recipe {name!r} cannot {verb}: it has no section {verb!r}")
    if flags.get(positional, "") in NOTHING:
        raise ValueError(f"recipe {name!r} cannot {verb}: it has no {positional!r} in section {' or '.join(sections)}")
    if verb == "train":
        appended = recipe_update.apply(flags, recipe["update"], appended)
    score = _take_score(flags, appended) if verb == "predict" else []
    words = [word for flag, value in flags.items() if flag != positional for word in _words(flag, value)]
    values = {"recipe": name, **flags, **recipe_update.given(appended)}
    command = [sys.executable, "-m", *module, _fill(str(flags[positional]), values)]
    command += ["--user-dir", str(PACKAGE)] if verb == "train" else []
    command += [_fill(word, values) for word in words] + appended
    scoring = [sys.executable, "-m", "hat_fairseq.cli", "score", *(_fill(word, values) for word in score)]
    return [command, scoring] if score else [command]


def load(path: Path, below: tuple[Path, ...] = ()) -> Recipe:
    """Return a recipe merged with its bases; every section is present, and flags that were taken away are still in it.

    Args:
        path: of the YAML file.
        below: the files that led here, to find circles.
    """
    if path in below:
        raise ValueError(f"{path}: is its own base (through {', '.join(str(file.name) for file in below)})")
    content = read(path)
    merged: Recipe = {section: {} for section in SECTIONS}
    for base in content.pop("base", []):
        base_path = (path.parent / base).resolve()
        if not base_path.is_file():
            raise ValueError(f"{path}: its base {base!r} does not exist (looked for {base_path})")
        _update(merged, load(base_path, (*below, path)))
    _update(merged, content)
    return merged


def read(path: Path) -> dict[str, Any]:
    """Return one file's own content, checked, flags with dashes: `base` (a list) and some of ``SECTIONS``."""
    yaml, loader = _yaml()
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ValueError(f"{path}{line}: malformed YAML: {getattr(error, 'problem', None) or error}") from None
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected sections {', '.join(SECTIONS)}, found {str(content)[:60]!r}")
    if unknown := [key for key in content if key not in ("base", *SECTIONS)]:
        raise ValueError(f"{path}: unknown section {unknown[0]!r} (known: base, {', '.join(SECTIONS)})")
    if not isinstance(content.get("base", []), list):
        raise ValueError(f"{path}: base must be a list of files, found {content['base']!r}")
    for section in content.keys() - {"base"}:
        content[section] = _flags(content[section], f"{path}: section {section!r}")
    return content


def render(command: list[str]) -> str:
    """Return the command for a shell, one flag a line."""
    lines: list[str] = []
    for word in command:
        if not lines or word.startswith("--"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += " " + shlex.quote(word)
    return " \\\n    ".join(lines)


def _flags(section: Any, where: str) -> Flags:
    if not isinstance(section, dict):
        raise ValueError(f"{where} must hold `flag: value` lines, found {section!r}")
    for flag, value in section.items():
        if not all(isinstance(item, str) for item in (value if isinstance(value, list) else [value])):
            raise ValueError(f"{where}: {flag!r} must be one value or a list of them, found {value!r}")
    return {flag.replace("_", "-"): value for flag, value in section.items()}


def _yaml() -> tuple[Any, Any]:
    """Return PyYAML and a loader that keeps values as written and refuses a key that occurs twice."""
    try:
        import yaml
    except ImportError:
        raise ValueError(f"{sys.executable} has no PyYAML: activate the environment that has hat_fairseq") from None

    class Loader(yaml.BaseLoader):
        pass

    def mapping(loader: Any, node: Any) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if (flag := str(key.value).replace("_", "-")) in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} occurs twice", problem_mark=key.start_mark)
            seen.add(flag)
        return loader.construct_mapping(node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return yaml, Loader


def _update(merged: Recipe, content: Mapping[str, Flags]) -> None:
    for section, flags in content.items():
        merged[section].update(flags)


def _remove(flags: Flags, argument: str) -> None:
    flag = argument[2:].removesuffix("=null").replace("_", "-")
    if flags.pop(flag, None) is None:
        raise ValueError(f"{argument}: the recipe has no flag --{flag} to take away")


def _take_score(flags: Flags, appended: list[str]) -> list[str]:
    """Take `score` out of the recipe's flags and --score out of those that follow its name; the words of the last."""
    score = flags.pop("score", "")
    for place, word in reversed([*enumerate(appended)]):
        if word == "--score" and place + 1 < len(appended):
            score = appended[place + 1]
            del appended[place : place + 2]
            break
        if word.startswith("--score="):
            score = appended.pop(place).removeprefix("--score=")
            break
    return [] if isinstance(score, list) or score in NOTHING else shlex.split(score)


def _fill(word: str, values: Mapping[str, str | list[str]], below: tuple[str, ...] = ()) -> str:
    """Return ``word`` with every ``{flag}`` replaced by the value of that flag."""

    def value_of(match: re.Match[str]) -> str:
        flag = match[1]
        value = values.get(flag, "null")
        if isinstance(value, list) or value in NOTHING or flag in below:
            raise ValueError(f"{word!r}: there is no value of --{flag} to put there")
        return _fill(value, values, (*below, flag))

    return _PLACEHOLDER.sub(value_of, word)


def _words(flag: str, value: str | list[str]) -> list[str]:
    """Return the command line's words for one `flag: value`."""
    if value == "true":
        return [f"--{flag}"]
    if value in NOTHING:
        return []
    return [f"--{flag}", *([value] if isinstance(value, str) else value)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
