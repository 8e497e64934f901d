"""Files that a command refuses: one table of commands, files and messages; one line, status 2, nothing is written."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from commands import hat, refusal, write_lines
from PIL import Image
from releases import write_release

from hat_fairseq.data.readers import names as reader_names

# The whole file, or what is replaced in it and by what; None removes it; a function is called with its path.
Content = str | bytes | tuple[str, str] | None | Callable[[Path], object]
Fault = tuple[str, str, str] | None
IN_ONE_PLACE = "file and line, exit 2"
SPECIAL = "Input", "a dangling link, a link to itself or a pipe as a split", "refused with its name"
NEEDED = ("Input", "a document without target, roles or sentences that the options need",
          "refused with its id and the flag")  # fmt: skip
LONG = "Input", "a source longer than the limit", "refused with its id; truncate, drop or chunk by a flag"
TWICE = "Input", "a key twice in a JSON object", "refused with file, line and key"
ARENA = ("Input", "missing, damaged or other files of Long Range Arena",
         "refused with the file and the line or picture")  # fmt: skip
DEEP = "[" * 200_000
LINE = '{"id": "a", "text": "x"}\n'


def security(fault: str) -> Fault:
    return "Security", fault, IN_ONE_PLACE


def row(command: str, files: dict[str, Content], message: str, fault: Fault = None, base: str = "") -> Any:
    """A command, files in the folder `in` where it runs, and a part of its message, where ` ... ` is any text.

    `base` is what `in` holds before: a small release, or "vocabulary", a bin folder. A space in a word is written `+`.
    """
    marks = [pytest.mark.fault(*fault)] if fault else []
    return pytest.param(command, files, message, base, marks=marks, id=(fault[1] if fault else message)[:70])


def text(name: str, content: Content, message: str, fault: Fault = None, flags: str = "") -> Any:
    """A file of documents."""
    return row(f"preprocess in --splitter punctuation {flags}", {name: content}, message, fault)


def mlm(name: str, content: Content, message: str, fault: Fault = None) -> Any:
    """A file of texts without targets."""
    return text(name, content, message, fault, "--kind mlm")


def record(kind: str, content: Any, message: str, fault: Fault = None, flags: str = "") -> Any:
    """One line of training data, which the message names."""
    line = content if isinstance(content, bytes) else json.dumps(content).encode()
    message = f"in/train.jsonl:1 ... {message}"
    return row(f"preprocess in --kind {kind} {flags}", {"train.jsonl": line + b"\n"}, message, fault)


def option(kind: str, content: str, flags: str, message: str, fault: Fault = None) -> Any:
    """Training data that do not go with the options."""
    return row(f"preprocess in --kind {kind} {flags}", {"train.jsonl": content}, message, fault)


def folder(names: str, message: str) -> Any:
    """Names of files, each with a document or a line of text."""
    files: dict[str, Content] = {name: DOCUMENT if ".jsonl" in name else "a\n" for name in names.split()}
    return row("preprocess in", files, message)


def beside(name: str, content: str, message: str = "") -> Any:
    """A file that somebody may take for data, beside a whole training part."""
    return row("preprocess in --splitter punctuation", {"train.jsonl": DOCUMENT, name: content}, message or name)


def parallel(source: str, target: str, message: str, fault: Fault = None) -> Any:
    return row("preprocess in", {"train.source": source, "train.target": target}, message, fault)


def vocabulary(name: str, content: str | bytes, message: str, fault: str) -> Any:
    """A file of a vocabulary; data beside it would be fine."""
    message = f"in/bin/{name} ... {message}"
    files: dict[str, Content] = {"d/train.jsonl": DOCUMENT, f"bin/{name}": content}
    return row("preprocess in/d --vocabulary in/bin", files, message, security(fault), "vocabulary")


def release(name: str, file: str, old: str, new: str | None, message: str) -> Any:
    """A release in which one text of a file is another, or the file is another, or is missing."""
    reader = {"glue": "mnli", "tydi_qa_offsets": "tydi_qa"}.get(name, name)
    content = (old, new) if old and new is not None else new
    return row(f"preprocess {reader} --root in --partial --bpe learned", {file: content}, message, base=name)


def picture(name: str, file: str, content: Content, message: str) -> Any:
    message = f"{Path(file).name} ... {message}"
    return row(f"preprocess {name} --root in --partial", {file: content}, message, ARENA, name)


def xml(declared: str, message: str, fault: str) -> Any:
    """An entity a9 that is declared in a release and used in its first article."""
    name = HYPERPARTISAN.format("articles")

    def change(path: Path) -> None:
        head, body = path.read_text().split("<articles", 1)
        head += f"<!DOCTYPE articles [{declared.replace('SECRET', path.with_name('secret').as_uri())}]><articles"
        path.write_text(head + re.sub(r"(<article [^>]*>)", r"\1&a9;", body, count=1))

    files: dict[str, Content] = {"secret": "a secret", name: change}
    return row(
        "preprocess hyperpartisan --root in", files, f"in/{name}: ... {message}", security(fault), "hyperpartisan"
    )


def score(metric: str, references: Any, hypotheses: Any, flags: str, message: str, fault: Fault = None) -> Any:
    """Files of JSON lines: objects, or the text."""
    files: dict[str, Content] = {
        name: lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
        for name, lines in (("r.jsonl", references), ("h.jsonl", hypotheses))
    }
    words = f"score {metric} in/h.jsonl --references in/r.jsonl --bootstrap-samples 0 {flags}"
    return row(words, files, message, fault)


def ask(content: str, message: str, flags: str = "", name: str = "m.txt") -> Any:
    """A transcript."""
    return row(f"ask meeting in/{name} Why? {flags}", {name: content.encode(errors="surrogateescape")}, message)


def link_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def zeros_at_the_end(path: Path) -> None:
    """They take no space on the disk."""
    path.write_text('{"text": "one"}\n' * 9999)
    os.truncate(path, 10**9)


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
DOCUMENT = '{"id": "a", "sentences": ["x y"], "target": "x"}'
LABELLED = '{"id": "a", "text": "x", "label": "b"}'
META = '{"id": "a", "target": "One.", "text": "a", "meta": {"a": %s}}'
CHOICE = {"id": "a", "text": "x", "choices": ["y", "z"]}
ASKED = {"id": "a", "question": "q", "text": "one two"}
ANNOTATED = {"id": "a", "question": "q", "paragraphs": ["x", "y"]}


# What is wrong with one record: its JSON, its keys and their values, what the options need.
RECORDS = [
    record("text", DOCUMENT.replace("x y", "caf\xe9").encode("latin-1"), "invalid UTF-8, byte 0xe9 at byte 30 of",
           ("Input", "invalid UTF-8", "refused with file, line and byte")),
    record("text", b"{", "not a JSON object"),
    record("text", b'{"id": "a", "text": "x"', "not a JSON object"),
    record("text", b"{'id': 'a', 'text': 'x'}", "not a JSON object"),
    record("text", b'{"id": "a", "text": "x", "id": "b"}', "the key 'id' occurs twice in one object", TWICE),
    record("text", DEEP.encode(), "nested too deeply", security("JSON with brackets in brackets, 200,000 deep")),
    record("text", (META % ("[" * 500 + "]" * 500)).encode(), "meta has a lone", security("`meta` of many levels")),
    record("text", (META % "NaN").encode(), "it has the number NaN", security("NaN or Infinity in JSON")),
    record("text", (META % "[1, -2e400]").encode(), "the number -2e400 is too large",
           security("a number above 1.8e308 in JSON")),
    record("text", b'{"id": "a", "text": %s}' % (b"9" * 5000), "Exceeds the limit",
           security("a number of 5,000 digits in JSON")),
    record("text", (META % r'"\ud800"').encode(), "meta has a lone surrogate", security("a lone surrogate in `meta`")),
    record("text", 7, "expected a JSON object"),
    record("text", {"id": "", "text": "x"}, "'': its id is empty"),
    record("text", {"id": 7, "text": "x"}, "id must be a string, not 7"),
    record("text", {"id": "a"}, "exactly one of text, turns, sentences, not none"),
    record("text", {"id": "a", "text": "x", "sentences": []}, "not text and sentences"),
    record("text", {"id": "a", "text": "x", "lang": "en"}, "unknown key 'lang'"),
    record("text", {"id": "a", "text": "x", "target": "y", "summary": "y"}, "two names for the same thing"),
    record("text", {"id": "a", "text": "x", "target": ["y"], "other_references": [["z"]]},
           "unknown key 'other_references'; several references are a list of lists in target"),
    record("text", {"id": "a", "text": "x", "target": [["y"], "z"]},
           "document 'a': each reference in target must be a list, as the first is, not 'z'"),
    record("text", {"id": "a", "sentences": ["x", 3]}, "sentences must be a string, not 3"),
    record("text", {"id": "a", "turns": [{"text": "x", "mood": "good"}]}, "turns: unknown key 'mood'"),
    record("text", {"id": "a", "turns": [{"text": "x", "role": "PM"}, {"text": "y"}]},
           "turn 2 has neither role nor speaker"),
    record("text", {"id": "a", "turns": ["x"]}, "each item of turns: expected a JSON object, found 'x'"),
    record("text", {"id": "a", "text": "x", "question": 3}, "question must be a string"),
    record("text", {"id": "a", "text": "x", "meta": [1]}, "meta must be an object"),
    record("text", {"id": "a", "sentences": ["x"]}, "has no target", NEEDED),
    record("text", DOCUMENT.encode(), "its source is too long", LONG, "--max-source-tokens 3"),
    record("classification", {"text": "x"}, "the key 'id' is missing; --number-ids of hat preprocess"),
    record("classification", {"id": "a", "text": "x", "labels": ["y"]}, "unknown key 'labels'; known are id"),
    record("classification", {"id": "a", "text": "x", "label": ""}, "'a' has an empty label"),
    record("classification", {"id": "a", "text": "x", "label": 1.5}, "label must be a string, not 1.5"),
    record("classification", {"id": "a", "label": "x"}, "give exactly one of text, segments, not none"),
    record("classification", {"id": "\ud800", "text": "One two.", "label": "b"},
           "its id or label has a lone surrogate", security("a lone surrogate in an id or a label")),
    record("classification", {"id": "a", "text": "One two.", "label": "\ud800"},
           "its id or label has a lone surrogate", security("a lone surrogate in an id or a label")),
    record("choice", {"id": "a", "text": "x", "choices": ["y"], "label": 0}, "has 1 choices; at least two are needed"),
    record("choice", {**CHOICE, "label": 2}, "has the label 2; the choices have the numbers 0 to 1"),
    record("choice", {**CHOICE, "label": "1"}, "label must be a number, not '1'"),
    record("choice", {**CHOICE, "label": True}, "label must be a number, not True"),
    record("tokens", {"id": "a", "words": ["x", True]}, "each item of words must be a string, not True"),
    record("tokens", {"id": "a", "words": "x y", "labels": ["z", "z"]}, "words must be a list, not 'x y'"),
    record("segments", {"id": "a", "segments": ["x", "y"], "labels": ["z"]}, "has 1 labels for 2 segments"),
    record("segments", {"id": "a", "text": "x", "labels": ["z"]}, "unknown key 'text'"),
    record("mlm", {"id": "a", "text": "x", "label": "y"}, "unknown key 'label'"),
    record("qa", {"id": "a", "text": "x"}, "the key 'question' is missing"),
    record("qa", {**ASKED, "id": "a\tb"}, "contains a tab"),
    record("qa", {**ASKED, "answers": [{"text": "two", "start": 3}]},
           "document 'a': the answer 'two' does not stand at character 3, where ' tw' stands"),
    record("qa", {**ASKED, "answers": [{"text": "one", "start": -1}]}, "at character -1"),
    record("qa", {**ASKED, "answers": ["x"]}, "of answers: expected a JSON object, found"),
    *(record("document_qa", {**ANNOTATED, "annotations": [{}, annotation]}, message) for annotation, message in [
        ({"paragraph": 2}, "has 2 paragraphs, counted from 0, and an annotation of paragraph 2"),
        ({"paragraph": -1}, "an annotation of paragraph -1"),
        ({"yes_no": "yes"}, "an annotation with an answer needs its paragraph"),
        ({"paragraph": 0, "yes_no": "perhaps"}, "yes_no of an annotation is 'yes' or 'no': 'perhaps'"),
        ({"paragraph": 0, "yes_no": "no", "spans": [{"text": "x", "start": 0}]},
         "'yes' or 'no', and not beside spans: 'no'"),
        ({"paragraph": 1, "spans": [{"text": "x", "start": 0}]},
         "1: the answer 'x' does not stand at character 0, where"),
        ({"paragraph": "1"}, "annotations: paragraph must be a number, not '1'"),
        ({"number": 1}, "annotations: unknown key 'number'; known are paragraph, yes_no, spans"),
    ]),
]  # fmt: skip

# Files as wholes: lists, tables, what is compressed, cut off or of another format, and pairs of records.
FILES = [
    mlm("train.jsonl", LINE + "\n{\n", "in/train.jsonl:3: not a JSON object"),
    mlm("train.jsonl", LINE * 2, "in/train.jsonl:2) occurs twice"),
    text("train.jsonl", "", "the split train has no documents", ("Input", "an empty split", "refused")),
    text("train.jsonl", DOCUMENT.replace("x y", " "), "every document was dropped (--on-empty drop",
         ("Input", "a split all of whose documents are dropped", "refused"), "--splitter given --on-empty drop"),
    mlm("train.jsonl", zeros_at_the_end, "in/train.jsonl:10000: the line has more than 100,000,000 bytes; a line is",
        ("Input", "a line of more than 100 MB", "refused with file and line")),
    text("valid.jsonl", link_to("nowhere"), "has valid.jsonl, which is no split, or no file", SPECIAL),
    text("valid.jsonl", link_to("valid.jsonl"), "has valid.jsonl, which is no split, or no file", SPECIAL),
    text("valid.jsonl", os.mkfifo, "has valid.jsonl, which is no split, or no file", SPECIAL),
    mlm("train.jsonl", '\n\n{"id": "a", "text": "x"}\n \n{"id": 1}\n', "train.jsonl:5: id must be a string"),
    mlm("train.json", '[{"id": "a", "text": "x"},\n {"id": "b", "text": "y"',
        "train.json:2, item 2: not a JSON object"),
    mlm("train.json", '[{"id": "a", "text": "x"},\n', "train.json:2, item 2: not a JSON object"),
    mlm("train.json", '[{"id": "a", "text": "x"}\n', "train.json:2: the list does not end after item 1"),
    mlm("train.json", '[{"id": "a"}\n{"id": "b"}]', "train.json:2: expected a comma after item 1, found"),
    mlm("train.json", '[{"id": "a", "text": "x"}]\n{}', "train.json:2: text after the end of the list: {}"),
    mlm("train.json", '[{"id": "a", "text": "x"},\n\n{"id": "a", "text": "x"}]',
        "train.json:3, item 2) occurs twice"),
    mlm("train.json", '[{"id": "a", "text": "x"},\n\n{"id": "b", "id": "c"}]', "item 2: the key 'id' occurs twice"),
    mlm("train.json", '[{"id": "a", "text": "x"},\n{"id": "b", "meta": {"x": NaN}}]',
        "item 2: it has the number NaN"),
    mlm("train.json", '[\n"one text", "two"]', "train.json:2, item 1: expected a JSON object"),
    mlm("train.json", '{\n "id": "a",\n "text": "x"\n}\n{\n "id": 3}', "train.json:5: id must be a string"),
    mlm("train.json", '[{"id": ' + DEEP, "train.json:1, item 1: it is nested too deeply"),
    mlm("train.jsonl", "{'id': 'a', 'text': 'x'}\n", "train.jsonl:1: not a JSON object"),
    mlm("train.jsonl", '[{"id": "a", "text": "x"}]', "train.jsonl:1: expected a JSON object, found [{"),
    mlm("train.ndjson", '{"id": "a",\n"text": "x"}', "train.ndjson:1: not a JSON object"),
    mlm("train.csv", '{"id": "a", "text": "x"}\n', "the split train has no documents (read in/train.csv)"),
    mlm("train.csv", 'id,text\na,"a \\"b\\" c"\n', "train.csv:2: ',' expected after"),
    *(mlm(name, POINTER, f"{name} is a Git LFS pointer, not the file itself: run `git lfs pull`")
      for name in ("train.jsonl", "train.csv", "train.parquet", "train.arrow", "train.json.gz")),
    mlm("train.csv", '\nid;text\na;"x\n\ny"\nb;c;d\n', "train.csv:6: 3 columns instead of 2"),
    mlm("train.csv", "article,headline\na,b\n", "renames it (KEY=article) or skips it (=article)"),
    mlm("train.csv", 'id,text\na,"b', "train.csv:2: unexpected end of data"),
    mlm("train.csv", "id,meta,text\na,b\n", "train.csv:2: 2 columns instead of 3"),
    mlm("train.csv", "id,id,text,target\na,b,One.,Two.\n", "train.csv: the column 'id' occurs twice",
        ("Input", "a column of a table twice", "file and name of the column, exit 2")),
    mlm("train.parquet", "PAR1 id,text", "train.parquet: "),
    mlm("train.txt", "A text of one line.\n", "train.txt is plain text: write JSON lines or a table"),
    mlm("train.vtt", "WEBVTT\n", "train.vtt is WebVTT: write JSON lines or a table"),
    mlm("train.jsonl", "\x00\x01", "train.jsonl is binary, or UTF-16 without a mark"),
    mlm("train.docx", "PK\x03\x04", "a name that ends in .docx is of no format that is read, ... convert other files"),
    mlm("train.xyz", LINE, "a name that ends in .xyz is of no format that is read, which are .jsonl, .ndjson, .json"),
    mlm("train", LINE, "a name without an end is of no format that is read, ... end the name of a plain text in .txt"),
    mlm("train.csv", "PK\x03\x04\x00", "train.csv is binary, or UTF-16 without a mark: it has null bytes"),
    mlm("train.json", "<!DOCTYPE html>\n<html>", "train.json:1: not a JSON object"),
    mlm("train.jsonl", (LINE * 99).encode("utf-16"), "UTF-16; convert it"),
    mlm("train.jsonl", (LINE * 99).encode("utf-16-le"), "train.jsonl is binary, or UTF-16 without a mark"),
    mlm("train.jsonl.gz", gzip.compress(LINE.encode() * 99)[:-9], "damaged gzip file"),
    mlm("train.jsonl.xz", lzma.compress(LINE.encode() * 99)[:-9], "damaged xz file"),
    mlm("train.jsonl.bz2", bz2.compress(LINE.encode() * 99)[:-9], "damaged bzip2 file"),
    mlm("train.jsonl", gzip.compress(LINE.encode()), "train.jsonl is binary, or UTF-16 without a mark"),
    mlm("train.jsonl.gz", lzma.compress(LINE.encode()), "train.jsonl.gz: damaged gzip file (Not a gzipped file"),
    mlm("train.jsonl.bz2", LINE, "train.jsonl.bz2: damaged bzip2 file (Invalid data stream)"),
    mlm("train.jsonl.zst", pyarrow.Codec("zstd").compress(LINE.encode() * 99, asbytes=True)[:-9],
        "damaged Zstandard file"),
    mlm("train.parquet.gz", gzip.compress(b"PAR1"), "train.parquet.gz is Parquet, compressed once more: unpack it"),
]  # fmt: skip

# Names of files that are no splits, and what somebody may take for data that are read.
FOLDERS = [
    folder("train.jsonl dev.jsonl valid.jsonl", "has the split valid twice"),
    folder("train.jsonl train.source train.target", "has the split train twice"),
    folder("train.source train.target train.en-de.en train.en-de.de", "has the split train twice"),
    folder("train.source", "train.target is missing; train.source and train.target go together"),
    folder("train.en-de.de", "train.en-de.en is missing"),
    folder("train.source train.target train.en-de.en", "train.en-de.de is missing"),
    folder("train.jsonl test1.jsonl", "fairseq cannot number the splits train, test1; use test, test1"),
    folder("train.jsonl extra.jsonl", "has extra.jsonl, which is no split"),
    folder("train.jsonl test.txt", "test.txt is plain text: write JSON lines or a table"),
    folder("train.jsonl Valid.jsonl.gz", "has Valid.jsonl.gz, which is no split"),
    folder("train.jsonl test01.jsonl", "has test01.jsonl, which is no split"),
    folder("README.md", "has no train.jsonl, valid.jsonl, test.jsonl"),
    beside("Test.txt", "text\n"),
    beside("TEST.CSV", "id,text\n"),
    beside("test.en", "A text.\n"),
    beside("test.txt", "A text.\n"),
    beside("train-00000-of-00002.parquet", "PAR1", "should have each shard of train once, and has train-00000"),
    beside("Train-00000-of-00001.parquet", "PAR1"),
    beside("unlabelled.NDJSON.xz", "{}\n"),
    beside("test01.jsonl", "{}\n"),
    beside("test/part-1.jsonl", "{}\n", "has test, which is no split"),
    parallel("a\n\nb\n", "A\nB\nC\n", "different numbers ... number 1, ... train.source:1-1 and ... train.target:1-3"),
    parallel("a\nb\n\nc\n", "A\n\nB\nC\n", "end on the same one; ... number 1, ... source:1-2 and ... target:1-1."),
    parallel("a\nb\n\nc\n\nd\n", "A\nB\n\nC\n", "different ... number 3, ... source:6-6 and ... target:nothing"),
    parallel("a\n\nb\n", "A\nB\n\nC\n\nD\n", "are number 1, ... train.source:1-1 and ... train.target:1-2"),
    parallel("a segment .\n" * 501, "a segment .\n" * 501, "has 501 lines and no blank line, so it is one document",
             ("Input", "parallel text without blank lines", "refused above 500 lines")),
]  # fmt: skip

# Options that do not go with the data.
OPTIONS = [
    option("text", '{"id": "a", "text": "x. y", "target": "x"}', "", "or --splitter punctuation or library"),
    option("text", DOCUMENT, "--splitter library", "use --splitter given"),
    option("text", DOCUMENT, "--roles", "use --roles none"),
    option("text", DOCUMENT, "--workers 0", "--workers 0: the number of workers must be from 1 to 1,024"),
    option("text", DOCUMENT, "--limit 0", "--limit must be at least 1, not 0"),
    option("text", DOCUMENT, "--max-source-tokens -3", "--max-source-tokens must be at least 3, not -3"),
    option("qa", '{"text": "x"}', "--negative-windows 1.5", "--negative-windows must be from 0 to 1, not 1.5"),
    option("text", DOCUMENT, "--bpe gpt2 --num-codes 9000", "--num-codes 9000 has no effect without --bpe learned: "),
    option("text", DOCUMENT, "--on-misaligned drop", "--on-misaligned drop has no effect without --aligned: "),
    option("text", DOCUMENT, "--long-target truncate", "truncate has no effect without --max-target-tokens: "),
    option("text", DOCUMENT, "--aligned --max-chunk-tokens 9", "tokens 9 has no effect without --long-source chunk: "),
    option("text", DOCUMENT, "--line-breaks space", "space has no effect without --splitter punctuation or library: "),
    option("text", DOCUMENT, "--window-overlap 64", "--window-overlap 64 has no effect with --kind text"),
    option("text", DOCUMENT, "--long-source truncate", "truncate has no effect without --max-source-tokens: "),
    option("classification", LABELLED, "--segment-length 64",
           "--segment-length 64 has no effect without --segments packed or --max-segments: "),
    option("classification", LABELLED, "--segments none --max-segments 3",
           "--max-segments 3 has no effect without --segments sentences or packed: "),
    option("text", DOCUMENT, "--segments none", "--segments none has no effect with --kind text"),
    option("text", DOCUMENT, "--aligned --splitter punctuation", "--aligned is for given segments, not for --splitter"),
    option("text", DOCUMENT, "--aligned --roles", "--aligned does not go together with --roles"),
    option("text", DOCUMENT, "--bpe gpt2 --target-separator", "the dictionary of --bpe gpt2 has no <sep>"),
    option("text", DOCUMENT, "--bpe sentencepiece", "--bpe sentencepiece needs --bpe-dir DIR"),
    option("text", DOCUMENT, "--out a:b", "fairseq takes ':' for the end of a path; choose another name",
           ("Preprocessing", "a colon in --out, which fairseq takes for the end of a path", "refused")),
    option("text", DOCUMENT, "--columns text=body",
           "train.jsonl: --columns names 'body', and the columns are 'id', 'sentences', "),
    option("text", DOCUMENT, "--columns text", "--columns text: expected KEY=COLUMN"),
    option("text", DOCUMENT, "--columns text=a --columns text=b", "--columns names 'text' twice"),
    option("text", DOCUMENT, "--columns text=a --columns target=a", "--columns names 'a' twice"),
    option("text", LABELLED, "--columns text=label",
           "train.jsonl:1: it has 'text' besides 'label', which --columns calls"),
    option("text", DOCUMENT, "--number-ids",
           "train.jsonl:1: it has the id 'a', and --number-ids is for records without"),
    row("preprocess imdb --root in --number-ids", {}, "--number-ids has no effect on the reader imdb"),
    row("preprocess imdb --root in --columns text=a", {}, "--columns has no effect on the reader imdb"),
    row("preprocess in --columns text=a", {"train.source": "a\n", "train.target": "a\n"},
        "--columns has no effect on"),
    option("classification", '{"id": "a", "text": "x"}\n' + LABELLED.replace('"a"', '"c"'), "--splitter punctuation",
           "'c' (in/train.jsonl:2) has label, "),
    option("classification", f"{LABELLED}\n{LABELLED}", "--splitter punctuation",
           "document 'a' (in/train.jsonl:2) occurs twice"),
    option("classification", LABELLED.replace('"x"', '" "'), "",
           "has an empty field 'text': no sentence with text in it; "),
    option("classification", LABELLED, "",
           "or --splitter punctuation or library; or `hat preprocess --segments none`"),
    option("classification", LABELLED, "--aligned", "--aligned has no effect with --kind classification; remove it"),
    option("classification", LABELLED, "--long-source chunk", "--long-source chunk is not for --kind classification"),
    option("segments", '{"id": "a", "segments": ["x"]}', "--segments packed", "each segment keeps its own marker"),
    option("mlm", '{"text": "x"}', "--long-source truncate", "documents continue in the next row"),
    option("classification", '{"text": "x", "label": "y"}', "--segments none --max-source-tokens 9 --long-source "
           "truncate-sentences", "truncate-sentences has no effect with --segments none"),
    option("document_qa", json.dumps({**ANNOTATED, "annotations": [{}]}), "--num-codes 9 --negative-windows 0",
           "train: no window has an answer, and the others are dropped"),
    option("text", '{"id": "a", "target": "x"}', "--on-empty drop",
           "give exactly one of text, turns, sentences, not none"),
]  # fmt: skip

VOCABULARIES = [
    vocabulary("dict.source.txt", "zz 1\nzz 1\n", ":2: the symbol 'zz' occurs twice", "a dictionary with a word twice"),
    vocabulary("dict.source.txt", "zz --5\n", ":1: expected 'symbol count'", "a dictionary with a count that is none"),
    vocabulary("dict.source.txt", f"zz {'9' * 5000}\n", ":1: expected 'symbol count'",
               "a dictionary with a count of 5,000 digits"),
    vocabulary("dict.source.txt", "<pad> 1\n", ":1: the symbol '<pad>' occurs twice",
               "a dictionary with a control token"),
    vocabulary("dict.source.txt", b"zz 1\n\xff 1\n", ":2: invalid UTF-8", "a dictionary that is not UTF-8"),
    vocabulary("pipeline.json", DEEP, "cannot be read (it is nested too deeply)",
               "deep JSON in the settings of a vocabulary"),
    row("preprocess in/d --vocabulary in/bin",
        {"d/test.jsonl": '{"id": "b", "sentences": ["今天天气很好。"], "target": "天气"}'},
        "tokens are not in the dictionary: text of another language than the vocabulary is of",
        ("Preprocessing", "more than half of the tokens are not in the dictionary",
         "refused with --bpe and --vocabulary as the way out"), "vocabulary"),
]  # fmt: skip

HYPERPARTISAN = "{}-training-byarticle-20181122.xml"
DEV = "dev/newstest2018-ende-{}.sgm"
CS = "dev/xml/newstest2018.en-cs.xml"
TED = "zh-en/train.tags.zh-en.{}"
XSUM = "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json"
NEWS = "europarl-v10.de-en.tsv"
MEETING = "data/ALL/train/ES0001a.json"
LINES = "explainmeetsum/train.jsonl"
PAGE = '{"example_id": 1, "question_text": "?", "document_text": "a b", "long_answer_candidates": '
PAGE += '[{"start_token": 0, "end_token": %d, "top_level": true}], "annotations": [{"long_answer": {"candidate_index": '
PAGE += '0}, "short_answers": [{"start_token": 1, "end_token": 4}], "yes_no_answer": "NONE"}]}\n'
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
# Release, file, what is replaced there, by what, and a part of the message. "": the whole file; None: it is removed.
CHANGES = [
    ("glue", "train.tsv", "\tentailment\n", "\tmaybe\n", "train.tsv:2: the label is 'maybe', not contradiction, e"),
    ("mnli", "multinli_1.0_train.txt", "gold_label", "label", "train.txt:1: no column 'gold_label'"),
    ("glue", "train.tsv", "Anna Berg paints", "Anna\tBerg paints", "train.tsv:2: 14 columns, the first line names 12"),
    ("glue", "train.tsv", "\tneutral\n", "", "is the file cut off?"),
    ("hyperpartisan", HYPERPARTISAN.format("articles"), "</articles>", "", "no XML"),
    ("hyperpartisan", HYPERPARTISAN.format("articles"), 'id="0000084"', 'id="0000093"', "two articles have the id 93"),
    ("hyperpartisan", HYPERPARTISAN.format("ground-truth"), '"true"', '"yes"', "article 84 has the label 'yes', not"),
    ("hyperpartisan", "hp-splits.json", "", '{"train": [84, 1], "dev": [], "test": []}', "there is no article 1 in"),
    ("imdb", "train/neg/one.txt", "", "x", "a review's name is NUMBER_STARS.txt"),
    ("squad2", "train-v2.0.json", '"v2.0"', '"v3"', "no SQuAD 2.0 or 1.1, its version is 'v3'"),
    ("squad2", "train-v2.0.json", '"is_impossible": true', '"id2": ""', "0 answers, but is_impossible is None"),
    ("squad2", "train-v1.1.json", "", "{}", "has train-v2.0.json and train-v1.1.json: keep only one"),
    ("squad2", "train-v2.0.json", '"is_impossible": false', '"is_impossible": true', "but is_impossible is True"),
    ("squad2", "train-v2.0.json", '"answer_start": 0', '"answer_start": 1', "does not stand at"),
    ("race", "train/middle/2.txt", '["A", "D"]', '["A"]', "2.txt: 2 questions, 2 options, 1 answers"),
    ("race", "train/middle/2.txt", '"D"', '"AB"', "2.txt, question 1: the answer is 'AB', not A, B, C or D"),
    ("race", "train/middle/2.txt", '"People like birds.", ', "", "2.txt, question 0: expected four options as strings"),
    ("wikihop", "train.json", '"answer": "anna berg"', '"answer": "x"', "the answer 'x' is none of its 2 candidates"),
    ("triviaqa", "evidence/wikipedia/Page_0.txt", "", None, "Page_0.txt is missing"),
    ("lra_listops", "basic_train.tsv", ")\t5", ")\t6", "basic_train.tsv:2: the expression has the value 5, not 6"),
    ("lra_listops", "basic_train.tsv", "[MAX", "[SUM", "basic_train.tsv:2: '[SUM' is no digit, operator or bracket"),
    ("lra_listops", "basic_train.tsv", "[MAX", "", "basic_train.tsv:2: the expression has the value None, not 5"),
    ("lra_retrieval", "new_aan_pairs.train.tsv", "0.0\tP0", "P0", "train.tsv:1: 4 columns instead of 5"),
    ("lra_retrieval", "new_aan_pairs.train.tsv", "0.0", "2.0", "train.tsv:1: the label is '2.0', not 0.0 or 1.0"),
    ("pubmed", "train.txt", '"article_id"', '"id"', "train.txt:1: no key 'article_id'"),
    ("pubmed", "train.txt", '["anna', '[1, "anna', "train.txt:1: each item of article_text must be a string"),
    ("samsum", "train.json", '"c0"', '""', "document '': its id is empty"),
    ("xsum", "bbc-summary-data/1.summary", "[SN]RESTBODY[SN]", "", "1.summary: no [SN]RESTBODY[SN]"),
    ("xsum", XSUM, "", '{"train": null, "validation": [], "test": []}', "train must be a list, not None"),
    ("xsum", "bbc-summary-data/2.summary", "", None, "2.summary is missing, which XSum-TRAINING"),
    ("cnn_dm", "url_lists/all_train.txt", "/0.html", "/00.html", "all_train.txt:1: http://example.org/00.html"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="', 'docid="x', "and neither is any other of the"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="2018.1"', 'docid="2018.0"', "document '2018.0' was there before"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="2018.1"', "", "a document without docid"),
    ("wmt20_en_de", DEV.format("ref.de"), '<seg id="1">Carla', '<seg id="2">Carla', "has the segment '1' where"),
    ("wmt20_en_de", DEV.format("ref.de"), "<p>\n", "<p>\nlost\n", "text outside of <seg>: lost"),
    ("wmt20_en_de", DEV.format("ref.de"), "</refset>", "<seg id=1>x</seg>", "<seg> outside of the text of a document"),
    ("wmt20_en_de", DEV.format("ref.de"), "</refset>", "<doc docid=x><seg id=1>x", "the last <seg> is not closed"),
    ("wmt20_en_de", DEV.format("ref.de"), 'docid="2018.1"', 'docid="2018.1', "cannot read the tag <doc"),
    ("wmt20_en_de", DEV.format("ref.de"), "", None, "expected newstest2018-ende-src.en.sgm with"),
    ("wmt20_en_de", "newstest2018-ende-src.en.sgm", "", "x", "found more than one file for newstest2018"),
    ("wmt20_en_de", "newstest2018.en-de.xml", "", "x", "or newstest2018.en-de.xml, found"),
    ("wmt20_en_de", "europarl-v9.de-en.tsv", "", "x", "found more than one file for europarl-v"),
    ("wmt20_en_de", NEWS, "", "a\tb\nc\td\n", "no line without text and no names of documents (ep-...) in 2 lines"),
    ("wmt20_en_de", NEWS, "", "a\tb\nc\td\n\n", "no line without text and no names of documents (ep-...) in 2 lines"),
    ("wmt20_en_de", NEWS, "", "", "europarl-v10.de-en.tsv has no text"),
    ("wmt20_en_de", NEWS, "", "\nc\na\tb\n", "europarl-v10.de-en.tsv:2: one column instead of two"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", 'lang="en"', 'lang="fr"', "<target> is in 'fr' instead of 'en'"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", '<file id="4">', "", "<segment> outside of <file>"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", "</file>", "", "<file> is not closed; is the corpus cut off?"),
    ("wmt20_en_de", "RAPID_2019.de-en.xlf", "<segment>", "", "<source> outside of <segment>"),
    ("wmt20_en_cs", CS, '<ref lang="cs"', '<ref lang="de"', "document '2018.0' has no <ref lang=cs>"),
    ("wmt20_en_cs", CS, '<src lang="en"', '<src lang="de"', "document '2018.0' has no <src lang=en>"),
    ("wmt20_en_cs", CS, 'id="2018.1"', 'id="2018.0"', "document '2018.0' was there before"),
    ("wmt20_en_cs", CS, '<seg id="3">Mnozí', '<seg id="2">Mnozí', "'2018.0' has the segment '3' where"),
    ("ted17_zh_en", TED.format("en"), "<talkid>1</talkid>", "", "text before the first <talkid>: Ben Koch"),
    ("ted17_zh_en", TED.format("en"), "<talkid>1</talkid>", "<talkid> </talkid>", "a talk without an id"),
    ("ted17_zh_en", TED.format("en"), "<talkid>", "<talkid>9", "and neither is any other of the"),
    ("ted17_zh_en", TED.format("zh"), "<talkid>3</talkid>", "<talkid>2</talkid>", "document '2' was there before"),
    ("ted17_zh_en", "zh-en/IWSLT17.TED.tst2014.zh-en.en.xml", "", None, "IWSLT17.TED.tst2014.en-zh.en.xml is missing"),
    ("natural_questions", "0-nq-dev.jsonl", "", PAGE % 9, "candidate 0 has the tokens 0 to 9 of 2"),
    ("natural_questions", "0-nq-dev.jsonl", "", PAGE % 2, "a short answer has the tokens 1 to 4 of 2"),
    ("tydi_qa_offsets", "tydiqa-v1.0-dev.jsonl", '_byte": 14', '_byte": 99', "the bytes 9 to 99 are not in"),
    ("tydi_qa_offsets", "tydiqa-v1.0-dev.jsonl", '"passage_answer"', '"passage"', "there is no passage_answer"),
    ("qmsum", MEETING, '"5",\n     "5"', '"5"', "specific_query_list: a span is the numbers of two turns as"),
    ("qmsum", MEETING, '"3",\n     "4"', "3, 4", "a span is the numbers of two turns as strings, not [3, 4]"),
    ("qmsum", MEETING, '"3",\n     "4"', '"4", "3"', "the span ['4', '3'] ends before it begins"),
    ("qmsum", MEETING, '"speaker": "Marketing"', '"speaker": 1', "speaker must be a string, not 1"),
    ("qmsum", MEETING, '"specific_query_list"', '"queries"', "ES0001a.json: there is no specific_query_list"),
    ("qmsum", LINES, '"turns": 6', '"turns": 5', "train.jsonl:1: it has 5 turns, and "),
    ("qmsum", LINES, "ES0009a", "ES0001a", "train.jsonl:2: the meeting ES0001a is there for the second time"),
    ("qmsum", LINES, "[5, 0]", "[6, 0]", "evidence is pairs of a turn, from 0 to 5, and a sentence, not [6, 0]"),
    ("qmsum", LINES, "[5, 0]", "5", "train.jsonl:1"),
    ("qmsum", LINES, '"query": "What', '"question": "What', "train.jsonl:1"),
    ("qmsum", MEETING, "", None, "has no meetings of train; it must hold data/ALL/{train,val,test}/*.json, or data/{"),
]
RELEASES = [release(*change) for change in CHANGES]


def batch(**changes: Any) -> bytes:
    """A batch of one picture, or of what the changes make of it."""
    content = {b"data": np.zeros((1, 3072), np.uint8), b"labels": [1]}
    return pickle.dumps(content | {name.encode(): value for name, value in changes.items()}, protocol=4)


def png(mode: str, width: int) -> bytes:
    file = BytesIO()
    Image.new(mode, (width, 32)).save(file, "PNG")
    return file.getvalue()


PNG = "curv_contour_length_14/imgs/0/sample_0.png"
LIST = "curv_contour_length_14/metadata/0.npy"
PICTURES = [
    picture("lra_image", "data_batch_1", cut, "is no batch of CIFAR-10's python release"),
    picture("lra_image", "data_batch_1", batch(labels=[1.0]), "picture 0: the class is 1.0, not from 0 to 9"),
    picture("lra_image", "data_batch_1", batch(labels=[]), "is no batch of CIFAR-10's python release"),
    picture("lra_image", "data_batch_1", batch(data=np.zeros((1, 384), np.int64)), "its pixels are not bytes in rows"),
    picture(
        "lra_image", "data_batch_1", batch(data=np.zeros((3072, 2), np.uint8).T), "its pixels are not bytes in row"
    ),
    picture("lra_image", "data_batch_1", b"\x80\x04\x8e" + b"\xff" * 7 + b"\0.", "MemoryError"),  # petabytes
    picture("lra_pathfinder", PNG, png("L", 60_000), "no greyscale PNG image of 32 x 32 pixels"),
    picture("lra_pathfinder", PNG, png("RGB", 32), "its mode is RGB, and"),
    picture("lra_pathfinder", PNG, lambda path: path.write_bytes(path.read_bytes()[:-30]), "truncated"),
    picture("lra_pathfinder", LIST, ("png 0 1", "png 0 2"), ":1: expected folder, file, number and a label, 0 or 1"),
]

XML = [
    xml(f'<!ENTITY a0 "aaaaaaaaaa">{LAUGHS}', "amplification factor", "entities in XML that multiply"),
    xml('<!ENTITY a9 SYSTEM "SECRET">', "undefined entity", "an entity of XML that names a file"),
]

READERS = [
    row("preprocess cnn_dm --root in", {"other.csv": ""},
        "expected url_lists/ ... or one file train.csv or train.jsonl ... , found none"),
    row("preprocess cnn_dm --root in", {"train.csv": "article,summary\na,b\n"},
        "train.csv:2: expected id, article, highlights, and this has"),
    row("preprocess cnn_dm --root in", {"train.jsonl": '{"id": "a", "document": "b"}\n'},
        "train.jsonl:1: expected id, article, highlights"),
    row("preprocess amy", {}, "no reader 'amy', and no folder: give a reader, or a folder with"),
    row("preprocess in/train.jsonl", {"train.jsonl": "{}"}, "is a file, and no reader (.py): give a folder"),
    row("preprocess in/mine.py", {"mine.py": "SPLITS = ()\n"}, "mine.py is no reader: it has no function read"),
    row("preprocess in/mine.py", {"mine.py": "KIND = 'novel'\ndef read(split, root, counts): ...\n"},
        "mine.py: unknown kind 'novel'"),
]  # fmt: skip

TRANSCRIPTS = [
    ask("", "m.txt has no text: nothing to ask about"),
    ask(" \n\u200b\n", "m.txt has no text"),
    ask("WEBVTT\n\nNOTE nothing\n", "has no text (skipped: notes (1))", name="m.vtt"),
    ask("Ann:\nBob:\nAnn:\nBob:\n", "has no text"),
    *(ask(content, message, name="m.json") for content, message in [
        ('{"id": "a", "turns": [{"speaker": "A"}]}', "turn 1: there is no text"),
        ('{"id": "a", "turns": [{"text": "A", "start": "soon"}]}', "turn 1: start must be seconds or a clock"),
        ('{"id": "a", "turns": [{"text": "A", "start": -1}]}', "start must be seconds"),
        ('{"id": "a", "turns": [{"text": "A", "start": %s}]}' % ("9" * 308), "start must be seconds"),
        ('{"id": "a", "turns": ["a"], "sentences": ["b"]}', "document a has turns and sentences; give one of them"),
        ('{"id": "a", "turns": "b"}', "document a: turns must be a list"),
        ('{"turns": {"text": ["b"], "speaker": []}}', "turns must be a list, or an object of lists of one length"),
        ('{"turns": [{"text": "a", "speakerName": "Ann"}]}', "'speakerName' may be one: call it 'speaker'"),
        ('{"turns": [{"text": "a", "who": "Ann"}]}', "'who' may be one: call it 'speaker', or remove it"),
        ('{"id": "a", "text": "b"}\n{"id": "c", "text": "d"}', "has 2 documents: choose one of a, c with --id"),
        ('{"id": "a", "text": "b"}\n{"id": "a", "text": "d"}', "has 'a' as the id of several documents; give each"),
        ('{"id": "a", "turns": ["b"]}\n{"text": "d"}', "has documents and turns side by side"),
        ('[{"text": "a"}, 3]', "expected a JSON object, found 3"),
        ('[{"text": "a"}', "is the file cut off"),
    ]),
    ask(POINTER, "m.txt is a Git LFS pointer"),
    *(ask(content, message, name="m.vtt") for content, message in [
        ('WEBVTT\n\n00:01.000 --> 00:02.000\n{"speakerName": "Ann",\n"spokenText": "Hi."}\n', "the cues are data of"),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nimg.jpg#xywh=0,0,160,90\n", "the cues are data of programs"),
    ]),
    *(ask("Hi.\n", f"a name that ends in .{ending} is of no format that is read, ... the name of a plain text in",
          name=f"m.{ending}") for ending in ("sbv", "md")),
    row("ask meeting in/m.vtt.gz Why?", {"m.vtt.gz": gzip.compress(b"WEBVTT\n\n" + (b"a" * 999 + b"\n") * 30_000)},
        "m.vtt.gz has more than 20,000,000 characters, and it is read whole"),
    row("ask meeting in/m.txt.xz Why?", {"m.txt.xz": lzma.compress(b"a" * 30_000_000)},
        "m.txt.xz:1: the line has more than 20,000,000 bytes"),
    ask("a\x00b", "it has null bytes"),
    ask("Gr\udcfc\udcdfe", "m.txt:1: invalid UTF-8"),
    ask("Ann: Hi.\n", "--id x has no effect: ... m.txt is plain text, one document", "--id x"),
    ask('{"id": "d", "turns": ["Hi."]}', "has no document 'x'; it has d", "--id x", "m.json"),
]  # fmt: skip

SUMMARY, TARGET, LABEL = {"id": "a", "text": "A"}, {"id": "a", "target": "A"}, {"id": "a", "label": "x"}
CHINESE = {"id": "a", "target": "天气很好。"}
QUESTION = {"id": "a", "question": "?", "text": "Ann", "answers": []}
ANSWER = {"id": "a", "answer": "x"}
TRIVIA = [{**QUESTION, "id": name, "meta": {"triviaqa": {"question": "q", "answers": ["x"]}}} for name in "ab"]
NUMBER = {"id": "a", "question": "?", "text": "x", "answers": [{"text": 3, "start": 0}]}
IDS = "Scoring", "ids missing, segments that are not the text, unknown tokenizer", "one line, exit 2"
# Metric, references, hypotheses, more flags, and a part of the message.
SCORED: list[tuple[str, list[Any], list[Any], str, str]] = [
    ("rouge", [TARGET, {"id": "b", "target": "B"}], [SUMMARY], "", "h.jsonl lacks 1 of 2 ids, the first is 'b'"),
    ("rouge", [TARGET], [SUMMARY, {"id": "b", "text": "B"}], "", "r.jsonl lacks 1 of 2 ids, the first is 'b'"),
    ("rouge", [TARGET], [{"text": "A"}], "", "h.jsonl has no ids, and"),
    ("rouge", [TARGET], [SUMMARY, SUMMARY], "", "h.jsonl:2: the id 'a' for the second time"),
    ("rouge", [TARGET], [{"text": "y"}, SUMMARY], "", "h.jsonl:2: it has an id, and lines above have none"),
    ("rouge", [TARGET], [SUMMARY, {"text": "y"}], "", "h.jsonl:2: no 'id' among its keys ['text']"),
    ("rouge", [TARGET], [TARGET], "", "h.jsonl:1: no 'text' among its keys ['id', 'target']"),
    ("rouge", [TARGET], [{"id": "a", "text": [1]}], "", "h.jsonl:1: 'text' must be a string or a list of strings"),
    ("rouge", [CHINESE], [SUMMARY], "--like files2rouge", "reference 1 has no word for ROUGE"),
    ("rouge", [{"id": "a", "target": "?!"}], [SUMMARY], "", "reference 1 has no word for ROUGE"),
    ("rouge", [{"id": "a", "target": [["a"], ["b"]]}], [SUMMARY], "--like rouge-1.5.5", "takes one reference per"),
    ("bleu", [TARGET], [{**SUMMARY, "segments": ["c"]}], "", "the segments of document 'a', joined, are not its text"),
    ("bleu", [TARGET], [SUMMARY], "--tokenize 14a", "unknown tokenizer '14a'"),
    ("bleu", [TARGET], [SUMMARY], "--language klingonese", "unknown language 'klingonese': give a code of BCP 47"),
    ("bleu", [{"id": "a", "target": ["", ""]}], [SUMMARY], "", "r.jsonl: the reference of document 'a' is empty"),
    ("rouge", [{"target": "x"}, {"target": None}], [{"text": "x"}] * 2, "", "the reference of document 2 is empty"),
    ("classification", [LABEL], [{"id": "a", "labels": ["x", "y"]}], "", "document 'a': 2 labels in"),
    ("classification", [LABEL], [{**LABEL, "labels": ["x"]}], "", "h.jsonl:1: expected either 'label' or 'labels'"),
    ("classification", [LABEL], [{"id": "a", "label": True}], "", "a label must be a string, found"),
    ("classification", [LABEL], [{"id": "a", "labels": "x"}], "", "'labels' must be a list"),
    ("classification", [LABEL], [], "", "h.jsonl is empty"),
    ("squad", [QUESTION], [{**ANSWER, "no_answer_score": "1"}], "", "no_answer_score must be a number, not '1'"),
    ("squad", [QUESTION, {**QUESTION, "id": "b"}], [{**ANSWER, "no_answer_score": 1}, {**ANSWER, "id": "b"}], "",
     "1 of 2 lines have a no_answer_score"),
    ("squad", [QUESTION, QUESTION], [ANSWER], "", "r.jsonl:2: document id 'a' was used before, in record 1"),
    ("qa", [{"id": "a", "question": "?", "text": "x"}], [ANSWER], "", "has no answers or annotations"),
    ("triviaqa", [QUESTION], [ANSWER], "", "meta of TriviaQA: expected a JSON object, found None"),
    ("triviaqa", TRIVIA, [ANSWER, {**ANSWER, "id": "b"}], "", "several answers to a question, none with a"),
]  # fmt: skip
SCORES = [
    score("rouge", [TARGET], DEEP, "", "in/h.jsonl: ... nested too deeply",
          ("Scoring", "texts with deep JSON", IN_ONE_PLACE)),
    score("bleu", [TARGET], '{"id": "a", "text": NaN}', "", "in/h.jsonl: ... has the number NaN",
          ("Scoring", "texts with NaN", IN_ONE_PLACE)),
    score("squad", '{"a": "", "a": "1"}', [ANSWER], "", "in/r.jsonl: ... key 'a' occurs twice",
          ("Scoring", "an answer twice in a JSON object", IN_ONE_PLACE)),
    score("squad", [NUMBER], [ANSWER], "", "in/r.jsonl: ... text must be a string, not 3",
          ("Scoring", "answers that are numbers", IN_ONE_PLACE)),
    row("score rouge in/one.txt --references in/r.jsonl",
        {"one.txt": "only one line\n", "r.jsonl": '{"id": "a", "target": "A"}\n{"id": "b", "target": "B"}\n'},
        "one.txt has 1 documents, but",
        ("Scoring", "numbers of hypotheses and references differ", "both numbers and files, exit 2")),
    row("score rouge in/h.jsonl --references in", {"h.jsonl": '{"id": "a", "text": "A"}\n', "text/a": ""},
        "in is a folder, and `datasets` did not save it: name a file, such as in/text/test.jsonl"),
    row("score classification in --references in/r.jsonl", {"r.jsonl": '{"id": "a", "label": "A"}\n'},
        "in is a folder, and `datasets` did not save it: name a file"),
    row("score classification in/h.jsonl --references in/r.jsonl --out in/none/a.json",
        dict.fromkeys(("h.jsonl", "r.jsonl"), '{"id": "a", "label": "A"}\n'),
        "in/none: the directory of --out does not exist"),
    *(score(*words, IDS) for words in SCORED),
]  # fmt: skip


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
        elif isinstance(content, tuple):
            old, new = content
            assert old in (text := path.read_bytes().decode()), old
            path.write_bytes(text.replace(old, new).encode())
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("command", "files", "message", "base"),
    RECORDS + FILES + FOLDERS + OPTIONS + VOCABULARIES + RELEASES + PICTURES + XML + READERS + TRANSCRIPTS + SCORES,
)
def test_it_is_refused_in_one_line_and_nothing_is_written(
    command: str,
    files: dict[str, Content],
    message: str,
    base: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    vocabularies: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of a reader, which Python would write
    if base == "vocabulary":
        shutil.copytree(vocabularies / base, tmp_path / "in/bin")
    elif base:
        write_release(base, tmp_path / "in")
    write(tmp_path / "in", files)
    before = state(tmp_path)
    words = command.split()
    if words[0] == "preprocess" and "--out" not in words:
        words += ["--out", "out"]
    error = refusal(*words)
    assert error.count("\n") == 1, error
    assert all(part in error for part in message.split(" ... ")), error
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
