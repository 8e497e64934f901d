"""The notebook of examples/ runs from top to bottom, in an empty folder."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY, environment, run_command

CELLS: list[dict[str, Any]] = json.loads((REPOSITORY / "examples/quickstart.ipynb").read_text(encoding="utf-8"))[
    "cells"
]
# What a notebook does with code cells: a line with an exclamation mark begins a shell command, a last value is shown.
RUN = """
import ast, json, subprocess, sys

space, shown = {}, []
for source in json.loads(sys.argv[1]):
    if "\\n!" in "\\n" + source:
        subprocess.run(["bash", "-ec", ("\\n" + source).replace("\\n!", "\\n")], check=True)
        continue
    *statements, last = ast.parse(source).body
    exec(compile(ast.Module(statements, []), "cell", "exec"), space)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
print(json.dumps(shown))
"""


def test_outputs_are_not_stored() -> None:
    code = [cell for cell in CELLS if cell["cell_type"] == "code"]
    assert len(code) > 5 and [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.slow
def test_every_cell_runs(tmp_path: Path) -> None:
    sources = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = (sys.executable, "-c", RUN, json.dumps(sources))
    done = run_command(*command, cwd=tmp_path, env=environment(PATH=path))
    model, texts, page, texts_of_package = json.loads(done.stdout.splitlines()[-1])
    assert "kind text, hat_transformer" in model and page.startswith("<iframe") and "I would make it yellow" in page
    assert texts == texts_of_package and texts.startswith("['")
