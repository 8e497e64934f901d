"""The page of a document in a real browser: what it shows is what the tensors hold, and it needs nothing but itself."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hat_fairseq.analysis import page as pages
from hat_fairseq.analysis.look import AttentionMap, Look, Occlusion

ROOT = Path(__file__).resolve().parents[2]


def peaked(*shape: int, seed: int = 0) -> torch.Tensor:
    """Rows of which a few units have most of the weight, often the first one."""
    scores = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    scores[..., 0] += 4
    return scores.softmax(dim=-1)


def meeting(units: int = 30) -> Look:
    """A real meeting and four sentences of its summary, with random weights."""
    text = gzip.decompress((ROOT / "preprocess/ami_data/ami.test.jsonl.gz").read_bytes())
    record = json.loads(text.splitlines()[0])
    rows, source = tuple(record["summary"][:4]), tuple(turn["text"] for turn in (record["turns"] * 2)[:units])
    target = tuple(f" {word}" for word in " ".join(rows).split())
    ends = itertools.accumulate((len(row.split()) for row in rows), initial=0)
    weights = [peaked(3, 4, len(target), units, seed=seed) for seed in (0, 1)]
    maps = tuple(AttentionMap(f"map {n}", "target tokens", (0, 1, 2), one) for n, one in enumerate(weights))
    occlusion = Occlusion(rows, torch.full((4,), -3.0), peaked(4, units, seed=2) - 0.1)
    spans = tuple(itertools.pairwise(ends))
    return Look(record["id"], "hat_bart_large", "sentence", source, target, spans, maps, occlusion, "Note.")


def encoder(queries: str, units: int, count: int) -> Look:
    maps = (AttentionMap("segments", queries, (0, 5), peaked(2, 3, count, units)),) if queries else ()
    occlusion = None if queries else Occlusion(("label",), torch.zeros(1), torch.zeros(1, units))
    return Look("e", "encoder", "segment", tuple(f"text {number}" for number in range(units)), (), (), maps, occlusion)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the PATH")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=program)  # without its sandbox, which root cannot use


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a look; afterwards the file is all that was asked for besides downloads, and the console is empty."""
    requests, messages, file = [], [], tmp_path / "look.html"
    with browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark") as context:
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))

        def opened(look: Look) -> Any:
            file.write_text(pages.page(look), encoding="utf-8")
            page.goto(file.as_uri())
            page.evaluate("look.ready")
            return page

        yield opened
    assert {url for url in requests if not url.startswith(("blob:", "data:"))} == {file.as_uri()} and messages == []


ROWS = """([kind, hidden]) => {
  const { layers, heads, count, k } = look.maps[kind], queries = [...Array(count).keys()];
  const rows = layers.flatMap((l) => heads.flatMap((h) => queries.map((query) => look.row(kind, l, h, query, hidden))));
  for (const row of rows) while (hidden && row.units.length < k) row.weights.push(row.units.push(0) && 0);
  return JSON.stringify(["units", "weights", "effective", "first"].map((name) => rows.map((row) => row[name] ?? -1)));
}"""  # a first unit that is hidden comes last, with weight 0


@pytest.mark.parametrize(("units", "limit"), [(30, 5_000_000), (300, 200_000)])
def test_rows_are_those_of_the_tensors(show: Any, monkeypatch: Any, units: int, limit: int) -> None:
    monkeypatch.setattr(pages, "LIMIT", limit)
    page = show(look := meeting(units))
    ks = page.evaluate("look.maps.map((map) => map.k)")
    assert ks == [30] * 4 if units == 30 else ks[0] == ks[1] < ks[2] == ks[3], "target sentences keep more weights"
    for kind, one in enumerate([*look.maps, *look.by_sentence]):
        whole = one.with_summaries()[2].flatten(0, 2)
        rest = torch.cat([torch.zeros(len(whole), 1), whole[:, 1:]], dim=1)
        for hidden, divisor in ((False, torch.ones(len(whole), 1)), (True, rest.sum(dim=1, keepdim=True))):
            wanted = (rest if hidden else whole) / divisor
            places, values, effective, first = map(torch.tensor, json.loads(page.evaluate(ROWS, [kind, hidden])))
            listed, bound = wanted.gather(1, places), 0.004 / divisor + 0.008 * hidden  # divisors are within 0.8 %
            assert ((values - listed).abs() <= bound).all() and (places.sort().values.diff() > 0).all()
            assert (values.diff() <= 0).all() and (listed.diff() <= 2 * bound).all()  # the order up to quantisation
            assert hidden or torch.allclose(listed.sum(dim=1), whole.topk(ks[kind]).values.sum(dim=1), atol=0.008)
            entropy = torch.special.entr(wanted / wanted.sum(dim=1, keepdim=True)).sum(dim=1)
            assert torch.allclose(effective, entropy.exp(), rtol=0.01, atol=0)
            assert ((first - whole[:, 0]).abs() < 0.008)[first >= 0].all() and (first >= 0).float().mean() > 0.8


