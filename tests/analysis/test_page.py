"""The page of a document in a real browser: what it shows is what the tensors hold, and it needs nothing but itself."""

import html
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from hat_fairseq.analysis.look import AttentionMap, Look
from hat_fairseq.analysis.page import LookWithPage, page

TO_TOKENS = "attention to tokens"
ENDS = (0, 3, 5, 9)  # of the target sentences


def peaked(*shape: int, seed: int = 0) -> torch.Tensor:
    """Rows of which a few units have most of the weight."""
    return (3 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))).softmax(dim=-1)


def meeting(units: int = 12) -> Look:
    """Sentences of two speakers, of 1 to 5 tokens, and an output of three sentences."""
    to_sentences, to_tokens = (peaked(2, 3, 9, units, seed=seed) for seed in (0, 1))
    maps = (
        AttentionMap("attention to sentences", "target tokens", (0, 1), to_sentences),
        AttentionMap(TO_TOKENS, "target tokens", (0, 1), to_tokens, to_tokens=True),
    )
    roles, target = tuple("PM" if n % 3 else "UI" for n in range(units)), tuple(f" word{n}" for n in range(9))
    source, lengths = (
        tuple(f"{role} : text {n}" for n, role in enumerate(roles)),
        tuple(1 + n % 5 for n in range(units)),
    )
    look = Look("d", "m", "sentence", source, lengths, maps, target, tuple(pairwise(ENDS)), roles=roles, note="Note.")
    change = 0.5 + torch.randn(3, units, generator=torch.Generator().manual_seed(2))
    return look.with_occlusion(look.sentences, torch.tensor([-3.0, -4, -5]), change)


def encoder(queries: str, units: int, weights: torch.Tensor) -> Look:
    maps = (AttentionMap("attention among segments", queries, (0, 5), weights),)
    return Look("e", "encoder", "segment", tuple(f"text {n}" for n in range(units)), (2,) * units, maps)


@pytest.fixture
def show(open_page: Callable[[str], Any]) -> Callable[[Look], Any]:
    """Opens a look."""
    return lambda look: open_page(page(look))


def table(opened: Any, number: int = 0) -> list[list[str]]:
    rows = opened.locator(f"#tables table >> nth={number}").locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


@pytest.mark.slow
def test_occlusion_comes_first_what_helps_apart_from_what_hurts(show: Any) -> None:
    look = meeting()
    opened, change = show(look), look.occlusion.change
    assert opened.text_content("#rows [aria-pressed=true] span >> nth=1") == "The whole output"
    for row, values in [(0, change.sum(dim=0)), (2, change[1])]:
        opened.click(f"#rows li >> nth={row}")
        for number, sign in enumerate((1, -1)):
            units = [unit for unit in (sign * values).argsort().tolist() if sign * values[unit] <= -0.01]
            assert [int(cells[0]) for cells in table(opened, number)] == [unit + 1 for unit in units]
            for cells, unit in zip(table(opened, number), units, strict=True):
                assert float(cells[1]) == pytest.approx(float(values[unit]), abs=0.01)
                assert cells[-1].split() == [look.roles[unit], "text", str(unit)], "the role is a chip, once"
        share = float(table(opened)[0][2].removesuffix(" %"))
        assert share == pytest.approx(100 * float(values.min() / values.clamp(max=0).sum()), abs=0.6)
    opened.click("#source p >> nth=4")
    shown = [float(value) for value in opened.locator("#rows span:last-child").all_text_contents()]
    assert shown == pytest.approx([float(change[:, 4].sum()), *change[:, 4].tolist()], abs=0.01)


