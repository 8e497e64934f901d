"""The same records in every format, compressed in every way, under any name: the content decides what a file is."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from commands import hat, refusal
from pyarrow import ipc, parquet

from hat_fairseq.data import json_stream
from hat_fairseq.data.compression import decompressed
from hat_fairseq.data.formats import read_rows
from hat_fairseq.data.records_json import read_records

Row = dict[str, str]
SPLITS = ("train", "valid", "test")
RECORDS = {
    split: [
        {
            "id": f"{split}/{number}",
            "text": f'Huset nr. {number} er "gult", sier de;\tdet er {number} år gammelt | omtrent.\nIngen bor der.',
            "target": f"Hus {number}: tomt.",
        }
        for number in range(size)
    ]
    for split, size in (("train", 7), ("valid", 2), ("test", 3))
}


def lines(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def with_blank_lines(rows: Sequence[Row]) -> str:
    """The last one has a zero-width space and a byte order mark."""
    return "\ufeff \n" + lines(rows).replace("\n", "\r\n\t\r\n") + "\u200b\ufeff\n"


def one_line(rows: Sequence[Row]) -> str:
    return json.dumps(rows)


def pretty_list(rows: Sequence[Row]) -> str:
    return "\ufeff" + json.dumps(rows, indent=4, ensure_ascii=False) + "\n\n"


def list_of_lines(rows: Sequence[Row]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


def pretty_objects(rows: Sequence[Row]) -> str:
    return "\n".join(json.dumps(row, indent=1) for row in rows)


def table(delimiter: str, end: str = "\n") -> Callable[[Sequence[Row]], str]:
    def write(rows: Sequence[Row]) -> str:
        file = io.StringIO()
        writer = csv.DictWriter(file, ["text", "target", "id"], delimiter=delimiter, lineterminator=end)
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue()

    return write


def excel(rows: Sequence[Row]) -> str:
    """A line that states an unusual delimiter, an unnamed column of numbers, one of nothing, and blank rows."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter="^", lineterminator="\r\n")
    writer.writerow(["", "id", "text", "target", ""])
    for number, row in enumerate(rows):
        writer.writerow([number, row["id"], row["text"], row["target"], ""])
        writer.writerow(["", " ", "", "", ""] if number % 2 else [""] * 3)
    return "\ufeffsep=^\r\n" + file.getvalue() + "^^^^\r\n\r\n"


def zstandard(content: bytes) -> bytes:
    return pyarrow.Codec("zstd").compress(content, asbytes=True)


