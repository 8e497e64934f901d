"""Reads the model card of a folder, README.md: its front matter, the rows of its table, and the text below."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TABLE = "| | |\n|---|---|\n"  # the head of that of the facts


@dataclass(frozen=True)
class Card:
    """What the card of a folder says."""

    fields: dict[str, Any] = field(default_factory=dict)  # of the front matter
    facts: dict[str, str] = field(default_factory=dict)  # the rows of the table
    text: str = ""  # below the facts: scores, and what somebody has written

    @classmethod
    def read(cls, path: Path) -> "Card":
        """Reads a card; of one that `hat export` has not written the whole text stays. ValueError for broken YAML."""
        content = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        front, text = re.match(r"(?:---\n(.*?)^---\n)?(.*)", content, re.DOTALL | re.MULTILINE).groups()  # type: ignore[union-attr]
        try:
            fields = dict(yaml.safe_load(front or "") or {})
        except (yaml.YAMLError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: the front matter is not YAML with names and values: {error}") from error
        before, table, after = text.partition(TABLE)
        rows, _, below = after.partition("\n\n")
        facts = dict(re.findall(r"^\| (.*?) \| (.*) \|$", rows, re.MULTILINE))
        below = (below if table else before).strip()
        return cls(fields, facts, f"{below}\n" if below else "")
