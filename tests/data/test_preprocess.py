"""`hat preprocess`: what it refuses in one line, what it replaces, counts and drops; the bytes are those of goldens."""

import json
import re
from pathlib import Path

import pytest
from commands import hat, refusal, write_lines
from fairseq.tasks import TASK_REGISTRY

from hat_fairseq.cli import build_parser
from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.options import Options
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.preprocess import resolve_options
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.rows import count_unknown, logged_changes, row_of
from hat_fairseq.tasks.encoder_task import EncoderTaskConfig

fault = pytest.mark.fault


def failure(*words: object) -> str:
    """The one line of a refused command."""
    error = refusal("preprocess", *words)
    assert error.count("\n") == 1
    return error


def write(folder: Path, **splits: list[dict]) -> Path:
    for split, records in splits.items():
        write_lines(folder / f"{split}.jsonl", records)
    return folder


def figures(out: Path) -> dict[str, dict]:
    return json.loads((out / "manifest.json").read_text())["splits"]


@fault("Input", "a document without text", "refused with its id and line; --on-empty drop counts it")
def test_empty_documents_are_refused_or_counted(tmp_path: Path) -> None:
    kinds = {"text": {"sentences": ["a b"], "target": "a"}, "classification": {"segments": ["a b"], "label": "c"}}
    for kind, record in kinds.items():
        empty = dict.fromkeys(record, [" "]) | {"id": "empty", list(record)[1]: "d"}
        folder = write(tmp_path / kind, train=[{"id": "full", **record}, empty])
        words = [folder, "--kind", kind, "--out", folder / "out", "--num-codes", 5]
        assert f"document 'empty' ({folder}/train.jsonl:2) has an empty" in failure(*words)
        assert hat("preprocess", *words, "--on-empty", "drop") == 0
        train = figures(folder / "out")["train"]
        assert (train["documents"], train["treatments"]) == (1, {"documents_empty_dropped": 1})
    assert train["labels"] == {"c": 1}
    assert (folder / "out/text/label.labels").read_text() == "c 1\n"


@pytest.mark.slow
@fault("Preprocessing", "--out exists", "refused; --overwrite replaces nothing that hat preprocess did not write")
@fault("Preprocessing", "--overwrite on a folder of hat package", "refused")
@fault("Preprocessing", "--overwrite on a result of which a file has changed", "refused")
def test_existing_directories_are_safe(tmp_path: Path) -> None:
    assert "already exists; choose another directory" in failure("ami", "--out", tmp_path)
    words = ["ami", "--out", tmp_path, "--overwrite", "--limit", 1]
    (tmp_path / "thesis.tex").touch()
    assert "--overwrite does not replace it" in failure(*words)
    (tmp_path / "manifest.json").write_text(json.dumps(package := checksums_of(tmp_path)))
    assert "has no manifest.json of this command" in failure(*words)
    (tmp_path / "manifest.json").write_text(json.dumps({**package, "reader": "ami"}))
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "thesis.tex has changed since manifest.json was written" in failure(*words)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@fault("Input", "one test set with targets or labels, another without", "refused with both names")
@pytest.mark.parametrize(("kind", "key"), [("text", "target"), ("classification", "label")])
def test_test_sets_with_and_without_what_is_right(kind: str, key: str, tmp_path: Path) -> None:
    splits = {split: [{"id": split, "text": "One .", key: "x"}] for split in ("train", "test", "test1")}
    del splits["test"][0][key]
    folder = write(tmp_path / kind, **splits)
    error = failure(folder, "--kind", kind, "--splitter", "punctuation", "--out", tmp_path / "out")
    assert f"test1 has {key} and test has not: preprocess them from separate folders" in error


@fault("Input", "the same document in train and test", "counted by id and by source in the report")
def test_what_is_in_two_splits_is_counted(tmp_path: Path, capsys) -> None:
    texts = {
        "train": [("a", "One ."), ("b", "Two ."), ("dropped", " ")],
        "valid": [("a", "Three ."), ("dropped", "")],
        "test": [("c", "Two ."), ("b", "One ."), ("d", "")],
    }
    splits = {split: [{"id": i, "text": text, "target": "x"} for i, text in pairs] for split, pairs in texts.items()}
    words = ["--out", tmp_path / "out", "--splitter", "punctuation", "--num-codes", 5, "--on-empty", "drop"]
    assert hat("preprocess", write(tmp_path / "mine", **splits), *words) == 0
    names = "ids_in_an_earlier_split", "sources_in_an_earlier_split"
    counts = [[split["treatments"].get(name, 0) for name in names] for split in figures(tmp_path / "out").values()]
    assert counts == [[0, 0], [1, 0], [1, 2]]
    assert re.search(r"sources in an earlier split +0 +0 +2\n", capsys.readouterr().out)


READER = """
from hat_fairseq.data.kinds import LabelledText

KIND = "classification"
DEFAULTS = {"segments": "none", "num_codes": 10}
RELEASE = {"train": (7, 8), "valid": (1,)}
PAPER = {"documents": {"train": "363K", "valid": "122"}, "source_words": "354"}

def read(split, root, counts):
    counts["seen"] += 2
    for number in range(5 if split == "train" else 1):
        yield LabelledText(f"{split}{number}", text="A text .", label="a" if split == "test" else "b")
"""


