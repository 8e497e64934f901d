"""Transcripts in every format: who says what, when; what is left out is counted; damage has a place."""

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.data.speakers import Said, seconds
from hat_fairseq.data.transcripts import Transcript, listed, of_record, of_text, read_transcript


def said(transcript: Transcript) -> list[tuple[str | None, str]]:
    return [(each.speaker, each.text) for each in transcript.said]


TURNS_OF_THREE = [("Ann Lee", "Good morning."), ("王先生", "Hi: all."), ("Ann Lee", "See http://x.org: it is.")]


@pytest.mark.parametrize(
    ("form", "starts"),
    [
        ("{name}: {text}", None),
        ("{name} : {text}", None),
        ("{name}：{text}", None),
        (">> {name}: {text}", None),
        ("[0:01:0{n}] {name}: {text}", [61, 62, 63]),
        ("01:0{n} {name}: {text}", [61, 62, 63]),
        ("(1:0{n}) - {name}: {text}", [61, 62, 63]),
        ("\u200e[1:0{n}.5] {name}: {text}", [61.5, 62.5, 63.5]),
        ("[1:0{n} - 1:20] {name}: {text}", [61, 62, 63]),
        ("[9:1{n} PM] {name}: {text}", [76260, 76320, 76380]),
    ],
)
def test_a_time_and_a_name_on_a_line(form: str, starts: list[float] | None) -> None:
    lines = [form.format(n=n, name=name, text=text) for n, (name, text) in enumerate(TURNS_OF_THREE, start=1)]
    transcript = of_text("\r\n\r\n".join([*lines, "and welcome"]), "m")
    assert said(transcript) == [*TURNS_OF_THREE, ("Ann Lee", "and welcome")]
    assert [each.start for each in transcript.said] == [*(starts or [None] * 3), None]
    assert transcript.unit == "turn"
    assert transcript.speakers == ["Ann Lee", "王先生"]


@pytest.mark.parametrize(
    "form",
    [
        "2024-05-0{n} 09:15:01 {name}: {text}",
        "[2024-05-0{n} 09:15:01] {name}: {text}",
        "2024-05-0{n}T09:15:01 {name}: {text}",
        "[0{n}.05.24, 09:15:01] {name}: {text}",
        "{n}/05/2024, 09:15 - {name}: {text}",
        "[{n}/5/24, 9:15:01\u202fAM] {name}: {text}",
    ],
)
def test_dates_before_names_are_counted_and_left_out(form: str) -> None:
    """Their times are of several days; a line without a name is of somebody else than the one before."""
    turns = [("Ann", "Hi."), ("+49 170 123", "Yes."), ("Ann", "So."), ("+49 170 123", "No.")]
    lines = [form.format(n=n, name=name, text=text) for n, (name, text) in enumerate(turns, start=1)]
    of_program = form.replace("{name}: ", "").format(n=1, text="Messages are encrypted.")
    transcript = of_text("\n".join([lines[0], of_program, lines[1], "and more", *lines[2:]]), "m")
    assert said(transcript) == [
        turns[0], (None, "Messages are encrypted."), turns[1], ("+49 170 123", "and more"), *turns[2:]
    ]  # fmt: skip
    assert transcript.counts == {"dates": 5}
    assert not transcript.has_times


@pytest.mark.parametrize("heading", ["{name}  {time}", "{name}\t{time}", "{name} ({time}):", "[{name}] {time}",
                                     "{name}\n{time}"])  # fmt: skip
def test_a_name_and_a_time_above_what_is_said(heading: str) -> None:
    """Lines above the first one have no speaker; one that only ends in a time is text."""
    names = ["Ann Lee", "Bob (she/her)", "Ann Lee", "Bob (she/her)"]
    lines = ["Minutes of May"]
    for number, name in enumerate(names):
        lines += [heading.format(name=name, time=f"0:0{number}:05"), "We meet at 10:30", "Yes: gladly.", ""]
    transcript = of_text("\n".join(lines), "m")
    turns = [(name, text) for name in names for text in ("We meet at 10:30", "Yes: gladly.")]
    assert said(transcript) == [(None, "Minutes of May"), *turns]
    assert [each.start for each in transcript.said if each.start is not None] == [5, 65, 125, 185]


