"""Record to clean sentences, the steps before the BPE. Training and inference use the same code."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hat_fairseq.data.alignment import align
from hat_fairseq.data.options import Settings
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.records import Document
from hat_fairseq.data.text import CONTROL_TOKENS, escape_control_tokens, normalise, split_sentences
from hat_fairseq.data.word_tokenizer import word_tokenizer

if TYPE_CHECKING:
    from hat_fairseq.data.kinds import Kind

QUESTION = "question"  # the role of a question among turns
BYTES = tuple(map(str, range(256)))  # the symbols of bytes and of pixels


class EmptyDocumentError(ValueError):
    """Nothing is left of a document, or of its target or a part of it, after normalisation."""


def prepare(record: Record, kind: "Kind", settings: Settings, counts: Counter[str], policy: str = "error") -> Record:
    """The record as it is stored: documents with targets clean and in sentences, all others as given. Idempotent.

    Everything replaced or dropped in a document is added to `counts`: the keys of `text.normalise` and, for aligned
    documents with a target, `alignment.align`; `sentences_empty`, `target_sentences_empty` and
    `references_not_trained_on`. EmptyDocumentError if nothing is left of a part or of the target; else ValueError as
    `align` and `split_sentences`.
    """
    if isinstance(record, Document):
        return _prepare_document(record, settings, counts, policy)
    for _, text in record.texts():
        if kind.is_text:
            element = record.list_key().removesuffix("s") if kind.divided else None
            _normalised(record, text, element, Counter())  # what it replaces is counted when it is encoded
        else:
            symbols_of(record, text, kind)
    return record


def clean_sentences(
    record: Record, text: Text, settings: Settings, counts: Counter[str], split: bool = True, element: str | None = None
) -> list[str]:
    """Normalised sentences, segments or words of a text; none of them is empty. Roles are put before their sentences.

    `split`: running text is split by the settings' splitter, otherwise it is one sentence. `element`: the name of an
    element that has a label. EmptyDocumentError if nothing is left, or such an element is empty.
    """
    clean = _normalised(record, text, element, counts)
    if isinstance(text, str):
        way_out = "; or --segments none" if settings.splitter == "given" else ""
        return _split(record, clean[0], settings, way_out) if split else clean
    counts["sentences_empty"] += sum(not sentence for sentence in clean)
    if settings.role_in_text:
        clean = [f"{role} : {sentence}" for role, sentence in zip(roles_of(record), clean, strict=True)]
    return list(filter(None, clean))


def symbols_of(record: Record, text: Text, kind: "Kind") -> list[str]:
    """The symbols of a sequence: bytes of a text in UTF-8, or tokens and pixels as given; ValueError for unfit ones."""
    if isinstance(text, str):
        symbols = list(map(BYTES.__getitem__, text.encode("utf-8", "surrogatepass")))
    else:
        symbols = list(text)
        if kind.alphabet and (unknown := set(symbols).difference(kind.alphabet)):
            raise ValueError(f"{record.name} has the pixel {min(unknown)}; pixels are numbers from 0 to 255")
        for symbol in set(symbols):
            if symbol.split() != [symbol] or symbol in CONTROL_TOKENS:
                raise ValueError(
                    f"{record.name} has the token {symbol!r:.60}; tokens have no white space and are not "
                    f"{', '.join(CONTROL_TOKENS)}"
                )
    if not symbols:
        raise EmptyDocumentError(f"{record.name} has an empty sequence")
    return symbols


def ready_for_bpe(sentences: list[str], side: str, settings: Settings, counts: Counter[str]) -> list[str]:
    """Normalised sentences of the source or the target with control tokens escaped and words separated."""
    tokenizer = word_tokenizer(getattr(settings, f"{side}_tokenizer"), getattr(settings, f"{side}_language"))
    return [tokenizer.tokenize(escape_control_tokens(sentence, counts)) for sentence in sentences]


def clean_target(record: Record) -> list[str]:
    """The sentences of a target, prepared or not."""
    return list(filter(None, (normalise(sentence, Counter()) for sentence in record.target or ())))


def sentences_for_bpe(record: Record, main: int | None, always_split: bool, settings: Settings) -> Iterator[str]:
    """All sentences of a stored record as they go into the BPE, to learn it from.

    `main`: number of the part that is never short, None if all are; `always_split`: even if sentences get no markers.
    """
    uncounted: Counter[str] = Counter()
    for number, text in record.texts():
        is_main = main is not None and number == main % len(record.parts)
        short = settings.splitter == "given" and (settings.segments == "none" or not is_main)
        split = not short and (always_split or settings.segments != "none")
        clean = clean_sentences(record, text, settings, uncounted, split)
        yield from ready_for_bpe(clean, "source", settings, uncounted)
    yield from ready_for_bpe(clean_target(record), "target", settings, uncounted)


def roles_of(record: Record, known: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The roles of a record; ValueError if it has none, or one that is not known."""
    if record.roles is None:
        raise ValueError(f"{record.name} has no roles; give turns with roles, or switch the roles off")
    for role in record.roles:
        if not role or (known is not None and role not in known):
            raise ValueError(f"{record.name} has the role {role!r}; known are {', '.join(known or ())}")
    return record.roles


