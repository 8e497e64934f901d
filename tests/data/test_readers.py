import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from commands import hat, read_lines, refusal
from pyarrow import ipc, parquet

from hat_fairseq import cli
from hat_fairseq.data import manifest
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.manifest import describe_inputs
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records, record_to_json
from hat_fairseq.inference.reading import records_of

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


Form = Callable[[Path, str, Rows], None]
FORMS: list[Form] = [as_json_lines, as_csv, as_parquet, as_saved_folder]


ARTICLES = [
    {"id": "a1", "article": 'First, he said "no".\nSecond.', "highlights": "One .\nTwo ."},
    {"id": "b2", "article": "Only one sentence", "highlights": "Three ."},
]


def as_compressed(folder: Path, split: str, rows: Rows) -> None:
    as_json_lines(folder, split, rows)
    content = (path := folder / f"{split}.jsonl").read_bytes()
    path.with_name(f"{split}.jsonl.gz").write_bytes(gzip.compress(content))
    path.unlink()


def as_list(folder: Path, split: str, rows: Rows) -> None:
    (folder / f"{split}.json").write_text(json.dumps(rows, indent=1))


def as_arrow_file(folder: Path, split: str, rows: Rows) -> None:
    table = pyarrow.Table.from_pylist(rows)
    with ipc.new_file(folder / f"{split}.arrow", table.schema) as file:
        file.write_table(table)


def as_parallel_text(folder: Path, split: str, rows: Rows) -> None:
    for side in ("source", "target"):
        (folder / f"{split}.{side}").write_text("\n\n".join(row["text"] for row in rows) + "\n")


@pytest.mark.parametrize("form", [*FORMS, as_compressed, as_list, as_arrow_file, as_parallel_text])
def test_a_file_is_opened_once(form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name says what it is, and what is read first is not read again."""
    (raw := tmp_path / "raw").mkdir()
    form(raw, "train", [{"id": str(n), "text": f"One cat runs {n} times. Two do not."} for n in range(4)])
    files = {path for path in raw.rglob("*") if path.is_file() and path.name != "dataset_dict.json"}  # of all splits
    opened, right = Counter[Path](), open

    def counting(path: Any, *arguments: Any, **more: Any) -> Any:
        opened[Path(str(path))] += 1
        return right(path, *arguments, **more)

    monkeypatch.setattr("builtins.open", counting)
    flags = ["--aligned"] if form is as_parallel_text else ["--kind", "mlm", "--splitter", "punctuation"]
    assert hat("preprocess", raw, "--out", tmp_path / "out", "--num-codes", 20, *flags) == 0
    assert {path: opened[path] for path in files} == dict.fromkeys(files, 1)


@pytest.mark.parametrize("form", [as_csv, as_json_lines])
def test_releases_of_cnn_dm_as_tables(form: Form, tmp_path: Path) -> None:
    form(tmp_path, "validation", ARTICLES)
    documents = list(find_reader("cnn_dm").read("valid", tmp_path, Counter()))
    assert [(document.text, document.target) for document in documents] == [
        (article["article"], tuple(article["highlights"].split("\n"))) for article in ARTICLES
    ]


def test_a_path_is_never_a_reader_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ami").mkdir()
    (tmp_path / "ami" / "train.jsonl").write_text('{"id": "a", "text": "b", "label": "c"}\n')
    assert find_reader("ami").splits == ("train", "valid", "test")
    assert caplog.messages == ["ami is the reader of this package; the folder of this name here is ./ami"]
    reader = find_reader("./ami", "classification")
    assert (reader.splits, reader.kind) == (("train",), "classification")
    assert [example.label for example in reader.read("train", None, Counter())] == ["c"]


def test_readers_import_modules_of_their_folders(tmp_path: Path) -> None:
    """Two folders have a module of the same name, and each reader gets that of its own."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ids_of_mine.py").write_text(f"ID = {name!r}\n")
        text = "from ids_of_mine import ID\n\n\ndef read(split, root, counts):\n    return [ID]\n"
        (tmp_path / name / "mine.py").write_text(text)
    readers = [find_reader(str(tmp_path / name / "mine.py")) for name in ("one", "two")]
    assert [list(reader.read("train", None, Counter())) for reader in readers] == [["one"], ["two"]]
    assert str(tmp_path / "one") not in sys.path


LINE = json.dumps({"id": "a", "text": "One cat runs.", "target": "A cat."}) + "\n"


def folder(path: Path, *names: str) -> Path:
    path.mkdir(exist_ok=True)
    for name in names:
        (path / name).write_text(LINE if ".jsonl" in name else "a\n")
    return path


@pytest.mark.parametrize("name", ["valid", "val", "dev", "validation"])
def test_the_validation_split_has_four_names(name: str, tmp_path: Path) -> None:
    """Parallel text, too."""
    names = ["train.jsonl", f"{name}.en-de.en", f"{name}.en-de.de", "README.md"]
    reader = find_reader(str(folder(tmp_path, *names)))
    assert reader.splits == ("train", "valid")
    assert [document.id for document in reader.read("valid", None, Counter())] == [f"{name}-1"]


def parallel(path: Path, first: str, second: str, *splits: str) -> Path:
    """Writes parallel text of two languages, whose segments are the codes."""
    path.mkdir(exist_ok=True)
    for split in splits:
        for code in (first, second):
            (path / f"{split}.{first}-{second}.{code}").write_text(f"{code} .\n{code} !\n")
    return path


