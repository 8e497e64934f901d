"""The site as a reader sees it: `make docs` finds broken links, these tests what it builds without a word."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY, environment, run_command

pytestmark = pytest.mark.slow
CELL = re.compile(r"<(t[dh])\b.*?</\1>", re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, str]]:
    """The pages of the site, by their files."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    flags = ("--strict", "--quiet", "--site-dir", folder)
    run_command("mkdocs", "build", *flags, cwd=REPOSITORY, env=environment(NO_MKDOCS_2_WARNING="true"))
    yield {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html")) if path.stem != "404"}


def test_options_have_no_backslashes_and_links_have_titles(site: dict[Path, str]) -> None:
    cells = [(path.name, match[0]) for path, text in site.items() for match in CELL.finditer(text)]
    assert len(cells) > 1000
    assert any("error|<wbr>truncate" in cell for _, cell in cells)
    assert [each for each in cells if "\\|" in each[1]] == []
    links = {text for page in site.values() for text in re.findall(r"<a [^>]*>([^<]*)</a>", page)}
    assert "Security" in links
    assert [text for text in links if re.search(r"\.md$", text)] == []


def test_pages_fit_a_telephone_and_ask_no_other_server(site: dict[Path, str], browser: Any) -> None:
    requests, messages, shown = [], [], {}
    with browser.new_context(viewport={"width": 420, "height": 900}) as context:
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        for path in site:
            page.goto(path.as_uri())
            shown[path.name] = page.evaluate("document.documentElement.scrollWidth")
    assert len(shown) > 25
    assert {name: width for name, width in shown.items() if width > 420} == {}
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert messages == []


CUT = """() => {
    const right = (document.querySelector('.md-content__inner') || document.body).getBoundingClientRect().right + 2;
    const blocks = [...document.querySelectorAll('.md-typeset table:not([class]), .md-typeset pre > code')];
    return blocks.filter(each => each.getBoundingClientRect().right > right || each.scrollWidth > each.clientWidth + 1)
        .map(each => each.innerText.slice(0, 60));
}"""


def test_no_table_or_program_is_cut_on_a_screen(site: dict[Path, str], browser: Any) -> None:
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        page = context.new_page()
        cut = {}
        for path in site:
            page.goto(path.as_uri())
            cut[path.name] = page.evaluate(CUT)
    assert {name: blocks for name, blocks in cut.items() if blocks} == {}
