"""Transcripts in every format: who says what, when; what is left out is counted; damage has a place."""

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from time import process_time

import pytest

from hat_fairseq.data.columns import Columns
from hat_fairseq.data.speakers import Said, seconds
from hat_fairseq.data.transcripts import Transcript, listed, of_text, read_transcript


def said(transcript: Transcript) -> list[tuple[str | None, str]]:
    return [(each.speaker, each.text) for each in transcript.said]


def test_plain_text() -> None:
    named = of_text(
        "Ann Lee: Good morning.\r\n\r\nBob: Hi: all.\nand welcome\nAnn Lee: See http://x.org: it is.\n", "m"
    )
    assert said(named) == [
        ("Ann Lee", "Good morning."),
        ("Bob", "Hi: all."),
        ("Bob", "and welcome"),
        ("Ann Lee", "See http://x.org: it is."),
    ]
    assert named.speakers == ["Ann Lee", "Bob"] and not named.has_times and named.format == "plain text"
    without = of_text("It was late.\nNote: it rained.\nWe left.\n10:30 is fine.", "m")
    assert said(without) == [(None, t) for t in ("It was late.", "Note: it rained.", "We left.", "10:30 is fine.")]
    assert of_text("Präsidentin Dr. Bas (SPD):  Danke.\n王先生：你好。", "m").speakers == [
        "Präsidentin Dr. Bas (SPD)",
        "王先生",
    ]
    marked = of_text("**Ann:** *Good* morning.\n\n**Bob**: Hi.\n_Carl:_ Yes.\n*not a name* today", "m")
    assert said(marked) == [
        ("Ann", "*Good* morning."),
        ("Bob", "Hi."),
        ("Carl", "Yes."),
        ("Carl", "*not a name* today"),
    ]
    assert of_text("One. Two. Three.\n", "m").text == "One. Two. Three.\n", "a single line is running text"
    assert of_text("One.\nTwo.", "m", running=True).text == "One.\nTwo."


@pytest.mark.parametrize(
    "line",
    [
        "[00:01:05] Ann: Hi.",
        "00:01:05 Ann: Hi.",
        "(1:05) - Ann: Hi.",
        "Ann (01:05): Hi.",
        "**Ann** (1:05): Hi.",
        "[0:01:05 / 3:00] Ann: Hi.",
        "\u200e[00:01:05] Ann: Hi.",
        "[00:01:05] >> Ann: Hi.",
        "**[00:01:05] Ann:** Hi.",
        "[00:01:05] [Ann]: Hi.",
        "[00:01:05] [Ann] Hi.",
        "00:01:05 <Ann> Hi.",
        "Ann, 1:05: Hi.",
        "Ann – 00:01:05: Hi.",
        "- Ann, 1:05: Hi.",
        "* **Ann** (1:05): Hi.",
        "- [00:01:05] Ann: Hi.",
        "Ann: [00:01:05] Hi.",
        "Ann: (1:05) Hi.",
        "Ann [0:01:05] Hi.",
        "**Ann** [1:05] Hi.",
    ],
)
def test_times_of_plain_text(line: str) -> None:
    transcript = of_text(f"{line}\n{line.replace(':05', ':07').replace('Ann', 'Bob')}", "m")
    assert transcript.said == (Said("Hi.", "Ann", 65, 67), Said("Hi.", "Bob", 67))


@pytest.mark.parametrize("form", ["[{0}s -> {1}s] {2}: {3}", "{2} [{0} -> {1}]: {3}", "[{0} --> {1}] {2}: {3}"])
def test_times_in_seconds(form: str) -> None:
    turns = [(65.25, 67.5, "Ann", "Hi."), (67.5, 70.0, "Bob", "Yes: [0.1 - 0.5] is the interval.")]
    transcript = of_text("\n".join(form.format(*turn) for turn in turns), "m")
    assert [(each.start, each.speaker, each.text) for each in transcript.said] == [
        turn[:1] + turn[2:] for turn in turns
    ]
    alone = of_text("[0.00s -> 5.00s] Hello there\n[5.00s -> 7.50s] and good bye\n", "m")
    assert alone.said == (Said("Hello there", None, 0, 5), Said("and good bye", None, 5, 7.5))


