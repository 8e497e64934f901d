"""The hierarchical encoder: full encoder layers that see only the sentences' BOS states.

Rohde et al. 2021, section 3.2 and Figure 1 (one layer works best). Its input are *outputs* of the token-level encoder,
which already carry positions, so there is no second position table; the token states themselves are left untouched.
O(S^2) per layer, negligible beside the token level. With one sentence it is an encoder layer over one state.

Legend: B documents, T tokens, S sentences, C channels.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from .sentences import gather_sentences, sentence_positions


class HierarchicalEncoder(nn.Module):
    """Encoder layers over gathered BOS states.

    Args:
        layers: modules that take (x, padding_mask), usually `TransformerEncoderLayer`; at least one.
        layer_norm: applied at the end of a pre-norm stack, None for post-norm.
    Raises:
        ValueError: no layer.
    """

    def __init__(self, layers: Iterable[nn.Module], layer_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if not len(self.layers):
            raise ValueError("a hierarchical encoder needs at least one layer; use --no-hierarchy for none")
        self.layer_norm = layer_norm

    def forward(self, x: Tensor, starts: Tensor, num_sentences: int | None = None) -> tuple[Tensor, Tensor]:
        """Encodes the sentences.

        Args:
            x: (B, T, C) outputs of the token-level encoder.
            starts: (B, T) True where a sentence starts, at least once per row.
            num_sentences: S if it is known.
        Returns:
            (B, S, C) sentence states and their (B, S) padding mask.
        """
        positions, padding_mask = sentence_positions(starts, num_sentences)
        states = gather_sentences(x, positions)
        for layer in self.layers:
            states = layer(states, padding_mask)
        if self.layer_norm is not None:
            states = self.layer_norm(states)
        return states, padding_mask
