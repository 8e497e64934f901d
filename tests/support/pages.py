"""Code and commands in the pages of the documentation."""

import re
import shlex
from collections.abc import Iterator

FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def code(text: str) -> list[str]:
    """All that is set as code: fenced blocks, and spans within lines."""
    return FENCE.findall(text) + [span for _, span in SPAN.findall(FENCE.sub("", text))]


def commands(text: str) -> Iterator[list[str]]:
    """The commands of fenced blocks as words, lines that end in a backslash joined, without assignments before them."""
    for block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            try:
                words = shlex.split(line, comments=True)
            except ValueError:  # part of a program or an example of data
                continue
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if words:
                yield words