@pytest.mark.parametrize(
    ("form", "times"),
    [
        ("[{day}.05.24, {}] {}: {}", ["09:15:01", "21:17:30", "08:01:02"]),
        ("\u200e[{day}/5/2024, {}] {}: \u200e{}", ["9:15:01\u202fAM", "9:17:30\u202fPM", "8:01:02\u202fAM"]),
        ("{day}/05/2024, {} - {}: {}", ["09:15", "21:17", "08:01"]),
        ("{day}/05/2024 {} - {}: {}", ["09:15", "21:17", "08:01"]),
        ("{day}/05/2024 à {} - {}: {}", ["09:15", "21:17", "08:01"]),
        ("[{day}.05.24 um {}] {}: {}", ["09:15:01", "21:17:30", "08:01:02"]),
        ("{day}/5/24, {} - {}: {}", ["9:15 a. m.", "9:17 p. m.", "8:01 a. m."]),
    ],
)
def test_chats(form: str, times: list[str]) -> None:
    """As WhatsApp exports them: a message of its own has no speaker, and numbers are names, too."""
    turns = [("Ann Lee", "Hi: all."), ("+49 170 1234567", "Hello."), ("Ann Lee", "Next day.")]
    lines = [
        form.format(time, *turn, day=day) for time, turn, day in zip(times, turns, ("13", "13", "14"), strict=True)
    ]
    note = form.partition("{}: ")[0].format(times[0], day="13") + "Messages are encrypted."
    transcript = of_text("\n".join([note, *lines[:2], "a second line", lines[2]]), "m")
    said_by_the_program = (None, "Messages are encrypted.")
    assert said(transcript) == [said_by_the_program, *turns[:2], (turns[1][0], "a second line"), turns[2]]
    starts = [each.start for each in transcript.said]
    assert [start and int(start // 60) for start in starts] == [555, 555, 1277, None, 481]
    assert transcript.describe() == "m: chat, 5 turns of 2 speakers; left out or joined: dates (4)"


@pytest.mark.parametrize(
    "text",
    [
        "03.05.2024 09:15 Dentist\n04.05.2024 10:00 School",
        "03.05.2024 18:00 Training\nHall A\n10.05.2024 18:00 Training\nHall B\n17.05.2024 18:00 Training\nHall A",
        "Concert - 03.05.2024 11:00\nIn the hall.\nConcert - 04.05.2024 11:00\nIn the garden.",
        "2024-05-03 09:15:01 error: disk full\n2024-05-03 09:15:02 warning: slow\n2024-05-03 09:15:03 error: ended",
        "[52.52, 13.40] Berlin\n[48.85, 2.35] Paris\n[51.50, -0.12] London",
        "[0.12 - 0.45] effect of age\n[0.20 - 0.61] effect of sex",
        "03.05.2024, 18:00 - Training: Hall A\n10.05.2024, 18:00 - Match: Hall B",
    ],
)
def test_dates_and_intervals_stay_in_the_text(text: str) -> None:
    transcript = of_text(text, "m")
    assert [each.text for each in transcript.said] == text.split("\n") and not transcript.has_times


@pytest.mark.parametrize(
    "heading",
    [
        "Ann Lee  1:05",
        "**Ann Lee** (1:05)",
        "[Ann Lee] 00:01:05",
        "Ann Lee\t(01:05):",
        "Ann Lee   0:01:05.2 ",
        "### Ann Lee (1:05)",
        "Ann Lee - 00:01:05",
        "Ann Lee | 1:05",
    ],
)
def test_names_and_times_on_lines_of_their_own(heading: str) -> None:
    """As programs for meetings write them; a line that only ends in a time is text."""
    after = heading.replace("1:05", "1:09").replace("Ann Lee", "Bob")
    transcript = of_text(f"{heading}\nWe meet at 10:30\nAll of us.\n\n{after}\nYes: gladly.\n", "m")
    time = 65.2 if ".2" in heading else 65
    assert said(transcript) == [("Ann Lee", "We meet at 10:30"), ("Ann Lee", "All of us."), ("Bob", "Yes: gladly.")]
    assert [each.start for each in transcript.said] == [time, None, time + 4] and transcript.unit == "turn"
    for text in ("We meet at 10:30\nWho comes?\nI do.\nWhere?", f"Yes.\n{heading}\nNo.", f"{heading}\nYes."):
        assert not of_text(text, "m").speakers


@pytest.mark.parametrize("form", ["{}: {}", "{}:\n{}", "- **{}**: {}"])
def test_names_between_times_alone_on_their_lines(form: str) -> None:
    """As programs write a time every five minutes."""
    turns = [(name, f"Part {part} of {name}.") for part in range(4) for name in ("Ann Lee", "Bob", "Ann Lee")]
    lines = ["Weekly: 3 May", "Ann Lee, Bob"]
    for number, turn in enumerate(turns):
        lines += [f"00:{5 * number // 3:02}:00"] * (number % 3 == 0) + [form.format(*turn)]
    transcript = of_text("\n\n".join(lines), "m")
    expected = [time for minutes in (0, 5, 10, 15) for time in (60 * minutes, None, None)]
    assert said(transcript)[-12:] == turns and [each.start for each in transcript.said][-12:] == expected
    without = of_text("\n".join(f"0:0{number}\nNo name {number}: here\nYes." for number in range(5)), "m")
    assert not without.speakers and [each.start for each in without.said][::2] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "text",
    [
        "Decision to launch in May [12:30]\nVote on the budget [12:45]\nEnd of the meeting [13:00]",
        "Opening [0:00]\nBudget [0:45]\nClosing [1:30]",
        "and my point: it works\n0:05\nthe other: it does not\n0:10\nso one thing: wait\n0:15\nfor me: no",
        "3. Mai: Beginn um neun\n4. Mai: Ende um drei\n5. Mai: frei",
    ],
)
def test_notes_with_times_and_numbers_have_no_names(text: str) -> None:
    assert not of_text(text, "m").speakers


def test_a_time_at_the_beginning_of_what_is_said() -> None:
    transcript = of_text("Ann: When do we meet?\nBob: (9:30) is fine.\nAnn: Good.", "m")
    assert transcript.said[1] == Said("(9:30) is fine.", "Bob")
    assert of_text("Ann (0:01): (0:05) is early.\nBob (0:03): Yes.", "m").said[0] == Said(
        "(0:05) is early.", "Ann", 1, 3
    )


def test_a_speaker_who_says_nothing_is_no_text() -> None:
    lines = ["Ida  1:23", "Hello.", "Ben  1:25", "Greta  1:27", "Fine.", "Ben  1:29", "Yes.", "Ida  1:30", "Ok."]
    transcript = of_text("\n\n".join(lines), "m")
    assert said(transcript) == [("Ida", "Hello."), ("Greta", "Fine."), ("Ben", "Yes."), ("Ida", "Ok.")]


@pytest.mark.parametrize("form", ["{} {}", "[{}] {}:", "**{}** {}", "{}   {}", "{} - {}"])
def test_times_before_names_on_lines_of_their_own(form: str) -> None:
    """If the names return: else they are what is said. `PM` is a name, too."""
    names, turns = ["Ann Lee", "PM", "Ann Lee", "PM"], list[str]()
    for number, name in enumerate(names):
        turns += [form.format(f"00:0{number}:30", name), "We meet at 10:30", "All of us."]
    transcript = of_text("\n".join(turns), "m")
    assert [*said(transcript)] == [(name, text) for name in names for text in turns[1:3]]
    assert [each.start for each in transcript.said if each.start is not None] == [30, 90, 150, 210]
    text = "\n".join(
        f"[00:0{number}] {line}\nand more" for number, line in enumerate(("Yes.", "So what?", "Yes.", "No."))
    )
    assert not of_text(text, "m").speakers


@pytest.mark.parametrize(
    "form", ["**{}:** {}", "__{}:__ {}", "[{}]: {}", "[{}] {}", "<{}> {}", "***{}***: {}", "- {}: {}", "• **{}:** {}"]
)
def test_names_in_brackets_and_in_emphasis(form: str) -> None:
    names = ["SPEAKER_00", "SPEAKER_01", "SPEAKER_00"]
    turns = [*zip(names, ["Hi.", "[laughter] Note: yes.", "*Why* not?"], strict=True)]
    assert [*said(of_text("\n".join(form.format(*turn) for turn in turns), "m"))] == turns


def test_notes_in_brackets_are_no_names() -> None:
    for text in (
        "[laughter]\n[laughter] So.\n[music] la\n",
        "[Music]\n[Music]\n[Applause]\n",
        "<i> is a tag.\nIs it?\n",
    ):
        transcript = of_text(text, "m")
        assert not transcript.speakers and [each.text for each in transcript.said] == text.splitlines()


@pytest.mark.parametrize("heading", ["Ann Lee:", "**Ann Lee:**", "__Ann Lee__ :", "Ann Lee："])
def test_names_alone_on_lines_of_their_own(heading: str) -> None:
    """If one of the names returns: else they are the headings of a text."""
    after = heading.replace("Ann Lee", "Bob")
    for others in ("All of us.\n", "Note: all of us.\n\n"):
        transcript = of_text(f"{heading}\nWe meet at 10:30\n{others}{after}\nYes: gladly.\n{heading}\nFine.", "m")
        turns = [*said(transcript)]
        assert turns == [
            ("Ann Lee", "We meet at 10:30"), ("Ann Lee", others.strip()), ("Bob", "Yes: gladly."), ("Ann Lee", "Fine.")
        ]  # fmt: skip
        assert not transcript.has_times and transcript.unit == "turn"
    mixed = f"{heading}\nHi.\n{after}\nMy points:\nMoney.\n{heading}\nOk.\nCarl:\nWhy?"
    assert [who for who, _ in said(of_text(mixed, "m"))] == ["Ann Lee", "Bob", "Bob", "Ann Lee", "Carl"]
    for text in (f"{heading}\nWe meet.\n{after}\nYes.", f"Yes.\n{heading}\nNo.\n{heading}\nNo."):
        assert not of_text(text, "m").speakers


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (["[00:00:01.000 --> 00:00:05.500]  Hi.", "[00:00:06.000 --> 00:00:09.000]  Ho."], [(1, 5.5), (6, 9)]),
        (["[0:01 - 0:05] Ann: Hi.", "[0:07 – 0:09] Bob: Ho."], [(1, 5), (7, 9)]),
        (["Ann (0:01-0:05): Hi.", "Bob (0:07-0:09): Ho."], [(1, 5), (7, 9)]),
        (["[9:15 AM] Ann: Hi.", "[12:16 p.m.] Bob: Ho."], [(33_300, 44_160), (44_160, None)]),
        (["11:59:30 PM Ann: Hi.", "12:00:10 AM Bob: Ho."], [(86_370, 10), (10, None)]),
        (["0:01", "Hi.", "0:07", "Ho."], [(1, 7), (7, None)]),
        (["0:00:01.000,0:00:05.500", "Hi.", "0:00:07.000,0:00:09.000", "Ho."], [(1, 5.5), (7, 9)]),
    ],
)
def test_beginning_and_end_of_a_time(lines: list[str], times: list[tuple[float, float | None]]) -> None:
    """A time may have an end, or be one of the day; it is no part of the text."""
    transcript = of_text("\n".join(lines), "m")
    assert [each.text for each in transcript.said] == ["Hi.", "Ho."]
    assert [(each.start, each.end) for each in transcript.said] == times
    assert transcript.speakers == (["Ann", "Bob"] if "Ann" in lines[0] else [])


