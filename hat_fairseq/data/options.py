"""The options of `hat preprocess`, each declared once, and the names of their choices.

The command line, `pipeline.json` and the page of commands are made from these fields. Nothing of `data` is imported
here, so every file of it may import the options.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hat_fairseq.options import check_values, option, options_of

#: How running text is split into sentences, what its line breaks are, and what becomes of segments without
#: counterpart: see `text.py` and `kinds/aligned.py`.
SPLITTERS = ("given", "punctuation", "library")
LINE_BREAKS = ("space", "paragraphs", "sentences")
ON_MISALIGNED = ("error", "drop", "merge")
WORD_TOKENIZERS = ("none", "moses", "jieba")  # see `word_tokenizer.py`
BPES = ("learned", "gpt2", "sentencepiece", "tokenizer")
POLICIES = ("error", "truncate", "truncate-sentences", "chunk")  # for long input; see `long_input.py`
SEGMENTS = ("sentences", "packed", "none")
#: Options that mean something for some kinds only belong to one of these groups; see `Kind.options`.
TEXT, TARGETS, ROWS, WINDOWS = "text", "targets", "rows", "windows"
ROLES = "roles"  # an option, whose flag decides another one as well
FORMS_OF_ROLES = {"stream": (True, False), "text": (False, True), "both": (True, True), "none": (False, False)}
TITLES = {  # of the groups in the help
    "": "all kinds",
    TEXT: "all kinds but sequences",
    ROWS: "rows of texts with labels or answers, and of pre-training",
    WINDOWS: "--kind qa and document_qa",
    TARGETS: "--kind text: documents with targets",
}


@dataclass(frozen=True)
class Settings:
    """Settings of tokenization, apart from the BPE; kept in `pipeline.json` beside the binary data."""

    kind: str = "text"  # of data; no option of its own
    role_labels: tuple[str, ...] = ()  # of the role stream; likewise
    splitter: str = option(
        "given",
        "split running text into sentences: given does not split, library needs the package sentence-splitter",
        SPLITTERS,
        group=TEXT,
    )
    line_breaks: str = option(
        "paragraphs",
        "treat line breaks in running text as spaces; as ends of sentences at blank lines, headings and list items; or "
        "all as ends of sentences",
        LINE_BREAKS,
        group=TEXT,
        needs="splitter=punctuation|library",
    )
    source_language: str = option(
        "en", "the language of the source, a code of BCP 47 such as de or zh-CN", metavar="CODE", group=TEXT
    )
    target_language: str = option("en", "the language of the target, a code of BCP 47", metavar="CODE", group=TARGETS)
    source_tokenizer: str = option(
        "none", "split the source into words with this tokenizer before the BPE", WORD_TOKENIZERS, group=TEXT
    )
    target_tokenizer: str = option(
        "none", "split the target into words with this tokenizer before the BPE", WORD_TOKENIZERS, group=TARGETS
    )
    aligned: bool = option(
        False,
        "state that source and target segments are parallel: chunks are cut at the same places, and with a learned BPE "
        "<sep> stands between the segments of the target",
        group=TARGETS,
    )
    target_separator: bool = option(
        False,
        "put <sep> between the segments of the target",
        group=TARGETS,
    )
    roles: bool = option(
        False,
        "write a parallel stream with the role of each source token",
        group=TARGETS,
        flags=("--roles stream", "--roles none"),
    )
    role_in_text: bool = option(
        False,
        "put the role of the speaker before each turn: `PM : Hello everybody .`",
        group=TARGETS,
        flags=("--roles text", "--roles none"),
    )
    max_source_tokens: int | None = option(
        None, "the maximum number of tokens of a source, with markers and </s>", least=3
    )
    max_target_tokens: int | None = option(
        None, "the maximum number of tokens of a target, with separators and </s>", group=TARGETS, least=2
    )
    long_source: str = option(
        "error", "refuse a longer source, truncate it, drop its last sentences, or divide it into chunks", POLICIES
    )
    long_target: str = option(
        "error", "refuse a longer target, or truncate it", POLICIES[:2], group=TARGETS, needs="max_target_tokens"
    )
    max_chunk_tokens: int | None = option(
        None,
        "with --aligned: truncate a chunk of one segment that is longer than this (default: it stays whole); no chunk "
        "of several segments is longer",
        group=TARGETS,
        least=2,
        needs="aligned and long_source=chunk",
    )
    segments: str = option(
        "sentences",
        "put a marker <s> before each sentence, before each segment of several sentences, or before each whole text",
        SEGMENTS,
        group=ROWS,
    )
    segment_length: int = option(
        128,
        "the maximum number of tokens of a packed segment, with its marker and a </s>",
        group=ROWS,
        least=3,
        needs="segments=packed or max_segments",
    )
    max_segments: int | None = option(
        None, "the maximum number of segments in a row", group=ROWS, least=1, needs="segments=sentences|packed"
    )
    window_overlap: int = option(
        128, "the maximum number of tokens that two windows share", group=WINDOWS, least=0, needs="long_source=chunk"
    )

    def __post_init__(self) -> None:
        check_values(type(self), self)

    @property
    def whole(self) -> bool:
        """Returns whether parts are not divided into segments."""
        return self.segments == "none"


@dataclass(frozen=True)
class Options(Settings):
    """All options that decide the result of `hat preprocess`."""

    vocabulary: str | None = option(
        None, "reuse the BPE, the dictionary and the settings of this bin directory", metavar="BIN"
    )
    bpe: str = option(
        "learned",
        "use a BPE learned on the training split, GPT-2's, a sentencepiece model, or any tokenizer.json or vocab.txt",
        BPES,
        group=TEXT,
    )
    num_codes: int = option(
        40000, "with --bpe learned: the number of codes to learn", group=TEXT, least=1, needs="bpe=learned"
    )
    negative_windows: float = option(
        1.0,
        "keep this fraction, from 0 to 1, of the training windows without an answer",
        group=WINDOWS,
        least=0,
        most=1,
    )
    on_empty: str = option("error", "refuse a document without text, or drop it", ("error", "drop"))
    on_misaligned: str = option(
        "error",
        "with --aligned: refuse segments without counterpart, drop them, or merge them with others",
        ON_MISALIGNED,
        group=TARGETS,
        needs="aligned",
    )
    columns: tuple[str, ...] = option(
        (),
        "read a key of records from another column or key of the data, e.g. text=article or text=translation.en; "
        "=COLUMN skips a column; repeat the option for each",
        metavar="KEY=COLUMN",
    )
    number_ids: bool = option(
        False, "number the records of each split SPLIT-1, SPLIT-2 and so on; the data must have no ids"
    )
    limit: int | None = option(None, "read only the first N documents of each split", least=1)
    partial: bool = option(False, "accept an incomplete release")

    def settings(self, role_labels: tuple[str, ...] = ()) -> Settings:
        """Returns the options that `pipeline.json` keeps."""
        values = {item.name: getattr(self, item.name) for item in fields(Settings)}
        if self.splitter == "given":  # then line breaks divide nothing
            values["line_breaks"] = LINE_BREAKS[0]
        return Settings(**{**values, "role_labels": role_labels})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares all options. What is not given is None: then the reader's default holds, or else ours."""
    groups = {name: parser.add_argument_group(title) for name, title in TITLES.items()}
    for name, each in options_of(Options).items():
        words: dict[str, Any] = {"help": each.help_with_default}
        words |= {"action": argparse.BooleanOptionalAction} if each.type is bool else {}
        if name == ROLES:
            add_roles(groups[each.group])
        elif not each.flags:  # else --roles decides it
            each.add_to(groups[each.group], **words)


