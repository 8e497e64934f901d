"""The page of `hat ask` in a real browser: every passage is marked, reachable by mouse and keyboard, and plain text."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hat_fairseq.data.speakers import Said
from hat_fairseq.data.transcripts import Transcript
from hat_fairseq.units.answers import Answers, Line, Passage, Question
from hat_fairseq.units.ask_page import ask_page
from hat_fairseq.units.evidence import Evidence

BAD = "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 1'><!-- {script}{data}"
THRESHOLD = 0.5
Open = Callable[[str], Any]


def passage(first: int, last: int, probability: float, *lines: int, ranked: bool = True) -> Passage:
    of_passage = tuple(Line(number, 0, 1, probability, f"text {number}") for number in lines)
    return Passage(1 if ranked else None, probability, first, last, 0, 1, (), "text", of_passage)


def question(text: str, probabilities: Sequence[float | None], *passages: Passage, **more: Any) -> Question:
    answered = all(each.rank for each in passages)
    found: dict[str, Any] = {"passages": passages} if answered else {"passages": (), "closest": passages[0]}
    return Question(text, answered, 0.5, probabilities=tuple(probabilities), **{"threshold": THRESHOLD} | found | more)


def answers_of(said: Sequence[Said], *questions: Question) -> Answers:
    """Of a meeting; the page does not read the record."""
    record = Evidence("meeting.vtt", questions=("?",), sentences=("",))
    return Answers("meeting.vtt", questions, True, record, Transcript("meeting.vtt", "WebVTT", tuple(said)), {})


def asked(units: int = 300, speakers: bool = True, times: bool = True) -> Answers:
    """Three questions: of two passages; of none; of the last turn."""
    low: list[float | None] = [0.01 * (n % 7) for n in range(units)]
    first, last = low[:], low[:]
    first[40:43], first[200:220] = [0.6, 0.7, 0.6], [0.8] * 20
    first[210], last[-1], first[7] = 0.9, 0.95, None
    said = [
        Said(
            f"text {n} of the meeting " + "with many words " * (n % 9),
            ("Ann" if n % 3 else "Bob" if n else None) if speakers else None,
            12.0 * n if times and n != 5 else None,
        )
        for n in range(units)
    ]
    return answers_of(
        said,
        question("What does it cost?", first, passage(200, 219, 0.9, 210, 205), passage(40, 42, 0.7, 41, 40, 42)),
        question("Who is late?", low, passage(6, 6, 0.06, 6, ranked=False)),
        question("When do we meet?", last, passage(units - 1, units - 1, 0.95, units - 1)),
    )


def parts(opened: Any, selector: str) -> list[list[str]]:
    """The texts inside of some elements; the text as drawn is empty until a browser has drawn what it scrolled to."""
    return opened.locator(selector).evaluate_all(
        "items => items.map(item => [...item.children].map(c => c.textContent))"
    )


def draw(opened: Any) -> None:
    """Waits until two frames are drawn: what they show for the first time may move the rest."""
    opened.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def numbers(opened: Any, name: str) -> list[int]:
    """The turns that look so."""
    return [int(text) - 1 for text in opened.locator(f"#transcript .{name} .number").all_text_contents()]


def is_visible(opened: Any, unit: int) -> bool:
    """Whether a turn is inside the box of the transcript and the window."""
    inside = """unit => { const box = document.getElementById("transcript").getBoundingClientRect();
        const item = document.querySelectorAll("#transcript p")[unit].getBoundingClientRect();
        return item.top >= Math.max(0, box.top) - 1 && item.bottom <= Math.min(innerHeight, box.bottom) + 1; }"""
    return bool(opened.evaluate(inside, unit))


def test_passages_are_marked_and_listed(open_page: Open) -> None:
    opened = open_page(ask_page(asked(), "a/model"))
    assert opened.title() == "meeting.vtt – hat ask"
    assert "a/model" in opened.inner_text("#about")
    assert numbers(opened, "shown") == [*range(200, 220)]
    assert numbers(opened, "marked") == [40, 41, 42]
    assert parts(opened, "#passages .place") == [
        ["1", "90 %", "turns 201–220", "0:40:00", "Ann, Bob"],
        ["2", "70 %", "turns 41–43", "0:08:00", "Ann, Bob"],
    ]
    excerpts = [" ".join(text.split()) for text in opened.locator("#passages .excerpt").all_text_contents()]
    assert excerpts[0].startswith("211 · 0:42:00 · Bob text 210 of")
    assert excerpts[1].startswith("206 · 0:41:00 · Ann")
    assert len(excerpts) == 5
    assert excerpts[2].startswith("42 · 0:08:12 · Ann text 41 of"), "best line first"
    assert numbers(opened, "line") == [205, 210]
    assert numbers(opened, "best") == [210]
    assert is_visible(opened, 210)
    assert not is_visible(opened, 0)
    opened.click("#passages button >> nth=1")
    assert numbers(opened, "shown") == [40, 41, 42]
    assert is_visible(opened, 40)
    assert numbers(opened, "line") == [40, 41, 42]
    assert numbers(opened, "best") == [41]
    assert parts(opened, "#transcript p >> nth=40")[0][:3] == ["41", "0:08:00", "Ann"]
    opened.select_option("#question", label="Who is late?")
    assert opened.inner_text("#note") == "No passage answers this question. This is the closest one."
    assert numbers(opened, "shown") == numbers(opened, "line") == [6]
    assert numbers(opened, "marked") == numbers(opened, "best") == []
    assert opened.is_disabled("#next")
    assert opened.is_disabled("#previous")


@pytest.mark.slow
def test_the_keyboard(open_page: Open) -> None:
    opened = open_page(ask_page(asked(), "a/model"))
    for key, shown, position in (
        ("n", 40, "2 of 2 passages"),
        ("n", 40, "2 of 2 passages"),
        ("p", 200, "1 of 2 passages"),
        ("ArrowRight", 6, "closest"),
        ("ArrowRight", 299, "1 of 1 passage"),
        ("ArrowRight", 299, "1 of 1 passage"),
        ("ArrowLeft", 6, "closest"),
        ("ArrowLeft", 200, "1 of 2 passages"),
    ):
        opened.keyboard.press(key)
        assert numbers(opened, "shown")[0] == shown, key
        assert opened.inner_text("#position") == position, key
        assert is_visible(opened, shown) or shown == 200
    opened.focus("#question")
    opened.keyboard.press("ArrowDown")
    assert opened.input_value("#question") == "1"
    assert opened.inner_text("#asked") == "Who is late?"
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("n")
    assert numbers(opened, "shown") == [40, 41, 42]
    for _ in range(2):
        opened.keyboard.press("Tab")  # to the buttons, of which one is off at the end
    opened.focus("#previous")
    opened.keyboard.press("Enter")
    assert numbers(opened, "shown")[0] == 200


@pytest.mark.parametrize("width", [1280, 360])
def test_the_direction_of_arabic(width: int, open_page: Open) -> None:
    """A full stop stands at the left end of Arabic, and what follows a name in the line below the bar, after it."""
    asked_in_arabic = question("أين؟", [0.9, 0.1, 0.1, 0.1], passage(0, 0, 0.9, 0))
    texts, speakers = ["صباح الخير.", "Good morning.", "a", "b"], ["سامي", "Ann", "Ann", "Ann"]
    opened = open_page(ask_page(answers_of(list(map(Said, texts, speakers)), asked_in_arabic), "a/model"))
    opened.set_viewport_size({"width": width, "height": 740})
    left = """([selector, character]) => {
        const nodes = document.createTreeWalker(document.querySelector(selector), NodeFilter.SHOW_TEXT);
        while (nodes.nextNode()) {
          const at = nodes.currentNode.data.indexOf(character), range = document.createRange();
          if (at < 0) continue;
          range.setStart(nodes.currentNode, at);
          range.setEnd(nodes.currentNode, at + 1);
          return range.getBoundingClientRect().left;
        }}"""
    for selector in ("#transcript p .text", "#passages .excerpt"):
        assert opened.evaluate(left, [selector, "."]) < opened.evaluate(left, [selector, "ص"])
    second = "#transcript p:nth-child(2) .text"
    assert opened.evaluate(left, [second, "."]) > opened.evaluate(left, [second, "G"])
    assert opened.inner_text("#under") == "turn 1 · سامي · 90 %"
    assert opened.evaluate(left, ["#under", "9"]) > opened.evaluate(left, ["#under", "س"])


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 360])
def test_the_bar(width: int, open_page: Open) -> None:
    opened = open_page(ask_page(asked(), "a/model"))
    opened.set_viewport_size({"width": width, "height": 740})
    for unit, shown in ((41, [40, 41, 42]), (100, [40, 41, 42]), (215, [*range(200, 220)])):
        draw(opened)
        box = opened.locator("#bar canvas").bounding_box()  # the page scrolls
        opened.mouse.click(box["x"] + (unit + 0.5) / 300 * box["width"], box["y"] + 5)
        draw(opened)
        (here,) = numbers(opened, "here")
        assert abs(here - unit) <= 1, "a pixel of a narrow bar is about a turn"
        assert is_visible(opened, here)
        assert numbers(opened, "shown") == shown
        assert opened.inner_text("#under").startswith(f"turn {here + 1} · 0:{here // 5:02}:")
    assert opened.inner_text("#under").endswith("80 %")
    colours = """canvas => { const { width, height } = canvas, copy = new OffscreenCanvas(width, height);
        const pen = copy.getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, 0, 0);
        const { data } = pen.getImageData(0, 0, width, height);
        const colours = new Set(); for (let i = 0; i < data.length; i += 4)
        if (data[i + 3]) colours.add([...data.slice(i, i + 3)].join()); return [...colours]; }"""
    dark = opened.locator("#bar canvas").evaluate(colours)
    assert "108,178,247" in dark, "the accent of the dark style"
    opened.emulate_media(color_scheme="light")
    opened.wait_for_timeout(100)
    light = opened.locator("#bar canvas").evaluate(colours)
    assert "11,92,173" in light
    assert "108,178,247" not in light


@pytest.mark.parametrize("speakers", [True, False])
@pytest.mark.parametrize("times", [True, False])
def test_wide_and_narrow(speakers: bool, times: bool, open_page: Open) -> None:
    opened = open_page(ask_page(asked(speakers=speakers, times=times), "a/model"))
    for width in (1280, 360):
        opened.set_viewport_size({"width": width, "height": 740})
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        boxes = [opened.locator(selector).bounding_box() for selector in ("#answers", "#reading")]
        assert (boxes[1]["x"] > boxes[0]["x"]) == (width == 1280), "beside each other, or below"
        assert opened.locator("#transcript .speaker").count() == 300 * speakers
        assert opened.locator("#transcript .time").count() == 300 * times
        opened.keyboard.press("p")
        opened.keyboard.press("n")
        assert is_visible(opened, 41)


def test_light_and_dark(open_page: Open) -> None:
    opened, grounds = open_page(ask_page(asked(), "a/model")), []
    for scheme in ("dark", "light"):
        opened.emulate_media(color_scheme=scheme)
        style = "document => [getComputedStyle(document.body), getComputedStyle(document.querySelector('.shown'))]"
        style += ".map(style => [style.backgroundColor, style.color])"
        grounds.append(opened.evaluate_handle("document").evaluate(style))
    for body, shown in grounds:
        for ground, text in (body, shown):
            assert contrast(ground, text if text != ground else body[1]) > 4.5
    assert grounds[0][0][0] != grounds[1][0][0]
    assert grounds[0][1][0] != grounds[1][1][0]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2.1)."""

    def luminance(colour: str) -> float:
        channels = [int(each) / 255 for each in colour[4:-1].split(",")]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_texts_are_not_markup(open_page: Open) -> None:
    said = [Said(BAD, BAD, 0.0), Said("\u2028 \ud800")]
    answers = answers_of(said, question(BAD, [0.9, 0.1], passage(0, 0, 0.9, 0)))
    answers = replace(answers, id=BAD, transcript=replace(answers.transcript, name=BAD, format=BAD))
    opened = open_page(ask_page(answers, BAD))
    for selector in ("#document", "#asked", "#transcript p >> nth=0", "#passages .excerpt", "#passages .place"):
        assert BAD in opened.text_content(selector), selector
    assert opened.evaluate("[window.bad, document.images.length, document.scripts.length]") == [None, 0, 2]
    assert opened.get_attribute("meta[http-equiv]", "content").startswith("default-src 'none'; script-src 'sha256-")


