"""Transcripts in every format: who says what, when; what is left out is counted; damage has a place."""

import gzip
import io
import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from golden_lines import cases, check, read

from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.data.speakers import Said, seconds
from hat_fairseq.data.transcripts import Transcript, listed, of_record, of_text, read_transcript


def transcript_of(case: dict[str, Any], folder: Path) -> Transcript:
    if "file" not in case:
        return of_text(case["in"], "m", running=case.get("running", False))
    (folder / case["file"]).write_bytes(case["in"].encode())
    return read_transcript(folder / case["file"], *filter(None, [case.get("id")]))


def shown(each: Said) -> list[Any]:
    """Speaker and text, and times where there are any."""
    times = [each.start] * (each.start is not None or each.end is not None) + [each.end] * (each.end is not None)
    return [each.speaker, each.text, *times]


def outcome(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    try:
        transcript = transcript_of(case, folder)
    except ValueError as error:
        return {"error": str(error).replace(f"{folder}/", "")}
    said = list(map(shown, transcript.said))
    others = {"said": said, "text": transcript.text, "unit": transcript.unit, "printed": transcript.describe()}
    return {key: value for key, value in others.items() if value}


@cases("transcripts")
def test_what_is_read(case: dict[str, Any], tmp_path: Path) -> None:
    check("transcripts", case, outcome(case, tmp_path))


def test_formats_compression_and_the_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (vtt,) = [case["in"] for case in read("transcripts") if case["why"] == "webvtt"]
    with gzip.open(tmp_path / "t.vtt.gz", "wt", encoding="utf-8") as file:
        file.write(vtt)
    assert read_transcript(tmp_path / "t.vtt.gz").speakers == ["Ann & Co", "Bob"]
    transcript = of_text(vtt, "m")
    assert transcript.format == "WebVTT"
    assert "styles (1)" in listed(transcript.counts)
    for content in (vtt, "Ann & Co: Hi.\nBob: Ho.\nAnn & Co: Yes.\n", '[{"speaker": "Ann & Co", "text": "a"}, '
                    '{"role": "Bob", "text": "b"}]'):  # fmt: skip
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content.encode()))))
        transcript = read_transcript(Path("-"))
        assert transcript.speakers == ["Ann & Co", "Bob"]
        assert transcript.name == "standard input"
    with pytest.raises(ValueError, match="is a folder; name a file"):
        read_transcript(tmp_path)


def test_clocks() -> None:
    assert [seconds(text) for text in ("1:02:03.5", "02:03,25", "0:00")] == [3723.5, 123.25, 0]


SPACES, MANY = " " * 200_000, 60_000


@pytest.mark.parametrize("head", ["", "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"])
@pytest.mark.parametrize(
    "line",
    [
        "00:00:01,000 --> 00:00:02,000 " + "ab:" * MANY + " !", "Budget" + SPACES + "1 euros", "<v" + SPACES,
        "<v " * MANY, "Ann:" + SPACES + "Hi.", "[0:01" + SPACES, "Ann" + SPACES + "0:01", "{\\" * MANY,
        "a" * 200_000 + ":", "&#" + "1" * 200_000 + ";", "1:" * 100_000, "<b" + SPACES,
    ],
)  # fmt: skip
def test_long_lines_take_no_time(line: str, head: str) -> None:
    start = process_time()
    of_text(f"{head}{line}\nHello.\n{line}\nYes.", "m")
    assert process_time() - start < 4


def test_many_names_and_cues_take_no_time() -> None:
    start = process_time()
    of_text("\n".join(f"Name{number}: Hi." for number in range(30_000)), "m")
    of_text("".join("00:01 --> 00:02\nHi.\n" for _ in range(20_000)), "m")
    assert process_time() - start < 6


@pytest.mark.parametrize("turns", [
    [{"speaker": "Ann", "text": "Hi."}, {"role": "PM", "speaker": "B", "text": "Ho."}],
    [{"speaker": "\u200b", "text": "Hi."}, {"text": "Ho."}], ["Hi.", "Ho."], "Hi. Ho.",
])  # fmt: skip
def test_a_record_is_a_transcript_as_its_file_is(turns: Any, tmp_path: Path) -> None:
    """`hat ask` on a split of a folder has records, not files."""
    key = "text" if isinstance(turns, str) else "sentences" if isinstance(turns[0], str) else "turns"
    document = {"id": "d", "questions": ["Who?"], key: turns}
    (tmp_path / "d.jsonl").write_text(json.dumps(document) + "\n")
    read, transcript = read_transcript(tmp_path / "d.jsonl"), of_record(record_from_json(document, "here", "evidence"))
    assert (transcript.said, transcript.text, transcript.unit) == (read.said, read.text, read.unit)
    assert read.describe() == f"{transcript.describe()}; skipped or joined: key 'questions' (1)"