def test_what_is_said_is_no_time_and_no_name() -> None:
    """Times and names of another form than those of most lines stay in the text, as does a name without text."""
    lines = ["[00:01] Ann: Hi.", "10:30 is too late.", "[00:05] Bob: Ok.", "(5:00) is fine.", "[00:09] Ann: Good."]
    assert said(of_text("\n".join(lines), "m")) == [
        ("Ann", "Hi."), ("Ann", "10:30 is too late."), ("Bob", "Ok."), ("Bob", "(5:00) is fine."), ("Ann", "Good.")
    ]  # fmt: skip
    lines = ["Minutes of May", "Ann  0:03", "We need three things:", "time.", "The date (10:30)", "Bob  0:10", "Ok."]
    after = [("Ann", "We need three things:"), ("Ann", "time."), ("Ann", "The date (10:30)"), ("Bob", "Ok.")]
    assert said(of_text("\n".join(lines), "m")) == [(None, "Minutes of May"), *after]
    lines = ["Ann (0:03)", "Hi.", "The date (10:30)", "is fine.", "Bob (0:10)", "Ok."]
    after = [("Ann", "The date (10:30)"), ("Ann", "is fine."), ("Bob", "Ok.")]
    assert said(of_text("\n".join(lines), "m")) == [("Ann", "Hi."), *after]
    lines = ["Opening  9:00", "Budget  9:30", "Lunch  12:00", "The afternoon is free.", "Bring food."]
    assert not of_text("\n".join(lines), "m").speakers


