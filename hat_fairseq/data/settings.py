"""The settings of tokenization, apart from the BPE; they are kept in `pipeline.json` beside the binary data."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hat_fairseq.data import long_source, sentence_split, word_tokenizer
from hat_fairseq.data.example import TASKS

SEGMENTS = ("sentences", "packed", "none")


@dataclass(frozen=True)
class Settings:
    """The settings of tokenization, apart from the BPE.

    Args:
        splitter: how running text is split into sentences; documents that bring sentences or turns keep theirs.
        source_language: ISO 639-1 code, for the splitter and the source's word tokenizer.
        target_language: likewise for the target.
        source_tokenizer: one of ``word_tokenizer.NAMES``, applied to each sentence before the BPE.
        target_tokenizer: likewise for the target.
        aligned: source sentences and target segments correspond one to one; with the policy ``chunk`` both sides are
            then cut at the same places, and each chunk has its own part of the target.
        target_separator: put the token ``<sep>`` between the segments of the target.
        roles: the labels of the role stream, or None for no role stream.
        role_in_text: put the role before its utterance: ``PM : Hello everybody .``
        max_source_tokens: limit of a source, markers included, fairseq's final ``</s>`` not; None for no limit.
        max_target_tokens: likewise for a target, separators included.
        long_source: policy for a source above its limit, one of ``long_source.POLICIES``.
        long_target: ``error`` or ``truncate``.
        task: ``text`` for documents with targets, or a kind of examples, one of ``example.KINDS``.
        segments: of examples, what each marker stands before, one of ``SEGMENTS``: a sentence; consecutive sentences
            packed into a segment; or each part of an example as a whole.
        segment_length: limit of a packed segment in tokens, its marker and one place for a ``</s>`` included.
        max_segments: most markers of a row of pre-training (``mlm``); None for no limit.
        window_overlap: most tokens that two consecutive windows of a text share (``qa`` with the policy ``chunk``).
    """

    splitter: str = "given"
    source_language: str = "en"
    target_language: str = "en"
    source_tokenizer: str = "none"
    target_tokenizer: str = "none"
    aligned: bool = False
    target_separator: bool = False
    roles: tuple[str, ...] | None = None
    role_in_text: bool = False
    max_source_tokens: int | None = None
    max_target_tokens: int | None = None
    long_source: str = "error"
    long_target: str = "error"
    task: str = "text"
    segments: str = "sentences"
    segment_length: int = 128
    max_segments: int | None = None
    window_overlap: int = 128

    def __post_init__(self) -> None:
        for name, choices in (
            ("splitter", sentence_split.METHODS),
            ("source_tokenizer", word_tokenizer.NAMES),
            ("target_tokenizer", word_tokenizer.NAMES),
            ("long_source", long_source.POLICIES),
            ("long_target", ("error", "truncate")),
            ("task", TASKS),
            ("segments", SEGMENTS),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        least_of = {
            "max_source_tokens": 2,
            "max_target_tokens": 1,
            "segment_length": 3,
            "window_overlap": 0,
            "max_segments": 1,
        }
        for name, least in least_of.items():
            if (limit := getattr(self, name)) is not None and limit < least:
                raise ValueError(f"{name} must be at least {least}, not {limit}")

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of source and target."""
        return self.source_language, self.target_language


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings among the options of ``hat preprocess``, without the labels of the role stream."""
    return Settings(**{item.name: options[item.name] for item in fields(Settings) if item.name != "roles"})


def settings_of_tokens(settings: Settings) -> dict[str, Any]:
    """The settings that decide which tokens a text becomes, besides the BPE and the limits."""
    names = ["splitter", "source_tokenizer", "target_tokenizer", "target_separator", "role_in_text", "segments"]
    if settings.source_tokenizer == "moses" or settings.splitter == "library":
        names.append("source_language")
    if settings.target_tokenizer == "moses":
        names.append("target_language")
    if settings.segments == "packed":
        names.append("segment_length")
    return {name: getattr(settings, name) for name in names}


def settings_from_json(record: dict[str, Any]) -> Settings:
    """Inverse of ``dataclasses.asdict``; refuses settings of another version."""
    known = {item.name for item in fields(Settings)}
    if record.keys() != known:
        raise ValueError(f"found the settings {sorted(record)}, expected {sorted(known)}")
    return Settings(**{**record, "roles": None if record["roles"] is None else tuple(record["roles"])})
