"""Before the BPE: settings, and from a raw document to clean sentences."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from hat_fairseq.data import long_source, sentence_split, word_tokenizer
from hat_fairseq.data.alignment import align
from hat_fairseq.data.document import QUESTION, Document
from hat_fairseq.data.example import TASKS
from hat_fairseq.data.text import escape_control_tokens, normalise

SEGMENTS = ("sentences", "packed", "none")


class EmptyDocumentError(ValueError):
    """Nothing is left of a document, or of its target, after normalisation."""


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


def prepare(document: Document, settings: Settings, counts: Counter[str], on_misaligned: str = "error") -> Document:
    """Normalise a document and split its text into sentences. Idempotent.

    Everything replaced or dropped is added to ``counts``: the keys of ``text.normalise`` and, for aligned documents
    with a target, ``alignment.align``; ``sentences_empty`` and ``target_sentences_empty``.

    Raises:
        EmptyDocumentError: no sentence is left, or there is a target and no sentence of it is left.
        MisalignedError: see ``alignment.align``, which takes ``on_misaligned``.
        ValueError: running text with the splitter ``given``.
    """
    if settings.aligned and document.sentences is not None and document.target is not None:
        document = align(document, on_misaligned, settings.languages, counts)
    sentences = _sentences(document, settings, counts)
    kept = [index for index, sentence in enumerate(sentences) if sentence]
    target = None if document.target is None else [normalise(sentence, counts) for sentence in document.target]
    if not kept or (target is not None and not any(target)):
        what = "target" if kept else "source"
        raise EmptyDocumentError(f"{document.name} has an empty {what}: no sentence with text in it")
    kept_sentences, roles = [sentences[index] for index in kept], document.roles
    kept_roles = None if roles is None else [normalise(roles[index], counts) for index in kept]
    if document.question is not None:
        if settings.aligned:
            raise ValueError(f"{document.name} has a question, and --aligned is for translations")
        kept_sentences.insert(0, normalise(document.question, counts))
        if kept_roles is not None:
            kept_roles.insert(0, QUESTION)
    counts["sentences_empty"] += len(sentences) - len(kept)
    counts["target_sentences_empty"] += sum(not sentence for sentence in target or ())
    return replace(
        document,
        text=None,
        sentences=tuple(kept_sentences),
        roles=None if kept_roles is None else tuple(kept_roles),
        target=None if target is None else tuple(filter(None, target)),
        question=None,
    )


def source_sentences(document: Document, settings: Settings, counts: Counter[str]) -> list[str]:
    """The sentences of a prepared document as they go into the BPE.

    Roles are put before them, control tokens are escaped, words are separated.
    """
    sentences: Iterable[str] = document.sentences or ()
    if settings.role_in_text:
        sentences = (f"{role} : {text}" for role, text in zip(_roles(document, None), sentences, strict=True))
    return ready_for_bpe(sentences, settings, counts)


def ready_for_bpe(sentences: Iterable[str], settings: Settings, counts: Counter[str]) -> list[str]:
    """Normalised sentences of a source with control tokens escaped and words separated."""
    tokenizer = word_tokenizer.word_tokenizer(settings.source_tokenizer, settings.source_language)
    return [tokenizer.tokenize(escape_control_tokens(sentence, counts)) for sentence in sentences]


def target_sentences(document: Document, settings: Settings, counts: Counter[str]) -> list[str] | None:
    """The sentences of a target, of a document prepared or not, as they go into the BPE; None if there is no target."""
    if document.target is None:
        return None
    uncounted: Counter[str] = Counter()  # ``prepare`` counts what is replaced
    tokenizer = word_tokenizer.word_tokenizer(settings.target_tokenizer, settings.target_language)
    clean = filter(None, (normalise(sentence, uncounted) for sentence in document.target))
    return [tokenizer.tokenize(escape_control_tokens(sentence, counts)) for sentence in clean]


def role_tokens(document: Document, settings: Settings) -> list[str] | None:
    """One token of the role stream for each sentence of a prepared document; None without role stream.

    Raises:
        ValueError: the document has no roles, or one that is not in the settings.
    """
    if settings.roles is None:
        return None
    return [role_token(role) for role in _roles(document, settings.roles)]


def role_token(role: str) -> str:
    """A role as one token: white space becomes ``_``, control tokens are escaped."""
    return escape_control_tokens("_".join(role.split()))


def _sentences(document: Document, settings: Settings, counts: Counter[str]) -> list[str]:
    if document.text is None:
        return [normalise(sentence, counts) for sentence in document.sentences or ()]
    try:
        text = normalise(document.text, counts)
        return sentence_split.split_sentences(text, settings.splitter, settings.source_language)
    except ValueError as error:
        raise ValueError(f"document {document.id!r}: {error}") from error


def _roles(document: Document, known: tuple[str, ...] | None) -> tuple[str, ...]:
    if document.roles is None:
        raise ValueError(f"document {document.id!r} has no roles; give turns with roles, or switch the roles off")
    for role in document.roles:
        if not role or (known is not None and role not in known):
            raise ValueError(f"document {document.id!r} has the role {role!r}; known are {', '.join(known or ())}")
    return document.roles
