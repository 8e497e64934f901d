"""What all commands read: one set of documents in every form gives the same result."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import environment, hat, read_lines, refusal, write_lines
from fine_tuned import FineTuned

from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.options import Settings
from hat_fairseq.inference.reading import records_of
from hat_fairseq.weights.names import DEMO

DEMO_BIN = DEMO / "bin"

SHORT = ["--beam", 1, "--min-len", 1, "--max-len-b", 12, "--device", "cpu"]
TURNS = [("PM", "Good morning everybody."), ("UI", "So the remote has six buttons."), ("PM", "We start then.")]


@pytest.fixture
def rows() -> list[dict]:
    turns = [{"role": name, "text": text} for name, text in TURNS]
    return [{"id": name, "turns": turns[:number], "target": "They met ."} for number, name in enumerate("abc", start=1)]


def from_stdin(text: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
    return subprocess.run(command, input=text, capture_output=True, text=True, env=environment(), timeout=120)


def test_plain_text_is_a_transcript_for_models_of_turns_only(tmp_path: Path, capsys) -> None:
    """What a model of running text reads is the text, with its names, times and blank lines."""
    (path := tmp_path / "plan.txt").write_text(text := "Ida: 9:00. We met. \n\nBen: Yes.\nIda: Costs: 5 euros.")
    (subtitles := tmp_path / "plan.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nYes.\n")

    def read(path: Path, kind: str, **settings: object) -> Any:
        (record,) = records_of(path, None, kind_of(kind), settings=Settings(kind=kind, **settings))
        return record

    for kind in ("text", "classification", "mlm"):
        assert read(path, kind, splitter="punctuation").parts[-1] == text
    assert read(path, "classification", splitter="given").parts[-1] == text
    for more in ({"splitter": "given"}, {"splitter": "punctuation", "role_in_text": True}):
        record = read(path, "text", **more)
        assert record.roles == ("Ida", "Ben", "Ida")
        assert record.elements[1] == "Yes."
    assert "Yes." in read(subtitles, "text", splitter="punctuation").parts[-1]
    assert "3 turns of 2 speakers" in capsys.readouterr().err


@pytest.mark.parametrize("number", [1, 5000])
@pytest.mark.parametrize("is_json", [True, False])
def test_a_pipe_is_read_whole(is_json: bool, number: int) -> None:
    """It can be opened once only: `hat predict MODEL <(zcat a.jsonl.gz)`."""
    texts = [f"Number {n} of some texts that are not short." for n in range(number)]
    lines = [json.dumps({"id": text, "text": text}) if is_json else text for text in texts]
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "w") as file:
            file.writelines(f"{line}\n" for line in lines)

    writer = threading.Thread(target=write)
    writer.start()
    records = list(records_of(Path(f"/dev/fd/{reading}"), None, kind_of("classification")))
    os.close(reading)
    writer.join()
    assert [record.parts[0] for record in records] == (texts if is_json else ["\n".join(texts)])


@pytest.mark.slow
def test_every_form_of_input_gives_the_same_texts(rows: list[dict], tmp_path: Path, capfd) -> None:
    lines = write_lines(tmp_path / "raw/test.jsonl", rows)
    for split in ("train", "valid"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [rows[0]])
    (tmp_path / "array.json").write_text(json.dumps(rows, indent=1))
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", "--vocabulary", DEMO_BIN) == 0
    capfd.readouterr()

    def texts(source: object, *flags: object) -> list[dict]:
        assert hat("generate", "demo", source, *SHORT, "--out", "-", *flags) == 0
        return [json.loads(line) for line in capfd.readouterr().out.splitlines()]

    expected = texts(lines)
    assert [line["id"] for line in expected] == ["a", "b", "c"]
    for source, flags in (
        (tmp_path / "array.json", []),
        (tmp_path / "raw", ["--split", "test"]),
        (tmp_path / "raw", []),
        (tmp_path / "data", ["--split", "test"]),
        (tmp_path / "data/bin", []),
    ):
        assert texts(source, *flags) == expected, source
    done = from_stdin(lines.read_text(), "generate", "demo", "-", *SHORT, "--out", "-")
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    (tmp_path / "meeting.txt").write_text("".join(f"{name}: {text}\n" for name, text in TURNS))
    (text,) = texts(tmp_path / "meeting.txt")
    assert text == {**expected[2], "id": "meeting.txt"}
    done = from_stdin((tmp_path / "meeting.txt").read_text(), "generate", "demo", "-", *SHORT, "--out", "-")
    assert json.loads(done.stdout) == {**expected[2], "id": "standard input"}
    assert "plain text, 3 turns of 2 speakers" in done.stderr
    assert "--split test has no effect" in refusal("generate", "demo", lines, "--split", "test", "--out", "-")


@pytest.mark.slow
def test_scores_of_every_form_of_input_are_the_same(rows: list[dict], tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", "--vocabulary", DEMO_BIN) == 0
    scores = []
    for source in ("raw/test.jsonl", "raw", "data"):
        out = tmp_path / f"{len(scores)}.jsonl"
        words = ["generate", "demo", tmp_path / source, *SHORT, "--out", out]
        assert hat(*words) == 0
        gold = tmp_path / {"raw": "raw/test.jsonl", "data": "data/text/test.jsonl"}.get(source, source)
        score = ["--references", gold, "--bootstrap-samples", 0, "--out", out.with_suffix(".score.json")]
        assert hat("score", "rouge", out, *score) == 0
        record = json.loads(out.with_suffix(".score.json").read_text())
        scores.append(record.pop("systems", record)[str(out)])
    assert scores[0] == scores[1] == scores[2]
    assert "rouge1" in json.dumps(scores[0])


def test_a_plain_text_for_a_classifier(fine_tuned, tmp_path: Path) -> None:
    made: FineTuned = fine_tuned("classification")
    (tmp_path / "note.txt").write_text("So we start the meeting. It has six buttons.\n")
    words = ["predict", made.checkpoint, "--data", made.data / "bin", "--device", "cpu", "--splitter", "punctuation"]
    assert hat(*words, tmp_path / "note.txt", "--out", tmp_path / "a.jsonl") == 0
    write_lines(tmp_path / "note.jsonl", [{"id": "note.txt", "text": "So we start the meeting. It has six buttons."}])
    assert hat(*words, tmp_path / "note.jsonl", "--out", tmp_path / "b.jsonl") == 0
    assert read_lines(tmp_path / "a.jsonl") == read_lines(tmp_path / "b.jsonl")


@pytest.mark.parametrize(
    ("content", "message"), [(b"\x1f\x8b\x08\x00", "null bytes"), (b"PAR1\x00", "null bytes"), (b"", "is empty")]
)
def test_what_only_a_file_can_be(content: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    assert message in refusal("generate", "demo", "-", *SHORT, "--out", "-")
