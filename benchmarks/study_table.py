"""The runs of a study as one compressed table: `results/STUDY.csv.gz`.

A row is a value of a document in a run: task, what is trained, arm, seed, document, metric, value, weight (the number
of questions, sentences or articles that the value is the sum of). Rows without a document have what is said of the run
itself, such as its command and its device, as JSON.
"""

import csv
import fcntl
import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

Run = dict[str, Any]
Key = tuple[str, str, str, int]
KEY = ("task", "train", "arm", "seed")
COLUMNS = (*KEY, "document", "metric", "value", "weight")
# Of AMI the four meetings of a team, of ICSI those of a group. The sessions of parliaments have other witnesses each.
SERIES = re.compile(r"((?:ES|IS|TS)\d{4})[a-d]|(B[a-z]{2})\d{3}")


def series_of(document: str) -> str:
    """Returns the team or group whose meeting a document is, or the document itself: what intervals draw together."""
    series = SERIES.fullmatch(document)
    return next(filter(None, series.groups())) if series else document


def key_of(run: Run) -> tuple[Any, ...]:
    return tuple(run[name] for name in KEY)


def read_runs(path: Path) -> list[Run]:
    """Returns the runs of a table, none if there is no file."""
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [_run(list(own)) for _, own in groupby(rows, key=lambda row: [row[name] for name in KEY])]


def _run(rows: list[dict[str, str]]) -> Run:
    run: Run = {"task": rows[0]["task"], "train": rows[0]["train"], "arm": rows[0]["arm"], "seed": int(rows[0]["seed"])}
    scores: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["document"]:
            pair = [json.loads(row["value"]), json.loads(row["weight"])]
            scores.setdefault(row["document"], {})[row["metric"]] = pair
        else:
            run[row["metric"]] = json.loads(row["value"])
    return run | {"scores": scores}


def _rows(run: Run) -> Iterator[tuple[Any, ...]]:
    key = key_of(run)
    for name, value in run.items():
        if name not in (*KEY, "scores"):
            yield (*key, "", name, json.dumps(value), "")
    for document, metrics in run["scores"].items():
        for metric, (value, weight) in metrics.items():
            yield (*key, document, metric, json.dumps(value), json.dumps(weight))


def write_runs(path: Path, runs: Iterable[Run]) -> None:
    """Writes a table, sorted by the keys of the runs; the same runs give the same bytes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in sorted(runs, key=key_of):
        writer.writerows(_rows(run))
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    part.replace(path)


def add_run(path: Path, run: Run) -> None:
    """Adds a run to a table, or replaces the one with its key; other processes may add theirs at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_runs(path, [*(each for each in read_runs(path) if key_of(each) != key_of(run)), run])


def has_run(path: Path, task: str, train: str, arm: str, seed: int) -> bool:
    """Says whether a table has this run, which is not repeated then."""
    return (task, train, arm, seed) in map(key_of, read_runs(path))