@pytest.mark.slow
def test_attention_by_sentence_and_by_token_relative_to_uniform(show: Any) -> None:
    look = meeting()
    opened, lengths = show(look), torch.tensor(look.lengths)
    for number, one in enumerate(look.by_sentence):
        opened.select_option("#view", label=one.name)
        per_token = opened.input_value("#by") == "1"
        assert per_token == one.to_tokens, "each kind begins with the measure in which it is uniform"
        opened.select_option("#layer", label="1")
        opened.select_option("#head", index=2)
        opened.click("#rows li >> nth=1")
        mean = look.maps[number].weights[1].mean(dim=0)
        for token, weights in ((None, one.weights[1, 2, 1]), (4, mean[4])):
            if token is not None:
                opened.click(f"#row-text button >> nth={token - ENDS[1]}")
            times = weights * 12, weights / lengths * lengths.sum()
            order = times[per_token].argsort(descending=True).tolist()
            assert [int(cells[0]) for cells in table(opened)] == [unit + 1 for unit in order]
            for (_, weight, by_unit, length, by_token, _), unit in zip(table(opened), order, strict=True):
                assert float(weight) == pytest.approx(float(weights[unit]), rel=0.06, abs=0.001)
                assert float(by_unit[:-1]) == pytest.approx(float(times[0][unit]), rel=0.01, abs=0.02)
                assert float(by_token[:-1]) == pytest.approx(float(times[1][unit]), rel=0.01, abs=0.02)
                assert int(length) == look.lengths[unit]


@pytest.mark.parametrize("to_tokens", [False, True])
def test_a_uniform_map(to_tokens: bool) -> None:
    """It is called uniform, per sentence or per token."""
    lengths = 2.0 ** torch.arange(8)
    uniform = lengths / lengths.sum() if to_tokens else torch.ones(8) / 8
    noise = 1 + 0.01 * torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    reason = "no segment is preferred" if to_tokens else "the hierarchy is not used here"
    for weights, is_uniform in ((uniform * noise, True), (uniform.flip(0) * noise * lengths.flip(0), False)):
        one = AttentionMap("attention among segments", "source", (0, 5), weights, to_tokens)
        look = Look("e", "m", "segment", ("text",) * 8, tuple(map(int, lengths)), (one,))
        statement = f"Attention among segments is practically uniform: {reason}."
        assert (look.statements() == [statement]) == is_uniform


def test_statements() -> None:
    mixed = torch.ones(2, 3, 8, 8) / 8
    mixed[1, 2] = torch.eye(8)
    (text,) = encoder("source", 8, mixed).statements()
    assert "5 of 6 heads are practically uniform. The most selective one is head 2 of layer 5: it uses 12 %" in text
    look = meeting()
    total, before = look.occlusion.change.sum(dim=0), "-12.00 nats"
    best, worst = int(total.argmin()), int(total.argmax())
    fall, share = f"{-total[best]:.2f}", f"{100 * total[best] / total.clamp(max=0).sum():.0f} %"
    first = f"Without sentence {best + 1} the log-probability of the output, {before}, falls by {fall}"
    assert f"{first}: this sentence carries {share} of all help." in look.statements()[0]
    assert (
        f" {worst + 1} hurts most: without it the log-probability rises by {total[worst]:.2f}" in look.statements()[0]
    )


@pytest.mark.parametrize("weights", [torch.ones(2, 3, 8, 8) / 8, torch.eye(8).expand(2, 3, 8, 8)])
def test_statements_and_colours_on_the_page(weights: Any, show: Any) -> None:
    """A uniform map has no coloured cell."""
    coloured = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(x => x)"
    look = encoder("source", 8, weights)
    opened = show(look)
    assert opened.inner_text("#statements") == look.statements()[0]
    opened.wait_for_timeout(100)
    assert opened.locator("#rows canvas").first.evaluate(coloured) == bool(weights[0, 0, 0, 0] == 1)


@pytest.mark.parametrize("factor", [0.002, 0.05])
def test_changes_of_less_than_a_hundredth_nat_have_no_colour(show: Any, factor: float) -> None:
    change = torch.tensor([[-1.0, 0.7, 0.15, -0.16]]) * factor
    look = Look("e", "encoder", "segment", ("a", "b", "c", "d"), (2,) * 4, ())
    look = look.with_occlusion(["label x"], torch.tensor([-0.1]), change)
    opened = show(look)
    opened.wait_for_timeout(100)
    colours = "canvas => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, 1).data]"
    values = opened.locator("#rows canvas").first.evaluate(colours)[3::4]  # how opaque each column is
    quarter = len(values) // 4
    shown = [any(values[n * quarter + 2 : (n + 1) * quarter - 2]) for n in range(4)]
    assert shown == [abs(each) >= 0.01 for each in change[0].tolist()]
    uniform = (
        "Occlusion is practically uniform: leaving out a segment changes the log-probability of label x by less than"
    )
    assert look.statements()[0].startswith(uniform) == (factor == 0.002)


