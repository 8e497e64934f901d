"""`hat ask`: transcripts of every format, questions, output, refusals; with a tiny model of meetings."""

import argparse
import contextlib
import io
import json
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import hat, read_lines, refusal, write_lines
from evidence_model import QUESTIONS, EvidenceModel
from fine_tuned import FineTuned

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.outputs import atomic_file
from hat_fairseq.data.record import Turn
from hat_fairseq.inference.loading import load
from hat_fairseq.units.ask import read_words
from hat_fairseq.units.evidence import Evidence

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
    exact = [] if "--precision" in words else ["--precision", "fp32"]
    return hat("ask", model.checkpoint, transcript, *words, "--data", model.data, "--device", "cpu", *exact)


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
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return {name: folder / name for name in contents}


@pytest.fixture
def with_lines(model: EvidenceModel, tmp_path_factory: pytest.TempPathFactory) -> EvidenceModel:
    """The same model, as if a validation had chosen a threshold of lines."""
    checkpoint = torch.load(model.checkpoint, weights_only=False)
    (name,) = (each for each in checkpoint["model"] if each.endswith("evidence.thresholds"))
    checkpoint["model"][name][1] = 0.5
    torch.save(checkpoint, path := tmp_path_factory.mktemp("lines") / "checkpoint.pt")
    return model._replace(checkpoint=path)


@pytest.mark.slow
def test_every_format_gives_the_same_passages(
    with_lines: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    raw, results = "\n".join(text for _, text in TURNS), {}
    for name, path in write_formats(tmp_path).items():
        results[name] = ask_json(with_lines, path, capsys, *QUESTIONS, "--threshold", 0.0, "--passages", 9)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes()))))
        piped = ask_json(with_lines, "-", capsys, *QUESTIONS, "--threshold", 0.0, "--passages", 9)
        assert [line | {"id": ""} for line in piped] == [line | {"id": ""} for line in results[name]]
    for name, lines in results.items():
        assert [line["question"] for line in lines] == QUESTIONS
        (passage,) = lines[0]["passages"]
        assert raw[passage["begin"] : passage["end"]] == passage["text"] == raw
        assert (passage["first"], passage["last"], passage["rank"]) == (0, 3, 1)
        assert passage["roles"] == ["Ann Lee", "Bob"]
        assert len(passage["lines"]) == 3
        with_times = name in ("m.srt", "m.vtt")
        assert ("time" in passage) == with_times
        assert passage.pop("time", [0, 35]) == [0, 35]
        for line in passage["lines"]:
            times = [10 * line["number"], 10 * line["number"] + 5]
            assert line.pop("time", None) == (times if with_times else None)
            assert (line["role"], line["text"]) == TURNS[line["number"]]
            assert raw[line["begin"] : line["end"]] == line["text"]
        assert passage == results["m.txt"][0]["passages"][0]