def add_roles(group: argparse._ArgumentGroup) -> None:
    """Declares what becomes of the roles of turns; `options_of_roles` reads it."""
    text = (
        "what becomes of the roles of turns: a parallel stream with the role of each source token, words before each "
    )
    text += "turn (`PM : Hello everybody .`), or both (default: none)"
    words: Any = {"nargs": "?", "const": "stream", "choices": tuple(FORMS_OF_ROLES)}
    group.add_argument("--roles", metavar="|".join(FORMS_OF_ROLES), help=text, **words)


def options_of_roles(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments with the two options that `--roles` decides, where it is given."""
    if arguments.get(ROLES) is None:
        return dict(arguments)
    stream, in_text = FORMS_OF_ROLES[arguments[ROLES]]
    return {**arguments, ROLES: stream, "role_in_text": in_text}


def settings_of_tokens(settings: Settings) -> dict[str, Any]:
    """Returns the settings that decide which tokens a text becomes, besides the BPE and the limits."""
    names = ["splitter", "source_tokenizer", "target_tokenizer", "target_separator", "role_in_text", "segments"]
    names += ["line_breaks"] * (settings.splitter != "given")
    if settings.source_tokenizer == "moses" or settings.splitter == "library":
        names.append("source_language")
    if settings.target_tokenizer == "moses":
        names.append("target_language")
    if settings.segments == "packed":
        names.append("segment_length")
    return {name: getattr(settings, name) for name in names}
