"""Documents with a text as target: summarization and document translation.

Chunks of an aligned document end at the same segment boundaries in source and target (Rohde et al. 2021, section 4.2).
So segment i of the source and segment i of the target are always in the same chunk.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hat_fairseq.data.kind import Kind
from hat_fairseq.data.kinds.aligned import align
from hat_fairseq.data.long_input import cut, exceeds, group_within
from hat_fairseq.data.options import POLICIES, TARGETS, TEXT, Settings
from hat_fairseq.data.record import OfTurns, Record, Texts, Turn, as_sentences
from hat_fairseq.data.rows import Row, RowEncoder, marked
from hat_fairseq.data.sentences import Divided, Divider, Prepared, check_visible, split_text
from hat_fairseq.data.text import SEPARATOR, EmptyDocumentError, escape_control_tokens, is_blank, normalise

MOST_NAMED = 20  # roles of a message


@dataclass(frozen=True)
class Document(
    OfTurns,
    Record,
    reads=("question", "text", "elements"),
    one_of=("text", "turns", "sentences"),
    gold="target",
    repairs={"target": as_sentences},
):
    """A document with its target: a summary, or a translation segment by segment."""

    question: str | None = None  # it becomes the first sentence
    turns: tuple[Turn, ...] | None = None
    text: str | None = None
    sentences: Texts | None = None
    target: Texts | None = None
    other_references: tuple[Texts, ...] = ()  # besides the target; in JSON they follow it in one list

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.roles is not None and None in self.roles:
            number = self.roles.index(None) + 1
            raise ValueError(f"{self.place}: turn {number} has neither role nor speaker, but others have")

    @property
    def references(self) -> tuple[Texts, ...]:
        """Returns the target, which models are trained on, and the other references."""
        return () if self.target is None else (self.target, *self.other_references)

    def with_sentences(self, sentences: Texts, roles: Texts | None, target: Texts | None) -> "Document":
        """Returns the document with other sentences instead of its question and text, and another target."""
        turns = tuple(Turn(text, role=role) for text, role in zip(sentences, roles or (), strict=bool(roles)))
        alone = None if turns else sentences
        return replace(self, question=None, text=None, sentences=alone, turns=turns or None, target=target)


Pieces = list[list[str]]  # tokens of each sentence or segment
QUESTION = "question"  # the role of a question among turns


class DocumentKind(Kind):
    """Documents with targets."""

    name, task = "text", "document_to_text"
    record = Document
    policies = POLICIES
    options = (TEXT, TARGETS)

    def check_texts(self, record: Any) -> None:
        if record.question is not None and is_blank(record.question):
            raise EmptyDocumentError(f"{record.name} has an empty question")
        check_visible(record, record.parts[-1], part="source")
        if record.target is not None:
            check_visible(record, record.target, part="target")

    def prepare(self, record: Document, settings: Settings, counts: Counter[str], policy: str = "error") -> Prepared:
        """Cleans a document and divides it into sentences; `policy`: of `align`. Idempotent.

        EmptyDocumentError if nothing is left of the source or the target; else ValueError as `align` and
        `split_sentences`.
        """
        if record.question is not None and settings.aligned:
            raise ValueError(f"{record.name} has a question, and --aligned is for translations")
        self.check_texts(record)
        question = [] if record.question is None else [normalise(record.question, counts)]
        source, roles = source_of(record, settings, counts), None
        target = None if record.target is None else [normalise(each, counts) for each in record.target]
        if settings.aligned and record.text is None and target is not None:
            languages = settings.source_language, settings.target_language
            pairs = align(record.name, source, target, policy, languages, counts)
            source, target = [each for each, _ in pairs], [each for _, each in pairs]
        elif record.roles is not None:
            roles = (*[QUESTION] * len(question), *clean_roles(record, source, settings, counts))
        sentences = (*question, *nonempty(source, "sentences_empty", counts))
        shown = None if target is None else tuple(nonempty(target, "target_sentences_empty", counts))
        record = with_clean_references(record, counts).with_sentences(sentences, roles, shown)
        divider = Divider(settings, counts)
        texts = self.divide(divider, record)
        return Prepared(record, texts, None if shown is None else Divided(divider.words(shown, "target")))

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Separates the words of a cleaned document, whose sentences are divided; ValueError if it lacks roles."""
        sentences = record.elements
        if divider.settings.role_in_text:
            pairs = zip(_roles_of(record), sentences, strict=True)
            sentences = [f"{role} : {sentence}" for role, sentence in pairs]
        return [Divided(divider.words(sentences, "source"), may_be_whole=True)]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Encodes a document, with its target if it has one; ValueError if it lacks roles."""
        settings = encoder.settings
        record: Any = prepared.record
        units = encoder.units(*prepared.texts)
        if not (settings.roles or settings.role_in_text):
            encoder.counts["roles_left_out"] += len(record.roles or ())
        target = None if prepared.target is None else encoder.target(prepared.target)
        if settings.aligned and settings.long_source == "chunk":
            return _aligned_chunks(encoder, record, units, target)
        roles = list(map(role_token, _roles_of(record, settings.role_labels))) if settings.roles else [""] * len(units)
        pieces = [
            (piece, role) for tokens, role in zip(units, roles, strict=True) for piece in _cut_sentence(encoder, tokens)
        ]
        if settings.long_source == "chunk":
            chunks = list(group_within(pieces, lambda piece, _: (1 + len(piece[0]),), (encoder.limit("source"),)))
            if len(chunks) > 1:
                encoder.counts.update(source_documents_over_limit=1, source_chunks=len(chunks))
            streams = [_streams(chunk, settings.roles) for chunk in chunks]
        else:
            whole = _streams(pieces, settings.roles)
            end = len(encoder.truncate(record, whole["source"], "source"))
            streams = [{name: tokens[:end] for name, tokens in whole.items()}]
        if target is not None:
            joined = encoder.truncate(record, _joined(encoder, target), "target")
            encoder.counts["targets_repeated_for_chunks"] += len(streams) - 1
            streams = [row | {"target": joined} for row in streams]
        return [Row(record.id, number, len(streams), row) for number, row in enumerate(streams)]


def _streams(pieces: Sequence[tuple[list[str], str]], with_roles: bool) -> dict[str, list[str]]:
    """The source of some pieces of sentences, and in parallel their roles."""
    streams = {"source": marked([tokens for tokens, _ in pieces])}
    if with_roles:
        streams["role"] = [role for tokens, role in pieces for _ in range(1 + len(tokens))]
    return streams


def role_token(role: str) -> str:
    """Returns a role as one token: white space becomes `_`, control tokens are escaped."""
    return escape_control_tokens("_".join(role.split()))


def check_roles(record: Any) -> None:
    """Raises ValueError for a record without roles."""
    if record.roles is None:
        raise ValueError(
            f"{record.name} has no roles, which the data or the model need: give turns, each with its role"
        )


def _roles_of(record: Any, known: Texts | None = None) -> Texts:
    """The roles of a record; ValueError if it has none, or one that is not known."""
    check_roles(record)
    for role in record.roles:
        if known is not None and role not in known:
            names = ", ".join(known[:MOST_NAMED]) + (", ..." if len(known) > MOST_NAMED else "")
            raise ValueError(
                f"{record.name} has the role {role!r}; known are {names}: rename the roles of the input. Names that "
                "are new in every document need data with --roles text"
            )
    roles: Texts = record.roles
    return roles


def source_of(record: Document, settings: Settings, counts: Counter[str]) -> list[str]:
    """Returns the normalised sentences of running text, or turns and sentences, some of which may be empty then."""
    if record.text is not None:
        return split_text(record, record.text, settings, counts)
    return [normalise(each, counts) for each in record.elements or ()]


def nonempty(sentences: Sequence[str], name: str, counts: Counter[str]) -> list[str]:
    """Returns the sentences that show something; `name` counts the others."""
    counts[name] += sentences.count("")
    return list(filter(None, sentences))


def clean_roles(record: Document, source: Sequence[str], settings: Settings, counts: Counter[str]) -> list[str]:
    """Returns the roles of the turns that have text; ValueError for an empty one that the settings need."""
    pairs = zip(record.roles or (), source, strict=True)
    roles = [normalise(role, counts) if sentence else None for role, sentence in pairs]
    if "" in roles and (settings.roles or settings.role_in_text):
        raise ValueError(f"turn {roles.index('') + 1} of {record.name} has an empty role")
    return [role for role in roles if role is not None]


def with_clean_references(record: Document, counts: Counter[str]) -> Document:
    """Returns the document with what its other references show; one that shows nothing is dropped."""
    if not record.other_references:
        return record
    references = [[normalise(each, counts) for each in lines] for lines in record.other_references]
    shown = [nonempty(each, "target_sentences_empty", counts) for each in references if any(each)]
    counts["references_empty"] += len(references) - len(shown)
    counts["references_not_trained_on"] += len(shown)
    return replace(record, other_references=tuple(map(tuple, shown)))


def _aligned_chunks(encoder: RowEncoder, record: Record, units: Pieces, target: Pieces | None) -> list[Row]:
    """A segment longer than a chunk is a chunk by itself, which `--max-chunk-tokens` may truncate.

    A chunk of several segments is never truncated: this is a limit of theirs, too.
    """
    chunk_by_source = target is None or encoder.chunk_by_source
    sides, most = ("source",) if chunk_by_source else ("source", "target"), encoder.settings.max_chunk_tokens
    known = {side: [n for n in (encoder.limit(side), most and most - 1) if n is not None] for side in sides}
    limits = tuple(min(known.get(side, ()), default=None) for side in ("source", "target"))
    lengths = [0] * len(units) if chunk_by_source or target is None else list(map(len, target))
    between = int(encoder.settings.target_separator)

    def cost(number: int, first: bool) -> tuple[int, int]:
        return 1 + len(units[number]), lengths[number] + (0 if first else between)

    chunks = list(group_within(range(len(units)), cost, limits))
    encoder.counts["segments_longer_than_chunk"] += sum(exceeds(cost(i, True), limits) for i in range(len(units)))
    if len(chunks) > 1:
        encoder.counts.update(documents_cut_into_chunks=1, chunks=len(chunks))
    rows = []
    for number, chunk in enumerate(chunks):
        streams = {"source": marked([units[i] for i in chunk])}
        if target is not None:
            streams["target"] = _joined(encoder, [target[i] for i in chunk])
        if most is not None:
            for side in sides:  # references of test data stay whole
                encoder.counts[f"{side}_tokens_truncated"] += len(streams[side][most - 1 :])
                streams[side] = streams[side][: most - 1]
        rows.append(Row(record.id, number, len(chunks), streams))
    return rows


def _cut_sentence(encoder: RowEncoder, tokens: list[str]) -> Pieces:
    """Cuts a sentence that is longer than a chunk, so that every chunk can begin with a marker."""
    limit = encoder.limit("source")
    if encoder.settings.long_source != "chunk" or limit is None or len(tokens) < limit:
        return [tokens]
    encoder.counts["source_sentences_longer_than_chunk"] += 1
    return list(map(list, cut(tokens, limit - 1)))


def _joined(encoder: RowEncoder, target: Pieces) -> list[str]:
    between = [SEPARATOR] if encoder.settings.target_separator else []
    return [token for index, tokens in enumerate(target) for token in (*(between if index else ()), *tokens)]
