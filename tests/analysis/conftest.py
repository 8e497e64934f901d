"""A real browser."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the PATH")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=program)  # without its sandbox, which root cannot use


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Opens HTML; afterwards the file is all that was asked for, and the console is empty."""
    requests, messages, file = [], [], tmp_path / "page.html"
    with browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark") as context:
        opened = context.new_page()
        opened.on("request", lambda request: requests.append(request.url))
        opened.on("console", lambda message: messages.append(message.text))
        opened.on("pageerror", lambda error: messages.append(str(error)))

        def show(text: str) -> Any:
            file.write_text(text, encoding="utf-8")
            opened.goto(file.as_uri())
            return opened

        yield show
    assert {url for url in requests if not url.startswith("data:")} == {file.as_uri()}
    assert messages == []
