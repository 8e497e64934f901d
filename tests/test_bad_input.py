"""Files that a command refuses: in one line, with status 2, and nothing is written.

`golden/bad_input.jsonl` has a case a line: files of the folder `in` (the content, what is replaced in it by what, or
null to remove it), the command, and a part of its message, where ` ... ` is any text. `base` is what `in` holds before:
a small release, or "vocabulary", a bin folder. `fault`: its row in FAULTS.md. Files that are no short text are below.
"""

import bz2
import gzip
import lzma
import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from commands import hat, refusal, write_lines
from golden_lines import read
from PIL import Image
from releases import write_release

from hat_fairseq.data.readers import names as reader_names

# What is replaced in the file and by what is a list; a function is called with its path.
Content = str | bytes | list[str] | None | Callable[[Path], object]
IN_ONE_PLACE = "file and line, exit 2"
SPECIAL = ["Input", "a dangling link, a link to itself or a pipe as a split", "refused with its name"]
ARENA = ["Input", "missing, damaged or other files of Long Range Arena",
         "refused with the file and the line or picture"]  # fmt: skip
DEEP = "[" * 200_000
LINE = b'{"id": "a", "text": "x"}\n' * 99
TEXTS = "preprocess in --splitter punctuation --kind mlm"


def row(
    command: str,
    name: str,
    content: Content,
    message: str,
    fault: list[str] | None = None,
    base: str = "",
    **files: str,
) -> dict[str, Any]:
    return {"command": command, "files": files | {name: content}, "message": message, "fault": fault, "base": base}


def security(fault: str) -> list[str]:
    return ["Security", fault, IN_ONE_PLACE]


def link_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def zeros_at_the_end(path: Path) -> None:
    """They take no space on the disk."""
    path.write_text('{"text": "one"}\n' * 9999)
    os.truncate(path, 10**9)


def batch(**changes: Any) -> bytes:
    """A batch of one picture, or of what the changes make of it."""
    content = {b"data": np.zeros((1, 3072), np.uint8), b"labels": [1]}
    return pickle.dumps(content | {name.encode(): value for name, value in changes.items()}, protocol=4)


def png(mode: str, width: int) -> bytes:
    file = BytesIO()
    Image.new(mode, (width, 32)).save(file, "PNG")
    return file.getvalue()


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
ARTICLES = "articles-training-byarticle-20181122.xml"


def declared(entities: str) -> Callable[[Path], object]:
    """An entity a9 that is used in the first article."""

    def change(path: Path) -> None:
        first, body = path.read_text().split("<articles", 1)
        first += f"<!DOCTYPE articles [{entities.replace('SECRET', path.with_name('secret').as_uri())}]><articles"
        path.write_text(first + re.sub(r"(<article [^>]*>)", r"\1&a9;", body, count=1))

    return change


