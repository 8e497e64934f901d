"""Reads recipes, YAML files of configs/ or of the user: sections of flags, merged with the files under `base`.

Keys are the names of flags. Values are passed on as written. `true` gives the bare flag, `false` and `null` remove a
flag of a base, a list gives several values. A later base wins over an earlier one, the file over its bases.
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
#: Values that remove a flag.
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


def load(path: Path, below: tuple[Path, ...] = (), bases: dict[Path, Recipe] | None = None) -> Recipe:
    """Returns a recipe merged with its bases. Every section is present; removed flags are still in it.

    `below`: the files that led here; `bases`: those that were read, each once.
    ValueError for a circle of bases, a missing base, or a malformed file.
    """
    if path in below:
        raise ValueError(f"{path}: is its own base (through {', '.join(str(file.name) for file in below)})")
    content = read(path)
    recipes, bases = [], {} if bases is None else bases
    for base in content.pop("base", []):
        beside = (path.parent / base).resolve()
        base_path = beside if beside.is_file() else CONFIGS / base
        if not base_path.is_file():
            raise ValueError(f"{path}: its base {base!r} does not exist (looked for {beside} and {base_path})")
        if base_path not in bases:
            bases[base_path] = load(base_path, (*below, path), bases)
        recipes.append(bases[base_path])
    recipes.append(content)
    return {name: {k: v for recipe in recipes for k, v in recipe.get(name, {}).items()} for name in SECTIONS}


def comment(path: Path) -> str:
    """Returns the text at the top of a recipe."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    return " ".join(line.lstrip("# ") for line in lines)


def as_yaml(recipe: Recipe) -> str:
    """Returns a merged recipe as a YAML file without bases."""
    sections = {section: flags_with_value(flags) for section, flags in recipe.items() if flags_with_value(flags)}
    return str(yaml.dump(sections, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


def flags_with_value(flags: Flags) -> Flags:
    """Returns the flags that have a value."""
    return {flag: value for flag, value in flags.items() if value not in NOTHING}


def read(path: Path) -> dict[str, Any]:
    """Returns the content of one file: `base` (a list) and some of `SECTIONS`; underscores in flags become dashes.

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
    if unknown := [key for key in content if key not in ("base", *SECTIONS)]:
        raise ValueError(f"{path}: unknown section {unknown[0]!r} (known: base, {', '.join(SECTIONS)})")
    base = content.get("base", [])
    if not isinstance(base, list) or not all(isinstance(name, str) for name in base):
        raise ValueError(f"{path}: base must be a list of files, found {base!r}")
    for section in content.keys() - {"base"}:
        if not isinstance(flags := content[section], dict):
            raise ValueError(f"{path}: section {section!r} must hold `flag: value` lines, found {flags!r}")
        for flag, value in flags.items():
            if not all(isinstance(item, str) for item in (value if isinstance(value, list) else [value])):
                where = f"{path}: section {section!r}: {flag!r}"
                raise ValueError(f"{where} must be one value or a list of them, found {value!r}")
        content[section] = {flag.replace("_", "-"): value for flag, value in flags.items()}
    return content


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


class _Dumper(yaml.SafeDumper):
    """Writes values as `_Loader` reads them: a number is a text without quotes."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012
