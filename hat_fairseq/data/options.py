"""The options of `hat preprocess`, each declared once, and the names of their choices.

The command line, `pipeline.json` and the page of commands are made from these fields. Nothing of `data` is imported
here, so every file of it may import the options.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields
from typing import Any

#: How running text is split into sentences, what its line breaks are, and what becomes of segments without
#: counterpart: see `text.py` and `kinds/aligned.py`.
SPLITTERS = ("given", "punctuation", "library")
LINE_BREAKS = ("space", "paragraphs", "sentences")
ON_MISALIGNED = ("error", "drop", "merge")
WORD_TOKENIZERS = ("none", "moses", "jieba")  # see `word_tokenizer.py`
BPES = ("learned", "gpt2", "sentencepiece", "tokenizer")
POLICIES = ("error", "truncate", "truncate-sentences", "chunk")  # for long input; see `long_input.py`
COLUMNS = "read a key of records from another column or key of the data, e.g. text=article or text=translation.en; "
COLUMNS += "=COLUMN leaves a column out; repeat the option for each"
NUMBER_IDS = "number the records of each split SPLIT-1, SPLIT-2 and so on; the data must have no ids"
METAVAR = "KEY=COLUMN"
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


class OptionError(ValueError):
    """A mistake in options, which are flags on the command line and arguments in Python.

    `text` has a field such as `{splitter}` for each of the `options`, which stands for its name, and its value if that
    is not None; and `{}` for each of the `texts`, which stay as they are.
    """

    def __init__(self, text: str, *texts: object, **options: Any) -> None:
        flags = {name: typed(name) if value is None else f"{typed(name)} {value}" for name, value in options.items()}
        arguments = {
            name: name if value is None else f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"
            for name, value in options.items()
        }
        super().__init__(text.format(*texts, **flags))
        self.in_python = text.format(*texts, **arguments)

    def at(self, where: object, way_out: str = "") -> "OptionError":
        """Returns the same with a place before it, and what to do after it."""
        error = OptionError("{}: {}{}", where, self, way_out)
        error.in_python = f"{where}: {self.in_python}{way_out}"
        return error

    def __reduce__(self) -> Any:
        return ValueError, self.args  # between processes


@contextmanager
def as_in_python() -> Iterator[None]:
    """Has an error of options, raised in the block, name arguments instead of flags."""
    try:
        yield
    except OptionError as error:
        error.args = (error.in_python,)
        raise


def typed(name: str) -> str:
    """Returns the name of an option as a flag."""
    return f"--{name.replace('_', '-')}"


def option(default: Any, text: str, choices: Sequence[str] = (), **more: Any) -> Any:
    """Returns a field that is an option with this help text.

    `metavar`: name of the value in the help, `N` for numbers; `group`: of the kinds of data that it has an effect with,
    empty for all; `least`, `most`: the lowest and the highest number; `typed`: what stands for True and for False on
    the command line, where another flag decides this option, whose own flag the help does not list.
    """
    metadata = {"help": text, "choices": tuple(choices), "metavar": "N", "group": "", "least": None, "most": math.inf}
    metadata["typed"] = ()
    return field(default=default, metadata=metadata | more)


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
        typed=("--target-separator", "--no-target-separator"),
    )
    roles: bool = option(
        False,
        "write a parallel stream with the role of each source token",
        group=TARGETS,
        typed=("--roles stream", "--roles none"),
    )
    role_in_text: bool = option(
        False,
        "put the role of the speaker before each turn: `PM : Hello everybody .`",
        group=TARGETS,
        typed=("--roles text", "--roles none"),
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
    long_target: str = option("error", "refuse a longer target, or truncate it", POLICIES[:2], group=TARGETS)
    max_chunk_tokens: int | None = option(
        None,
        "with --aligned: truncate a chunk of one segment that is longer than this (default: it stays whole); no chunk "
        "of several segments is longer",
        group=TARGETS,
        least=2,
    )
    segments: str = option(
        "sentences",
        "put a marker <s> before each sentence, before each segment of several sentences, or before each whole text",
        SEGMENTS,
        group=ROWS,
    )
    segment_length: int = option(
        128, "the maximum number of tokens of a packed segment, with its marker and a </s>", group=ROWS, least=3
    )
    max_segments: int | None = option(None, "the maximum number of segments in a row", group=ROWS, least=1)
    window_overlap: int = option(128, "the maximum number of tokens that two windows share", group=WINDOWS, least=0)

    def __post_init__(self) -> None:
        for item in options_of(type(self)):
            value, choices, least = getattr(self, item.name), item.metadata["choices"], item.metadata["least"]
            if choices and value not in choices:
                raise ValueError(f"{flag(item)} must be one of {', '.join(choices)}, not {value!r}")
            if least is not None and value is not None:
                most = item.metadata["most"]
                if not least <= value <= most or value == math.inf:
                    limit = f" and at most {most}" if most < math.inf else " and finite" if value == math.inf else ""
                    raise ValueError(f"{flag(item)} must be at least {least}{limit}, not {value}")

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
    num_codes: int = option(40000, "with --bpe learned: the number of codes to learn", group=TEXT, least=1)
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
    )
    columns: tuple[str, ...] = option((), COLUMNS, metavar=METAVAR)
    number_ids: bool = option(False, NUMBER_IDS)
    limit: int | None = option(None, "read only the first N documents of each split", least=1)
    partial: bool = option(False, "accept an incomplete release")

    def settings(self, role_labels: tuple[str, ...] = ()) -> Settings:
        """Returns the options that `pipeline.json` keeps."""
        values = {item.name: getattr(self, item.name) for item in fields(Settings)}
        if self.splitter == "given":  # then line breaks divide nothing
            values["line_breaks"] = LINE_BREAKS[0]
        return Settings(**{**values, "role_labels": role_labels})


def options_of(declared: type[Settings]) -> list[Field[Any]]:
    """Returns the fields of the class that are options."""
    return [item for item in fields(declared) if item.metadata]


def flag(item: Field[Any], value: Any = None) -> str:
    """Returns an option as it is typed: `--splitter given`, `--no-aligned`; without a value `--splitter`."""
    if isinstance(value, bool) and item.metadata["typed"]:
        return str(item.metadata["typed"][not value])
    if isinstance(value, bool):
        return typed(item.name) if value else typed(f"no_{item.name}")
    return typed(item.name) if value is None else f"{typed(item.name)} {value}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares all options. What is not given is None: then the reader's default holds, or else ours."""
    groups = {name: parser.add_argument_group(title) for name, title in TITLES.items()}
    for item in options_of(Options):
        group, default = groups[item.metadata["group"]], item.default
        shown = "" if default in (None, ()) or item.type is bool else f" (default: {default})"
        words = {"help": item.metadata["help"] + shown, "default": None}
        if item.metadata["typed"]:
            words["help"] = argparse.SUPPRESS
        if item.name == ROLES:
            add_roles(group)
        elif item.type is bool:
            group.add_argument(flag(item), action=argparse.BooleanOptionalAction, **words)
        else:
            number = int if item.type in (int, int | None) else float if item.type is float else str
            choices = item.metadata["choices"]
            words |= {"action": "append"} if isinstance(default, tuple) else {}
            metavar = "|".join(choices) or item.metadata["metavar"]
            group.add_argument(flag(item), type=number, choices=choices or None, metavar=metavar, **words)


def add_roles(group: argparse._ArgumentGroup) -> None:
    """Declares what becomes of the roles of turns; `options_of_roles` reads it."""
    text = (
        "what becomes of the roles of turns: a parallel stream with the role of each source token, words before each "
    )
    text += "turn (`PM : Hello everybody .`), or both (default: none)"
    words: Any = {"nargs": "?", "const": "stream", "choices": tuple(FORMS_OF_ROLES)}
    group.add_argument("--roles", metavar="|".join(FORMS_OF_ROLES), help=text, **words)
    group.add_argument("--no-roles", dest=ROLES, action="store_const", const="none", help=argparse.SUPPRESS)


def options_of_roles(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments with the two options that `--roles` decides, where it is given."""
    if arguments.get(ROLES) is None:
        return dict(arguments)
    stream, in_text = FORMS_OF_ROLES[arguments[ROLES]]
    stated = arguments.get("role_in_text")  # by the flag of 0.6
    return {**arguments, ROLES: stream, "role_in_text": in_text if stated is None else stated}


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
