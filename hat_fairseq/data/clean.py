"""Record to clean sentences, the steps before the BPE. Training and inference use the same code."""

from collections import Counter
from collections.abc import Iterator

from hat_fairseq.data.options import Settings
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.text import CONTROL_TOKENS, escape_control_tokens, normalise, split_sentences
from hat_fairseq.data.word_tokenizer import word_tokenizer

BYTES = tuple(map(str, range(256)))  # the symbols of bytes and of pixels


class EmptyDocumentError(ValueError):
    """Nothing is left of a document, or of its target or a part of it, after normalisation."""


def clean_sentences(
    record: Record, text: Text, settings: Settings, counts: Counter[str], split: bool = True, element: str | None = None
) -> list[str]:
    """Returns normalised sentences, segments or words of a text, none empty; roles are put before their sentences.

    `split`: running text is split by the settings' splitter, otherwise it is one sentence. `element`: the name of an
    element that has a label. EmptyDocumentError if nothing is left, or such an element is empty.
    """
    clean = normalised(record, text, element, counts)
    if isinstance(text, str):
        way_out = "; or --segments none" if settings.splitter == "given" else ""
        return split_text(record, clean[0], settings, way_out) if split else clean
    counts["sentences_empty"] += sum(not sentence for sentence in clean)
    if settings.role_in_text:
        clean = [f"{role} : {sentence}" for role, sentence in zip(roles_of(record), clean, strict=True)]
    return list(filter(None, clean))


def symbols_of(record: Record, text: Text, alphabet: tuple[str, ...]) -> list[str]:
    """The symbols of a sequence: bytes of a text in UTF-8, or tokens and pixels as given; ValueError for unfit ones.

    `alphabet`: the symbols that may occur; empty for any.
    """
    if isinstance(text, str):
        symbols = list(map(BYTES.__getitem__, text.encode("utf-8", "surrogatepass")))
    else:
        symbols = list(text)
        if alphabet and (unknown := set(symbols).difference(alphabet)):
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
    """Returns the sentences of a target, prepared or not."""
    return list(filter(None, (normalise(sentence, Counter()) for sentence in record.target or ())))


def sentences_for_bpe(record: Record, main: int | None, always_split: bool, settings: Settings) -> Iterator[str]:
    """Yields all sentences of a stored record as they go into the BPE, to learn it from.

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
    """Returns the roles of a record; ValueError if it has none, or one that is not known."""
    if record.roles is None:
        raise ValueError(f"{record.name} has no roles; give turns with roles, or switch the roles off")
    for role in record.roles:
        if not role or (known is not None and role not in known):
            raise ValueError(f"{record.name} has the role {role!r}; known are {', '.join(known or ())}")
    return record.roles


def role_token(role: str) -> str:
    """Returns a role as one token: white space becomes `_`, control tokens are escaped."""
    return escape_control_tokens("_".join(role.split()))


def normalised(record: Record, text: Text, element: str | None, counts: Counter[str]) -> list[str]:
    """Returns the whole text, or each of its elements, without line breaks and the like."""
    clean = [normalise(element, counts) for element in ([text] if isinstance(text, str) else text)]
    if element and not all(clean):
        raise EmptyDocumentError(f"{record.name}: its {element} {clean.index('') + 1} is empty")
    if not any(clean):
        raise EmptyDocumentError(f"{record.name} has an empty part: no sentence with text in it")
    return clean


def split_text(record: Record, text: str, settings: Settings, way_out: str = "") -> list[str]:
    try:
        return split_sentences(text, settings.splitter, settings.source_language)
    except ValueError as error:
        raise ValueError(f"{record.name}: {error}{way_out}") from error