DOCUMENT = '{"id": "a", "sentences": ["x y"], "target": "x"}'
ROWS = [
    row("preprocess in --kind text", "train.jsonl", '{"id": "a", "text": "café"}'.encode("latin-1"),
        "in/train.jsonl:1 ... invalid UTF-8, byte 0xe9 at byte 24 of",
        ["Input", "invalid UTF-8", "refused with file, line and byte"]),
    row("preprocess in --kind text", "train.jsonl", DEEP, "in/train.jsonl:1 ... nested too deeply",
        security("JSON with brackets in brackets, 200,000 deep")),
    row("preprocess in --kind text", "train.jsonl", '{"id": "a", "text": %s}' % ("9" * 5000),
        "in/train.jsonl:1 ... Exceeds the limit", security("a number of 5,000 digits in JSON")),
    row(TEXTS, "train.jsonl", zeros_at_the_end,
        "in/train.jsonl:10000: the line has more than 100,000,000 bytes; a line is",
        ["Input", "a line of more than 100 MB", "refused with file and line"]),
    row(TEXTS, "valid.jsonl", link_to("nowhere"), "has valid.jsonl, which is no split, or no file", SPECIAL),
    row(TEXTS, "valid.jsonl", link_to("valid.jsonl"), "has valid.jsonl, which is no split, or no file", SPECIAL),
    row(TEXTS, "valid.jsonl", os.mkfifo, "has valid.jsonl, which is no split, or no file", SPECIAL),
    row(TEXTS, "train.json", '[{"id": ' + DEEP, "train.json:1, item 1: it is nested too deeply"),
    row(TEXTS, "train.jsonl", LINE.decode().encode("utf-16"), "UTF-16; convert it"),
    row(TEXTS, "train.jsonl", LINE.decode().encode("utf-16-le"), "train.jsonl is binary, or UTF-16 without a mark"),
    row(TEXTS, "train.jsonl.gz", gzip.compress(LINE)[:-9], "damaged gzip file"),
    row(TEXTS, "train.jsonl.xz", lzma.compress(LINE)[:-9], "damaged xz file"),
    row(TEXTS, "train.jsonl.bz2", bz2.compress(LINE)[:-9], "damaged bzip2 file"),
    row(TEXTS, "train.jsonl", gzip.compress(LINE), "train.jsonl is binary, or UTF-16 without a mark"),
    row(TEXTS, "train.jsonl.gz", lzma.compress(LINE), "train.jsonl.gz: damaged gzip file (Not a gzipped file"),
    row(TEXTS, "train.jsonl.zst", pyarrow.Codec("zstd").compress(LINE, asbytes=True)[:-9], "damaged Zstandard file"),
    row(TEXTS, "train.parquet.gz", gzip.compress(b"PAR1"),
        "train.parquet.gz is Parquet, compressed once more: unpack it"),
    row("preprocess in", "train.source", "a segment .\n" * 501,
        "has 501 lines and no blank line, so it is one document",
        ["Input", "parallel text without blank lines", "refused above 500 lines"],
        **{"train.target": "a segment .\n" * 501}),
    row("preprocess in/d --vocabulary in/bin", "bin/dict.source.txt", f"zz {'9' * 5000}\n",
        "in/bin/dict.source.txt ... :1: expected 'symbol count'", security("a dictionary with a count of 5,000 digits"),
        "vocabulary", **{"d/train.jsonl": DOCUMENT}),
    row("preprocess in/d --vocabulary in/bin", "bin/dict.source.txt", b"zz 1\n\xff 1\n",
        "in/bin/dict.source.txt ... :2: invalid UTF-8", security("a dictionary that is not UTF-8"), "vocabulary",
        **{"d/train.jsonl": DOCUMENT}),
    row("preprocess in/d --vocabulary in/bin", "bin/pipeline.json", DEEP,
        "in/bin/pipeline.json ... cannot be read (it is nested too deeply)",
        security("deep JSON in the settings of a vocabulary"), "vocabulary", **{"d/train.jsonl": DOCUMENT}),
    row("preprocess lra_image --root in --partial", "data_batch_1", cut,
        "data_batch_1 ... is no batch of CIFAR-10's python release", ARENA, "lra_image"),
    row("preprocess lra_image --root in --partial", "data_batch_1", batch(labels=[1.0]),
        "data_batch_1 ... picture 0: the class is 1.0, not from 0 to 9", ARENA, "lra_image"),
    row("preprocess lra_image --root in --partial", "data_batch_1", batch(labels=[]),
        "data_batch_1 ... is no batch of CIFAR-10's python release", ARENA, "lra_image"),
    row("preprocess lra_image --root in --partial", "data_batch_1", batch(data=np.zeros((1, 384), np.int64)),
        "data_batch_1 ... its pixels are not bytes in rows", ARENA, "lra_image"),
    row("preprocess lra_image --root in --partial", "data_batch_1", batch(data=np.zeros((3072, 2), np.uint8).T),
        "data_batch_1 ... its pixels are not bytes in row", ARENA, "lra_image"),
    row("preprocess lra_image --root in --partial", "data_batch_1", b"\x80\x04\x8e" + b"\xff" * 7 + b"\0.",
        "data_batch_1 ... MemoryError", ARENA, "lra_image"),
    row("preprocess lra_pathfinder --root in --partial", "curv_contour_length_14/imgs/0/sample_0.png", png("L", 60_000),
        "sample_0.png ... no greyscale PNG image of 32 x 32 pixels", ARENA, "lra_pathfinder"),
    row("preprocess lra_pathfinder --root in --partial", "curv_contour_length_14/imgs/0/sample_0.png", png("RGB", 32),
        "sample_0.png ... its mode is RGB, and", ARENA, "lra_pathfinder"),
    row("preprocess lra_pathfinder --root in --partial", "curv_contour_length_14/imgs/0/sample_0.png",
        lambda path: path.write_bytes(path.read_bytes()[:-30]), "sample_0.png ... truncated", ARENA, "lra_pathfinder"),
    row("preprocess hyperpartisan --root in", ARTICLES, declared(f'<!ENTITY a0 "aaaaaaaaaa">{LAUGHS}'),
        f"in/{ARTICLES}: ... amplification factor", security("entities in XML that multiply"), "hyperpartisan"),
    row("preprocess hyperpartisan --root in", ARTICLES, declared('<!ENTITY a9 SYSTEM "SECRET">'),
        f"in/{ARTICLES}: ... undefined entity", security("an entity of XML that names a file"), "hyperpartisan",
        secret="a secret"),
    row("ask meeting in/m.vtt.gz Why?", "m.vtt.gz", gzip.compress(b"WEBVTT\n\n" + (b"a" * 999 + b"\n") * 30_000),
        "m.vtt.gz has more than 20,000,000 characters, and it is read whole"),
    row("ask meeting in/m.txt.xz Why?", "m.txt.xz", lzma.compress(b"a" * 30_000_000),
        "m.txt.xz:1: the line has more than 20,000,000 bytes"),
    row("ask meeting in/m.txt Why?", "m.txt", b"Gr\xfc\xdfe", "m.txt:1: invalid UTF-8"),
    row("score rouge in/h.jsonl --references in/r.jsonl", "h.jsonl", DEEP, "in/h.jsonl: ... nested too deeply",
        ["Scoring", "texts with deep JSON", IN_ONE_PLACE], **{"r.jsonl": '{"id": "a", "target": "A"}'}),
]  # fmt: skip