def test_long_texts_under_a_heading() -> None:
    lines = [line for n in range(4) for line in (f"{'AB'[n % 2]}nn  {n}:00", *["Some words."] * 9)]
    assert [each.start for each in of_text("\n".join(lines), "m").said if each.start is not None] == [0, 60, 120, 180]


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
    assert transcript.format == "WebVTT" and transcript.said == (
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
    assert [each.text for each in transcript.said] == ["Yes."] and transcript.counts["cues without text"] == 1


def test_subrip_with_names_and_blank_lines() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n<b>ANN:</b> We go\n\non like\n2\n00:00:02,100 --> 00:00:03,000\nANN: this.\n"
    )
    text += "\n3\n00:00:09,000 --> 00:00:10,000\n{\\an8}BOB: A &amp; B\n2020\n\n4\n00:00:20,000 --> 00:00:21,000\n\n"
    transcript = of_text(text.replace("\n", "\r\n"), "m")
    assert transcript.said == (Said("We go on like this.", "ANN", 1, 3), Said("A & B 2020", "BOB", 9, 10))
    assert transcript.counts["cue identifiers"] == 4 and transcript.counts["cues without text"] == 1
    assert "cue identifiers (4)" in listed(transcript.counts) and "lines outside" not in listed(transcript.counts)


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
    transcript = of_text(f"{head}00:03 --> 00:05 Eva: Good day\n\n00:06 --> 00:09  Tim: Yes.\nGladly.\n", "m")
    assert transcript.said == (Said("Good day", "Eva", 3, 5), Said("Yes. Gladly.", "Tim", 6, 9))
    assert not transcript.counts["cue settings"]
    transcript = of_text(f"{head}00:03.000 --> 00:05.000 X1:40 line:9%,end\nEva: Hi.\n", "m")
    assert transcript.said == (Said("Hi.", "Eva", 3, 5),) and transcript.counts["cue settings"] == 1


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
    words = ["Yes.", "Yes.", "No.", "Go."]
    repeated = "".join(f"00:0{n}.000 --> 00:0{n + 1}.000\n{word}\n\n" for n, word in enumerate(words))
    assert [each.text for each in of_text(f"WEBVTT\n\n{repeated}", "m").said] == words, "somebody says it twice"


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