@pytest.mark.slow
def test_a_summary_of_3072_tokens_stays_below_5_mb(show: Any, tmp_path: Path) -> None:
    layers, weights = tuple(range(12)), [peaked(12, 16, 512, 130, seed=seed) for seed in (0, 1)]
    maps = tuple(AttentionMap(f"map {seed}", "target tokens", layers, weights[seed]) for seed in (0, 1))
    source, sentences = ("about twenty-four words " * 8,) * 130, tuple((at, at + 32) for at in range(0, 512, 32))
    page = show(Look("long", "hat_bart_large", "sentence", source, (" token",) * 512, sentences, maps))
    size, footer = (tmp_path / "look.html").stat().st_size, page.inner_text("#footer")
    assert 3_000_000 < size < 5_000_000 and f"{size / 1e6:.2f} MB" in footer
    kept = 100 * float(maps[0].with_summaries()[2][:, :-1].topk(8).values.sum(dim=-1).mean())
    assert f"map 0, target tokens: 8 of 130 weights of a row, {kept:.1f} % of the weight" in footer


def test_texts_are_not_markup(show: Any) -> None:
    bad = "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 1'><!-- {script}{data}"
    maps = (AttentionMap(bad, "target tokens", (0,), peaked(1, 1, 2, 2)),)
    change = Occlusion((bad,), torch.zeros(1), torch.ones(1, 2))
    page = show(Look(bad, bad, "sentence", (bad, "\u2028 \ud800 ="), (bad, " b"), ((0, 2),), maps, change, bad))
    page.click("#scroll-a", position={"x": 400, "y": 33})
    page.fill("#search", "<img")
    page.click("#tab-occlusion")
    assert bad in page.inner_text("#source li >> nth=0") and page.inner_text("#hits") == "1 of 2"
    assert page.evaluate("[window.bad, document.images.length, document.scripts.length]") == [None, 0, 2]
    assert page.get_attribute("meta[http-equiv]", "content").startswith("default-src 'none'; script-src 'sha256-")


