"""Rows of a document with its target: one row, whole or truncated, or a row for each chunk.

Chunks of an aligned document end at the same segment boundaries in source and target (Rohde et al. 2021, section 4.2).
So segment i of the source and segment i of the target are always in the same chunk.
"""

from itertools import chain

from hat_fairseq.data.clean import clean_target, role_token, roles_of
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.packing import cut, exceeds, group_within
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import BOS, Row, Unit, tokens_of, unit
from hat_fairseq.data.text import SEPARATOR

Pieces = list[list[str]]  # tokens of each sentence or segment


def encode_text(encoder: Encoder, record: Record) -> list[Row]:
    """The rows of a prepared document, with the target if it has one.

    LongInputError if source or target is too long and its policy is `error`; ValueError if it lacks roles.
    """
    settings, units = encoder.settings, encoder.units(record, record.parts[0])
    target = None if record.target is None else encoder.pieces(clean_target(record), "target")[1]
    if settings.aligned and settings.long_source == "chunk":
        return _aligned_chunks(encoder, record, units, target)
    roles: list[str | None] = [None] * len(units)
    if settings.roles:
        roles = [role_token(role) for role in roles_of(record, settings.role_labels)]
    pieces = [
        unit((BOS, *piece), role)
        for tokens, role in zip(map(tokens_of, units), roles, strict=True)
        for piece in _pieces(encoder, tokens)
    ]
    if settings.long_source == "chunk":
        chunks = list(group_within(pieces, lambda piece, _: (len(piece),), (encoder.limit("source"),)))
        if len(chunks) > 1:
            encoder.counts.update(source_documents_over_limit=1, source_chunks=len(chunks))
        sources: list[Unit] = [list(chain.from_iterable(chunk)) for chunk in chunks]
    else:
        sources = [encoder.document(record, list(chain.from_iterable(pieces)), "source")]
    streams = [{"source": tokens_of(pairs)} for pairs in sources]
    if settings.roles:
        streams = [row | {"role": [role for _, role in pairs]} for row, pairs in zip(streams, sources, strict=True)]
    if target is not None:
        whole = tokens_of(encoder.document(record, unit(_joined(encoder, target)), "target"))
        encoder.counts["targets_repeated_for_chunks"] += len(streams) - 1
        streams = [row | {"target": whole} for row in streams]
    return [Row(record.id, number, len(streams), row) for number, row in enumerate(streams)]


def _aligned_chunks(encoder: Encoder, record: Record, units: list[Unit], target: Pieces | None) -> list[Row]:
    """A segment longer than a chunk is a chunk by itself, which `--max-chunk-tokens` may truncate."""
    by_source = target is None or encoder.by_source
    limits = encoder.limit("source"), None if by_source else encoder.limit("target")
    lengths = [0] * len(units) if by_source or target is None else list(map(len, target))
    between = int(encoder.settings.target_separator)

    def cost(number: int, first: bool) -> tuple[int, int]:
        return 1 + len(units[number]), lengths[number] + (0 if first else between)

    chunks = list(group_within(range(len(units)), cost, limits))
    encoder.counts["segments_longer_than_chunk"] += sum(exceeds(cost(i, True), limits) for i in range(len(units)))
    if len(chunks) > 1:
        encoder.counts.update(documents_cut_into_chunks=1, chunks=len(chunks))
    rows = []
    for number, chunk in enumerate(chunks):
        streams = {"source": [token for i in chunk for token in (BOS, *tokens_of(units[i]))]}
        if target is not None:
            streams["target"] = _joined(encoder, [target[i] for i in chunk])
        if most := encoder.settings.max_chunk_tokens:
            for side in streams if not encoder.by_source else ("source",):  # references of test data stay whole
                encoder.counts[f"{side}_tokens_truncated"] += len(streams[side][most - 1 :])
                streams[side] = streams[side][: most - 1]
        rows.append(Row(record.id, number, len(chunks), streams))
    return rows


def _pieces(encoder: Encoder, tokens: list[str]) -> Pieces:
    """A sentence, which is cut if it is longer than a chunk, so that every chunk can begin with a marker."""
    limit = encoder.limit("source")
    if encoder.settings.long_source != "chunk" or limit is None or len(tokens) < limit:
        return [tokens]
    encoder.counts["source_sentences_longer_than_chunk"] += 1
    return list(map(list, cut(tokens, limit - 1)))


def _joined(encoder: Encoder, target: Pieces) -> list[str]:
    between = [SEPARATOR] if encoder.settings.target_separator else []
    return [token for index, pieces in enumerate(target) for token in (*(between if index else ()), *pieces)]
