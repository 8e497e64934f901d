"""Rows of a document with its target: one row, whole or truncated, or a row for each chunk.

Chunks of an aligned document end at the same segment boundaries in source and target (Rohde et al. 2021, section 4.2).
So segment i of the source and segment i of the target are always in the same chunk.
"""

from collections.abc import Sequence

from hat_fairseq.data.clean import clean_target, role_token, roles_of
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.packing import cut, fill
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import BOS, Row, Unit, tokens_of, unit
from hat_fairseq.data.text import SEPARATOR

Pieces = list[list[str]]  # tokens of each sentence or segment


def encode_text(encoder: Encoder, record: Record) -> list[Row]:
    """The rows of a prepared document, with the target if it has one.

    LongInputError if source or target is too long and its policy is `error`; ValueError if it lacks roles.
    """
    units = encoder.units(record, 0, record.parts[0])
    target = None if record.target is None else encoder.pieces(clean_target(record), "target")[1]
    if encoder.settings.aligned and encoder.settings.long_source == "chunk":
        return _aligned_chunks(encoder, record, units, target)
    sentences = [_with_marker(encoder, each, role) for each, role in zip(units, _roles(encoder, record), strict=True)]
    whole = [pair for sentence in sentences for pair in sentence]
    tokens = tokens_of(whole)
    kept = encoder.slices(record, tokens, "source")
    rows = [Row(record.id, number, len(kept), _streams(encoder, whole[part])) for number, part in enumerate(kept)]
    if target is not None:
        joined = _joined(encoder, target)
        (part,) = encoder.slices(record, joined, "target")
        encoder.counts["targets_repeated_for_chunks"] += len(rows) - 1
        for row in rows:
            row.streams["target"] = joined[part]
    return rows


def chunk_segments(costs: Sequence[tuple[int, int]], limits: tuple[int | None, ...], between: int) -> list[list[int]]:
    """The numbers of the segments of each chunk.

    `costs`: tokens of each source segment, its marker included, and of its target; `limits`: of a chunk on both sides.
    A longer segment is a chunk by itself. `between`: tokens between two target segments (1 for `<sep>`).
    """

    def cost(number: int, first: bool) -> tuple[int, int]:
        source, target = costs[number]
        return source, target + (0 if first else between)

    return list(fill(range(len(costs)), cost, limits))


def _aligned_chunks(encoder: Encoder, record: Record, units: list[Unit], target: Pieces | None) -> list[Row]:
    settings = encoder.settings
    by_source = target is None or encoder.by_source
    lengths = [0] * len(units) if by_source else [len(pieces) for pieces in target or ()]
    costs = [(1 + len(each), length) for each, length in zip(units, lengths, strict=True)]
    limits = encoder.source_limit, None if by_source else encoder.limit("target")
    chunks = chunk_segments(costs, limits, int(settings.target_separator))
    encoder.counts["segments_longer_than_chunk"] += sum(
        any(limit is not None and number > limit for number, limit in zip(cost, limits, strict=True)) for cost in costs
    )
    if len(chunks) > 1:
        encoder.counts["documents_cut_into_chunks"] += 1
        encoder.counts["chunks"] += len(chunks)
    rows = []
    for number, chunk in enumerate(chunks):
        streams = {"source": [token for i in chunk for token in (BOS, *tokens_of(units[i]))]}
        if target is not None:
            streams["target"] = _joined(encoder, [target[i] for i in chunk])
        for (side, tokens), limit in zip(streams.items(), limits, strict=False):
            encoder.counts[f"{side}_tokens_truncated"] += len(tokens[limit:]) if limit else 0
            streams[side] = tokens[:limit]
        rows.append(Row(record.id, number, len(chunks), streams))
    return rows


def _roles(encoder: Encoder, record: Record) -> list[str | None]:
    """The token of the role stream for each sentence; None without role stream."""
    if not encoder.settings.roles:
        return [None] * len(record.parts[0])
    return [role_token(role) for role in roles_of(record, encoder.settings.role_labels)]


def _with_marker(encoder: Encoder, sentence: Unit, role: str | None) -> Unit:
    """A sentence behind its marker, all with its role. For chunks a sentence longer than a chunk is cut, so that every
    chunk can begin with a marker."""
    limit, tokens = encoder.source_limit, tokens_of(sentence)
    parts: list[Sequence[str]] = [tokens]
    if encoder.settings.long_source == "chunk" and limit is not None and len(tokens) >= limit:
        encoder.counts["source_sentences_longer_than_chunk"] += 1
        parts = cut(tokens, limit - 1)
    return unit([token for part in parts for token in (BOS, *part)], role)


def _streams(encoder: Encoder, pairs: Unit) -> dict[str, list[str]]:
    roles = {"role": [role for _, role in pairs]} if encoder.settings.roles else {}
    return {"source": tokens_of(pairs), **roles}


def _joined(encoder: Encoder, target: Pieces) -> list[str]:
    between = [SEPARATOR] if encoder.settings.target_separator else []
    return [token for index, pieces in enumerate(target) for token in (*(between if index else ()), *pieces)]
