"""The same records in every format, compressed in every way: the end of its name says what a file is."""

import bz2
import csv
import gzip
import io
import itertools
import json
import logging
import lzma
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from commands import hat, refusal
from pyarrow import ipc, parquet

from hat_fairseq.data import files
from hat_fairseq.data.compression import decompressed
from hat_fairseq.data.formats import opened
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.tables import Rows

Row = dict[str, str]


def read_rows(path: Path, counts: Counter[str] | None = None) -> Rows:
    """Place and content of each record of a file, whatever its format."""
    with opened(path, counts) as file:
        yield from file.rows()


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
    """An unnamed column of numbers, one of nothing, and blank rows."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
    writer.writerow(["", "id", "text", "target", ""])
    for number, row in enumerate(rows):
        writer.writerow([number, row["id"], row["text"], row["target"], ""])
        writer.writerow(["", " ", "", "", ""] if number % 2 else [""] * 3)
    return "\ufeff" + file.getvalue() + ";;;;\r\n\r\n"


def zstandard(content: bytes) -> bytes:
    return pyarrow.Codec("zstd").compress(content, asbytes=True)


TEXTS: dict[str, list[Callable[[Sequence[Row]], str]]] = {
    "jsonl": [lines],
    "NDJSON": [with_blank_lines],
    "json": [one_line, pretty_list, list_of_lines, pretty_objects, lines],
    "csv": [table(","), table(";", "\r\n"), table("|"), table("\t"), excel],
    "tsv": [table("\t")],
}
FORMS = [(ending, form) for ending, forms in TEXTS.items() for form in forms]
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".XZ": lzma.compress, ".bz2": bz2.compress, ".zst": zstandard
}  # fmt: skip


SKIPPABLE = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"  # a frame of Zstandard without content
FIRST, SECOND = zstandard(b"first\n" * 1000), zstandard(b"second\n" * 1000)


@pytest.mark.parametrize("between", [b"", SKIPPABLE])
def test_frames_of_zstandard_need_no_pyarrow(between: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (path := tmp_path / "a.jsonl.zst").write_bytes(FIRST + between + SECOND)
    with decompressed(path) as file:
        assert file.read() == b"first\n" * 1000 + b"second\n" * 1000


@pytest.mark.parametrize(
    "content",
    [FIRST[:-3], FIRST + SECOND[:-3], FIRST + b"garbage", FIRST + bytes(9), FIRST + SECOND[:4], SECOND[:6] + FIRST[6:]],
    ids=["cut", "the second is cut", "garbage", "null bytes", "the second has only begun", "parts of two"],
)
def test_damaged_frames_of_zstandard_are_refused(content: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "a.jsonl.zst").write_bytes(content)
    with pytest.raises(ValueError, match="damaged Zstandard file .*; fetch it again"), decompressed(path) as file:
        file.read()


@pytest.mark.parametrize("ending", [".bz2", ".XZ", ".gz"])
def test_files_of_several_streams(ending: str, tmp_path: Path) -> None:
    """As `cat` and parallel compressors make them: all streams are read, and one whose beginning is damaged is seen."""
    parts = [random.Random(number).randbytes(200_000) for number in range(3)]
    first, second, last = map(COMPRESSIONS[ending], parts)
    for name, content in (("whole", [first, second, last]), ("padded", [first, bytes(8), second, last, bytes(4)])):
        (path := tmp_path / f"{name}{ending}").write_bytes(b"".join(content))
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
def test_every_format_in_every_compression(expected: dict[str, list[Row]], tmp_path: Path) -> None:
    compressions = itertools.cycle(COMPRESSIONS.items())
    for number, (ending, form) in enumerate(FORMS):
        (folder := tmp_path / str(number)).mkdir()
        for split in SPLITS:
            more, compress = next(compressions)
            (folder / f"{split}.{ending}{more}").write_bytes(compress(form(RECORDS[split]).encode()))
        assert preprocessed(folder) == expected, number
    for form_of_table, ending in ((as_parquet, "parquet"), (as_arrow, "arrow"), (as_arrow_file, "arrow")):
        (folder := tmp_path / form_of_table.__name__).mkdir()
        for split in SPLITS:
            form_of_table(folder / f"{split}.{ending}", RECORDS[split])
        assert preprocessed(folder) == expected, form_of_table


@pytest.mark.parametrize(("ending", "form"), FORMS)
def test_each_format(ending: str, form: Callable[[Sequence[Row]], str], tmp_path: Path) -> None:
    (path := tmp_path / f"train.{ending}").write_text(form(RECORDS["train"]), encoding="utf-8", newline="")
    assert [row for _, row in read_rows(path)] == RECORDS["train"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1,\n "b": [2]}\n{"a": 3,\n\n"b": [4]}\n', [(1, {"a": 1, "b": [2]}), (3, {"a": 3, "b": [4]})]),
        ('\n{"a": 1}\n{"a": 2}\n', [(2, {"a": 1}), (3, {"a": 2})]),
        ('{\n"a": 1} {"a": 2}', [(1, {"a": 1}), (2, {"a": 2})]),
        ('{"a": "' + "x" * 99_999 + '"}\n{"a": 2}', [(1, {"a": "x" * 99_999}), (2, {"a": 2})]),
        ("", []), ("[]\n", []),
    ],
)  # fmt: skip
def test_objects_of_a_json_file(text: str, values: list[tuple[int, object]], tmp_path: Path) -> None:
    """One after another, each on one line or several; their places are the lines where they begin."""
    (path := tmp_path / "a.json").write_text(text)
    assert [*read_rows(path)] == [(f"{path}:{line}", value) for line, value in values]


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
        assert [row for _, row in read_rows(path, counts)] == [{"text": text} for text in texts]
    assert [row for _, row in read_rows(tmp_path / "t.parquet")] == [{"text": text} for text in texts]
    assert counts["blank_rows_skipped"] == 2


CELLS = ['"So he went', '"Yes" or "no"', 'a 5" disk', '"', "two\nlines", 'a\n\n"b" c\n', "a tab\tand\na line", "C:\\"]


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_cells_may_have_anything_in_them(end: str, delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / ("t.tsv" if delimiter == "\t" else "t.csv")
    for first, second in itertools.product(CELLS, repeat=2):
        rows = [["x", first, "1"], [second, "y", "2"], ["z", first, second], ["end", "z", second]]
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=delimiter, lineterminator=end).writerows([["a", "b", "c"], *rows])
        found = [*read_rows(path)]
        assert [list(row.values()) for _, row in found] == rows, (first, second)
        lines = [*itertools.accumulate((1 + "".join(row).count("\n") for row in rows[:-1]), initial=2)]
        assert [place for place, _ in found] == [f"{path}:{line}" for line in lines], "where the rows begin"


def test_a_quoted_cell_that_looks_like_two_rows_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As pandas writes it. A table that does not quote cells may look the same: a line says so."""
    (path := tmp_path / "t.tsv").write_text('label\ttext\npos\t"He typed:\na\tb"\nneg\tok\n')
    rows = [{"label": "pos", "text": "He typed:\na\tb"}, {"label": "neg", "text": "ok"}]
    assert [row for _, row in read_rows(path)] == rows
    path.write_text('label\ttext\npos\ta 5" disk\nneg\t"So he went\npos\tok\n')
    with pytest.raises(ValueError, match="a cell that begins with a quotation mark ends with one"):
        list(read_rows(path))


