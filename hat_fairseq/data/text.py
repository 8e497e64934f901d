r"""Text cleaning: line breaks, control characters and control tokens.

No Unicode normalisation form is applied, because pretrained models have seen text as written, and scores are computed
against the reference's own characters.
"""

import re
from collections import Counter

# What is counted, what it matches, what takes its place; in this order.
_TREATMENTS = (
    ("line_breaks_to_space", re.compile(r"\r?\n"), " "),
    ("carriage_returns_to_space", re.compile(r"\r"), " "),
    ("tabs_to_space", re.compile(r"\t"), " "),
    # Everything else Python or fairseq would split at: vertical tabs, form feeds, U+0085, U+00A0, U+2028, U+3000...
    ("other_whitespace_to_space", re.compile(r"[^\S ]"), " "),
    ("control_characters_removed", re.compile(r"[\x00-\x1f\x7f-\x9f]"), ""),
    ("lone_surrogates_replaced", re.compile("[\ud800-\udfff]"), "\ufffd"),
    ("runs_of_spaces_shortened", re.compile(r"(?<= ) +"), ""),
)

SEPARATOR = "<sep>"  # between the segments of a target, where they are to stay countable
CONTROL_TOKENS = ("<s>", "</s>", "<pad>", "<unk>", "<mask>", SEPARATOR)
_NAMES = "s|/s|pad|unk|mask|sep"
_LITERAL = re.compile(rf"<(\\*)({_NAMES})>")
_ESCAPED = re.compile(rf"<\\(\\*)({_NAMES})>")
ESCAPED_TOKEN = re.compile(rf"(<\\+(?:{_NAMES})>)")  # with one group, so that `split` keeps the tokens


def normalise(text: str, counts: Counter[str]) -> str:
    """Put `text` on one line of plain spaces and printable characters; each replacement is added to `counts`."""
    treatments: tuple[tuple[str, re.Pattern[str], str], ...] = _TREATMENTS
    if text.isprintable():  # no white space but spaces, nothing invisible: the usual case
        if "  " not in text:
            return text.strip(" ")
        treatments = _TREATMENTS[-1:]
    for name, pattern, replacement in treatments:
        text, number = pattern.subn(replacement, text)
        if number:
            counts[name] += number
    return text.strip(" ")


def escape_control_tokens(text: str, counts: Counter[str] | None = None) -> str:
    r"""`<s>` -> `<\s>`, `<\s>` -> `<\\s>`, and so on: no control token is left, and the mapping is invertible.

    Adds `control_tokens_escaped` to `counts`.
    """
    if "<" not in text:
        return text
    text, number = _LITERAL.subn(r"<\\\1\2>", text)
    if counts is not None and number:
        counts["control_tokens_escaped"] += number
    return text


def restore_control_tokens(text: str) -> str:
    """Inverse of `escape_control_tokens`."""
    return _ESCAPED.sub(r"<\1\2>", text)


def split_segments(decoded: str) -> list[str]:
    """The segments of a text that `TextPipeline.decode` returned, which has a tab for each `<sep>`."""
    return [segment.strip() for segment in decoded.split("\t")]
