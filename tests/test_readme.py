"""The tables of README.md and docs/modules.md against the registry, the files and the recipes."""

from __future__ import annotations

import re

from commands import REPOSITORY
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

from hat_fairseq.register import register

register()  # registers the models

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
MODULES = (REPOSITORY / "docs/modules.md").read_text(encoding="utf-8")


def rows(heading: str, page: str) -> list[list[str]]:
    """Cells of the tables whose first column is called `heading`, without their two header lines."""
    tables = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    assert tables, heading
    return [[cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_model_and_module_is_in_the_paper_table_and_the_other_way_round() -> None:
    table = rows("paper", MODULES)
    ours = {name for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("hat_fairseq.")}
    assert {name for row in table for name in names(row[3])} == ours
    files = [path for part in ("modules", "networks") for path in (REPOSITORY / "hat_fairseq" / part).glob("*.py")]
    modules = {f"{path.parent.name}/{path.name}" for path in files if path.name != "__init__.py"}
    assert {name for row in table for name in names(row[2])} <= modules
    assert {name for name in modules if f"`{name}`" not in MODULES} == set()


def test_recipes_are_those_in_configs() -> None:
    configs = {path.stem for path in (REPOSITORY / "configs").glob("*.yaml")}
    page = (REPOSITORY / "docs/recipes.md").read_text(encoding="utf-8")
    assert {name for row in rows("recipe", page) for name in names(row[0])} == configs
    assert {name for row in rows("paper", MODULES) for name in names(row[4])} == configs


def test_architectures_exist() -> None:
    page = (REPOSITORY / "docs/hat.md").read_text(encoding="utf-8")
    for row in rows("architecture", page):
        for name in names(row[0]):
            assert name in ARCH_MODEL_REGISTRY


def test_the_file_tree_shows_what_is_there() -> None:
    tree = README.split("## Files")[1].split("```")[1]
    for name in re.findall(r"^ *((?:[\w.]+/?(?: |$))+)", tree, flags=re.MULTILINE):
        for path in name.split():
            assert any((folder / path).exists() for folder in (REPOSITORY, REPOSITORY / "hat_fairseq")), path