def cases() -> Iterator[Any]:
    for case in [*read("bad_input"), *ROWS]:
        marks = [pytest.mark.fault(*case["fault"])] if case.get("fault") else []
        yield pytest.param(case, marks=marks, id=case.get("why") or case["message"][:70])


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the vocabulary of a few words."""
    made = tmp_path_factory.mktemp("vocabulary")
    rows = ({"id": f"{n}", "sentences": [f"One two {n}.", "Three four."], "target": "One two."} for n in range(5))
    write_lines(made / "in/train.jsonl", rows)
    assert hat("preprocess", made / "in", "--out", made / "out", "--num-codes", 30) == 0
    (made / "out/bin").rename(made / "vocabulary")
    return made


def write(folder: Path, files: dict[str, Content]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        elif callable(content):
            content(path)
        elif isinstance(content, list):
            old, new = content
            assert old in (text := path.read_bytes().decode()), old
            path.write_bytes(text.replace(old, new).encode())
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.parametrize("case", [*cases()])
def test_it_is_refused_in_one_line_and_nothing_is_written(
    case: dict[str, Any], tmp_path: Path, monkeypatch: Any, vocabularies: Path, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of a reader, which Python would write
    if (base := case.get("base")) == "vocabulary":
        shutil.copytree(vocabularies / base, tmp_path / "in/bin")
    elif base:
        write_release(base, tmp_path / "in")
    write(tmp_path / "in", case["files"])
    before = state(tmp_path)
    words = case["command"].split()
    if words[0] == "preprocess" and "--out" not in words:
        words += ["--out", "out"]
    error = refusal(*words)
    assert error.count("\n") == 1, error
    assert all(part in error for part in case["message"].split(" ... ")), error
    assert state(tmp_path) == before
    assert not capsys.readouterr().out


@pytest.mark.slow
def test_a_reader_needs_a_folder_and_names_what_it_lacks(tmp_path: Path) -> None:
    for name in set(reader_names()) - {"ami", "ami_questions", "icsi"}:
        words = ["preprocess", name, "--out", tmp_path / "out"]
        assert "--root DIR is required: the folder of the downloaded release, containing" in refusal(*words)
        assert str(tmp_path) in refusal(*words, "--root", tmp_path), name
    assert "nowhere is not a folder" in refusal(*words, "--root", tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


@pytest.mark.fault("Security", "a data set whose pickle names a function", "names both, nothing is run")
def test_a_pickle_that_names_a_function_is_refused_and_nothing_is_run(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    write_release("lra_image", tmp_path / "in")
    (tmp_path / "in/test_batch").write_bytes(pickle.dumps({"data": Attack()}, protocol=4))
    error = refusal("preprocess", "lra_image", "--root", tmp_path / "in", "--partial", "--out", tmp_path / "out")
    assert "test_batch is no batch of CIFAR-10's python release: it names posix.mkdir" in error
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