def test_a_speaker_who_says_nothing_is_no_text() -> None:
    lines = ["Ida  1:23", "Hello.", "Ben  1:25", "Ida  1:27", "Fine.", "Ben  1:29", "Yes."]
    assert said(of_text("\n\n".join(lines), "m")) == [("Ida", "Hello."), ("Ida", "Fine."), ("Ben", "Yes.")]


def test_times_alone_on_their_lines() -> None:
    """They are those of the next line, whether it has a name or not."""
    lines = ["00:00:00", "Ann: Hi.", "Bob: Ho.", "00:05:00", "Ann: So.", "Bob: Yes."]
    assert [(each.speaker, each.text, each.start) for each in of_text("\n".join(lines), "m").said] == [
        ("Ann", "Hi.", 0), ("Bob", "Ho.", None), ("Ann", "So.", 300), ("Bob", "Yes.", None)
    ]  # fmt: skip
    for texts in (["Yes.", "Yes.", "No."], ["Okay", "Okay", "Yeah"]):
        transcript = of_text("\n".join(f"0:0{number}\n{text}" for number, text in enumerate(texts)), "m")
        assert transcript.said == tuple(Said(text, None, n, n + 1 if n < 2 else None) for n, text in enumerate(texts))


def test_lines_of_whisper() -> None:
    text = "[00:00:01.000 --> 00:00:05.500]  Hi.\n[00:00:06.000 --> 00:00:09.000]  Ho."
    assert of_text(text, "m").said == (Said("Hi.", None, 1, 5.5), Said("Ho.", None, 6, 9))


NOBODY_SPEAKS = [
    "From: Ann\nTo: Ben\nSubject: the roof\nDate: 3 May\nDear Ben, the roof costs 500 euros.",
    "From: Ann\nTo: Ben\nSubject: roof\nHi.\nFrom: Ben\nTo: Ann\nSubject: Re: roof\nNo.",
    "Present: Ann, Ben\nCosts: 500 euros\nPlace: Kiel\nNext meeting: Friday",
    "Roof\nDecision: yes\nAction: Ann\nMoney\nDecision: no\nAction: Ben",
    "Ingredients:\n- milk: 2 l\n- eggs: 3\nMethod:\nMix: all of it.",
    "There are three reasons: time.\nMoney is short: we know.\nNobody came: it rained.",
    "* Kiel: a town\n* Rhine: a river\n* Harz: hills",
    "2024-05-03 09:15:01 error: disk full\n2024-05-03 09:15:02 warning: slow\n2024-05-03 09:15:03 error: ended",
    "It was late.\nNote: it rained.\nWe left.\n10:30 is fine.",
    "3. Mai: Beginn um neun\n4. Mai: Ende um drei\n5. Mai: frei",
    "03.05.2024 18:00 Training\nHall A\n10.05.2024 18:00 Training\nHall B\n17.05.2024 18:00 Training\nHall A",
    "Opening  9:00\nBudget  9:30\nLunch  12:00\nThe afternoon is free.\nBring food.",
    "**Ann:** Hi.\n**Bob:** Ho.\n**Ann:** Ok.\n**Bob:** No.",
    "[laughter] So.\n[music] la\n[laughter]",
    "Ann: Good day.\nBob: Good night.",
]


@pytest.mark.parametrize("text", NOBODY_SPEAKS)
def test_names_that_do_not_return_are_what_is_said(text: str) -> None:
    """In letters, minutes, recipes, prose, lists, logs and agendas each line is a turn, as it is."""
    transcript = of_text(text, "m")
    assert said(transcript) == [(None, line) for line in text.split("\n")]
    assert not transcript.has_times
    assert transcript.unit == "line"
    assert not +transcript.counts


def test_running_text() -> None:
    assert of_text("One. Two. Three.\n", "m").text == "One. Two. Three.\n", "a single line is running text"
    assert of_text("One.\nTwo.", "m", running=True).text == "One.\nTwo."


def test_what_is_said_is_no_time_and_no_name() -> None:
    """Times in other brackets than most stay in the text, and so does a sentence before a colon, of nobody known."""
    lines = ["[00:01] Ann: Hi.", "10:30 is too late.", "[00:05] Bob: Ok.", "(5:00) is fine.", "[00:09] Ann: Good."]
    assert said(of_text("\n".join(lines), "m")) == [
        ("Ann", "Hi."), ("Ann", "10:30 is too late."), ("Bob", "Ok."), ("Bob", "(5:00) is fine."), ("Ann", "Good.")
    ]  # fmt: skip
    sentence = "Well - as I said in the long meeting of last week: no."
    assert said(of_text(f"Ann: Hi.\n{sentence}\nBob: Ho.\nAnn: Yes.", "m"))[1] == (None, sentence)
    text = "Ann (0:03)\nHi.\nThe date (10:30)\nis fine.\nBob (0:10)\nOk.\nAnn (0:15)\nYes."
    assert said(of_text(text, "m"))[1] == ("Ann", "The date (10:30)")


