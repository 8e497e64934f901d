"""`hat ask`: transcripts of every format, questions, output, refusals; with a tiny model of meetings."""

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import hat, read_lines, refusal, write_lines
from evidence_model import QUESTIONS, EvidenceModel
from fine_tuned import FineTuned

import hat_fairseq
from hat_fairseq.data.kinds.evidence import Evidence
from hat_fairseq.data.record import Turn

TURNS = [
    ("Ann Lee", "Good morning."),
    ("Bob", "Hi. What is the price?"),
    ("Ann Lee", "It is 25 euros."),
    ("Bob", "Fine."),
]
BAD = "</script><img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture
def model(evidence_model: EvidenceModel) -> EvidenceModel:
    return evidence_model


def ask(model: EvidenceModel, transcript: object, *words: object) -> int:
    return hat("ask", model.checkpoint, transcript, *words, "--data", model.data, "--device", "cpu")


def ask_json(model: EvidenceModel, transcript: object, capsys: Any, *words: object) -> list[dict[str, Any]]:
    assert ask(model, transcript, *words, "--json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def seconds(number: int) -> str:
    return f"00:00:{number:02}.000"


def write_formats(folder: Path) -> dict[str, Path]:
    """The same turns in every format."""
    turns = [{"speaker": speaker, "text": text} for speaker, text in TURNS]
    cues = [f"{seconds(10 * n)} --> {seconds(10 * n + 5)}\n" for n in range(len(TURNS))]
    contents = {
        "m.txt": "".join(f"{speaker}: {text}\n" for speaker, text in TURNS),
        "turns.jsonl": "".join(json.dumps(turn) + "\n" for turn in turns),
        "record.json": json.dumps({"id": "m", "turns": turns}, indent=1),
        "list.json": json.dumps(turns),
        "m.srt": "".join(f"{n}\n{cue}{s}: {t}\n\n" for n, (cue, (s, t)) in enumerate(zip(cues, TURNS, strict=True), 1)),
        "m.vtt": "WEBVTT\n\n" + "".join(f"{cue}<v {s}>{t}</v>\n\n" for cue, (s, t) in zip(cues, TURNS, strict=True)),
    }
    contents["no_ending"] = contents["m.vtt"]
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return {name: folder / name for name in contents}


@pytest.mark.slow
def test_every_format_gives_the_same_passages(
    model: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    raw, results = "\n".join(text for _, text in TURNS), {}
    for name, path in write_formats(tmp_path).items():
        results[name] = ask_json(model, path, capsys, *QUESTIONS, "--threshold", 0.0, "--passages", 9)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes()))))
        piped = ask_json(model, "-", capsys, *QUESTIONS, "--threshold", 0.0, "--passages", 9)
        assert [line | {"id": ""} for line in piped] == [line | {"id": ""} for line in results[name]]
    for name, lines in results.items():
        assert [line["question"] for line in lines] == QUESTIONS
        (passage,), more = lines[0]["passages"], {"peak", "time"} & lines[0]["passages"][0].keys()
        assert raw[passage["begin"] : passage["end"]] == passage["text"] == raw
        assert (passage["first"], passage["last"], passage["rank"]) == (0, 3, 1)
        assert passage["roles"] == ["Ann Lee", "Bob"] and 0 <= passage["peak"] <= 3
        with_times = name in ("m.srt", "m.vtt", "no_ending")
        assert ("time" in more) == with_times and passage.get("time", [0, 35]) == [0, 35]
        assert {key: value for key, value in passage.items() if key != "time"} == results["m.txt"][0]["passages"][0]