def test_texts_are_not_markup(show: Any) -> None:
    bad = "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 1'><!-- {script}{data}"
    maps = (AttentionMap(bad, "target tokens", (0,), peaked(1, 1, 2, 2)),)
    look = LookWithPage(
        bad, bad, "sentence", (bad, "\u2028 \ud800 ="), (1, 1), maps, (bad, " b"), ((0, 2),), None, (bad, ""), bad
    )
    opened = show(look.with_occlusion([bad], torch.zeros(1), torch.ones(1, 2)))
    opened.select_option("#view", index=1)
    assert bad in opened.text_content("#source p >> nth=0")
    assert opened.evaluate("[window.bad, document.images.length, document.scripts.length]") == [None, 0, 2]
    assert opened.get_attribute("meta[http-equiv]", "content").startswith("default-src 'none'; script-src 'sha256-")
    assert html.unescape(look._repr_html_().split('srcdoc="')[1].removesuffix('"></iframe>')) == page(look)


def test_the_keyboard_alone_and_a_narrow_screen(show: Any) -> None:
    opened = show(meeting())
    opened.set_viewport_size({"width": 400, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 400
    opened.keyboard.press("Tab")
    opened.keyboard.type("attention to s")  # chooses in the selector that has the focus
    assert opened.input_value("#view") == "1"
    assert opened.locator("#layer").is_visible()
    opened.focus("#rows button >> nth=0")
    for key in ("ArrowDown", "ArrowDown", "Tab", "Tab", "Enter"):
        opened.keyboard.press(key)
    assert "Sentence 3 of 3, token “word6”" in opened.inner_text("#row-title")
    assert opened.locator("#tables td").count()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 400
    opened.focus("#source")
    for _ in range(3):
        opened.keyboard.press("ArrowDown")
    assert opened.text_content("#source [aria-current]").endswith("text 2")
    assert opened.inner_text("#value-title") == "to 3"


@pytest.mark.slow
def test_a_document_of_40_000_sentences(show: Any) -> None:
    weights = peaked(2, 2, 1, 40_000)
    look = encoder("document", 40_000, weights).with_occlusion(["label"], torch.zeros(1), weights[0, 0] - 1e-4)
    opened = show(look)
    assert opened.inner_text("#source-title") == "Source: 40,000 segments"
    opened.select_option("#view", index=1)
    last = int((weights.mean(dim=(0, 1))[0]).argmax())
    opened.click("#tables button >> nth=0")
    assert opened.text_content("#source [aria-current]").endswith(f"text {last}")


@pytest.mark.parametrize(("queries", "units", "count"), [("source", 7, 7), ("document", 5, 1), ("source", 1, 1)])
def test_models_without_a_target(queries: str, units: int, count: int, show: Any) -> None:
    opened = show(encoder(queries, units, peaked(2, 3, count, units)))
    assert len(table(opened)) == units
    assert opened.locator("#rows li").count() == count


def test_what_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="document e: neither attention nor occlusion"):
        page(Look("e", "m", "block", ("a",), (1,), ()))
    with pytest.raises(ValueError, match="has values that are not finite"):
        page(encoder("document", 2, torch.full((2, 3, 1, 2), torch.nan)))


@pytest.mark.parametrize("rows", [200, 201, 260])
def test_a_long_map_comes_without_its_heads(rows: int) -> None:
    """A page with the heads of a map of more than 200 rows would be too large for a browser: mean and maximum stay."""
    weights = peaked(2, 3, rows, 7)
    text = page(encoder("document", 7, weights))
    (map_of_page,) = json.loads(text.split('id="data">')[1].split("</script>")[0])["maps"]
    names = ["mean", "max"] if rows > 200 else ["0", "1", "2", "mean", "max"]
    assert map_of_page["heads"] == names
    assert {len(layer) for layer in map_of_page["rows"]} == {len(names)}
    assert len(map_of_page["rows"]) == 3
    shown = map_of_page["rows"][1][names.index("mean")][5]
    expected = weights[1, :, 5].mean(dim=0).tolist()
    assert dict(zip(shown[::2], shown[1::2], strict=True)) == pytest.approx(dict(enumerate(expected)), rel=5e-3)