def test_long_turns_after_times() -> None:
    lines = [line for n in range(4) for line in (f"[{n}:00] {'AB'[n % 2]}nn: Well.", *["Some words."] * 9)]
    transcript = of_text("\n".join(lines), "m")
    assert [each.start for each in transcript.said if each.start is not None] == [0, 60, 120, 180]
    assert Counter(who for who, _ in said(transcript)) == {"Ann": 20, "Bnn": 20}


VTT = """\ufeffWEBVTT - a meeting
Kind: captions

STYLE
::cue { color: red }

NOTE by hand
--
1
00:01.000 --> 00:02.500 align:start position:0%
<v.loud Ann &amp; Co>Good <i>morning</i>, everybody,</v>

intro
00:02.500 --> 00:04.000
<v Ann &amp; Co>and 1 &lt; 2 <00:03.000>here.</v>

00:04.000 --> 01:00:05.000
<v Bob>Hi.
<v Ann &amp; Co>Yes.

a stray line

01:00:06.000 --> 01:00:07.000
[music] <img src=x onerror=alert(1)>
"""


def test_webvtt() -> None:
    transcript = of_text(VTT, "m")
    assert transcript.format == "WebVTT"
    assert transcript.said == (
        Said("Good morning, everybody, and 1 < 2 here.", "Ann & Co", 1, 4),
        Said("Hi.", "Bob", 4, 3605),
        Said("Yes.", "Ann & Co", 4, 3605),
        Said("[music] <img src=x onerror=alert(1)>", None, 3606, 3607),
    )
    assert transcript.counts == {
        "styles": 1,
        "notes": 1,
        "cue identifiers": 1,
        "cue settings": 1,
        "tags": 3,
        "cues joined to turns": 1,
        "lines outside cues": 1,
        "cues without text": 0,
    }


@pytest.mark.parametrize(
    ("head", "cue"), [("WEBVTT\n\n", "<v Ben></v>"), ("WEBVTT\n\n", "<i></i>"), ("1\n", "<b></b>"), ("1\n", "")]
)
def test_cues_of_tags_alone_are_counted(head: str, cue: str) -> None:
    text = f"{head}00:01.000 --> 00:02.000\n{cue}\n\n00:03.000 --> 00:04.000\nYes.\n"
    transcript = of_text(text, "m")
    assert [each.text for each in transcript.said] == ["Yes."]
    assert transcript.counts["cues without text"] == 1


def test_subrip_with_names_and_blank_lines() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n<b>ANN:</b> We go\n\non like\n2\n00:00:02,100 --> 00:00:03,000\nANN: this.\n"
    )
    text += "\n3\n00:00:09,000 --> 00:00:10,000\n{\\an8}BOB: A &amp; B\n2020\n\n4\n00:00:20,000 --> 00:00:21,000\n\n"
    transcript = of_text(text.replace("\n", "\r\n"), "m")
    assert transcript.said == (Said("We go on like this.", "ANN", 1, 3), Said("A & B 2020", "BOB", 9, 10))
    assert transcript.counts["cue identifiers"] == 4
    assert transcript.counts["cues without text"] == 1
    assert "cue identifiers (4)" in listed(transcript.counts)
    assert "lines outside" not in listed(transcript.counts)


@pytest.mark.parametrize("head", ["", "WEBVTT\n\n"])
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("R&notes; of the &copyright;", "R&notes; of the &copyright;"),
        ("Tom &amp; Ann&#39;s caf&#xE9;&nbsp;bar", "Tom & Ann's café bar"),
        ("&lt;i&gt; is a tag, R&D and AT&T; are not", "<i> is a tag, R&D and AT&T; are not"),
        ("a < b, <3 and x<y> or <Bob> &notes", "a < b, <3 and x<y> or <Bob> &notes"),
        ("<em>One</em><br/>two<BR>three <strong>four</strong>", "One two three four"),
        ('<span style="color: red">Red</span> <font color="#fff">white</font>', "Red white"),
        (r"{\an8\c&H00FFFF&}Up {\i1}there{\i0} {not a tag}", "Up there {not a tag}"),
    ],
)
def test_tags_and_entities(head: str, line: str, text: str) -> None:
    transcript = of_text(f"{head}00:00:01.000 --> 00:00:02.000\n{line}\n", "m")
    assert [each.text for each in transcript.said] == [text]