TEXTS = [lines, with_blank_lines, one_line, pretty_list, list_of_lines, pretty_objects]
TEXTS += [table(","), table(";", "\r\n"), table("\t"), table("|"), excel]
COMPRESSIONS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, lzma.compress, bz2.compress, zstandard]
NAMES = ("jsonl", "NDJSON", "json", "csv", "tsv", "txt", "data", "jsonl.gz", "json.XZ", "csv.zst", "bz2")


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress, gzip.compress])
def test_files_of_several_streams(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """As `cat` and parallel compressors make them: all streams are read, and one whose beginning is damaged is seen."""
    parts = [random.Random(number).randbytes(200_000) for number in range(3)]
    first, second, last = map(compress, parts)
    for name, content in (("whole", [first, second, last]), ("padded", [first, bytes(8), second, last, bytes(4)])):
        (path := tmp_path / name).write_bytes(b"".join(content))
        with decompressed(path) as file:
            assert file.read() == b"".join(parts)
        path.write_bytes(b"".join([first, bytes([second[0] ^ 4]), second[1:], last]))
        with pytest.raises(ValueError, match="damaged"), decompressed(path) as file:
            file.read()


def as_parquet(path: Path, rows: Sequence[Row]) -> None:
    index = [{"__index_level_0__": 3 * number, **row} for number, row in enumerate(rows)]  # of a filtered frame
    parquet.write_table(pyarrow.Table.from_pylist(index), path)


def as_arrow(path: Path, rows: Sequence[Row], new: Any = ipc.new_stream) -> None:
    content = pyarrow.Table.from_pylist(list(rows))
    with new(path, content.schema) as file:
        file.write_table(content)


def as_arrow_file(path: Path, rows: Sequence[Row]) -> None:
    as_arrow(path, rows, ipc.new_file)


def preprocessed(folder: Path, *options: object) -> dict[str, list[Row]]:
    """The records of each split after `hat preprocess`."""
    words = ("--splitter", "punctuation", "--num-codes", 40, "--out", folder / "out", *options)
    assert hat("preprocess", folder, *words) == 0
    return {
        split: [json.loads(line) for line in (folder / f"out/text/{split}.jsonl").read_text().splitlines()]
        for split in SPLITS
        if (folder / f"out/text/{split}.jsonl").exists()
    }


def write(folder: Path, records: dict[str, list[Row]] = RECORDS) -> Path:
    folder.mkdir()
    for split, rows in records.items():
        (folder / f"{split}.jsonl").write_text(lines(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    return preprocessed(write(tmp_path_factory.mktemp("formats") / "plain"))


@pytest.mark.slow
def test_every_format_in_every_compression_under_any_name(expected: dict[str, list[Row]], tmp_path: Path) -> None:
    """A name that promises another format or compression changes nothing."""
    for number, form in enumerate(TEXTS):
        (folder := tmp_path / str(number)).mkdir()
        for place, split in enumerate(SPLITS):
            compress = COMPRESSIONS[(number + place) % len(COMPRESSIONS)]
            path = folder / f"{split}.{NAMES[(number + 4 * place) % len(NAMES)]}"
            path.write_bytes(compress(form(RECORDS[split]).encode()))
        assert preprocessed(folder) == expected, number
    for form in (as_parquet, as_arrow, as_arrow_file):
        (folder := tmp_path / form.__name__).mkdir()
        for split in SPLITS:
            form(folder / f"{split}.{'txt' if split == 'test' else 'parquet'}", RECORDS[split])
        assert preprocessed(folder) == expected, form


def test_what_is_skipped_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder := tmp_path / "docs").mkdir()
    (folder / "train.jsonl").write_text(with_blank_lines(RECORDS["train"]))
    (folder / "test.csv").write_text(excel(RECORDS["test"]))
    preprocessed(folder)
    splits = json.loads((folder / "out/manifest.json").read_text())["splits"]
    assert splits["train"]["treatments"]["blank_lines_skipped"] == 9
    counts = splits["test"]["treatments"]
    assert (counts["blank_rows_skipped"], counts["unnamed_columns_left_out"]) == (5, 2)
    assert "blank lines skipped" in capsys.readouterr().out


def test_an_empty_text_of_a_table_with_one_column_is_a_record(tmp_path: Path) -> None:
    """As `to_csv` of pandas writes it; a blank line is none, and an index of rows is no column."""
    texts, path = ["a", "", "b", ""], tmp_path / "t.csv"
    table = pyarrow.table({"text": texts})
    parquet.write_table(table, tmp_path / "t.parquet")
    counts = Counter[str]()
    for content in ('text\na\n""\nb\n""\n', ",text\n0,a\n1,\n2,b\n3,\n", ",text\r\n0,a\r\n\r\n1,\r\n2,b\r\n3,\r\n\r\n"):
        path.write_bytes(content.encode())
        assert [row for _, row in read_rows(path, ("text",), counts)] == [{"text": text} for text in texts]
    assert [row for _, row in read_rows(tmp_path / "t.parquet")] == [{"text": text} for text in texts]
    assert counts["blank_rows_skipped"] == 2


MARKED = ['"So he went', 'home he went"', '"Yes" or "no"', 'a 5" disk', '""', "plain", '"', 'he said "yes"']


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotation_marks_of_tables_that_do_not_quote_cells(end: str, tmp_path: Path) -> None:
    """Every pair of such cells below each other, in the first, a middle and the last column."""
    path = tmp_path / "t.tsv"
    for first, second in itertools.product(MARKED, repeat=2):
        rows = [["x", first, "1"], ["y", second, "2"], [second, "z", first], ["", "z", second]]
        for separator, blank in (("", ""), (f"sep=\t{end}", end)):
            lines = (blank + "\t".join(row) + end for row in rows)
            path.write_bytes((separator + f"a\tb\tc{end}" + "".join(lines)).encode())
            found = [list(row.values()) for _, row in read_rows(path, "abc")]
            expected = [[None if cell in ("", '""') else cell for cell in row] for row in rows]
            assert found == [[*filter(None, row)] for row in expected], (first, second)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables_that_quote_cells_may_have_several_lines_in_them(end: str, tmp_path: Path) -> None:
    path, cells = tmp_path / "t.tsv", [*MARKED[:4], "two\nlines", 'a\n\n"b" c\n', "a tab\tand\na line"]
    for first, second in itertools.product(cells, repeat=2):
        if "\t" not in second:  # in the last column; a line of it with as many tabs as columns would be a row
            rows = [["x", first, "1"], [second, "y", "2"], ["z", first, second], ["end", "z", second]]
            with open(path, "w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter="\t", lineterminator=end).writerows([["a", "b", "c"], *rows])
            found = [*read_rows(path, "abc")]
            assert [list(row.values()) for _, row in found] == rows, (first, second)
            lines = [*itertools.accumulate((1 + "".join(row).count("\n") for row in rows[:-1]), initial=2)]
            assert [place for place, _ in found] == [f"{path}:{line}" for line in lines], "where the rows begin"


def test_a_saved_dataset_is_the_files_of_its_state(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    """Two shards, results of `map` beside them with the same and with other columns, and a list of files."""
    for split, rows in RECORDS.items():
        (folder := tmp_path / "docs" / split).mkdir(parents=True)
        names = [f"data-0000{number}-of-00002.arrow" for number in range(2)]
        for name, part in zip(names, (rows[:1], rows[1:]), strict=True):
            as_arrow(folder / name, part)
        as_arrow(folder / "cache-0f.arrow", rows[:2])
        as_arrow(folder / "tmp9x.arrow", [{"indices": "1"}])
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (tmp_path / "docs/dataset_dict.json").write_text('{"splits": ["train", "valid", "test"]}')
    assert preprocessed(tmp_path / "docs") == expected
    state = tmp_path / "docs/valid/state.json"
    for content, message in [
        ('{"_data_files": [{"filename": "data-9.arrow"}]}', "state.json: the file 'data-9.arrow' is not in the folder"),
        ('{"_data_files": [{"filename": "../train/x"}]}', "the file '../train/x' is not in the folder"),
        ('{"_data_files": [], "_indices_data_files": [{}]}', "save it again after .flatten_indices()"),
    ]:
        state.write_text(content)
        words = ("preprocess", tmp_path / "docs", "--splitter", "punctuation", "--out", tmp_path / "again")
        assert message in refusal(*words)


def test_long_items_of_lists_are_read_in_pieces_and_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Escapes, numbers and characters of several bytes are cut anywhere."""
    texts = ["å" * size + '\\ud83d\\ude00 "' + "1" * size for size in (0, 1, 29, 300)]
    rows = [{"id": str(number), "text": text, "meta": {"n": -12.5e3}} for number, text in enumerate(texts)]
    (path := tmp_path / "x.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    whole = list(read_records(path))
    for size in (1, 7, 64):
        monkeypatch.setattr(json_stream, "AT_ONCE", size)
        assert list(read_records(path)) == whole and [record.text for record in whole] == texts  # type: ignore[attr-defined]
    monkeypatch.setattr(json_stream, "MAX_LINE", 500)
    with pytest.raises(ValueError, match=r"x\.json:\d+, item 4: it has more than 500 characters"):
        list(read_records(path))


BESIDE = {  # what people have in such folders, and it is no data
    "README": "id,text\n",
    "README.txt": "{}\n",
    "LICENSE.txt": "[]\n",
    "SOURCE.txt": "https://example.org\n",
    "datasheet.md": "# id\n",
    "SHA256SUMS": "0 train.jsonl\n",
    "train.jsonl.sha256": "0 train.jsonl\n",
    ".train.jsonl.swp": "{}\n{}\n",
    "train.jsonl~": "{}\n",
    "dataset_infos.json": '{\n "default": {}\n}\n',
    "labels.json": '{"0": "no"}\n',
    "notes.txt": "two, words\n",
    "urls.txt": "https://example.org/a\n",
    "convert.py": "pass\n",
    "config.yaml": "a: 1\n",
    "original.zip": "PK\x03\x04",
    "fig.png": "\x00\x01",
}


def test_documentation_beside_data_is_no_data(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    folder = write(tmp_path / "docs")
    for name, content in BESIDE.items():
        (folder / name).write_text(content)
    (folder / "figures").mkdir()
    assert preprocessed(folder) == expected


def test_a_folder_of_a_split_without_a_saved_dataset_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"train": RECORDS["train"]})
    (folder / "test").mkdir()
    assert preprocessed(folder, "--overwrite").keys() == {"train"}
    (folder / "test/part-1.jsonl").write_text("{}\n")
    assert "has test, which is no split" in refusal("preprocess", folder, "--out", tmp_path / "out")


def renamed(rows: Sequence[Row]) -> list[Row]:
    names = {"text": "article", "target": "highlights"}
    return [{names[key]: cell for key, cell in row.items() if key in names} | {"url": "x"} for row in rows]


COLUMNS = ("--columns", "text=article", "target=highlights", "=url")


def test_columns_have_the_names_of_the_user_and_ids_are_numbers(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    """In JSON lines, in a list and in a table; the options are in the manifest."""
    wanted = {
        split: [row | {"id": f"{split}-{number}"} for number, row in enumerate(rows, start=1)]
        for split, rows in expected.items()
    }
    (folder := tmp_path / "docs").mkdir()
    (folder / "train.jsonl").write_text(lines(renamed(RECORDS["train"])))
    (folder / "valid.json").write_text(pretty_list(renamed(RECORDS["valid"])))
    as_parquet(folder / "test.parquet", renamed(RECORDS["test"]))
    assert preprocessed(folder, *COLUMNS, "--number-ids") == wanted
    manifest = json.loads((folder / "out/manifest.json").read_text())
    assert manifest["options"]["columns"] == [*COLUMNS[1:]] and manifest["options"]["number_ids"] is True
    assert {split["treatments"]["columns_left_out"] for split in manifest["splits"].values()} == {1}


def test_columns_change_places(tmp_path: Path) -> None:
    swapped = [{"id": row["id"], "text": row["target"], "target": row["text"]} for row in RECORDS["train"]]
    swap = preprocessed(write(tmp_path / "swap", {"train": swapped}), "--columns", "text=target", "target=text")
    assert swap["train"] == preprocessed(write(tmp_path / "same", {"train": RECORDS["train"]}))["train"]