def test_offsets_of_passages_and_of_running_text(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    meeting = next(iter(read_lines(model.data.parents[1] / "raw/test.jsonl")))
    texts = [f" {turn['text']}\t\u00a0x\x00" if n % 3 else turn["text"] for n, turn in enumerate(meeting["turns"])]
    texts[4] = "\u200b"
    turns = [{"speaker": turn["role"], "text": text} for turn, text in zip(meeting["turns"], texts, strict=True)]
    prose = "It was  late.\n\u200b\nWe left! Was it\tcold? It was.\n\nNobody knew."
    for name, record, raw in (("turns", {"turns": turns}, "\n".join(texts)), ("prose", {"text": prose}, prose)):
        path = write_lines(tmp_path / f"{name}.jsonl", [record])
        values = hat_fairseq.load(model.checkpoint, model.data, "cpu").ask(path, QUESTIONS[0]).questions[0]
        known = sorted(value for value in values["probabilities"] if value is not None)
        threshold = known[len(known) // 2]
        (line,) = ask_json(model, path, capsys, QUESTIONS[0], "--threshold", threshold, "--passages", 99)
        assert len(line["passages"]) > 1 or name == "prose"
        ranked = [passage["probability"] for passage in line["passages"]]
        assert ranked == sorted(ranked, reverse=True) and min(ranked) >= round(threshold, 4) - 1e-4
        for rank, passage in enumerate(line["passages"], start=1):
            assert raw[passage["begin"] : passage["end"]] == passage["text"] != "" and passage["rank"] == rank
            assert passage["probability"] == values["probabilities"][passage["peak"]]
            if name == "turns":
                first, last = passage["first"], passage["last"]
                assert passage["text"] in "\n".join(texts[first : last + 1])
                assert passage["roles"] == list(dict.fromkeys(turn["speaker"] for turn in turns[first : last + 1]))
    assert values["probabilities"] and len(values["probabilities"]) == 5, "sentences of running text"


@pytest.mark.slow
def test_python_says_what_the_command_says(model: EvidenceModel, tmp_path: Path, capsys: Any, caplog: Any) -> None:
    loaded, path = hat_fairseq.load(model.checkpoint, model.data, "cpu"), write_formats(tmp_path)["m.txt"]
    lines = ask_json(model, path, capsys, *QUESTIONS)
    turns = [{"speaker": speaker, "text": text} for speaker, text in TURNS]
    record = Evidence("m", questions=("old?",), turns=tuple(Turn(text, speaker=who) for who, text in TURNS))
    for document in (path, turns, {"turns": turns}, record):
        prediction = loaded.ask(document, QUESTIONS)
        assert [each["question"] for each in prediction.questions] == QUESTIONS
        for line, question in zip(lines, prediction.questions, strict=True):
            assert line["passages_in_all"] == len(question["passages"])
            assert line["passages"] == question["passages"][:3]
    (predicted,) = loaded.predict([{"questions": QUESTIONS, "turns": turns}])
    for question, asked in zip(predicted.questions, prediction.questions, strict=True):
        assert question["probabilities"] == asked["probabilities"]
        for passage, more in zip(question["passages"], asked["passages"], strict=True):
            assert passage == {key: value for key, value in more.items() if key not in ("peak", "rank")}
    times = write_formats(tmp_path)["m.vtt"]
    assert loaded.ask(times, QUESTIONS, threshold=0).questions[0]["passages"][0]["time"] == [0, 35]
    (line,) = ask_json(model, times, capsys, QUESTIONS[0], "--threshold", 1)
    (question,) = loaded.ask(times, QUESTIONS[0], threshold=1).questions
    assert question["best"] == line["best"] and not question["passages"] and "rank" not in line["best"]
    assert len(loaded.ask("One. Two! Three?", "what?").questions[0]["probabilities"]) == 3
    assert len(loaded.ask(["One.", "Two!"], "what?", threshold=1).questions[0]["probabilities"]) == 2
    assert len(loaded.ask(turns, "what?", threshold=0, most_passages=1).questions[0]["passages"]) == 1
    labelled: Any = {"sentences": ["One.", "Two!"], "questions": ["other?"], "evidence": [[1]]}
    assert loaded.ask(labelled, "what?").questions == loaded.ask(labelled["sentences"], "what?").questions
    assert "left out of the document: evidence, questions" in caplog.text
    for document, questions, message in (
        ("One.", [], "no question"),
        ("One.", " \u200b", "question 1 is empty"),
        ("", "what?", "has no text|empty"),
        ([], "what?", "no text|empty"),
        ({"text": "a", "turns": []}, "what?", "exactly one of"),
        (tmp_path, "what?", "is a folder"),
        (str(times), "what?", "the document '.*m.vtt' is the name of a file: give Path"),
        ("WEBVTT\n\nNOTE nobody speaks\n", "what?", "the document has no text .left out: notes .1."),
    ):
        with pytest.raises(ValueError, match=message):
            loaded.ask(document, questions)


def test_an_error_of_the_scores_names_the_file_of_the_user(model: EvidenceModel, tmp_path: Path) -> None:
    row = {"id": "a", "questions": ["what?"], "sentences": ["One.", "Two."], "evidence": [[]]}
    words = ["predict", model.checkpoint, write_lines(tmp_path / "mine.jsonl", [row]), "--data", model.data]
    error = refusal(*words, "--out", tmp_path / "out.jsonl", "--device", "cpu", "--score", "evidence")
    assert f"{tmp_path}/mine.jsonl: no question has evidence" in error


def test_a_string_is_read_by_its_content(model: EvidenceModel, tmp_path: Path, caplog: Any) -> None:
    """As a file with the same content, and a warning says so; texts without times and names are running text."""
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    for name in ("m.vtt", "m.srt", "m.txt"):
        path = write_formats(tmp_path)[name]
        caplog.clear()
        asked = loaded.ask(path.read_text(encoding="utf-8"), QUESTIONS, threshold=0)
        assert asked.questions == loaded.ask(path, QUESTIONS, threshold=0).questions
        assert asked.questions[0]["passages"][0]["roles"] == ["Ann Lee", "Bob"]
        assert any(
            "the document is read as" in each.message and "4 turns of 2" in each.message for each in caplog.records
        )
        with pytest.raises(ValueError, match='splitter="punctuation" has no effect: all texts are divided'):
            loaded.ask(path.read_text(encoding="utf-8"), QUESTIONS, splitter="punctuation")
    for text, sentences in (("Note: it was late. We left.", 2), ("It was late.\nWe left.\nAt 10:30 -> noon. Bye.", 4)):
        assert len(loaded.ask(text, QUESTIONS[0]).questions[0]["probabilities"]) == sentences


def test_a_document_of_a_path_is_chosen_by_its_id(model: EvidenceModel, tmp_path: Path) -> None:
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    turns = [{"speaker": name, "text": text} for name, text in TURNS]
    path = write_lines(tmp_path / "two.jsonl", [{"id": "a", "turns": turns}, {"id": "b", "sentences": ["One."]}])
    assert len(loaded.ask(path, QUESTIONS[0], id="b").questions[0]["probabilities"]) == 1
    with pytest.raises(ValueError, match="choose one of a, b with id, or ask all with predict"):
        loaded.ask(path, QUESTIONS[0])
    with pytest.raises(ValueError, match="id has no effect without the path"):
        loaded.ask("One.", QUESTIONS[0], id="b")


def test_what_is_printed(model: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    path = tmp_path / "m.vtt"
    lines = [f"{seconds(n)} --> {seconds(n + 1)}\n<v Ann>Sentence {n} of the meeting, {BAD}.\n\n" for n in range(30)]
    path.write_text("WEBVTT\n\nNOTE by hand\n\n" + "".join(lines), encoding="utf-8")
    assert ask(model, path, QUESTIONS[0], "--threshold", 0) == 0
    printed = capsys.readouterr()
    assert "m.vtt: WebVTT, 30 turns of 1 speaker, up to 0:00:30; left out or joined: notes (1)" in printed.err
    shown = printed.out.splitlines()
    assert shown[1] == QUESTIONS[0] and shown[2].endswith("turns 1-30  0:00:00  Ann") and "  1  " in shown[2]
    assert max(map(len, shown)) <= 50 and "\x1b" not in printed.out and "onerror" in printed.out
    peak = ask_json(model, path, capsys, QUESTIONS[0], "--threshold", 0)[0]["passages"][0]["peak"]
    (marked,) = [line for line in shown if line.startswith("  >  ")]
    assert marked.startswith(f"  >  Ann: Sentence {peak} of the meeting,")
    assert "It does not say that the transcript has an answer" in " ".join(map(str.strip, shown[-5:]))
    assert len(shown) <= 3 + 14 + 5 and any("turns before]" in line or "more lines: --json" in line for line in shown)
    assert ask(model, path, QUESTIONS[0], "--threshold", 1) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2] == "  No turn reaches the threshold, 1. The best one:" and shown[3].startswith("  -  ")
    (line,) = ask_json(model, path, capsys, QUESTIONS[0], "--threshold", 1)
    assert line["passages"] == [] and line["best"]["text"].startswith("Sentence") and line["threshold"] == 1
    assert line["best"]["first"] == line["best"]["last"] == line["best"]["peak"]
    assert shown[3].split("  ")[3].endswith(str(line["best"]["first"] + 1))


def test_files(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    path, out, page = write_formats(tmp_path)["m.txt"], tmp_path / "out.jsonl", tmp_path / "page.html"
    lines = ask_json(model, path, capsys, *QUESTIONS, "--out", out, "--page", page)
    assert read_lines(out) == lines and ask(model, path, *QUESTIONS, "--out", "-") == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines
    data = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    assert [each["question"] for each in json.loads(data)["questions"]] == QUESTIONS
    assert json.loads(data)["texts"] == [text for _, text in TURNS] and json.loads(data)["starts"] == []
    assert ask(model, path, *QUESTIONS, "--page", page, "--overwrite") == 0
    files = {"--out": out, "--page": page}
    for flag, file in files.items():
        assert f"{flag} {file} exists" in refusal(*words(model, path, QUESTIONS[0], flag, file))
    for flags, message in (
        (["--page", path, "--overwrite"], "is also an input of this command"),
        (["--out", tmp_path / "x.json"], "must end in .jsonl"),
        (["--out", tmp_path / "no/x.jsonl"], "no"),
        (["--page", "-"], "--page -: `hat ask` does not write this to the standard output"),
    ):
        assert message in refusal(*words(model, path, QUESTIONS[0], *flags))
    copy = shutil.copy(model.checkpoint, tmp_path / "copy.pt")
    flags = ["--page", copy, "--overwrite"]
    asked = ["ask", f"{model.checkpoint}:{copy}", path, QUESTIONS[0], "--data", model.data, *flags]
    assert "is also an input of this command" in refusal(*asked)


def test_files_are_written_where_nobody_reads_what_is_printed(model: EvidenceModel, tmp_path: Path) -> None:
    path, out, page = write_formats(tmp_path)["m.txt"], tmp_path / "out.jsonl", tmp_path / "page.html"
    flags = ["--out", out, "--page", page, "--device", "cpu"]
    with open("/dev/full", "w", encoding="utf-8") as full, contextlib.redirect_stdout(full):
        hat(*words(model, path, QUESTIONS[0], *flags))
    assert len(read_lines(out)) == 1 and "</html>" in page.read_text()


def test_a_folder_of_hat_preprocess_has_the_dictionaries(model: EvidenceModel, capsys: Any) -> None:
    identifier = read_lines(model.data.parent / "text/valid.jsonl")[0]["id"]
    words = ["ask", model.checkpoint, model.data.parent, QUESTIONS[0], "--split", "valid", "--id", identifier, "--json"]
    assert hat(*words) == 0
    line = json.loads(capsys.readouterr().out)
    assert hat(*words, "--data", model.data) == 0 and json.loads(capsys.readouterr().out) == line


def words(model: EvidenceModel, transcript: object, *more: object) -> list[object]:
    return ["ask", model.checkpoint, transcript, *more, "--data", model.data]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "m.txt': write it in quotation marks"),
        (["what?", "--pgae", "x"], "unrecognized arguments: --pgae; did you mean --page instead of --pgae?"),
        (["  "], "question 1 is empty"),
        (["what?", "\u200b"], "question 2 is empty"),
        (["what?", "--passages", 0], "--passages must be at least 1, not 0"),
        (["what?", "--threshold", 1.5], "--threshold must be from 0 to 1, not 1.5"),
        (["what?", "--splitter", "punctuation"], "--splitter punctuation has no effect"),
        (["what?", "--id", "x"], "--id x has no effect"),
        (["what?", "--device", "abacus"], "abacus"),
    ],
)
def test_mistakes(more: list[object], message: str, model: EvidenceModel, tmp_path: Path) -> None:
    error = refusal(*words(model, write_formats(tmp_path)["m.txt"], *more))
    assert message in error.splitlines()[-1]