@pytest.mark.parametrize("head", ["", "WEBVTT\n\n"])
def test_text_on_the_line_of_the_times(head: str) -> None:
    cues = ["00:03 --> 00:05 Eva: Good day", "00:06 --> 00:09  Tim: Yes.\nGladly.", "00:10 --> 00:11 Eva: Fine."]
    transcript = of_text(head + "\n\n".join(cues), "m")
    assert transcript.said == (
        Said("Good day", "Eva", 3, 5), Said("Yes. Gladly.", "Tim", 6, 9), Said("Fine.", "Eva", 10, 11)
    )  # fmt: skip
    assert not transcript.counts["cue settings"]
    transcript = of_text(f"{head}00:03.000 --> 00:05.000 X1:40 line:9%,end\nHi.\n", "m")
    assert transcript.said == (Said("Hi.", None, 3, 5),)
    assert transcript.counts["cue settings"] == 1


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_blank_line_between_times_and_speech(blank: str) -> None:
    """As Teams writes it; an empty cue before a note stays empty."""
    text = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{blank}\nWe meet.\n\n00:03.000 --> 00:04.000\n{blank}\nWe go.\n"
    assert [each.text for each in of_text(text, "m").said] == ["We meet.", "We go."]
    transcript = of_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{blank}\nNOTE a\n\n00:03.000 --> 00:04.000\nHi.", "m")
    assert [each.text for each in transcript.said] == ["Hi."]
    assert transcript.counts["notes"] == 1


def test_captions_that_roll_and_sentences_over_cues() -> None:
    lines = ["so we begin", "with the first", "point of today.", "Then lunch"]
    cues, before = [], ""
    for number, line in enumerate(lines):
        both = f"{before}\n{line}" if before else line
        cues.append(f"00:00:{number:02}.000 --> 00:00:{number + 1:02}.000\n{both}\n")
        before = line
    transcript = of_text("WEBVTT\n\n" + "\n".join(cues), "m")
    assert [(each.text, each.start, each.end) for each in transcript.said] == [
        ("so we begin with the first point of today.", 0, 3),
        ("Then lunch", 3, 4),
    ]
    assert transcript.counts["lines that repeat the one before"] == 3
    words = ["No.", "No.", "No.", "Go."]
    for head, blank in (("WEBVTT\n\n", ""), ("WEBVTT\n\n", " "), ("", ""), ("", " ")):
        cues = [f"00:0{n}.000 --> 00:0{n + 1}.000\n{word}\n{blank}\n" for n, word in enumerate(words)]
        assert [each.text for each in of_text(head + "".join(cues), "m").said] == words, "somebody says it again"
    of_youtube = ["\nso we <c>begin</c>", "so we begin\n ", "so we begin\nwith <c>it</c>", "with it\n "]
    cues = [f"00:0{n}.000 --> 00:0{n + 1}.000\n {text}\n" for n, text in enumerate(of_youtube)]
    assert [each.text for each in of_text("WEBVTT\n\n" + "\n".join(cues), "m").said] == ["so we begin with it"]


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


TURNS = [{"speaker": "Ann", "text": "Hi."}, {"role": "Bob", "text": "Yes."}, {"text": None}]