TURNS = [{"speaker": "Ann", "text": "Hi."}, {"role": "Bob", "text": "Yes."}, {"text": None}]


def test_json(tmp_path: Path) -> None:
    wanted = [("Ann", "Hi."), ("Bob", "Yes."), (None, "")]
    document = {"id": "d", "turns": TURNS, "questions": ["q"], "meta": {"a": 1}}
    assert said(read_transcript(write(tmp_path / "turns.jsonl", *TURNS))) == wanted
    assert said(read_transcript(write(tmp_path / "list.txt", TURNS))) == wanted, "by content, not by the name"
    one = read_transcript(write(tmp_path / "one.jsonl", document))
    assert said(one) == wanted and one.name == "d" and one.counts == {"key 'questions'": 1}
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


def test_other_names_of_keys_and_columns(tmp_path: Path) -> None:
    """`--columns` names them in tables, turns and documents; only capital letters need no name."""
    wanted = [("Ann", "Hi; all."), ("Bob", "Yes."), ("Bob", "")]
    turns = [{"Speaker": speaker, "Text": text} for speaker, text in wanted]
    (tmp_path / "t.csv").write_text('Text;Speaker;No\n"Hi; all.";Ann;1\nYes.;Bob;2\n;Bob;3\n')
    for path in (tmp_path / "t.csv", write(tmp_path / "t.json", turns), write(tmp_path / "l.jsonl", *turns)):
        assert said(read_transcript(path)) == wanted
    both = read_transcript(
        write(tmp_path / "b.json", [{"Text": "Hi.", "text": "Yes.", "Start": "9:15 AM", "start": 1}])
    )
    assert said(both) == [(None, "Yes.")] and both.counts == {"values of 'Text'": 1, "values of 'Start'": 1}
    rows = [{"id": number, "Speaker": speaker, "text": text} for number, (speaker, text) in enumerate(wanted)]
    assert said(read_transcript(write(tmp_path / "i.jsonl", *rows))) == wanted
    assert read_transcript(write(tmp_path / "x.json", {"Text": "One. Two."})).text == "One. Two."
    (tmp_path / "p.txt").write_text("Start\nWe begin, all of us.\nThe end\n")
    assert [text for _, text in said(read_transcript(tmp_path / "p.txt"))][0] == "Start"
    (tmp_path / "o.csv").write_text("who,what,no\nAnn,Hi; all.,\nBob,Yes.,\nBob,,\n")
    turns = [{"who": speaker, "what": text} for speaker, text in wanted]
    document = write(tmp_path / "d.json", {"title": "t", "who": "Weekly", "talk": turns})
    pairs = ("text=what", "speaker=who")
    for path, columns in (
        (tmp_path / "o.csv", pairs),
        (tmp_path / "o.csv", (*pairs, "=no")),
        (write(tmp_path / "o.json", turns), pairs),
        (document, (*pairs, "turns=talk", "=title")),  # whose own key `who` is no speaker
    ):
        transcript = read_transcript(path, columns=Columns(columns))
        assert said(transcript) == wanted and transcript.counts == Counter({"key 'who'": path == document})
    for path, columns, message in (
        (document, ("turns=talk", "text=other"), "names 'other', and the keys are 'title', 'who', 'talk', 'what'"),
        (tmp_path / "o.csv", ("text=other",), "names 'other', and the columns are 'who', 'what', 'no'"),
        (write(tmp_path / "c.json", [{"text": "a", "what": "b"}]), ("text=what",), "it has 'text' besides 'what'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_transcript(path, columns=Columns(columns))
    (tmp_path / "p.vtt").write_text(VTT)
    with pytest.raises(ValueError, match="--columns has no effect on .*p.vtt, which is plain text or subtitles"):
        read_transcript(tmp_path / "p.vtt", columns=Columns(pairs))


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
        ({"results": {}}, "turn 1: there is no text: its keys are 'results'; .* document has turns, .*, utterances or"),
        ([{"text": "Hi.", "speaker": True}], "speaker must be a string"),
        (document | {"segments": rows}, "document x has segments and utterances and text; give one of them"),
    ):
        with pytest.raises(ValueError, match=message):
            read_transcript(write(tmp_path / "d.json", value))


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_tables_of_whisper_have_milliseconds(delimiter: str, tmp_path: Path) -> None:
    rows = [["start", "end", "text"], ["0", "2720", "And so we met."], ["2720", "64250", ""], ["64250", "66000", "Yes"]]

    def read(*rows: list[str]) -> list[tuple[float | None, float | None]]:
        (path := tmp_path / "t.tsv").write_text("".join(delimiter.join(row) + "\n" for row in rows))
        return [(each.start, each.end) for each in read_transcript(path).said]

    assert read(*rows) == [(0, 2.72), (2.72, 64.25), (64.25, 66)]
    assert read(*rows, ["66000", "67000.5", "No"])[-1] == (66000, 67000.5), "not whole: seconds"
    assert read(*([text, start, end] for start, end, text in rows))[0] == (0, 2720), "another order"
    assert read(rows[0], ["0", "4", "We met."], ["4", "2000", "Now we go on " * 20])[-1] == (4, 2000), "can be seconds"


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, speakers in ((VTT, ["Ann & Co", "Bob"]), ("Ann: Hi.\n", ["Ann"]), (json.dumps(TURNS), ["Ann", "Bob"])):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content.encode()))))
        transcript = read_transcript(Path("-"))
        assert transcript.speakers == speakers and transcript.name == "standard input"