def test_a_question_without_quotation_marks(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    path, warning = write_formats(tmp_path)["m.txt"], "warning: 3 questions of one word each: a question of several"
    for questions, warned in (
        (["Who", "was", "late?"], True),
        (["Who was late?", "Why?", "Where?"], False),
        (["谁迟到了？", "为什么？", "在哪里？"], False),
    ):
        assert ask(model, path, *questions) == 0
        assert (warning in capsys.readouterr().err) == warned


@pytest.mark.slow
def test_other_mistakes(model: EvidenceModel, tmp_path: Path, fine_tuned: Any, monkeypatch: Any) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    path = write_formats(tmp_path)["m.txt"]
    assert "empty.txt has no text: nothing to ask about" in refusal(*words(model, tmp_path / "empty.txt", "what?"))
    assert f"{tmp_path / 'none.txt'}: No such file" in refusal(*words(model, tmp_path / "none.txt", "what?"))
    assert "checkpoint none.pt does not exist" in refusal("ask", "none.pt", path, "what?", "--data", model.data)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b""))))
    assert "standard input has no text" in refusal(*words(model, "-", "what?"))
    other: FineTuned = fine_tuned("segments")
    message = "was trained on the kind 'segments': questions need a model of the kind 'evidence'"
    assert message in refusal(*words(EvidenceModel(other.checkpoint, other.data / "bin"), path, "what?"))
    with pytest.raises(ValueError, match=message):
        hat_fairseq.load(other.checkpoint, other.data / "bin", "cpu").ask(path, "what?")
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    for arguments, expected in (
        ({"questions": 3}, "^question 1 must be a string"),
        ({"questions": ["Why?", None]}, "^question 2 must be a string"),
        ({"questions": "Why?", "threshold": "0.5"}, "^threshold must be a number, not '0.5'"),
        ({"questions": "Why?", "threshold": float("nan")}, "^threshold must be a number, not nan"),
        ({"questions": "Why?", "most_passages": 1.5}, "^most_passages must be a whole number, not 1.5"),
    ):
        with pytest.raises(ValueError, match=expected):
            loaded.ask(path, **arguments)