def role_token(role: str) -> str:
    """A role as one token: white space becomes `_`, control tokens are escaped."""
    return escape_control_tokens("_".join(role.split()))


def _prepare_document(record: Document, settings: Settings, counts: Counter[str], policy: str) -> Document:
    if len(record.parts) == 2:
        record = _with_question(record, settings, counts)
    if settings.aligned and record.sentences is not None and record.target is not None:
        record = align(record, policy, (settings.source_language, settings.target_language), counts)
    if record.text is None:
        sentences = [normalise(sentence, counts) for sentence in record.sentences or ()]
    else:
        sentences = _split(record, normalise(record.text, counts), settings)
    kept = [index for index, sentence in enumerate(sentences) if sentence]
    target = None if record.target is None else [normalise(sentence, counts) for sentence in record.target]
    if not kept or (target is not None and not any(target)):
        what = "target" if kept else "source"
        raise EmptyDocumentError(f"{record.name} has an empty {what}: no sentence with text in it")
    counts["sentences_empty"] += len(sentences) - len(kept)
    if record.other_references:
        others = (tuple(filter(None, (normalise(s, counts) for s in each))) for each in record.other_references)
        record = replace(record, other_references=tuple(filter(None, others)))
        counts["references_not_trained_on"] += len(record.other_references)
    counts["target_sentences_empty"] += sum(not sentence for sentence in target or ())
    return record.with_sentences(
        tuple(sentences[index] for index in kept),
        roles=None if record.roles is None else tuple(normalise(record.roles[index], counts) for index in kept),
        target=None if target is None else tuple(filter(None, target)),
    )


def _with_question(record: Document, settings: Settings, counts: Counter[str]) -> Document:
    """The question as the first sentence."""
    question, text = record.parts
    if settings.aligned:
        raise ValueError(f"{record.name} has a question, and --aligned is for translations")
    if not isinstance(question, str) or not normalise(question, Counter()):
        raise EmptyDocumentError(f"{record.name} has an empty question")
    divided = _split(record, normalise(text, counts), settings) if isinstance(text, str) else text
    if not any(normalise(sentence, Counter()) for sentence in divided):
        raise EmptyDocumentError(f"{record.name} has an empty source: no sentence with text in it")
    roles = None if record.roles is None else (QUESTION, *record.roles)
    return record.with_sentences((question, *divided), roles, record.target)


def _normalised(record: Record, text: Text, element: str | None, counts: Counter[str]) -> list[str]:
    """The whole text, or each of its elements, without line breaks and the like."""
    clean = [normalise(element, counts) for element in ([text] if isinstance(text, str) else text)]
    if element and not all(clean):
        raise EmptyDocumentError(f"{record.name}: its {element} {clean.index('') + 1} is empty")
    if not any(clean):
        raise EmptyDocumentError(f"{record.name} has an empty part: no sentence with text in it")
    return clean


def _split(record: Record, text: str, settings: Settings, way_out: str = "") -> list[str]:
    try:
        return split_sentences(text, settings.splitter, settings.source_language)
    except ValueError as error:
        raise ValueError(f"{record.name}: {error}{way_out}") from error