@pytest.mark.parametrize(
    "cell", ["[laughter] Yes [applause]", "[1] The court held so [2]", "{a} is a set {b}", "[sic]"]
)
def test_texts_in_brackets_are_no_printed_lists(cell: str, tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text(f'text,label\n"{cell}",x\n')
    assert [row for _, row in read_rows(path)] == [{"text": cell, "label": "x"}]


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


def test_long_items_of_lists_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["å" * size + '\\ud83d\\ude00 "' + "1" * size for size in (0, 1, 29, 300)]
    rows = [{"id": str(number), "text": text, "meta": {"n": -12.5e3}} for number, text in enumerate(texts)]
    (path := tmp_path / "x.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    assert [record.text for record in read_records(path)] == texts  # type: ignore[attr-defined]
    monkeypatch.setattr(files, "MAX_LINE", 500)
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
    "more.json": '[{"id": "a"}]',
    "notes.txt": "two, words\n",
    "urls.txt": "https://example.org/a\n",
    "convert.py": "pass\n",
    "config.yaml": "a: 1\n",
    "original.zip": "PK\x03\x04",
    "fig.png": "\x00\x01",
}


def test_documentation_beside_data_is_no_data(
    tmp_path: Path, expected: dict[str, list[Row]], caplog: pytest.LogCaptureFixture
) -> None:
    """What may be data, and is not called so, is named."""
    folder = write(tmp_path / "docs")
    for name, content in BESIDE.items():
        (folder / name).write_text(content)
    (folder / "figures").mkdir()
    with caplog.at_level(logging.WARNING):
        assert preprocessed(folder) == expected
    names = "dataset_infos.json, labels.json, more.json, notes.txt, original.zip, urls.txt"
    assert f"skipped in {folder}, because they are no splits: {names}" in caplog.text


@pytest.mark.parametrize(
    "names",
    [
        "data/{}-0000{}-of-00002.parquet", "{}-0000{}-of-00002.parquet", "1.0.0/{}-0000{}-of-00002.parquet",
        "plain_text/{}-0000{}-of-00002-0a1f.parquet", "default/{}/000{}.parquet", "{}/000{}.parquet",
    ],
)  # fmt: skip
def test_folders_of_the_hub(names: str, tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    for split, rows in RECORDS.items():
        for number in range(2):
            path = tmp_path / "clone" / names.format(split.replace("valid", "validation"), number)
            path.parent.mkdir(parents=True, exist_ok=True)
            as_parquet(path, rows[number::2])
    (tmp_path / "clone/README.md").write_text("---\nlicense: mit\n---\n")
    (tmp_path / "clone/.gitattributes").write_text("*.parquet filter=lfs\n")
    found = preprocessed(tmp_path / "clone")
    assert found == {split: [*rows[0::2], *rows[1::2]] for split, rows in expected.items()}


def test_shards_have_numbers_of_their_split_and_each_id_once(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(2):
        rows = [{key: row[key] for key in ("text", "target")} for row in RECORDS["train"][number::2]]
        (tmp_path / f"docs/train-0000{number}-of-00002.jsonl").write_text(lines(rows))
    ids = [row["id"] for row in preprocessed(tmp_path / "docs", "--number-ids")["train"]]
    assert ids == [f"train-{number}" for number in range(1, 8)]
    for number in range(2):
        (tmp_path / f"docs/train-0000{number}-of-00002.jsonl").write_text(lines(RECORDS["train"]))
    words = ("preprocess", tmp_path / "docs", "--splitter", "punctuation", "--out", tmp_path / "again")
    assert "train-00001-of-00002.jsonl:1: document id 'train/0' was used before, in record 1" in refusal(*words)


def test_several_folders_with_splits(tmp_path: Path) -> None:
    for version in ("1.0.0", "3.0.0"):
        (tmp_path / "clone" / version).mkdir(parents=True)
        as_parquet(tmp_path / "clone" / version / "train-00000-of-00001.parquet", RECORDS["train"])
    message = refusal("preprocess", tmp_path / "clone", "--out", tmp_path / "out")
    assert f"has splits in several folders: give one of {tmp_path}/clone/1.0.0, {tmp_path}/clone/3.0.0" in message


def test_columns_inside_of_objects(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    (folder := tmp_path / "docs").mkdir()
    rows = [{"translation": {"en": row["text"], "de": row["target"], "fr": "x"}} for row in RECORDS["train"]]
    (folder / "train.jsonl").write_text(lines(rows))  # type: ignore[arg-type]
    columns = ("--columns", "source=translation.en", "--columns", "target=translation.de", "--number-ids")
    found = preprocessed(folder, *columns)["train"]
    assert found == [row | {"id": f"train-{n}"} for n, row in enumerate(expected["train"], start=1)]
    message = refusal("preprocess", folder, "--out", tmp_path / "o", "--columns", "text=translation.cs")
    assert "--columns names 'translation.cs', and the columns are 'translation'" in message


@pytest.mark.parametrize("answers", [{"text": ["gul"], "answer_start": [3]}, {"text": ["gul"], "start": [3]},
                                     [{"text": "gul", "answer_start": 3}]])  # fmt: skip
def test_answers_of_the_hub(answers: object, tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "text": "er gul", "answers": answers}
    (path := tmp_path / "a.jsonl").write_text(json.dumps(row))
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    for each in (path, tmp_path / "a.parquet"):
        (record,) = read_records(each, "qa")
        assert [(answer.text, answer.start) for answer in record.gold_value] == [("gul", 3)]
    path.write_text(json.dumps(row | {"answers": {"text": [], "answer_start": []}}))
    assert [record.gold_value for record in read_records(path, "qa")] == [()]


def test_a_folder_of_a_split_without_a_saved_dataset_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"train": RECORDS["train"]})
    (folder / "test").mkdir()
    assert preprocessed(folder, "--overwrite").keys() == {"train"}
    (folder / "test/part-1.jsonl").write_text("{}\n")
    assert "has test, which is no split" in refusal("preprocess", folder, "--out", tmp_path / "out")


def renamed(rows: Sequence[Row]) -> list[Row]:
    names = {"text": "article", "target": "highlights"}
    return [{names[key]: cell for key, cell in row.items() if key in names} | {"url": "x"} for row in rows]


PAIRS = ["text=article", "target=highlights", "=url"]
COLUMNS = [f"--columns={pair}" for pair in PAIRS]


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
    assert manifest["options"]["columns"] == PAIRS
    assert manifest["options"]["number_ids"] is True
    assert {split["treatments"]["columns_left_out"] for split in manifest["splits"].values()} == {1}


def test_columns_change_places(tmp_path: Path) -> None:
    swapped = [{"id": row["id"], "text": row["target"], "target": row["text"]} for row in RECORDS["train"]]
    swap = preprocessed(write(tmp_path / "swap", {"train": swapped}), "--columns=text=target", "--columns=target=text")
    assert swap["train"] == preprocessed(write(tmp_path / "same", {"train": RECORDS["train"]}))["train"]


def test_a_printed_list_in_a_cell_is_a_text_and_counted(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text("id,text\na,\"['x', 'y']\"\nb,[1 2]\nc,{'k': 1}\nd,see [3]\n")
    counts: Counter[str] = Counter()
    assert [row["text"] for _, row in read_rows(path, counts)] == ["['x', 'y']", "[1 2]", "{'k': 1}", "see [3]"]
    assert counts["cells_with_a_printed_list"] == 3
