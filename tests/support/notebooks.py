"""Runs the cells of a notebook in one process and returns its outputs, as Jupyter stores them.

A cell whose first line of code begins with an exclamation mark is of shell commands; of others the last value is shown.
`python notebooks.py FILE` runs in the current folder and prints the outputs of the code cells as JSON.
"""

import ast
import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Output = dict[str, Any]


def stream(text: str, name: str = "stdout") -> list[Output]:
    return [{"name": name, "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []


def run_shell(source: str) -> list[Output]:
    """The output of commands, each after an exclamation mark."""
    command = ("\n" + source).replace("\n!", "\n")
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "check": True}
    return stream(subprocess.run(["bash", "-eo", "pipefail", "-c", command], **options).stdout)


def run_python(source: str, space: dict[str, Any], number: int) -> list[Output]:
    """What a cell prints, and its last value; `space` has its variables."""
    body, printed, errors = ast.parse(source).body, io.StringIO(), io.StringIO()
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        exec(compile(ast.Module(body, []), "cell", "exec"), space)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), space) if last else None
    outputs = stream(printed.getvalue()) + stream(errors.getvalue(), "stderr")
    if value is None:
        return outputs
    page = hasattr(value, "_repr_html_")
    data = {"text/html": [value._repr_html_()]} if page else {"text/plain": repr(value).splitlines(keepends=True)}
    return [*outputs, {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}]


def outputs_of(path: Path) -> list[list[Output]]:
    """The outputs of each code cell."""
    space: dict[str, Any] = {}
    outputs = []
    for number, cell in enumerate(code_cells(json.loads(path.read_text(encoding="utf-8"))), 1):
        source = "".join(cell["source"])
        outputs.append(run_shell(source) if "\n!" in "\n" + source else run_python(source, space, number))
    return outputs


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


if __name__ == "__main__":
    print(json.dumps(outputs_of(Path(sys.argv[1]))))
