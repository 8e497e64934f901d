"""Pages that need no network: a template of this folder with its data, style and script inside.

`page.css` and `page.js` are for all of them.
"""

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ..data.files import json_text

POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'"


def fill(name: str, data: Mapping[str, Any]) -> str:
    """Returns the page `name` with its data; ValueError for numbers that are not finite."""
    # "<" never appears, so that no text ends the element; json escapes everything beyond ASCII
    values = json_text(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    script, styles = read("page.js") + read(f"{name}.js"), style(name)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, styles)]
    text = read(f"{name}.html").replace("{policy}", POLICY.format(*(f"sha256-{value}" for value in hashes)))
    return text.replace("{style}", styles).replace("{script}", script).replace("{data}", values)


def style(name: str) -> str:
    """Returns the style of the page `name`."""
    return read("page.css") + read(f"{name}.css")


def read(name: str) -> str:
    """Reads a file of this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")
