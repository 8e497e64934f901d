r"""Marks between sentences in files that circulate: they end a sentence, and are no words.

`<q>` BertSum, PreSumm; `<n>` PEGASUS; `<S> </S>` arXiv, PubMed; `<s> </s>`, `<t> </t>` CNN/DailyMail; `[CLS]`, `[SEP]`,
`[X_SEP]`, `[unused2]` BERT, UniLM, ProphetNet; `|||||`, `NEWLINE_CHAR` Multi-News; `##SENT##`; `<p>`, `<br>` of pages;
`\n` as two characters; `<pad>`, `<eos>`, `<|endoftext|>` of decoders. ROUGE would compare q as a word of both sides.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

_NAMES = r"q|n|s|t|p|br|nl|newline|line|sos|bos|eos|eod|eop|eot|cls|pad|sent|sentence|end|turn|unused_?\d+|extra_id_\d+"
_NAMES += r"|\w*sep|\w+[-_]sep|\|[\w ]+\|"
_BRACKETS = r"CLS|PAD|[SBE]OS|EO[DPT]|SENT|SENTENCE|[A-Z_]*SEP|NEWLINE|unused_?\d+|UNUSED_?\d+"
_OPEN, _CLOSE = "(?:<|&lt;)", "(?:>|&gt;)"
MARK = re.compile(
    rf"{_OPEN}/?(?i:{_NAMES})(?:\s*/)?{_CLOSE}|\[/?(?:{_BRACKETS})\]|(?:##|@@)[A-Z_]+(?:##|@@)|\|{{3,}}"
    r"|\bstory_separator_special_tag\b|\bNEWLINE_CHAR\b"
    r"|(?<=[.!?])(?:\\r)?\\n|(?<![\\:])(?:\\r)?\\n(?=[\sA-Z\"'(]|$)"  # and neither \nabla nor C:\new
)
#: What looks like a mark and is none that is known, such as <unk>.
UNKNOWN = re.compile(rf"{_OPEN}/?[A-Za-z][\w:.-]*\s*/?{_CLOSE}")
_MOST = 3  # marks that a note names


def split_at_marks(text: str) -> list[str]:
    """Returns what stands between the marks of a text; parts may be blank."""
    return MARK.split(text)


def without_marks(text: str) -> str:
    """Returns a text with a space for each mark; one without marks as it is."""
    return " ".join(part.strip() for part in parts).strip() if len(parts := split_at_marks(text)) > 1 else text


def notes_on_marks(path: str, texts: Iterable[str | Sequence[str]], left_out: bool = True) -> list[str]:
    """Returns a line about the marks in the texts of a file, and one about what only looks like a mark."""
    known, unknown = Counter[str](), Counter[str]()
    for text in texts:
        whole = text if isinstance(text, str) else " ".join(text)
        known.update(dict.fromkeys(MARK.findall(whole), 1))
        unknown.update(dict.fromkeys(UNKNOWN.findall(MARK.sub(" ", whole)), 1))
    notes: list[tuple[Counter[str], Callable[[str], str]]] = [
        (known, f"{{}}: marks between sentences, which are {'not ' * left_out}compared as words".format),
        (unknown, "{}: compared as words; remove what is no text from all files".format),
    ]
    return [f"{path}: {text(_listed(counts))}" for counts, text in notes if counts]


def _listed(counts: Counter[str]) -> str:
    rest = len(counts) - _MOST
    named = ", ".join(f"{mark} (in {count} of its texts)" for mark, count in counts.most_common(_MOST))
    return f"{named} and {rest} more" if rest > 0 else named
