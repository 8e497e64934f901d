"""The messages that docs/troubleshooting.md quotes are in the sources; what they contain of an example is left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from commands import REPOSITORY

PAGE = (REPOSITORY / "docs/troubleshooting.md").read_text(encoding="utf-8").partition("## Faults of fairseq")[0]
QUOTED = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
OF_OTHERS = {  # messages of Python, of fairseq, and of both
    "Criterion does not match; please reset the optimizer (--reset-optimizer). CrossEntropyCriterion vs "
    "ChunkedLabelSmoothedCrossEntropy",
    "error: argument --task: invalid choice: 'document_to_text'",
    "FileNotFoundError: ...",
    "No such file or directory: 'data-bin/mine/bin/dict.role.txt'",
    "Model file not found: checkpoints/mine/absent.pt",
}


def quotes() -> list[str]:
    """The messages in the first column of the tables."""
    cells = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| ")]
    return [quote for cell in cells for _, quote in QUOTED.findall(cell)]


def words(text: str) -> list[str]:
    """The words of a text without values of an example: numbers, paths, and what is in quotation marks."""
    text = re.sub(r"^\w+: error: ", "", text)
    kept = [word for word in text.split() if not re.search(r"[\d/%]|^['\"]|\.\.\.|_\w+\.|\.\w", word)]
    return [word for word in (word.strip(".,:;()`\\") for word in kept) if word]


def messages() -> Iterator[list[str]]:
    """The words of every string in the sources, and of every line of the shell scripts."""
    for script in REPOSITORY.glob("scripts/*"):
        yield from map(words, script.read_text(encoding="utf-8").splitlines())
    for path in [*REPOSITORY.glob("hat_fairseq/**/*.py"), *REPOSITORY.glob("preprocess/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield words(" ".join(str(p.value) for p in node.values if isinstance(p, ast.Constant)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield words(node.value)


def share(part: list[str], whole: list[str]) -> float:
    """The share of the words of `part` that are in `whole`, in the same order."""
    position = found = 0
    for word in part:
        if word in whole[position:]:
            position, found = whole.index(word, position) + 1, found + 1
    return found / max(len(part), 1)


def test_every_quoted_message_is_in_the_sources() -> None:
    """Nearly all words of the quote are in one message, or all of a message (of three words at least) in the quote."""
    sources = list(messages())
    missing = []
    for quote in quotes():
        parts = words(quote)
        if quote in OF_OTHERS or not parts or any(share(parts, message) >= 0.9 for message in sources):
            continue
        if not any(len(message) > 2 and share(message, parts) == 1 for message in sources):
            missing.append(quote)
    assert len(quotes()) > 80 and missing == []
