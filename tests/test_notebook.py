"""The notebooks of examples/ run from top to bottom, in an empty folder, and write the outputs that they store.

The tags of a cell say what another machine may write: `numbers` other numbers, `other-output` another text.
`HAT_GOLDEN=1 pytest tests/test_notebook.py` stores the outputs anew.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY, environment, run_command
from notebooks import code_cells
from warm import WarmPython

NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))
HERE = re.compile(r"(?<![\w.:/])/(home|root|tmp|var|usr|opt|work|mnt|Users|builds?)/")
MODULES = {"transformers": ("transformers", "accelerate", "peft")}  # that a notebook imports


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(outputs: list[dict[str, Any]]) -> str:
    return "".join("".join(output.get("text") or ["".join(x) for x in output["data"].values()]) for output in outputs)


def comparable(outputs: list[dict[str, Any]], tags: list[str]) -> Any:
    """What of the outputs of a cell is the same on every machine."""
    if "other-output" in tags:
        return [(output["output_type"], [*output.get("data", ())]) for output in outputs]
    text = text_of(outputs)
    return re.sub(r"\d+([.,]\d+)*", "#", text) if "numbers" in tags else text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs(path: Path) -> None:
    """Each cell was run, in order; nothing stored is about the machine, or a warning."""
    cells = code_cells(read(path))
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    assert len(cells) > 5
    text = text_of([output for cell in cells for output in cell["outputs"]])
    assert len(text) < 50_000
    assert not HERE.search(text)
    assert not re.search(r"warning|error|deprecated", text, re.IGNORECASE)
    assert not [output for cell in cells for output in cell["outputs"] if output.get("name") == "stderr"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path, warm: WarmPython, tmp_path: Path) -> None:
    for name in MODULES.get(path.stem, ()):
        pytest.importorskip(name, reason="make setup")
    command = sys.executable, REPOSITORY / "tests/support/notebooks.py", path
    done = run_command(*command, cwd=tmp_path, env=environment(PATH=warm.programs), timeout=1500)
    notebook, written = read(path), json.loads(done.stdout.splitlines()[-1])
    cells = code_cells(notebook)
    if os.environ.get("HAT_GOLDEN"):
        for number, (cell, outputs) in enumerate(zip(cells, written, strict=True), 1):
            cell |= {"execution_count": number, "outputs": outputs}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for cell, outputs in zip(cells, written, strict=True):
        tags = cell["metadata"].get("tags", [])
        assert comparable(outputs, tags) == comparable(cell["outputs"], tags), "".join(cell["source"])
    if path.stem == "quickstart":
        model, texts, page, texts_of_folder = (text_of(each) for each in written if each and "data" in each[-1])
        assert "kind text, hat_transformer" in model
        assert page.startswith("<iframe")
        assert "I would make it yellow" in page
        assert texts == texts_of_folder
        assert texts.startswith("['")