def test_json(tmp_path: Path) -> None:
    wanted = [("Ann", "Hi."), ("Bob", "Yes."), (None, "")]
    document = {"id": "d", "turns": TURNS, "questions": ["q"], "meta": {"a": 1}}
    assert said(read_transcript(write(tmp_path / "turns.jsonl", *TURNS))) == wanted
    assert said(read_transcript(write(tmp_path / "list.json", TURNS))) == wanted
    by_key = {"speaker": ["Ann", "Bob", None], "text": ["Hi.", "Yes.", ""]}
    assert said(read_transcript(write(tmp_path / "hub.jsonl", {"turns": by_key}))) == wanted, "as datasets stores it"
    one = read_transcript(write(tmp_path / "one.jsonl", document))
    assert said(one) == wanted
    assert one.name == "d"
    assert one.counts == {"key 'questions'": 1}
    several = write(tmp_path / "several.jsonl", document, {"id": "e", "text": "One. Two."})
    assert read_transcript(several, "e").text == "One. Two."
    for value in ({"sentences": ["One.", "Two."]}, ["One.", "Two."]):
        assert said(read_transcript(write(tmp_path / "s.json", value))) == [(None, "One."), (None, "Two.")]
    segments = [{"id": n, "start": start, "end": n + 2, "text": f" {n}."} for n, start in enumerate((0.5, "00:02"))]
    recognised = {"text": "0. 1.", "language": "en", "segments": segments}
    transcript = read_transcript(write(tmp_path / "speech.json", recognised))
    assert transcript.said == (Said(" 0.", None, 0.5, 2), Said(" 1.", None, 2, 3))
    assert transcript.counts == {"key 'language'": 1, "values of 'id'": 2}
    (tmp_path / "t.csv").write_text('start,speaker,text\n0:05,Ann,"Hi, all."\n,,Yes.\n')
    assert read_transcript(tmp_path / "t.csv").said == (Said("Hi, all.", "Ann", 5), Said("Yes."))
    with gzip.open(tmp_path / "t.vtt.gz", "wt", encoding="utf-8") as file:
        file.write(VTT)
    assert read_transcript(tmp_path / "t.vtt.gz").speakers == ["Ann & Co", "Bob"]


def test_capital_letters_of_keys_and_columns(tmp_path: Path) -> None:
    wanted = [("Ann", "Hi; all."), ("Bob", "Yes."), ("Bob", "")]
    turns = [{"Speaker": speaker, "Text": text} for speaker, text in wanted]
    (tmp_path / "t.csv").write_text('Text;Speaker;No\n"Hi; all.";Ann;1\nYes.;Bob;2\n;Bob;3\n')
    for path in (tmp_path / "t.csv", write(tmp_path / "t.json", turns), write(tmp_path / "l.jsonl", *turns)):
        assert said(read_transcript(path)) == wanted
    both = read_transcript(
        write(tmp_path / "b.json", [{"Text": "Hi.", "text": "Yes.", "Start": "9:15 AM", "start": 1}])
    )
    assert said(both) == [(None, "Yes.")]
    assert both.counts == {"values of 'Text'": 1, "values of 'Start'": 1}
    rows = [{"id": number, "Speaker": speaker, "text": text} for number, (speaker, text) in enumerate(wanted)]
    assert said(read_transcript(write(tmp_path / "i.jsonl", *rows))) == wanted
    assert read_transcript(write(tmp_path / "x.json", {"Text": "One. Two."})).text == "One. Two."
    (tmp_path / "p.txt").write_text("Start\nWe begin, all of us.\nThe end\n")
    assert [text for _, text in said(read_transcript(tmp_path / "p.txt"))][0] == "Start"


def test_json_of_programs_that_recognise_speech(tmp_path: Path) -> None:
    """Utterances have whole milliseconds, or seconds; the text beside them repeats them; speakers may be numbers."""
    turns = [("A", "We start at nine.", 240, 1890), ("B", "At nine?", 2010, 3700)]
    rows = [dict(zip(("speaker", "text", "start", "end"), turn, strict=True)) for turn in turns]
    document = {"id": "x", "text": "We start at nine. At nine?", "utterances": rows}
    transcript = read_transcript(write(tmp_path / "a.json", document))
    assert transcript.said == (Said("We start at nine.", "A", 0.24, 1.89), Said("At nine?", "B", 2.01, 3.7))
    numbered = [row | {"speaker": number, "start": row["start"] / 1000, "end": None} for number, row in enumerate(rows)]
    transcript = read_transcript(write(tmp_path / "b.json", {"utterances": numbered}))
    assert transcript.said == (Said("We start at nine.", "0", 0.24), Said("At nine?", "1", 2.01))
    for empty in ([], None):
        assert read_transcript(write(tmp_path / "c.json", document | {"utterances": empty})).text == document["text"]
    for value, message in (
        ([{"transcript": "Hi.", "who": 1}], "turn 1: there is no text: its keys are 'transcript', 'who'; those of a"),
        ({"results": {}}, "turn 1: there is no text: its keys are 'results'; .* has turns, .*, transcription or"),
        ([{"text": "Hi.", "speaker": True}], "speaker must be a string"),
        (document | {"segments": rows}, "document x has segments and utterances and text; give one of them"),
    ):
        with pytest.raises(ValueError, match=message):
            read_transcript(write(tmp_path / "d.json", value))