def test_a_folder_has_no_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder; name a file"):
        read_transcript(tmp_path)


def test_clocks() -> None:
    assert [seconds(text) for text in ("1:02:03.5", "02:03,25", "0:00")] == [3723.5, 123.25, 0]


@pytest.mark.parametrize("name", ["m.json", "m.jsonl", "m.csv", "m", "m.docx"])
def test_webvtt_under_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(VTT, encoding="utf-8")
    assert read_transcript(tmp_path / name).format == "WebVTT"


def of_cues(
    *cues: str, times: str = "00:0{}.000 --> 00:0{}.900", head: str = "WEBVTT\n\n"
) -> list[tuple[str | None, str]]:
    """What is said in cues at 0, 1, 2 and so on."""
    blocks = [f"{times.format(number, number)}\n{cue}\n" for number, cue in enumerate(cues)]
    return said(of_text(head + "\n".join(blocks), "m"))


def test_names_with_additions() -> None:
    """What is in brackets or after a dash does not make a name too long for one; other long names leave it unknown."""
    chair = "The Chair (Hon. Anthony Rota (Nipissing-Timiskaming, Lib.))"
    university = "Maria Lopez (she/her) - University of North Carolina at Chapel Hill"
    turns = [("Ann", "We begin."), (chair, "Order."), (university, "I want red."), ("Ann", "Fine."), (chair, "No.")]
    text = "\n".join(f"[00:01:{10 + number}] {name}: {words}" for number, (name, words) in enumerate(turns))
    assert said(of_text(text, "m")) == turns
    assert of_cues(*(f"{name}: {words}" for name, words in turns)) == turns
    for sentence in (
        "Well - as I said in the long meeting of last week: no.",
        "This (of which we spoke a week or so ago): no.",
    ):
        assert said(of_text(f"Ann: Hi.\n{sentence}\nBob: Ho.\nAnn: Yes.", "m"))[1] == ("Ann", sentence)
    unknown = text.replace(university, "4F Meeting Room")
    assert said(of_text(unknown, "m"))[2] == (None, "4F Meeting Room: I want red.")
    cues = of_cues(
        "Ann: We meet.",
        "4F Room: No, we go.",
        "Ann: Well,",
        "so what we said in the first meeting: yes.",
        "Bob: Right.",
    )
    assert cues[1] == (None, "4F Room: No, we go.") and cues[2] == (
        "Ann",
        "Well, so what we said in the first meeting: yes.",
    )


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


