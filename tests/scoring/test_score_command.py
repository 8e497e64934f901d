"""`hat score`: options of all metrics, files joined by id or by line, intervals, and what is refused."""

import contextlib
import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import hat, refusal

from hat_fairseq.cli import build_parser
from hat_fairseq.scoring import command
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts, write_summaries
from hat_fairseq.scoring.report import bootstrap_mean


def write(path: Path, *rows: Any) -> str:
    """Objects as JSON lines, strings as lines."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    references = {"x": ["The dogs ran.", "They slept."], "y": ["Blue buttons."]}
    write(tmp_path / "r.jsonl", *({"id": name, "text": "source", "target": each} for name, each in references.items()))
    write(tmp_path / "a.txt", "The dog ran. They slept.", "")
    write(tmp_path / "b.txt", "The dogs ran. They slept.", "Größe")
    return tmp_path


def words(metric: str, hypotheses: Any, references: Any, *more: Any) -> list[Any]:
    return ["score", metric, hypotheses, "--references", references, *more]


def test_intervals_agree_with_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(30, 8, 2000)
    interval = bootstrap_mean(values, samples=1000, seed=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert [interval.low, interval.high] == pytest.approx([values.mean() - half, values.mean() + half], abs=0.1 * half)
    assert interval == bootstrap_mean(values, 1000, seed=0) != bootstrap_mean(values, 1000, seed=1)
    assert str(bootstrap_mean(np.full(7, 12.5), 50, seed=0)) == "12.50 [12.50, 12.50]"
    assert str(bootstrap_mean(np.full(1, 12.5), 50, seed=0)) == "12.50"  # one document says nothing of others


@pytest.mark.parametrize("metric", ["rouge", "bleu"])
def test_several_references_in_files_and_in_lists_give_the_same_figures(metric: str, files: Path, capsys) -> None:
    second = write(files / "s.jsonl", {"id": "y", "target": "z"}, {"id": "x", "target": [["One dog."], ["One cat."]]})
    lists = [[["The dogs ran.", "They slept."], ["One dog."], ["One cat."]], [["Blue buttons."], ["z"]]]
    every = write(files / "all.jsonl", *({"id": name, "target": each} for name, each in zip("xy", lists, strict=True)))
    first, outputs = str(files / "r.jsonl"), []
    for references in ([first, "--references", second], [every], [first]):
        assert hat(*words(metric, files / "b.txt", *references, "--bootstrap-samples", 20)) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]
    hypotheses = write(files / "h.jsonl", {"id": "x", "text": lists[0]})
    assert "only references may be several" in refusal(*words(metric, hypotheses, first))


@pytest.mark.fault("Scoring", "`--out` is an input, or exists", "refused, exit 2, the file stays")
def test_out_replaces_scores_and_nothing_else(files: Path) -> None:
    before, command = (files / "r.jsonl").read_text(), words("rouge", files / "a.txt", files / "r.jsonl", "--out")
    assert "r.jsonl exists and has no scores of hat score" in refusal(*command, files / "r.jsonl")
    (files / "model.pt").write_text("weights")
    for name, content in (("model.pt", "weights"), ("mine.json", '{"a": {"b": 1}}'), ("empty.json", "{}")):
        (files / name).write_text(content)
        assert f"{name} exists and has no scores of hat score; name another file" in refusal(*command, files / name)
        assert (files / name).read_text() == content
    assert (files / "r.jsonl").read_text() == before
    assert (files / "model.pt").read_text() == "weights"
    with open("/dev/full", "w", encoding="utf-8") as full, contextlib.redirect_stdout(full):  # nobody reads the table
        hat(*command, files / "s.json")
    assert "rouge1" in (written := (files / "s.json").read_text())
    assert hat(*command, files / "s.json", "--bootstrap-samples", 0) == 0
    assert "rouge1" in (files / "s.json").read_text() != written


MISTAKES = [
    ("rouge --like rouge-1.5.5 --bootstrap-samples 0", "the perl backend "),  # lacks perl, or resamples
    ("bleu --tokenize nosuch", "unknown tokenizer 'nosuch'"),
    ("bleu --language nosuch-language", "nosuch-language"),
    ("squad --no-answer-threshold nan", "--no-answer-threshold must be a number"),
    ("evidence --like files2rouge", "--like has no effect on evidence: remove it"),
    ("rouge --no-answer-threshold 1", "--no-answer-threshold has no effect on rouge: remove it"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[call for call, _ in MISTAKES])
def test_mistakes_are_known_before_there_is_anything_to_score(call: str, message: str) -> None:
    metric, *flags = call.split()
    parser = build_parser("score", [metric])
    with pytest.raises(ValueError, match=re.escape(message)):
        command.check_words(parser, ["score", metric, "nosuch.jsonl", "--references", "r.jsonl", *flags])


@pytest.mark.parametrize("where", ["before", "after"])
def test_hypotheses_before_and_after_options(where: str, files: Path, capsys) -> None:
    rest = ["--references", files / "r.jsonl", "--bootstrap-samples", 0]
    texts = [files / "a.txt", files / "b.txt"]
    words = {"before": [*texts, *rest, "--out", "-"], "after": ["--out", "-", *texts, *rest]}
    assert hat("score", "rouge", *words[where]) == 0
    assert [*json.loads(capsys.readouterr().out)] == [*map(str, texts)]


def test_nothing_to_score(capsys) -> None:
    with pytest.raises(SystemExit):
        hat("score", "rouge", "--references", "r")
    assert "the following arguments are required: HYPOTHESES" in capsys.readouterr().err


@pytest.mark.fault("Scoring", "a file twice", "names the option, exit 2")
@pytest.mark.fault("Scoring", "a negative number of resamples", "exit 2")
@pytest.mark.parametrize(("metric", "described"), command.METRICS.items())
def test_what_every_metric_refuses(metric: str, described: Any) -> None:
    cases = [
        (["r"], "--references names a file twice"),
        (["--bootstrap-samples", "-1"], "--bootstrap-samples must not be negative: -1"),
    ]
    if described.references != command.TARGETS:
        cases.append((["--references", "b"], f"{metric} takes one file of --references, not 2"))
    for more, message in cases:
        assert refusal(*words(metric, "h", "r", *more)) == f"hat: error: {message}\n"
    assert refusal("score", metric, "h", "h", "--references", "r") == "hat: error: HYPOTHESES names a file twice\n"


def test_plain_text_breaks_only_at_line_feeds(tmp_path: Path) -> None:
    path = tmp_path / "h.txt"
    path.write_bytes("one\u2028still one\x85 and\rone\n\nthree".encode())
    assert read_texts(path, HYPOTHESIS_KEYS).texts == [["one\u2028still one\x85 and\rone"], [""], ["three"]]


def test_rows_below_a_blank_one_are_not_paired_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    for content, texts in (('text\na\n""\nb\n\n', ["a", "", "b"]), ("id,text\n1,a\n\n2,b\n", ["a", "b"])):
        path.write_text(content)
        assert read_texts(path, HYPOTHESIS_KEYS).texts == [[text] for text in texts]
    path.write_text("text\na\n\nb\n")
    with pytest.raises(ValueError, match="h.csv:4: a row above is blank: give the rows ids, or write an empty text as"):
        read_texts(path, HYPOTHESIS_KEYS)


def test_what_is_written_is_read_and_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    rows = [{"id": "ä", "text": "line\nbreak, \u2028 and 漢字"}, {"id": "b", "text": ["a", "b"]}]
    write_summaries(path := tmp_path / "new" / "h.jsonl", rows)
    (tmp_path / "h.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    for each in (path, tmp_path / "h.jsonl.gz"):
        read = read_texts(each, HYPOTHESIS_KEYS)
        assert (read.ids, read.texts) == (["ä", "b"], [[rows[0]["text"]], [["a", "b"]]])
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_summaries(path, ({"id": 1 // n} for n in (1, 0)))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("metric", ["rouge", "bleu", "classification"])
@pytest.mark.parametrize("side", [0, 1])
def test_pointers_of_git_lfs_are_not_scored(metric: str, side: int, tmp_path: Path) -> None:
    pointer, files = tmp_path / "p.jsonl", [tmp_path / "h.jsonl", tmp_path / "r.jsonl"]
    write(pointer, "version https://git-lfs.github.com/spec/v1", "oid sha256:4d7a2146", "size 12345")
    row = {"id": "x", "text": "a", "target": "a", "label": "a"}
    for path in files:
        write(path, row)
    files[side] = pointer
    assert "Git LFS" in refusal(*words(metric, *files))


def test_labels_cannot_command_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        tmp_path / "l.jsonl", *({"id": str(n), "label": each} for n, each in enumerate(("\x1b[31mred", "a\nb")))
    )
    assert hat(*words("classification", path, path)) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\n'\\x1b[31mred' " in printed
    assert "\n'a\\nb' " in printed


PIPED = {
    "rouge": ({"text": "a b c d"}, {"target": "a b c e"}),
    "bleu": ({"text": "a b c d"}, {"target": "a b c e"}),
    "classification": ({"label": "x"}, {"label": "y"}),
    "qa": (
        {"answer": "cat"},
        {"question": "Who?", "text": "The cat sat.", "answers": [{"text": "The cat", "start": 0}]},
    ),
    "squad": (
        {"answer": "cat"},
        {"question": "Who?", "text": "The cat sat.", "answers": [{"text": "The cat", "start": 0}]},
    ),
}


@contextlib.contextmanager
def piped(text: str) -> Iterator[str]:
    """The path of a pipe that has a text, as `<(...)` of a shell."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        file.write(text)
    yield f"/dev/fd/{reading}"
    os.close(reading)


@pytest.mark.fault("Scoring", "references from a pipe, such as `<(zcat a.jsonl.gz)`", "read once; `--baselines` exit 2")
@pytest.mark.parametrize("metric", PIPED)
def test_references_may_come_from_a_pipe(metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hypotheses, references = (json.dumps({"id": "1", **each}) for each in PIPED[metric])
    paths = write(tmp_path / "h.jsonl", hypotheses), write(tmp_path / "r.jsonl", references)
    assert hat(*words(metric, *paths, "--out", "-")) == 0
    expected = capsys.readouterr().out
    with piped(f"{references}\n") as pipe:
        assert hat(*words(metric, paths[0], pipe, "--out", "-")) == 0
    assert capsys.readouterr().out == expected


def test_baselines_read_references_more_than_once(tmp_path: Path) -> None:
    path = write(tmp_path / "h.jsonl", {"id": "1", "label": "x"})
    with piped('{"id": "1", "text": "a", "label": "x"}\n') as pipe:
        message = refusal(*words("classification", path, pipe, "--baselines", path))
    assert f"--baselines read {pipe} more than once: name a file, not a pipe" in message