def test_turns_of_nobody_are_read_without_a_name(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.vtt"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi.\n\n00:02.000 --> 00:03.000\n[music]\n")
    (line,) = ask_json(model, path, capsys, "what?", "--threshold", 0)
    assert line["passages"][0]["roles"] == ["Ann"] and line["passages"][0]["text"] == "Hi.\n[music]"
    assert ask(model, path, "what?", "--threshold", 0) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.endswith(("Hi.", "[music]"))]
    assert sorted(line[5:] for line in shown) == ["Ann: Hi.", "[music]"] and {line[:5] for line in shown} <= {
        "     ",
        "  >  ",
    }


def test_plain_text_without_names(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.txt"
    path.write_text("It was late. We left.\nNobody knew.\n")
    (lines,) = ask_json(model, path, capsys, "what?", "--threshold", 0)
    (split,) = ask_json(model, path, capsys, "what?", "--threshold", 0, "--splitter", "punctuation")
    assert (lines["passages"][0]["last"], split["passages"][0]["last"]) == (1, 2), "lines, or sentences"
    assert lines["passages"][0]["text"] == split["passages"][0]["text"] == path.read_text().strip()


def test_questions_stand_anywhere_after_the_transcript(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    (path := tmp_path / "a.txt").write_text("\n".join(f"{name}: {text}" for name, text in TURNS), encoding="utf-8")
    lines = ask_json(model, path, capsys, QUESTIONS[0], "--passages", "1", QUESTIONS[1])
    assert [line["question"] for line in lines] == QUESTIONS
    assert ask_json(model, path, capsys, "--passages", "1", *QUESTIONS) == lines
    assert "unrecognized arguments: --passage" in refusal(
        "ask", model.checkpoint, path, QUESTIONS[0], "--data", model.data, "--passage", "1"
    )


def test_a_document_of_a_folder(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    """Of files of splits, one of which is chosen with --split and --id."""
    turns = [{"role": name, "text": text} for name, text in TURNS]
    rows = [{"id": name, "turns": turns, "questions": ["Why?"], "evidence": [[0]]} for name in ("one", "two")]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)
    (tmp_path / "alone.json").write_text(json.dumps(turns))
    expected = ask_json(model, tmp_path / "alone.json", capsys, *QUESTIONS)
    for flags in (["--id", "two"], ["--id", "one", "--split", "valid"]):
        lines = ask_json(model, tmp_path / "raw", capsys, *QUESTIONS, *flags)
        assert [line | {"id": ""} for line in lines] == [line | {"id": ""} for line in expected]
    for source, flags, message in (
        (tmp_path / "raw", [], "2 documents: choose one of one, two with --id"),
        (tmp_path / "raw", ["--split", "dev"], "has no split dev"),
        (tmp_path / "alone.json", ["--split", "test"], "--split test has no effect"),
        (tmp_path / "alone.json", ["--overwrite"], "--overwrite has no effect without --out FILE or --page"),
    ):
        assert message in refusal(*words(model, source, QUESTIONS[0], *flags))
