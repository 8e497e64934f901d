"""Reads recipes, YAML files of configs/ or of the user: sections of flags, with comments for those who read them.

Keys are the names of flags. Values are passed on as written. `true` gives the bare flag, `false` and `null` none, a
list gives several values.
"""

from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from hat_fairseq.suggestions import did_you_mean_some

PACKAGE = Path(__file__).resolve().parents[1]
#: In the installed package, or beside it in a clone.
EXAMPLES = next((path for path in (PACKAGE / "examples", PACKAGE.parent / "examples") if path.is_dir()), PACKAGE)
CONFIGS = next((path for path in (PACKAGE / "configs", PACKAGE.parent / "configs") if path.is_dir()), PACKAGE)
SECTIONS = ("import", "preprocess", "task", "train", "update", "generate", "predict", "export")
#: Values of a flag that is not given.
NOTHING = ("false", "null", "~", "")

Flags = dict[str, str | list[str]]
Recipe = dict[str, Flags]


def names() -> list[str]:
    """Returns the names of the recipes, sorted."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def find(name: str) -> Path:
    """Returns the path of the recipe `name`, which may be a YAML file; raises ValueError where there is none."""
    if name.endswith(".yaml"):
        if not Path(name).is_file():
            raise ValueError(f"{name} does not exist")
        return Path(name)
    if name not in names():
        hint = did_you_mean_some(name, names(), "; `hat recipe list` shows them")
        raise ValueError(f"no recipe {name!r} in {CONFIGS}{hint}")
    return CONFIGS / f"{name}.yaml"


def head(path: Path) -> list[str]:
    """Returns the lines at the top of a recipe: what it is, of which paper or for what, what it needs, and more."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    return [line.removeprefix("#").strip() for line in lines]


def flags_with_value(flags: Flags) -> Flags:
    """Returns the flags that have a value."""
    return {flag: value for flag, value in flags.items() if value not in NOTHING}


def load(path: Path) -> Recipe:
    """Returns a recipe in which every section is present, with dashes for underscores in the names of flags.

    ValueError for malformed YAML, an unknown section, or a value that is neither text nor a list of texts.
    """
    try:
        content = yaml.load(path.read_bytes(), Loader=_Loader)
    except RecursionError:
        raise ValueError(f"{path}: malformed YAML: nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ValueError(f"{path}{line}: malformed YAML: {getattr(error, 'problem', None) or error}") from None
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected sections {', '.join(SECTIONS)}, found {str(content)[:60]!r}")
    if unknown := [key for key in content if key not in SECTIONS]:
        flat = "; write one file, as `hat recipe copy NAME` or 0.7's `hat recipe show` does" * ("base" in unknown)
        raise ValueError(f"{path}: unknown section {unknown[0]!r} (known: {', '.join(SECTIONS)}){flat}")
    for section, flags in content.items():
        if not isinstance(flags, dict):
            raise ValueError(f"{path}: section {section!r} must hold `flag: value` lines, found {flags!r}")
        for flag, value in flags.items():
            if not all(isinstance(item, str) for item in (value if isinstance(value, list) else [value])):
                where = f"{path}: section {section!r}: {flag!r}"
                raise ValueError(f"{where} must be one value or a list of them, found {value!r}")
    return {
        section: {flag.replace("_", "-"): value for flag, value in content.get(section, {}).items()}
        for section in SECTIONS
    }


class _Loader(yaml.BaseLoader):
    """Keeps values as written and refuses a key that occurs twice, and aliases: few lines of them are gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases are not read", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = True) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if (flag := str(key.value).replace("_", "-")) in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} occurs twice", problem_mark=key.start_mark)
            seen.add(flag)
        return super().construct_mapping(node, deep=True)
