"""Who may import whom, read off the source: the rules that keep the parts of the package apart."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "hat_fairseq"
FILES = sorted(PACKAGE.rglob("*.py"))

# Part of the package -> parts that it may import besides itself. Every part is listed; "" is the package's __init__.py.
MAY_IMPORT = {
    "": {"register", "inference"},  # inference: when `load` is called
    "register": {"fairseq_fixes"},  # it imports the models, tasks and criterions by name
    "model_folder": {"data", "former"},
    "fairseq_fixes": {"former", "kernels", "data", "model_folder", "networks", "options", "suggestions"},
    "units": {
        "printed",
        "analysis",
        "criterions",
        "data",
        "inference",
        "kernels",
        "model_folder",
        "modules",
        "networks",
        "options",
        "scoring",
        "suggestions",
        "tasks",
        "threads",
        "weights",
    },
    "kernels": set(),
    "options": set(),
    "modules": {"kernels", "options"},
    "networks": {"kernels", "modules", "options"},
    "models": {"former", "kernels", "data", "modules", "networks", "options", "register", "threads"},
    "criterions": {"kernels", "data", "modules", "networks", "options", "register"},
    "former": set(),
    "versions": set(),
    "workers": {"versions"},
    "data": {"options", "printed", "suggestions", "versions", "workers"},
    "hf": {"former", "kernels", "modules", "networks", "data", "model_folder", "options"},
    "scoring": {"data", "printed", "threads"},  # the readers of documents and of lines, nothing else
    "generation": {"kernels", "data", "model_folder", "options", "scoring"},
    "analysis": {"modules", "networks", "data"},
    "tasks": {"kernels", "networks", "models", "criterions", "data", "options", "scoring", "generation", "register"},
    "inference": {
        "kernels",
        "models",
        "modules",
        "networks",
        "data",
        "model_folder",
        "scoring",
        "generation",
        "analysis",
        "cli",
        "options",
        "suggestions",
        "tasks",
        "versions",
        "weights",
        "workers",
    },
    "weights": {"modules", "networks", "data", "model_folder", "generation", "options", "register", "fairseq_fixes"},
    "recipes": {
        "cli",
        "data",
        "fairseq_commands",
        "model_folder",
        "printed",
        "progress",
        "scoring",
        "suggestions",
        "workers",
    },
    "printed": set(),
    "progress": set(),
    "short_help": set(),
    "suggestions": set(),
    "planning": {"data", "networks", "printed", "recipes", "register"},  # models and tasks: by name, from fairseq
    "doctor": {"data", "fairseq_commands"},  # when it compares a folder with its manifest, and when it runs commands
    "demo": {"data", "fairseq_commands", "printed", "recipes", "suggestions", "weights"},
    "fairseq_commands": {"fairseq_fixes", "register", "suggestions"},  # and fairseq_cli, by name
    "user_dir": set(),
    "info": {"data", "model_folder", "printed", "weights", "fairseq_fixes", "fairseq_commands", "models", "register"},
    "demo_model": {"hf"},  # for transformers, in each folder of hat export
    "meeting_model": {"hf"},
    "threads": set(),
    "cli": {"generation", "printed", "short_help", "suggestions", "threads"},  # verbs are imported by name, when called
}
# Where units are registered: kinds, networks, a metric, vectors of baselines, a packaged model, and `Model.ask`.
# Nothing else imports them.
TABLES_OF_UNITS = {
    "data/kinds/__init__.py",
    "inference/python.py",
    "networks/__init__.py",
    "scoring/command.py",
    "scoring/label_baselines.py",
    "weights/names.py",
}
FORBIDDEN_LIBRARIES = {
    "kernels": {"fairseq", "fairseq_cli", "omegaconf", "hydra", "time", "timeit"},  # no kernel is chosen by a clock
    "modules": {"fairseq", "fairseq_cli", "omegaconf", "hydra"},
    "networks": {"fairseq", "fairseq_cli", "omegaconf", "hydra", "numpy", "os", "pathlib"},
    "hf": {"fairseq", "fairseq_cli", "omegaconf", "hydra"},
    "data": {"torch", "fairseq", "fairseq_cli"},
    "model_folder": {"fairseq", "fairseq_cli", "omegaconf", "hydra"},
    "scoring": {"torch", "fairseq", "fairseq_cli"},
    "versions": {"torch", "fairseq", "fairseq_cli", "numpy"},
    "workers": {"torch", "fairseq", "fairseq_cli", "numpy"},  # it asks torch for the GPUs of workers with models
    "recipes": {"torch", "fairseq", "fairseq_cli", "numpy"},
    "cli": {"torch", "fairseq", "fairseq_cli"},
    "threads": {"torch", "fairseq", "fairseq_cli", "numpy"},
    "doctor": {"torch", "fairseq", "fairseq_cli", "numpy", "packaging", "yaml"},
    "options": {"torch", "fairseq", "fairseq_cli", "numpy"},
    "": {"torch", "fairseq", "fairseq_cli"},
}


def part_of(path: Path) -> str:
    """Sub-package, or name of the file, that `path` belongs to; "" for the package's own __init__.py."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py") if first != "__init__.py" else ""