def test_tables_of_whisper_have_milliseconds(tmp_path: Path) -> None:
    """Its `.tsv` has the columns start, end and text, and whole numbers."""
    rows = [["start", "end", "text"], ["0", "2720", "And so we met."], ["2720", "64250", ""], ["64250", "66000", "Yes"]]

    def read(name: str, *rows: list[str]) -> list[tuple[float | None, float | None]]:
        (tmp_path / name).write_text("".join("\t".join(row) + "\n" for row in rows))
        return [(each.start, each.end) for each in read_transcript(tmp_path / name).said]

    assert read("t.tsv", *rows) == [(0, 2.72), (2.72, 64.25), (64.25, 66)]
    assert read("t.csv", *rows)[0] == (0, 2720), "of somebody else: seconds"
    assert read("t.tsv", *rows, ["66000", "67000.5", "No"])[-1] == (66000, 67000.5), "not whole: seconds"
    assert read("t.tsv", *([text, start, end] for start, end, text in rows))[0] == (0, 2720), "another order"


def test_json_of_whisper_cpp(tmp_path: Path) -> None:
    times = [("00:00:00,000", "00:00:03,200"), ("00:00:03,200", "00:00:06,000")]
    turns = [
        {"timestamps": {"from": begin, "to": end}, "offsets": {"from": 0, "to": 1}, "text": " Hi."}
        for begin, end in times
    ]
    transcript = read_transcript(write(tmp_path / "w.json", {"result": {"language": "en"}, "transcription": turns}))
    assert transcript.said == (Said(" Hi.", None, 0, 3.2), Said(" Hi.", None, 3.2, 6))
    assert transcript.counts == {"key 'result'": 1}


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "Ann: Hi.\nBob: Ho.\nAnn: Yes.\n"
    for content, speakers in ((VTT, ["Ann & Co", "Bob"]), (names, ["Ann", "Bob"]), (json.dumps(TURNS), ["Ann", "Bob"])):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content.encode()))))
        transcript = read_transcript(Path("-"))
        assert transcript.speakers == speakers
        assert transcript.name == "standard input"


def test_a_folder_has_no_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder; name a file"):
        read_transcript(tmp_path)


def test_clocks() -> None:
    assert [seconds(text) for text in ("1:02:03.5", "02:03,25", "0:00")] == [3723.5, 123.25, 0]


def of_cues(
    *cues: str, times: str = "00:0{}.000 --> 00:0{}.900", head: str = "WEBVTT\n\n"
) -> list[tuple[str | None, str]]:
    """What is said in cues at 0, 1, 2 and so on."""
    blocks = [f"{times.format(number, number)}\n{cue}\n" for number, cue in enumerate(cues)]
    return said(of_text(head + "\n".join(blocks), "m"))


def test_names_with_additions() -> None:
    """Long ones must return; in cues as in plain text."""
    chair = "The Chair (Hon. Anthony Rota (Nipissing-Timiskaming, Lib.))"
    university = "Maria Lopez (she/her) - University of North Carolina at Chapel Hill"
    turns = [("Ann", "We begin."), (chair, "Order."), (university, "I want red."), ("Ann", "Fine."), (chair, "No.")]
    turns.append((university, "Yes."))
    text = "\n".join(f"[00:01:{10 + number}] {name}: {words}" for number, (name, words) in enumerate(turns))
    assert said(of_text(text, "m")) == turns
    assert of_cues(*(f"{name}: {words}" for name, words in turns)) == turns
    cues = of_cues("Ann: We meet.", "so what we said there: No, we go.", "Ann: Well.", "Bob: Right.", "Ann: Yes.")
    assert cues[1] == (None, "so what we said there: No, we go.")
    assert cues[3] == ("Bob", "Right.")


def test_names_of_cues_return() -> None:
    recipe = ["Sugar: two spoons.", "Milk: one litre.", "Eggs: three."]
    assert of_cues(*recipe) == [(None, text) for text in recipe]


def test_times_of_people_who_talk_over_each_other() -> None:
    lines = "Ann  0:10\nHello.\nBob  0:15\nHi.\nAnn  0:12\nSo.\nBob  0:20\nYes.\nAnn  100:25\nBye."
    transcript = of_text(lines, "m")
    assert said(transcript) == [("Ann", "Hello."), ("Bob", "Hi."), ("Ann", "So."), ("Bob", "Yes."), ("Ann", "Bye.")]
    assert [(each.start, each.end) for each in transcript.said][1:] == [(15, None), (12, 20), (20, 6025), (6025, None)]