def test_offsets_of_passages_and_of_running_text(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    meeting = next(iter(read_lines(model.data.parents[1] / "raw/test.jsonl")))
    texts = [f" {turn['text']}\t\u00a0x\x00" if n % 3 else turn["text"] for n, turn in enumerate(meeting["turns"])]
    texts[4] = "\u200b"
    turns = [{"speaker": turn["role"], "text": text} for turn, text in zip(meeting["turns"], texts, strict=True)]
    prose = "It was  late.\n\u200b\nWe left! Was it\tcold? It was.\n\nNobody knew."
    for name, record, raw in (("turns", {"turns": turns}, "\n".join(texts)), ("prose", {"text": prose}, prose)):
        path = write_lines(tmp_path / f"{name}.jsonl", [record])
        values = hat_fairseq.load(model.checkpoint, model.data, "cpu").ask(path, QUESTIONS[0]).questions[0]
        known = sorted(value for value in values.probabilities if value is not None)
        threshold = known[len(known) // 2]
        (line,) = ask_json(model, path, capsys, QUESTIONS[0], "--threshold", threshold, "--passages", 99)
        assert len(line["passages"]) > 1 or name == "prose"
        ranked = [passage["probability"] for passage in line["passages"]]
        assert ranked == sorted(ranked, reverse=True)
        assert min(ranked) >= round(threshold, 4) - 1e-4
        for rank, passage in enumerate(line["passages"], start=1):
            assert raw[passage["begin"] : passage["end"]] == passage["text"] != ""
            assert passage["rank"] == rank
            inside = values.probabilities[passage["first"] : passage["last"] + 1]
            assert passage["probability"] == max(value for value in inside if value is not None)
            for own in passage["lines"]:
                assert own["probability"] == values.probabilities[own["number"]]
                assert passage["first"] <= own["number"] <= passage["last"]
                assert own["text"] in passage["text"]
            if name == "turns":
                first, last = passage["first"], passage["last"]
                assert passage["text"] in "\n".join(texts[first : last + 1])
                assert passage["roles"] == list(dict.fromkeys(turn["speaker"] for turn in turns[first : last + 1]))
    assert len(values.probabilities) == 5, "sentences of running text"


@pytest.mark.slow
def test_python_says_what_the_command_says(model: EvidenceModel, tmp_path: Path, capsys: Any, caplog: Any) -> None:
    loaded, path = hat_fairseq.load(model.checkpoint, model.data, "cpu"), write_formats(tmp_path)["m.txt"]
    lines = ask_json(model, path, capsys, *QUESTIONS)
    turns = [{"speaker": speaker, "text": text} for speaker, text in TURNS]
    record = Evidence("m", questions=("old?",), turns=tuple(Turn(text, speaker=who) for who, text in TURNS))
    documents: list[Any] = [path, turns, {"turns": turns}, record]
    for document in documents:
        answers = loaded.ask(document, QUESTIONS)
        for line, question in zip(lines, answers.questions, strict=True):
            assert (line["question"], line["answered"]) == (question.question, question.answered)
            assert line["passages_in_all"] == len(question.passages)
            for passage, own in zip(line["passages"], question.passages, strict=False):
                assert (passage["rank"], passage["text"], passage["roles"]) == (own.rank, own.text, [*own.roles])
                assert [each["number"] for each in passage["lines"]] == [each.number for each in own.lines]
    predictions: list[Any] = loaded.predict([{"questions": QUESTIONS, "turns": turns}])
    for found, asked in zip(predictions[0].questions, answers.questions, strict=True):
        assert tuple(found["probabilities"]) == asked.probabilities
        assert [each["text"] for each in found["passages"]] == [each.text for each in asked.passages]
    times = write_formats(tmp_path)["m.vtt"]
    assert loaded.ask(times, QUESTIONS, threshold=0).questions[0].passages[0].time == (0, 35)
    (line,) = ask_json(model, times, capsys, QUESTIONS[0], "--threshold", 1)
    (question,) = loaded.ask(times, QUESTIONS[0], threshold=1).questions
    assert question.closest is not None
    assert question.closest.text == line["closest"]["text"]
    assert not question.passages
    assert not question.answered
    assert "rank" not in line["closest"]
    assert len(loaded.ask("One. Two! Three?", "what?").questions[0].probabilities) == 3
    assert len(loaded.ask(["One.", "Two!"], "what?", threshold=1).questions[0].probabilities) == 2
    assert len(loaded.ask(turns, "what?", threshold=0, most_passages=1).questions[0].passages) == 1
    labelled: Any = {"sentences": ["One.", "Two!"], "questions": ["other?"], "evidence": [[1]]}
    assert loaded.ask(labelled, "what?").questions == loaded.ask(labelled["sentences"], "what?").questions
    assert "skipped in the document: evidence, questions" in caplog.text
    for document, questions, message in (
        ("One.", [], "no question"),
        ("One.", " \u200b", "question 1 is empty"),
        ("", "what?", "has no text|empty"),
        ([], "what?", "no text|empty"),
        ({"text": "a", "turns": []}, "what?", "exactly one of"),
        (tmp_path, "what?", "is a folder"),
        (str(times), "what?", "the document '.*m.vtt' is the name of a file: give Path"),
        ("WEBVTT\n\nNOTE nobody speaks\n", "what?", "the document has no text .skipped: notes .1."),
    ):
        with pytest.raises(ValueError, match=message):
            loaded.ask(document, questions)


def test_a_string_is_read_by_its_content(model: EvidenceModel, tmp_path: Path, caplog: Any) -> None:
    """As a file with the same content, and a warning says so; texts without times and names are running text."""
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    for name in ("m.vtt", "m.srt", "m.txt"):
        path = write_formats(tmp_path)[name]
        caplog.clear()
        asked = loaded.ask(path.read_text(encoding="utf-8"), QUESTIONS, threshold=0)
        assert asked.questions == loaded.ask(path, QUESTIONS, threshold=0).questions
        assert asked.questions[0].passages[0].roles == ("Ann Lee", "Bob")
        assert any(
            "the document is read as" in each.message and "4 turns of 2" in each.message for each in caplog.records
        )
        with pytest.raises(ValueError, match='splitter="punctuation" has no effect: all texts are divided'):
            loaded.ask(path.read_text(encoding="utf-8"), QUESTIONS, splitter="punctuation")


@pytest.mark.parametrize(
    ("text", "sentences"), [("Note: it was late. We left.", 2), ("It was late.\nWe left.\nAt 10:30 -> noon. Bye.", 4)]
)
def test_a_string_of_plain_text_is_sentences(text: str, sentences: int, model: EvidenceModel) -> None:
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    assert len(loaded.ask(text, QUESTIONS[0]).questions[0].probabilities) == sentences


def test_a_document_of_a_path_is_chosen_by_its_id(model: EvidenceModel, tmp_path: Path) -> None:
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    turns = [{"speaker": name, "text": text} for name, text in TURNS]
    path = write_lines(tmp_path / "two.jsonl", [{"id": "a", "turns": turns}, {"id": "b", "sentences": ["One."]}])
    assert len(loaded.ask(path, QUESTIONS[0], id="b").questions[0].probabilities) == 1
    with pytest.raises(ValueError, match="choose one of a, b with id, or ask all with predict"):
        loaded.ask(path, QUESTIONS[0])
    with pytest.raises(ValueError, match="id has no effect without the path"):
        loaded.ask("One.", QUESTIONS[0], id="b")


def test_a_model_that_was_trained_without_lines_shows_none(
    model: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    path, page = write_formats(tmp_path)["m.txt"], tmp_path / "page.html"
    assert ask(model, path, QUESTIONS[0], "--threshold", 0, "--html", page) == 0
    shown = capsys.readouterr().out
    assert " > " not in shown
    assert "was trained without lines" in shown
    assert [row.split()[0] for row in shown.splitlines()[3:7]] == ["1", "2", "3", "4"], "the passage begins"
    for threshold in (0, 1):
        (line,) = ask_json(model, path, capsys, QUESTIONS[0], "--threshold", threshold)
        assert [each["lines"] for each in line["passages"] or [line["closest"]]] == [[]]
    data = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    assert [passage[3] for each in json.loads(data)["questions"] for passage in each["passages"]] == [[]]


def test_what_is_printed(with_lines: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    path = tmp_path / "m.vtt"
    lines = [f"{seconds(n)} --> {seconds(n + 1)}\n<v Ann>Sentence {n} of the meeting, {BAD}.\n\n" for n in range(30)]
    path.write_text("WEBVTT\n\nNOTE by hand\n\n" + "".join(lines), encoding="utf-8")
    assert ask(with_lines, path, QUESTIONS[0], "--threshold", 0) == 0
    printed = capsys.readouterr()
    assert "m.vtt: WebVTT, 30 turns of 1 speaker, up to 0:00:30; skipped or joined: notes (1)" in printed.err
    shown = printed.out.splitlines()
    assert shown[1] == QUESTIONS[0]
    assert shown[2].endswith("turns 1-30  0:00:00  Ann")
    assert "  1  " in shown[2]
    assert max(map(len, shown)) <= 50
    assert "\x1b" not in printed.out
    (line,) = ask_json(with_lines, path, capsys, QUESTIONS[0], "--threshold", 0)
    numbers = [each["number"] for each in line["passages"][0]["lines"]]
    marked = [row.split()[1:4] for row in shown if row.startswith("   > ")]
    assert marked == [[str(number + 1), f"0:00:{number:02}", "Ann:"] for number in numbers], "best first"
    near = [int(row.split()[0]) - 1 for row in shown if row.startswith("     ") and row.split()[1].startswith("0:00:")]
    best = numbers[0]
    assert near == [n for n in range(best - 2, best + 3) if 0 <= n < 30 and n not in numbers], "in order, a row each"
    assert len(shown) <= 3 + 3 * 3 + 4 + 8
    assert "may be wrong" in printed.out
    assert "It does not say whether the transcript has an answer" in " ".join(printed.out.split())
    assert ask(with_lines, path, QUESTIONS[0], "--threshold", 1) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == f'no passage answers: "{QUESTIONS[0]}"'
    assert shown[2].startswith("  closest  ")
    (line,) = ask_json(with_lines, path, capsys, QUESTIONS[0], "--threshold", 1)
    assert line["passages"] == []
    assert line["answered"] is False
    assert line["threshold"] == 1
    closest = line["closest"]
    assert closest["first"] == closest["last"] == closest["lines"][0]["number"]
    assert shown[2].split("  ")[3].endswith(str(closest["first"] + 1))
    assert closest["text"].startswith("Sentence")


def test_files(model: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    path, out, page = write_formats(tmp_path)["m.txt"], tmp_path / "out.jsonl", tmp_path / "page.html"
    lines = ask_json(model, path, capsys, *QUESTIONS, "--out", out, "--html", page)
    assert read_lines(out) == lines
    assert ask(model, path, *QUESTIONS, "--out", "-") == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines
    data = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    assert [each["question"] for each in json.loads(data)["questions"]] == QUESTIONS
    assert json.loads(data)["texts"] == [text for _, text in TURNS]
    assert json.loads(data)["starts"] == []
    assert ask(model, path, *QUESTIONS, "--html", page, "--overwrite") == 0
    files = {"--out": out, "--html": page}
    for flag, file in files.items():
        assert f"{flag} {file} exists" in refusal(*words(model, path, QUESTIONS[0], flag, file))
    for flags, message in (
        (["--html", path, "--overwrite"], "is also an input of this command"),
        (["--out", tmp_path / "x.json"], "must end in .jsonl"),
        (["--out", tmp_path / "no/x.jsonl"], "no"),
        (["--html", "-"], "--html -: `hat ask` does not write this to the standard output"),
    ):
        assert message in refusal(*words(model, path, QUESTIONS[0], *flags))
    copy = shutil.copy(model.checkpoint, tmp_path / "copy.pt")
    ensemble = EvidenceModel(Path(f"{model.checkpoint}:{copy}"), model.data)
    error = refusal(*words(ensemble, path, QUESTIONS[0], "--html", copy, "--overwrite"))
    assert "is also an input of this command" in error


def test_files_are_written_where_nobody_reads_what_is_printed(model: EvidenceModel, tmp_path: Path) -> None:
    path, out, page = write_formats(tmp_path)["m.txt"], tmp_path / "out.jsonl", tmp_path / "page.html"
    flags = ["--out", out, "--html", page, "--device", "cpu"]
    with open("/dev/full", "w", encoding="utf-8") as full, contextlib.redirect_stdout(full):
        hat(*words(model, path, QUESTIONS[0], *flags))
    assert len(read_lines(out)) == 1
    assert "</html>" in page.read_text()


def test_a_folder_of_hat_preprocess_has_the_dictionaries(model: EvidenceModel, capsys: Any) -> None:
    identifier = read_lines(model.data.parent / "text/valid.jsonl")[0]["id"]
    words = ["ask", model.checkpoint, model.data.parent, QUESTIONS[0], "--split", "valid", "--id", identifier, "--json"]
    assert hat(*words) == 0
    line = json.loads(capsys.readouterr().out)
    assert hat(*words, "--data", model.data) == 0
    assert json.loads(capsys.readouterr().out) == line


def words(model: EvidenceModel, transcript: object, *more: object) -> list[object]:
    return ["ask", model.checkpoint, transcript, *more, "--data", model.data]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "m.txt': write it in quotation marks"),
        (["what?", "--htlm", "x"], "unrecognized arguments: --htlm; did you mean --html instead of --htlm?"),
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


@pytest.mark.parametrize(
    ("questions", "warned"),
    [
        (["Who", "was", "late?"], True),
        (["Who was late?", "Why?", "Where?"], False),
        (["谁迟到了？", "为什么？", "在哪里？"], False),
    ],
)
def test_a_question_without_quotation_marks(
    questions: list[str], warned: bool, model: EvidenceModel, tmp_path: Path, capsys: Any
) -> None:
    path, warning = write_formats(tmp_path)["m.txt"], "warning: 3 questions of one word each: a question of several"
    assert ask(model, path, *questions) == 0
    assert (warning in capsys.readouterr().err) == warned


@pytest.mark.slow
def test_other_mistakes(model: EvidenceModel, tmp_path: Path, fine_tuned: Any, monkeypatch: Any) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    path = write_formats(tmp_path)["m.txt"]
    assert "empty.txt has no text: nothing to ask about" in refusal(*words(model, tmp_path / "empty.txt", "what?"))
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


def test_turns_of_nobody_are_read_without_a_name(with_lines: EvidenceModel, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.vtt"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi.\n\n00:02.000 --> 00:03.000\n[music]\n")
    (line,) = ask_json(with_lines, path, capsys, "what?", "--threshold", 0)
    assert line["passages"][0]["roles"] == ["Ann"]
    assert line["passages"][0]["text"] == "Hi.\n[music]"
    assert ask(with_lines, path, "what?", "--threshold", 0) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.endswith(("Hi.", "[music]"))]
    assert sorted(line[5:] for line in shown) == ["1  0:00:01  Ann: Hi.", "2  0:00:02  [music]"]
    assert {line[:5] for line in shown} == {"   > "}


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


def words_of(*words: object) -> argparse.Namespace:
    """What `hat ask` makes of its words."""
    parser = cli.build_parser("ask")
    args, args_others = parser.parse_known_args(["ask", *map(str, words)])
    args.others = args_others
    read_words(args)
    return args


@pytest.fixture
def here(tmp_path: Path, monkeypatch: Any) -> Path:
    """A working folder with transcripts, the folder of a model, checkpoints, and a folder with something else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("Ann: Hi.\nBob: Hi.\nAnn: Bye.\nBob: Bye.\n")
    write_lines(tmp_path / "splits/test.jsonl", [])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.json").write_text("{}")
    (tmp_path / "cut.pt").write_bytes(b"")
    torch.save({}, tmp_path / "best.ckpt")
    with zipfile.ZipFile(tmp_path / "minutes.docx", "w") as file:
        file.writestr("word/document.xml", "<w/>")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a.txt", "Why?"], ("meeting", "a.txt", ["Why?"])),
        (["-", "Why?"], ("meeting", "-", ["Why?"])),
        (["--json", "-", "Why?"], ("meeting", "-", ["Why?"])),
        (["splits", "Why?", "Who?"], ("meeting", "splits", ["Why?", "Who?"])),
        (["minutes.docx", "Why?"], ("meeting", "minutes.docx", ["Why?"])),
        (["meeting", "a.txt", "Why?"], ("meeting", "a.txt", ["Why?"])),
        (["demo", "a.txt", "Why?"], ("demo", "a.txt", ["Why?"])),
        (["mine", "a.txt", "Why?"], ("mine", "a.txt", ["Why?"])),
        (["mine", "--json", "a.txt", "--passages", "2", "Why?"], ("mine", "a.txt", ["Why?"])),
        (["--json", "mine", "-", "Why?"], ("mine", "-", ["Why?"])),
        (["cut.pt", "a.txt", "Why?"], ("cut.pt", "a.txt", ["Why?"])),
        (["best.ckpt", "a.txt", "Why?"], ("best.ckpt", "a.txt", ["Why?"])),
        (["mine:best.ckpt", "a.txt", "Why?"], ("mine:best.ckpt", "a.txt", ["Why?"])),
        (["some/model", "a.txt", "Why?"], ("some/model", "a.txt", ["Why?"])),
        (["a.txt", "Why?", "--passages", "2", "Who?"], ("meeting", "a.txt", ["Why?", "Who?"])),
        (["a.txt", "What is it? " * 99], ("meeting", "a.txt", ["What is it? " * 99])),
    ],
)
def test_which_word_is_what(words: list[str], expected: tuple[str, str, list[str]]) -> None:
    args = words_of(*words)
    assert (args.model, str(args.input), args.questions) == expected


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no transcript: hat ask [MODEL] TRANSCRIPT QUESTION..."),
        (["meeting"], "no transcript: hat ask [MODEL] TRANSCRIPT QUESTION..."),
        (["a.txt"], "no question after the transcript 'a.txt'"),
        (["mine", "a.txt"], "no question after the transcript 'a.txt'"),
        (["Why?"], "neither a model nor a transcript: 'Why?' does not exist"),
        (["none.txt", "Why?"], "neither a model nor a transcript: 'none.txt' does not exist"),
        (
            ["meetin", "none.txt", "Why?"],
            "'meetin' does not exist; hat ask [MODEL] TRANSCRIPT QUESTION...; did you mean",
        ),
        (["mine", "none.txt", "Why?"], "the transcript 'none.txt' does not exist"),
        (["a.txt", "splits/test.jsonl", "Why?"], "'splits/test.jsonl', after the transcript 'a.txt', is a file"),
        (["splits", "a.txt", "Why?"], "'a.txt', after the transcript 'splits', is a file and no question"),
        (["a.txt", "Why?", "--passage", "2"], "unrecognized arguments: --passage; did you mean --passages"),
    ],
)
def test_words_that_are_missing(words: list[str], message: str) -> None:
    error = refusal("ask", *words)
    assert message in error
    assert error.count("\n") == 1, "one line, without usage"


def test_meeting_is_the_default(model: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    path = write_formats(tmp_path)["m.txt"]
    expected = ask_json(model, path, capsys, *QUESTIONS)
    monkeypatch.setattr("hat_fairseq.units.ask.MEETING_NAME", str(model.checkpoint))
    flags = ["--data", model.data, "--device", "cpu", "--precision", "fp32", "--json"]
    assert hat("ask", path, *QUESTIONS, *flags) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == expected


def test_another_model_names_its_verb(model: EvidenceModel, tmp_path: Path) -> None:
    path, out = write_formats(tmp_path)["record.json"], tmp_path / "out.jsonl"
    assert "demo was trained on the kind 'text'" in (error := refusal("ask", "demo", path, "Why?", "--device", "cpu"))
    assert "this one is for hat generate" in error
    error = refusal("predict", "demo", path, "--out", out, "--device", "cpu")
    assert "it predicts no labels; use hat generate" in error
    error = refusal("generate", model.checkpoint, path, "--out", out, "--data", model.data, "--device", "cpu")
    assert f"{model.checkpoint} was trained on the task document_evidence: it writes no texts; use hat ask" in error
    with pytest.raises(ValueError, match="demo.* this one is for hat generate"):
        hat_fairseq.load("demo", device="cpu").ask(path, "Why?")


@pytest.mark.parametrize("flag", ["--out", "--html"])
def test_a_file_that_appears_meanwhile_is_kept(
    flag: str, model: EvidenceModel, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    path, out = write_formats(tmp_path)["m.txt"], tmp_path / "out.jsonl"

    def load_slowly(*args: Any) -> Any:
        out.write_text("mine")
        return load(*args)

    monkeypatch.setattr("hat_fairseq.units.ask.load", load_slowly)
    assert f"{flag} {out} exists" in refusal(*words(model, path, "Why?", flag, out))
    assert out.read_text() == "mine"
    assert capsys.readouterr().out == ""
    assert hat(*words(model, path, "Why?", flag, out, "--overwrite")) == 0
    assert out.read_text() != "mine"
    assert sorted(tmp_path.glob(".*")) == [], "nothing is left behind"


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_two_at_once(overwrite: list[str], model: EvidenceModel, tmp_path: Path) -> None:
    path, out = write_formats(tmp_path)["m.txt"], tmp_path / "out.jsonl"
    asked = words(model, path, "Why?", "--out", out, *overwrite)
    with atomic_file(out) as file:
        assert f"another process is writing {out}" in refusal(*asked)
        file.write(b"first\n")
    assert out.read_text() == "first\n"


def test_a_question_that_nothing_answers(model: EvidenceModel, tmp_path: Path) -> None:
    """The model decides, or a threshold of the user; the best passage or turn is shown as the closest."""
    path, loaded = write_formats(tmp_path)["m.vtt"], hat_fairseq.load(model.checkpoint, model.data, "cpu")
    (before,) = loaded.ask(path, QUESTIONS[0]).questions
    assert before.answered
    assert before.closest is None
    assert before.passages
    loaded.models[0].classification_head("evidence").answers.fill_(1.0)
    answers = loaded.ask(path, QUESTIONS[0])
    (after,) = answers.questions
    assert answers.judges
    assert not after.answered
    assert after.passages == ()
    assert after.closest == replace(before.passages[0], rank=None)
    line = answers.lines()[0]
    assert (line["answered"], line["passages"], line["passages_in_all"]) == (False, [], 0)
    assert line["closest"]["time"] == list(after.closest.time or ())
    (decided,) = loaded.ask(path, QUESTIONS[0], threshold=before.threshold).questions
    assert decided.answered
    assert decided.passages == before.passages


@pytest.mark.parametrize("form", [list, tuple, lambda turns: {"turns": turns}])
def test_turns_in_python_are_those_of_a_file(form: Any, model: EvidenceModel, tmp_path: Path) -> None:
    loaded = hat_fairseq.load(model.checkpoint, model.data, "cpu")
    clocks = ["0:10", 20, 30.5, None]
    turns = [{"speaker": name, "text": text, "start": clock} for (name, text), clock in zip(TURNS, clocks, strict=True)]
    path = tmp_path / "turns.json"
    path.write_text(json.dumps(turns))
    asked, expected = (loaded.ask(each, QUESTIONS, threshold=0).questions for each in (form(turns), path))
    assert asked == expected
    assert asked[0].passages[0].time == (10.0, None)
    with pytest.raises(ValueError, match="turn 2: start must be seconds or a clock"):
        loaded.ask(form([turns[0], turns[1] | {"start": "soon"}]), QUESTIONS)


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
        (tmp_path / "alone.json", ["--overwrite"], "--overwrite has no effect without --out FILE or --html"),
    ):
        assert message in refusal(*words(model, source, QUESTIONS[0], *flags))