@pytest.mark.slow
def test_a_reader_states_what_it_reads(tmp_path: Path, capsys) -> None:
    (tmp_path / "small.py").write_text(READER)
    words = [tmp_path / "small.py", "--out", tmp_path / "out"]
    assert (
        "small: the split train has 5 documents, a complete release 7 or 8; complete it, or use what is there "
        "with --partial, or only the first N documents with --limit N"
    ) in failure(*words)
    unseen = "test: document 'test0' has the label 'a', which the training part does not have; it has 'b'"
    assert unseen in failure(*words, "--partial")
    assert "yields data of --kind classification, not qa" in failure(*words, "--kind", "qa")
    (tmp_path / "small.py").write_text(READER.replace('"a" if split == "test" else "b"', '"b"'))
    assert hat("preprocess", *words, "--limit", 1) == 0
    assert figures(tmp_path / "out")["train"]["treatments"] == {"seen": 2}
    assert hat("preprocess", *words, "--partial", "--overwrite") == 0
    printed = capsys.readouterr().out.split("wrote")[1].splitlines()
    table = {line[:27].strip(): line[27:].split() for line in printed}
    assert table["documents"] == ["5", "1", "1", "363K", "/", "122", "/", "-"]
    assert table["source words a document"] == ["3.0", "3.0", "3.0", "354"]


@pytest.mark.slow
def test_more_codes_than_the_training_texts_support(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then the dictionary has words and few letters; real text has rare words, which leave letters."""
    said = ["The boat is late.", "Nobody saw the captain.", "We wait at the harbour.", "It will rain tomorrow."]
    rows = [{"id": f"{n}", "text": f"{said[n % 4]} {said[n // 4 % 4]}", "label": "ab"[n % 2]} for n in range(16)]
    write_lines(tmp_path / "small/train.jsonl", rows)
    words = ["preprocess", tmp_path / "small", "--kind", "classification", "--splitter", "punctuation"]
    for codes, is_too_many in ((900, True), (5, False)):
        assert hat(*words, "--num-codes", codes, "--out", tmp_path / f"{codes}") == 0
        assert (f"warning: --num-codes {codes} are too many" in capsys.readouterr().err) == is_too_many
    meetings = ["preprocess", "ami", "--num-codes", 4000, "--limit", 6, "--out", tmp_path / "ami"]
    assert hat(*meetings) == 0
    assert "are too many" not in capsys.readouterr().err


TRUNCATED = {  # sentences of each training document, options, and what would truncate none
    "all, by segments": ((3, 5), "--max-segments 2", "--max-segments 5"),
    "all, by tokens": ((3, 4), "--max-source-tokens 9", "--max-source-tokens 21"),
    "all, by both": ((4, 3), "--max-segments 2 --max-source-tokens 9", "--max-segments 4 and --max-source-tokens 21"),
    "not all": ((1, 5), "--max-segments 2", None),
    "none": ((3, 5), "--max-segments 5", None),
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_rows_that_are_all_truncated_are_said_with_the_limit_that_would_do(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """In preprocessing, in a training, in a prediction, and beside the scores."""
    sizes, limits, expected = TRUNCATED[name]
    rows = [
        {"id": f"{number}", "segments": ["a b c d"] * size, "label": "xy"[number]} for number, size in enumerate(sizes)
    ]
    folder = write(tmp_path / "raw", train=rows, test=rows)
    words = ["--kind", "classification", "--num-codes", 5, "--long-source", "truncate", *limits.split()]
    assert hat("preprocess", folder, "--out", tmp_path / "data", *words) == 0
    note = f"every row was truncated (2 of 2), and with {expected} none would be"
    error = capsys.readouterr().err
    assert all((f"warning: {split}: {note}" in error) == (expected is not None) for split in ("train", "test"))
    text = tmp_path / "data/text/test.jsonl"
    assert hat("score", "classification", text, "--references", text) == 0
    assert (f"{text}: {note}" in capsys.readouterr().err) == (expected is not None)
    task = TASK_REGISTRY["document_classification"].setup_task(EncoderTaskConfig(data=str(tmp_path / "data/bin")))
    with caplog.at_level("WARNING"):
        for split in ("train", "test"):
            task.load_dataset(split)
    assert [note in each.message for each in caplog.records] == [True] * (expected is not None)
    caplog.clear()
    pipeline = TextPipeline.load(tmp_path / "data/bin")
    with caplog.at_level("WARNING"), logged_changes(pipeline):
        dictionary = Dictionary.load(tmp_path / "data/bin/input0/dict.txt")
        for record in read_records(text, "classification"):
            count_unknown("", [row_of(row.tokens, dictionary) for row in pipeline.encode(record)], pipeline)
    assert any(note in each.message for each in caplog.records) == (expected is not None)


def options_for(folder: Path, *words: str) -> Options:
    """What `hat preprocess` decides about documents with turns."""
    write_lines(folder / "in/train.jsonl", [{"id": "a", "text": "b", "target": "c"}])
    arguments = vars(build_parser("preprocess").parse_args(["preprocess", "in", "--out", "out", *words]))
    return resolve_options(arguments, find_reader(str(folder / "in")))


ROLES = {
    "": (False, False),
    "--roles stream": (True, False),
    "--roles text": (False, True),
    "--roles both": (True, True),
    "--roles none": (False, False),
    "--roles": (True, False),
}


@pytest.mark.parametrize("words", ROLES)
def test_what_becomes_of_roles(words: str, tmp_path: Path) -> None:
    options = options_for(tmp_path, *words.split())
    assert (options.roles, options.role_in_text) == ROLES[words]


SEPARATED = {
    "--aligned": True,
    "--aligned --no-target-separator": False,
    "--target-separator": True,
    "": False,
    "--aligned --bpe gpt2": False,  # whose dictionary has no <sep>
}


@pytest.mark.parametrize("words", SEPARATED)
def test_aligned_segments_have_a_separator(words: str, tmp_path: Path) -> None:
    assert options_for(tmp_path, *words.split()).target_separator is SEPARATED[words]