@pytest.mark.parametrize(
    "name, languages, source",
    [
        (("fi", "et"), (None, None), "fi"),
        (("fi", "et"), ("fi", "et"), "fi"),
        (("fi", "et"), ("et", "fi"), "et"),
        (("fi", "et"), ("fi", None), "fi"),
        (("fi", "et"), (None, "et"), "fi"),
        (("et", "pt"), ("pt-BR", "est"), "pt"),
        (("cn", "et"), ("et", "zh"), "et"),  # a code that is none may be any language
        (("cn", "et"), ("zh", "et"), "cn"),
    ],
)
def test_languages_say_which_file_is_the_source(
    name: tuple[str, str], languages: tuple[str | None, str | None], source: str, tmp_path: Path
) -> None:
    reader = find_reader(str(parallel(tmp_path, *name, "train", "dev")), languages=languages)
    (target,) = {*name} - {source}
    for split in ("train", "valid"):
        (document,) = reader.read(split, None, Counter())
        assert (document.sentences, document.target) == ((f"{source} .", f"{source} !"), (f"{target} .", f"{target} !"))


@pytest.mark.parametrize("flags", ["--source-language et --target-language sv", "--source-language et"])
def test_other_languages_than_those_of_the_files_are_refused(flags: str, tmp_path: Path) -> None:
    source = parallel(tmp_path / "in", "fi", "et", "train")
    error = refusal("preprocess", source, "--out", tmp_path / "out", "--aligned", *flags.split())
    assert f"{flags}: {source}/train.fi-et.fi and train.fi-et.et are of the languages fi and et" in error
    (document,) = find_reader(str(source), languages=("en", "et"), of_model=True).read("train", None, Counter())
    assert document.target == ("et .", "et !")


def test_preprocessing_and_prediction_read_the_same_file_as_the_source(tmp_path: Path) -> None:
    source, flags = parallel(tmp_path / "in", "fi", "et", "train", "test"), ["--source-language", "et"]
    flags += ["--target-language", "fi", "--num-codes", "9"]
    assert hat("preprocess", source, "--out", tmp_path / "out", "--aligned", *flags) == 0
    (stored,) = read_lines(tmp_path / "out/text/test.jsonl")
    settings = TextPipeline.load(tmp_path / "out/bin").settings
    assert (settings.source_language, stored["sentences"], stored["target"]) == (
        "et",
        ["et .", "et !"],
        ["fi .", "fi !"],
    )
    (record,) = records_of(source, None, kind_of("text"), settings=settings)
    assert (record.elements, record.target) == (("et .", "et !"), ("fi .", "fi !"))


@pytest.mark.parametrize(
    ("names", "flags", "languages"),
    [
        ("fi-et fi-et", "", ("fi", "et")),
        ("fi-et fi-et", "--source-language fi", ("fi", "et")),
        ("fi-et fi-et", "--source-language et --target-language fi", ("et", "fi")),
        ("fi-et fi-pt", "", ("fi", "en")),  # what all files say
        ("fi-cn fi-cn", "", ("fi", "en")),
        ("fi-cn fi-cn", "--target-language zh", ("fi", "zh")),
    ],
)
def test_names_of_files_say_the_languages(
    names: str, flags: str, languages: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pair, split in zip(names.split(), ("train", "test"), strict=True):
        parallel(tmp_path / "in", *pair.split("-"), split)
    words = ["--out", tmp_path / "out", "--aligned", "--num-codes", "9", *flags.split()]
    assert hat("preprocess", tmp_path / "in", *words) == 0
    settings = TextPipeline.load(tmp_path / "out/bin").settings
    assert (settings.source_language, settings.target_language) == languages
    warning = "so the target is taken for English: say its language with --target-language"
    assert (warning in capsys.readouterr().err) == (languages == ("fi", "en"))


def test_further_test_splits_have_numbers(tmp_path: Path) -> None:
    folder(tmp_path, "test.jsonl", "train.jsonl", *(f"test{number}.jsonl" for number in range(10, 0, -1)))
    assert find_reader(str(tmp_path)).splits == ("train", "test", *(f"test{number}" for number in range(1, 11)))


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
    assert read == translations
    assert read[0].meta == {"source": "help"}
    assert read[1].meta is None
    assert str(read[1].origin).endswith("train.parquet, row 2")
    (tmp_path / "test.csv").write_text("id,text,label\na,b,\n")
    assert [record.label for record in read_records(tmp_path / "test.csv", "classification")] == [None]


def test_the_manifest_names_what_was_read(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_json_lines(tmp_path, "train", rows)
    as_parquet(tmp_path, "test", rows)
    words = ["--kind", "classification", "--splitter", "punctuation", "--num-codes", "99", "--out", tmp_path / "out"]
    assert cli.main(["preprocess", str(tmp_path), *map(str, words)]) == 0
    record = json.loads((tmp_path / "out/manifest.json").read_text())
    files = [tmp_path / "test.parquet", tmp_path / "train.jsonl"]
    assert [(row["path"], row["size"]) for row in record["inputs"]] == [(str(f), f.stat().st_size) for f in files]
    assert record["date"].endswith("+00:00")
    assert record["command"]
    assert record["versions"]["hat_fairseq"]
    monkeypatch.setattr(manifest, "MAX_INPUTS", 1)
    (folder,) = describe_inputs(files)
    assert (folder["path"], folder["files"], folder["size"]) == (str(tmp_path), 2, sum(f.stat().st_size for f in files))
