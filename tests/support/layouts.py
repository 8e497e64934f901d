"""Layouts of batches, made by hand, and dense attention under a pattern of `docs/attention_patterns.py`."""

from typing import Any

import references
import torch
from attention_patterns import attends_to, window
from torch import Tensor

from hat_fairseq.modules.batch_layout import BatchLayout, Representatives, representatives_at
from hat_fairseq.modules.pooling_attention import PoolingAttention


def layout_of(starts: Tensor, padding: Tensor | None = None) -> BatchLayout:
    """Of documents whose sentences start where `starts` (B, T) is True."""
    counts = starts.sum(dim=1)
    return BatchLayout(padding, representatives_at(starts, int(counts.max()), int(counts.min())))


def segment_layout(padding: Tensor) -> BatchLayout:
    """Of documents in segments, from (B, N, L) padding."""
    documents, number, length = padding.shape
    positions = (torch.arange(number) * length).expand(documents, -1)
    empty = padding.all(dim=2)
    return BatchLayout(padding.flatten(1), Representatives(positions, empty), empty_rows=bool(empty.any()))


def dense(attention: Any, x: Tensor, layout: BatchLayout) -> list[Tensor]:
    """Each document alone: its (T_i, C) output, every head of every query over the keys that `attends_to` gives it."""
    positions = torch.arange(x.size(1))
    two_levels = isinstance(attention, PoolingAttention)
    pattern = window if two_levels else attends_to
    allowed = pattern(attention, positions[:, None], positions[None, :], layout)
    # B x H x T x T, or B x 1 x T x T for a pattern that all heads have
    allowed = allowed if allowed.dim() == 4 else allowed.expand(len(x), x.size(1), x.size(1)).unsqueeze(1)
    allowed = allowed.expand(len(x), -1, -1, -1)
    rows = []
    for row in range(len(x)):
        real = slice(None) if layout.padding is None else ~layout.padding[row]
        if two_levels:
            sees = attention.sees(positions[real][:, None], positions)  # padding is on the right
            rows.append(references.two_level_attention(attention, x[row, real], allowed[row, 0, real][:, real], sees))
            continue
        rows.append(references.attention(attention, x[row, real], x[row, real], allowed[row][:, real][..., real])[0])
    return rows
