"""Text of files in a terminal, and tables of it."""

from collections.abc import Callable, Sequence


def printable(text: str) -> str:
    """Returns a text without the control characters of terminals, which are written as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def aligned(rows: Sequence[Sequence[str]], others: Callable[[str, int], str] = str.ljust) -> list[str]:
    """Returns a line for each row, in columns; all rows have the same number of cells.

    `others`: how cells beyond the first of a row are padded, `str.rjust` for numbers.
    """
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ([row[0].ljust(widths[0]), *map(others, row[1:], widths[1:])] for row in rows)
    return ["  ".join(cells).rstrip() for cells in texts]