def statements(tree: ast.AST, inside_functions: bool) -> Iterator[ast.AST]:
    """All nodes of `tree`; without the bodies of functions if `inside_functions` is False."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from statements(node, inside_functions)


def imported(path: Path, source: str, inside_functions: bool = True) -> set[str]:
    """Absolute dotted names imported by `source`, the text of the file `path` in the package."""
    package = ["hat_fairseq", *path.relative_to(PACKAGE).parent.parts]
    names = set()
    for node in statements(ast.parse(source), inside_functions):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            names |= {f"{stem}.{alias.name}" for alias in node.names}
    return names


def own_parts(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("hat_fairseq.")}


def test_a_part_imports_only_the_parts_below_it() -> None:
    violations = {}
    for path in FILES:
        parts = own_parts(imported(path, path.read_text(encoding="utf-8")))
        if str(path.relative_to(PACKAGE)) in TABLES_OF_UNITS:
            parts -= {"units"}
        if forbidden := parts - {part_of(path)} - MAY_IMPORT[part_of(path)]:
            violations[str(path.relative_to(PACKAGE))] = forbidden
    assert violations == {}
    assert len(FILES) > 100


def test_heavy_libraries_stay_out_of_the_light_parts() -> None:
    violations = {}
    for path in FILES:
        names = imported(path, path.read_text(encoding="utf-8"), inside_functions=False)
        if heavy := {name.split(".")[0] for name in names} & FORBIDDEN_LIBRARIES.get(part_of(path), set()):
            violations[str(path.relative_to(PACKAGE))] = heavy
    assert violations == {}


def test_every_part_is_listed_and_exists() -> None:
    assert MAY_IMPORT.keys() == {part_of(path) for path in FILES}
    assert FORBIDDEN_LIBRARIES.keys() <= MAY_IMPORT.keys()


def test_the_rules_have_no_circle() -> None:
    """Parts in an order in which each imports only earlier ones."""
    assert len(list(TopologicalSorter(MAY_IMPORT).static_order())) == len(MAY_IMPORT)


def files_imported(path: Path, inside_functions: bool) -> set[Path]:
    """The files of the package whose contents a file imports, for type checkers too."""
    files = set()
    for name in imported(path, path.read_text(encoding="utf-8"), inside_functions):
        parts = name.split(".")
        if parts[0] == "hat_fairseq":  # the last part may be a file or a name in it
            places = [PACKAGE.joinpath(*parts[1:end]) for end in (len(parts), len(parts) - 1)]
            found = (file for each in places for file in (each.with_suffix(".py"), each / "__init__.py"))
            files |= {next(filter(Path.is_file, found))}
    return files - {PACKAGE / "__init__.py"}  # it has the version, and a function that imports `inference`


def test_no_files_import_each_other() -> None:
    """Files in an order in which each imports only earlier ones, also inside functions; tables register later ones."""
    graph = {path: files_imported(path, inside_functions=True) for path in FILES}
    for name in TABLES_OF_UNITS:
        graph[PACKAGE / name] = {each for each in graph[PACKAGE / name] if part_of(each) != "units"}
    assert len(list(TopologicalSorter(graph).static_order())) == len(FILES)


def test_no_kind_of_data_is_named_outside_its_file() -> None:
    """Names that are also keys or options may occur, but nothing is compared with them."""
    from hat_fairseq.data.kinds import KINDS

    words = {"text", "choice", "candidates", "segments", "tokens", "sequence", "classification", "qa", "evidence"}
    named = []
    for path in FILES:
        if "kinds" in path.relative_to(PACKAGE).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and "kind" in ast.unparse(node.left):
                forbidden = set(KINDS)
                values = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            else:
                forbidden = set(KINDS) - words
                values = [node.value] if isinstance(node, ast.Constant) else []
            named += [f"{path.name}: {value}" for value in values if isinstance(value, str) and value in forbidden]
    assert not named
