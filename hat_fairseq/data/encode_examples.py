"""From an example to rows with their labels: classification, choices, segments, words, symbols; rows to pre-train on.

A row is `<s> s1 <s> s2 </s> </s> <s> t1 <s> t2`: a marker before each segment, two separators between parts.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from hat_fairseq.data.clean import symbols_of
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.labels import NO_LABEL, RIGHT, WRONG, label_token
from hat_fairseq.data.packing import pack_rows
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import BOS, EOS, Row, Unit, marked, tokens_of, unit


def _labelled(record: Record, tokens: list[str]) -> dict[str, list[str]]:
    """The streams of a row with the label of its record."""
    return {"source": tokens} | ({} if record.label is None else {"label": [label_token(str(record.label))]})


def encode_sequence(encoder: Encoder, record: Record) -> list[Row]:
    """One row of each part of a sequence of symbols, without BPE: `<s>`, and the part truncated by itself."""
    rows = []
    for number, text in enumerate(record.parts):
        tokens = unit([BOS, *symbols_of(record, text, encoder.kind)])
        encoder.totals["source_tokens"] += len(tokens) - 1
        streams = _labelled(record, tokens_of(encoder.document(record, tokens, "source")))
        rows.append(Row(record.id, number, len(record.parts), streams))
    return rows


def encode_pair(encoder: Encoder, record: Record) -> list[Row]:
    """One row of one or two parts."""
    first, *second = record.parts
    parts = [encoder.text(record, first), *(encoder.short_text(record, text) for text in second)]
    return [Row(record.id, 0, 1, _labelled(record, tokens_of(encoder.row(record, list(map(marked, parts))))))]


def encode_choices(encoder: Encoder, record: Record) -> list[Row]:
    """One row for each choice: the text, which is truncated, and the choice with its question; `right` or `wrong`."""
    context = marked(encoder.text(record, record.parts[0]))  # all choices share it
    choices = [marked(encoder.short_text(record, choice)) for choice in record.choices]
    rows = []
    for number, choice in enumerate(choices):
        streams = {"source": tokens_of(encoder.row(record, [context, choice], truncated=0))}
        if record.label is not None:
            streams["label"] = [RIGHT if number == int(record.label) else WRONG]
        rows.append(Row(record.id, number, len(choices), streams))
    return rows


def encode_candidates(encoder: Encoder, record: Record) -> list[Row]:
    """One row `<s> question </s> <s> candidate 1 <s> candidate 2 ... </s> </s> <s> context`; the label is a number.

    Question and candidates are never truncated. The spans have the number of each candidate at its marker (Liu et al.
    2022, section 4.2.3, after Beltagy et al. 2020, section 6.1: question, candidates and context in one sequence).
    """
    question, context = record.parts
    pairs = [(BOS, None), *encoder.one_segment(record, question), (EOS, None)]
    for number, candidate in enumerate(record.choices):
        pairs += [(BOS, number), *encoder.one_segment(record, candidate)]
    pairs = encoder.row(record, [pairs, marked(encoder.text(record, context))], truncated=1)
    streams = _labelled(record, tokens_of(pairs))
    return [Row(record.id, 0, 1, streams, [number for _, number in pairs], len(record.choices))]


def encode_segments(encoder: Encoder, record: Record) -> list[Row]:
    """One row of given segments; the label has one for each marker."""
    segments = encoder.units(record, record.parts[0], element="segment")
    pairs = encoder.row(record, [marked(segments, range(len(segments)))])
    return [_with_elements(encoder, record, pairs, None)]


def encode_words(encoder: Encoder, record: Record) -> list[Row]:
    """One row of words; the label has one for each token: at the first piece of a word that of the word, else none."""

    def refer(_: object, __: object, pieces: list[list[str]]) -> list[list[Any]]:
        return [[number, *[None] * (len(tokens) - 1)] for number, tokens in enumerate(pieces)]

    words = encoder.units(record, record.parts[0], element="word", refer=refer)
    pairs = encoder.row(record, [marked(encoder.segments(words, whole=True))])
    return [_with_elements(encoder, record, pairs, NO_LABEL)]


def _with_elements(encoder: Encoder, record: Record, pairs: Unit, no_label: str | None) -> Row:
    """A row whose tokens refer to the elements of the record, by their numbers."""
    streams = {"source": tokens_of(pairs)}
    numbers = [number for _, number in pairs]
    if record.labels is not None:
        labels = [no_label if number is None else label_token(record.labels[number]) for number in numbers]
        streams["label"] = [label for label in labels if label is not None]
        encoder.counts["labels_lost"] += len(record.labels) - sum(number is not None for number in numbers)
    return Row(record.id, 0, 1, streams, numbers, len(record.parts[0]))


def encode_pretraining(encoder: Encoder, record: Record) -> list[Row]:
    """Rows of one document, without labels; `pack_documents` fills rows with several."""
    rows = list(pack_documents(encoder, [units_to_pack(encoder, record)]))
    return [Row(record.id, number, len(rows), {"source": tokens}) for number, tokens in enumerate(rows)]


def units_to_pack(encoder: Encoder, record: Record) -> list[list[str]]:
    """The tokens of the segments of a document, without markers. Rows end between sentences even if these have none."""
    split = not encoder.whole or encoder.settings.splitter != "given"
    return [tokens_of(each) for each in encoder.segments(encoder.units(record, record.parts[0], split), whole=False)]


def pack_documents(encoder: Encoder, documents: Iterable[list[list[str]]]) -> Iterator[list[str]]:
    """Rows filled with the segments of consecutive documents; see `packing.pack_rows`."""
    settings = encoder.settings
    limits = settings.max_segments, settings.segment_length
    return pack_rows(documents, encoder.limit("source"), not encoder.whole, encoder.counts, *limits)