@pytest.mark.slow
def test_a_long_transcript_stays_fluid(open_page: Open) -> None:
    """Of more than five hours: a step to another passage or question, drawn, takes a fraction of a second."""
    look, generator = asked(6000), random.Random(1)
    values = [generator.random() for _ in range(6000)]
    marked = [n for n, value in enumerate(values) if value >= THRESHOLD]
    first = question("Where?", values, *(passage(n, n, values[n], n) for n in marked))
    opened = open_page(ask_page(replace(look, questions=(first, *look.questions[1:])), "a/model"))
    assert opened.locator("#passages li").count() == len(marked) > 2000
    begin = time.perf_counter()
    for key in ["n"] * 5 + ["ArrowRight", "ArrowRight", "ArrowLeft"]:
        opened.keyboard.press(key)
        draw(opened)
    taken = time.perf_counter() - begin
    assert taken < 8 * 1.0, taken
    opened.keyboard.press("ArrowRight")
    assert numbers(opened, "shown") == [5999]
    assert is_visible(opened, 5999)


def test_numbers_that_are_not_finite_are_refused() -> None:
    look = asked()
    bad = question("Why?", [0.1, float("nan")], passage(0, 0, 0.1, 0))
    with pytest.raises(ValueError, match=r"document meeting.vtt: a number is NaN or infinite"):
        ask_page(replace(look, questions=(bad,)), "a/model")


@pytest.mark.parametrize("judges", [True, False])
def test_what_the_model_was_trained_for(judges: bool, open_page: Open) -> None:
    """The bar has the probabilities of lines, where there are some; who cannot say that nothing answers, says so."""
    of_lines = [0.1] * 300
    lines = question("Why?", [0.9] * 300, passage(0, 5, 0.9, 2), line_threshold=0.5, line_probabilities=tuple(of_lines))
    opened = open_page(ask_page(replace(asked(), judges=judges, questions=(lines,)), "a/model"))
    assert opened.inner_text("#under").endswith("10 %")
    assert numbers(opened, "best") == [2]
    assert "of lines" in opened.get_attribute("#bar", "aria-label")
    opened.click("summary")
    assert opened.is_visible("#judges") is not judges
