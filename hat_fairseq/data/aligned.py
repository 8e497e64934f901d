"""Chunks of a document and its translation, cut at the same segment boundaries (Rohde et al. 2021, section 4.2).

Segment i of the source and segment i of the target always end up in the same chunk, so a chunk is a complete training
example, and the chunks of a document, one after the other, are the document.
"""

from collections.abc import Sequence


def chunk_segments(
    source_costs: Sequence[int],
    target_costs: Sequence[int] | None,
    max_source: int | None,
    max_target: int | None,
    between_targets: int = 0,
) -> tuple[list[slice], int]:
    """Fill chunks one after the other, each with as many segments as fit on both sides.

    Args:
        source_costs: tokens of each source segment, its marker included.
        target_costs: tokens of each target segment; None if there is no target, and then the source decides alone.
        max_source: limit of a chunk in source tokens; None for no limit.
        max_target: likewise for the target.
        between_targets: tokens between two target segments of a chunk (1 for ``<sep>``).

    Returns:
        The segments of each chunk, contiguous and covering all; and how many segments are longer than a chunk on
        either side. Such a segment is a chunk by itself, whole.
    """
    if target_costs is None:
        target_costs, max_target = [0] * len(source_costs), None
    chunks: list[slice] = []
    begin, source, target, too_long = 0, 0, 0, 0
    for index, (more_source, more_target) in enumerate(zip(source_costs, target_costs, strict=True)):
        too_long += _above(more_source, max_source) or _above(more_target, max_target)
        with_it = source + more_source, target + between_targets + more_target
        if index > begin and (_above(with_it[0], max_source) or _above(with_it[1], max_target)):
            chunks.append(slice(begin, index))
            begin = index
        source, target = with_it if index > begin else (more_source, more_target)
    return [*chunks, slice(begin, len(source_costs))], too_long


def _above(number: int, limit: int | None) -> bool:
    return limit is not None and number > limit
