"""The pages of `hat look` for all records of `hat predict --look DIR`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..analysis.page import page
from ..data.kinds import Prediction
from ..data.outputs import atomic_file, check_folder, check_output
from ..data.record import Record
from .labels import Predictor
from .look_labels import look_at_labels
from .look_units import LookOptions

NAME = 80  # bytes of the name of a page


def page_paths(folder: Path, ids: Iterable[str], overwrite: bool) -> dict[str, Path]:
    """The page of each record by its id, all different; ValueError for a folder or page in the way."""
    check_folder(folder, "--look")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--look {folder} is a file; name a folder")
    paths: dict[str, Path] = {}
    taken: set[str] = set()
    for identifier in ids:
        letters = re.sub(r"[^\w.-]+", "_", identifier).encode()[:NAME].decode(errors="ignore")
        name = stem = letters.strip("._") or "document"
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        paths[identifier] = folder / f"{name}.html"
        check_output(paths[identifier], overwrite, (), "--look")
    return paths


def write_page(model: Predictor, record: Record, prediction: Prediction, path: Path, name: str) -> bool:
    """Writes the page of a record, of choices that of the chosen one; returns whether there is something to show."""
    options = LookOptions(occlusion=None, chunk=model.kind.weighted_row(prediction) + 1, name=name)
    look = look_at_labels(model, record, options)
    if not look.maps and look.occlusion is None:
        return False
    path.parent.mkdir(exist_ok=True)
    with atomic_file(path) as file:
        file.write(page(look).encode())
    return True


def report_pages(paths: dict[str, Path], without: list[str]) -> None:
    """Prints the number of pages, those that have another name than the id, and the records without a page."""
    folder: Any = next(iter(paths.values())).parent
    print(f"{folder}: {len(paths) - len(without)} pages")
    if renamed := [name for name, path in paths.items() if path.stem != name]:
        print(f"{len(renamed)} pages have another name than the id, e.g. {paths[renamed[0]].name}", file=sys.stderr)
    if without:
        print(
            f"{len(without)} documents have no page, because they have no text, or one segment only and no attention "
            f"to show: e.g. {without[0]!r}",
            file=sys.stderr,
        )