def test_selecting_pinning_searching_comparing(show: Any) -> None:
    page = show(look := meeting())
    text, evidence = page.inner_text, lambda column=2: page.locator(f"#ranked td:nth-child({column})").all_inner_texts()
    weights, change = look.by_sentence[0].with_summaries()[2], look.occlusion.change[0]
    page.click("#scroll-a", position={"x": 20, "y": 51})
    assert text("#pinned") == "Row 2 of 4" and text("#pinned-text") == look.occlusion.rows[1]
    largest = weights[-1, -2, 1].topk(16)
    assert set(evidence()[:4]) == {str(unit + 1) for unit in largest.indices[:4].tolist()} and len(evidence()) == 16
    assert float(evidence(3)[0]) == pytest.approx(float(largest.values[0]), abs=0.0045)
    for key in ("]", "{"):  # "all" is followed by the first layer
        page.locator("#scroll-a").press(key)
    assert text("#caption-a") == "map 0, layer 0, head 3"
    assert evidence()[0] == str(int(weights[0, 3, 1].argmax()) + 1)
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.check("#sink")
    rest = weights[0, 3, 2, 1:] / weights[0, 3, 2, 1:].sum()
    assert text("#pinned") == "Row 3 of 4" and "1" not in evidence()
    assert float(evidence(3)[0]) == pytest.approx(float(rest.max()), abs=0.02)
    page.select_option("#scale", "row")
    page.fill("#top", "3")
    page.keyboard.press("Tab")
    assert evidence(4)[0] == "1.000" and len(evidence()) == 3
    page.click("#ranked button >> nth=2")
    assert page.get_attribute("#source li.current", "value") == evidence()[2]
    page.select_option("#rows", label="target tokens")
    assert text("#pinned") == f"Row {look.target_sentences[2][0] + 1} of {len(look.target)}"
    page.select_option("#rows", label="target sentences")
    page.locator("#scroll-a").press("Escape")
    assert text("#pinned") == "No row is pinned"
    page.keyboard.type("/light")
    found = sum("light" in unit.lower() for unit in look.source)
    assert text("#hits") == f"{found} of 30" and page.locator("#source li.hit").count() == found > 0
    page.check("#compare")
    page.hover("#scroll-a", position={"x": 240, "y": 33})
    page.wait_for_function("document.getElementById('hover').innerText.includes('difference')")
    assert text("#caption-b").startswith("map 1, layer all, head mean")
    page.click("#tab-occlusion")
    page.click("#scroll-a", position={"x": 20, "y": 33})
    assert evidence()[0] == str(int(change.abs().argmax()) + 1) and len(evidence()) == 30
    assert float(evidence(3)[0]) == pytest.approx(float(change[change.abs().argmax()]), abs=5e-4)


def test_exports(show: Any) -> None:
    page = show(look := meeting())

    def exported(form: str) -> bytes:
        with page.expect_download() as download:
            page.click(f"[data-export={form}]")
        assert download.value.suggested_filename == f"{look.document}-attention.{form}"
        return Path(download.value.path()).read_bytes()

    weights = look.by_sentence[0].with_summaries()[2][-1, -2]
    lines = list(csv.DictReader(exported("csv").decode().splitlines()))
    assert len(lines) == 4 * 16 and lines[16]["query_text"] == look.occlusion.rows[1]
    for line in lines:
        query, unit = int(line["query"]) - 1, int(line["unit"]) - 1
        assert line["unit_text"] == look.source[unit] and abs(float(line["weight"]) - weights[query, unit]) <= 0.004
    (selection,) = json.loads(exported("json"))["selections"]
    assert [cell[0] for row in selection["rows"] for cell in row["cells"]] == [int(line["unit"]) for line in lines]
    svg, png = exported("svg").decode(), exported("png")
    assert svg.count("<rect") > 64 and "map 0, layer all, head mean" in svg
    size = [2 * int(svg.split('"')[at]) for at in (3, 5)]  # width and height
    assert png[:4] == b"\x89PNG" and [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)] == size


@pytest.mark.parametrize("queries,units,count", [("source", 7, 7), ("document", 5, 1), ("source", 1, 1), ("", 2, 1)])
def test_models_without_a_target(show: Any, queries: str, units: int, count: int) -> None:
    page = show(encoder(queries, units, count))
    page.click("#scroll-a", position={"x": 15, "y": 33})
    assert page.locator("#ranked tr").count() == units and page.locator("#tab-occlusion").is_visible() == (not queries)
    if queries:
        page.check("#compare")
        assert page.locator("#figure-b").is_visible() and page.locator("#sink").is_disabled() == (units == 1)


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="document e: neither attention nor occlusion"):
        pages.page(Look("e", "m", "block", ("a",), (), (), ()))
    for weights in (torch.full((2, 3, 1, 2), torch.nan), peaked(2, 3, 1, 4)):
        maps = (AttentionMap("segments", "document", (0, 1), weights),)
        with pytest.raises(ValueError, match="document e: segments is not .* finite weights"):
            pages.page(Look("e", "m", "block", ("a", "b"), (), (), maps))


def test_a_wheel_has_the_parts_of_the_page() -> None:
    assert '"hat_fairseq.analysis" = ["*.html", "*.css", "*.js"]' in (ROOT / "pyproject.toml").read_text("utf-8")
