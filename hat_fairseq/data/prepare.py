"""Before the BPE: from a raw document to clean sentences."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from hat_fairseq.data import sentence_split, word_tokenizer
from hat_fairseq.data.alignment import align
from hat_fairseq.data.document import QUESTION, Document
from hat_fairseq.data.settings import Settings
from hat_fairseq.data.text import escape_control_tokens, normalise


class EmptyDocumentError(ValueError):
    """Nothing is left of a document, or of its target, after normalisation."""


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
