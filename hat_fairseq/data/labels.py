"""Labels as tokens of fairseq's dictionaries, and back.

A label may be any text: white space, percent signs and whole names of control tokens (`<pad>`) are written as in a
URL, so that each label is one token and every token one label.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.text import CONTROL_TOKENS

NO_LABEL = "<pad>"  # where a token has no label; fairseq's padding, which no loss counts
RIGHT, WRONG = "right", "wrong"  # the labels of choices
# What a window of a document says to a question; `span` is a short answer, `paragraph` has the answer in no short form.
ANSWER_TYPES = ("none", "span", "paragraph", "yes", "no")


def label_token(label: str) -> str:
    """`not hyper%partisan` -> `not%20hyper%25partisan`, `<pad>` -> `%3Cpad>`."""
    if label in CONTROL_TOKENS:
        return quote(label[0]) + label[1:]
    special = {c for c in label if c == "%" or c.isspace() or not c.isprintable()}
    return "".join(quote(c, safe="", errors="surrogatepass") if c in special else c for c in label)


def label_of(token: str) -> str:
    """Inverts `label_token`."""
    return unquote(token, errors="surrogatepass")


def write_label_dictionary(tokens: Iterable[str], path: Path) -> None:
    """Write fairseq's dictionary of label tokens, in the order given: class i is line i (from 0)."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{token} 1\n" for token in tokens)


def read_label_dictionary(path: str | Path) -> list[str]:
    """Returns the labels, in the order of their classes, of a dictionary that `write_label_dictionary` wrote."""
    return [label_of(line.rsplit(" ", 1)[0]) for _, line in read_lines(path)]
