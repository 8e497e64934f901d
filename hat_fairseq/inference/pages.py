"""The pages of `hat look` for many documents, by workers."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..analysis.page import overview
from ..data.blocks import read_part
from ..data.outputs import atomic_file, check_folder, check_output
from ..data.record import Record
from ..workers import Workers
from .batches import results_of
from .jobs import Pages
from .rows import log_changes

NAME = 80  # bytes of the name of a page
INDEX = "index.html"  # the overview of the pages of a folder


def page_paths(folder: Path, ids: Iterable[str], overwrite: bool) -> dict[str, Path]:
    """The page of each record by its id, all different; ValueError for a folder or page in the way."""
    check_folder(folder, "--pages")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--pages {folder} is a file; name a folder")
    paths: dict[str, Path] = {}
    taken = {Path(INDEX).stem}
    for identifier in ids:
        letters = re.sub(r"[^\w.-]+", "_", identifier).encode()[:NAME].decode(errors="ignore")
        name = stem = letters.strip("._") or "document"
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        paths[identifier] = folder / f"{name}.html"
    for path in (folder / INDEX, *paths.values()):
        check_output(path, overwrite, (), "--pages")
    return paths


def write_pages(job: Pages, records: Sequence[Record], paths: dict[str, Path], workers: Workers) -> list[str]:
    """Writes the page of each record and their overview; returns the ids of those that have nothing to show."""
    folder = next(iter(paths.values())).parent
    without, summaries = [], {}
    with results_of(job, folder, workers) as results:
        archives = list(results.archives(records, 1, "look", len(records)))
        folder.mkdir(exist_ok=True)
        for record, archive in zip(records, archives, strict=True):
            (made,) = json.loads(read_part(archive, "lines"))
            if made is None:
                without.append(record.id)
                continue
            content, summaries[paths[record.id].name] = made
            with atomic_file(paths[record.id]) as file:
                file.write(content.encode())
        with atomic_file(folder / INDEX) as file:
            file.write(overview(summaries).encode())
    log_changes(results.counts)
    return without


def report_pages(paths: dict[str, Path], without: list[str]) -> None:
    """Prints the number of pages, those that have another name than the id, and the records without a page."""
    folder = next(iter(paths.values())).parent
    print(f"{folder}: {len(paths) - len(without)} pages, and {INDEX}")
    if renamed := [name for name, path in paths.items() if path.stem != name]:
        print(f"{len(renamed)} pages have another name than the id, e.g. {paths[renamed[0]].name}", file=sys.stderr)
    if without:
        print(
            f"{len(without)} documents have no page, because they have no text, or one segment only and no attention "
            f"to show: e.g. {without[0]!r}",
            file=sys.stderr,
        )
