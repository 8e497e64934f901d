"""CSV, Parquet and saved `datasets` folders give the same data as JSON lines; what the manifest says of the inputs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import ipc, parquet

from hat_fairseq import cli
from hat_fairseq.data import manifest
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.manifest import describe_inputs
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records, record_to_json

Rows = list[dict[str, Any]]


def as_json_lines(folder: Path, split: str, rows: Rows) -> None:
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_csv(folder: Path, split: str, rows: Rows) -> None:
    with open(folder / f"{split}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def as_parquet(folder: Path, split: str, rows: Rows) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{split}.parquet")


def as_saved_folder(folder: Path, split: str, rows: Rows) -> None:
    """As `datasets` saves a split: Arrow streams and two files of JSON."""
    (folder / split).mkdir()
    table = pyarrow.Table.from_pylist(rows)
    for number, part in enumerate((table[:2], table[2:])):
        with ipc.new_stream(folder / split / f"data-{number:05}-of-00002.arrow", table.schema) as stream:
            stream.write_table(part)
    (folder / split / "state.json").write_text("{}")
    (folder / "dataset_dict.json").write_text('{"splits": ["train"]}')


FORMS: list[Callable[[Path, str, Rows], None]] = [as_json_lines, as_csv, as_parquet, as_saved_folder]


@pytest.fixture(scope="module")
def rows(pages: list[dict[str, list[str]]]) -> Rows:
    return [{"id": f"page {n}", "text": "\n".join(page["en"]), "label": f"{n % 2}"} for n, page in enumerate(pages)]


def test_every_form_gives_the_same_data(rows: Rows, tmp_path: Path) -> None:
    results = []
    for form in FORMS:
        folder = tmp_path / form.__name__
        folder.mkdir()
        form(folder, "train", rows)
        words = ["--kind", "classification", "--splitter", "punctuation", "--num-codes", "99", "--out", folder / "out"]
        assert cli.main(["preprocess", str(folder), *map(str, words)]) == 0
        results.append(
            {name: sha256_of(folder / "out" / name) for name in ("bin/input0/train.bin", "text/train.jsonl")}
        )
    assert results == results[:1] * len(FORMS)


def test_lists_and_empty_cells(translations: list[Record], tmp_path: Path) -> None:
    """A column that only some rows have is empty in the others."""
    records = [record_to_json(record) for record in translations]
    records[0]["meta"] = {"source": "help"}
    as_parquet(tmp_path, "train", records)
    read = list(read_records(tmp_path / "train.parquet"))
    assert read == translations and read[0].meta == {"source": "help"} and read[1].meta is None
    assert str(read[1].origin).endswith("train.parquet, row 2")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.csv", 'id,text,label\na,"b', "train.csv:2: unexpected end of data"),
        ("train.csv", "id,text,label\na,b\n", "train.csv:2: 2 columns instead of 3"),
        ("train.csv", "id,text,colour\na,b,c\n", "train.csv:2: unknown key 'colour'"),
        ("train.parquet", "id,text", "train.parquet: "),
    ],
)
def test_damaged_tables_are_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        list(read_records(tmp_path / name, "classification"))


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet(tmp_path, "train", [{"id": "a"}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r'needs the package pyarrow: pip install "hat_fairseq\[tables\]"'):
        list(read_records(tmp_path / "train.parquet"))


def test_the_manifest_names_what_was_read(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_json_lines(tmp_path, "train", rows)
    as_parquet(tmp_path, "test", rows)
    words = ["--kind", "classification", "--splitter", "punctuation", "--num-codes", "99", "--out", tmp_path / "out"]
    assert cli.main(["preprocess", str(tmp_path), *map(str, words)]) == 0
    record = json.loads((tmp_path / "out/manifest.json").read_text())
    files = [tmp_path / "test.parquet", tmp_path / "train.jsonl"]
    assert [(row["path"], row["size"]) for row in record["inputs"]] == [(str(f), f.stat().st_size) for f in files]
    assert record["date"].endswith("+00:00") and record["command"] and record["versions"]["hat_fairseq"]
    monkeypatch.setattr(manifest, "MAX_INPUTS", 1)
    (folder,) = describe_inputs(files)
    assert (folder["path"], folder["files"], folder["size"]) == (str(tmp_path), 2, sum(f.stat().st_size for f in files))