def test_cues_with_the_name_on_a_line_of_its_own() -> None:
    """As old transcripts of Teams, whose seconds have one digit up to nine; and as Webex, before the times."""
    turns = [("Ann Lee", "Hello."), ("Bob", "Hi, all."), ("Ann Lee", "The budget\nis ten."), ("Bob", "Yes.")]
    expected = [(name, " ".join(text.split())) for name, text in turns]
    for times in ("0:0:{}.1 --> 0:0:{}.9", "00:00:0{}.100 --> 00:00:0{}.900"):
        assert of_cues(*(f"{name}\n{text}" for name, text in turns), times=times, head="") == expected
    assert of_cues("We met on\nMonday.", "It was\nfine.", "We met on\nFriday.") == [
        (None, "We met on Monday."),
        (None, "It was fine."),
        (None, "We met on Friday."),
    ]
    cues = [f'{number} "{name}" (39{number})\n00:0{number}.000 --> 00:0{number}.900\n{text}\n'
            for number, (name, text) in enumerate(turns)]  # fmt: skip
    assert said(of_text("WEBVTT\n\n" + "\n".join(cues), "m")) == expected


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
    assert [each.text for each in of_text("\n".join(lines), "m").said] == lines


@pytest.mark.parametrize(
    "line", ["00:00:01,000 --> 00:00:02,000 " + "ab:" * 200 + " !", "Budget" + " " * 3000 + "1 euros"]
)
def test_long_lines_take_no_time(line: str) -> None:
    start = process_time()
    of_text(f"{line}\nHello.\n{line}\nYes.", "m")
    assert process_time() - start < 5


def test_a_message_of_the_program_with_a_colon() -> None:
    messages = ["Ann changed the subject to “Project: phase 2”", "Ann: Hi", "Bob: Hi", "Ann: ok"]
    transcript = of_text("\n".join(f"12/05/2024, 9:15 - {message}" for message in messages), "m")
    assert said(transcript) == [(None, messages[0]), ("Ann", "Hi"), ("Bob", "Hi"), ("Ann", "ok")]
    text = "\n".join(f"12/05/2024, 9:15 - {name}: Hi" for name in ("Ann", "Ann Lee", "Ann"))
    assert of_text(text, "m").speakers == ["Ann", "Ann Lee"]


def test_a_role_replaces_a_speaker(tmp_path: Path) -> None:
    """As in records, which the other commands read."""
    turns = [{"role": "PM", "speaker": "Ann", "text": "Hi."}, {"role": "ID", "speaker": None, "text": "Yes."}]
    path = write(tmp_path / "m.json", {"id": "a", "turns": turns})
    assert said(read_transcript(path)) == [("PM", "Hi."), ("ID", "Yes.")]