@pytest.mark.parametrize("times", [["00:00:00"], ["0:00:00", "0:05:00"]])
def test_short_meetings_with_a_time_every_five_minutes(times: list[str]) -> None:
    turns = [(("Ann", "Bob")[number % 2], f"This is turn {number}.") for number in range(12)]
    parts = [f"{time}\n\n" + "".join(f"{name}: {text}\n" for name, text in turns) for time in times]
    transcript = of_text("Weekly\n" + "\n".join(parts), "m")
    assert said(transcript) == [(None, "Weekly"), *(turns * len(times))]
    assert [each.start for each in transcript.said if each.start is not None] == [0, 300][: len(times)]


def test_cues_in_other_scripts() -> None:
    """Sentences end at the marks of every script, and pieces are joined as the script writes its words."""
    for sentences in (["یہ پہلا ہے۔", "یہ دوسرا ہے۔"], ["ሰላም ነው።", "እሺ ነው።"], ["「晴れです。」", "「はい。」"]):
        assert [text for _, text in of_cues(*sentences)] == sentences
    assert of_cues("我们今天讨论预", "算的问题。") == [(None, "我们今天讨论预算的问题。")]
    assert of_cues("오늘 회의는", "내일 합니다.") == [(None, "오늘 회의는 내일 합니다.")]
    assert of_cues("今天是 A", "B 组") == [(None, "今天是 A B 组")]


def test_the_same_words_of_several_voices_are_no_captions_that_roll() -> None:
    cues = ["<v Ann>Agreed.</v>", "<v Bob>Agreed.</v>", "<v Carl>Agreed.</v>"]
    assert of_cues(*cues) == [("Ann", "Agreed."), ("Bob", "Agreed."), ("Carl", "Agreed.")]


def test_a_text_that_shows_the_times_of_a_cue_is_no_subrip() -> None:
    lines = [*(f"Line {number} of a manual." for number in range(9)), "00:00:01,000 --> 00:00:02,000", "Hello."]
    transcript = of_text("\n".join(lines), "m")
    assert transcript.format == "plain text"
    assert [each.text for each in transcript.said] == [*lines[:9], "Hello."]


SPACES = " " * 200_000


@pytest.mark.parametrize("head", ["", "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"])
@pytest.mark.parametrize(
    "line",
    [
        "00:00:01,000 --> 00:00:02,000 " + "ab:" * 60_000 + " !", "Budget" + SPACES + "1 euros", "<v" + SPACES,
        "<v " * 60_000, "Ann:" + SPACES + "Hi.", "[0:01" + SPACES, "Ann" + SPACES + "0:01", "{\\" * 60_000,
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


def test_a_role_replaces_a_speaker(tmp_path: Path) -> None:
    """As in records, which the other commands read."""
    turns = [{"role": "PM", "speaker": "Ann", "text": "Hi."}, {"role": "ID", "speaker": None, "text": "Yes."}]
    path = write(tmp_path / "m.json", {"id": "a", "turns": turns})
    assert said(read_transcript(path)) == [("PM", "Hi."), ("ID", "Yes.")]


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        ({"turns": [{"speaker": "Ann", "text": "Hi."}, {"role": "PM", "speaker": "B", "text": "Ho."}]}, ["Ann", "PM"]),
        ({"turns": [{"speaker": "\u200b", "text": "Hi."}, {"text": "Ho."}]}, [None, None]),
        ({"sentences": ["Hi.", "Ho."]}, [None, None]),
        ({"text": "Hi. Ho."}, []),
    ],
)
def test_a_record_is_a_transcript_as_its_file_is(
    record: dict[str, Any], wanted: list[str | None], tmp_path: Path
) -> None:
    """`hat ask` on a split of a folder has records, not files."""
    document = {"id": "d", "questions": ["Who?"], **record}
    (tmp_path / "d.jsonl").write_text(json.dumps(document) + "\n")
    read, transcript = read_transcript(tmp_path / "d.jsonl"), of_record(record_from_json(document, "here", "evidence"))
    assert [each.speaker for each in transcript.said] == wanted
    assert (transcript.said, transcript.text, transcript.unit) == (read.said, read.text, read.unit)
    assert read.describe() == f"{transcript.describe()}; skipped or joined: key 'questions' (1)"
