"""An encoder layer whose tokens also attend to the sentences.

Rohde et al. 2021, section 7: a hierarchical attention module after the self-attention of every encoder layer. Keys and
values are the states of the BOS tokens; the paper leaves open which tokens ask. `tokens`: all of them, as in the
decoder; `bos`: only the BOS tokens, the others pass by unchanged. O(T x S) beside the self-attention's O(T^2). Exactly
one attention and one norm more than a plain layer; where every token is a BOS both ways are one self-attention more.

Legend: B documents, T tokens, S sentences of the longest document, C channels.
"""

from __future__ import annotations

from torch import Tensor

from .sentences import gather_sentences, scatter_sentences
from .transformer_layer import LayerSizes, TransformerLayer

QUERIES = ("tokens", "bos")


class HierarchicalEncoderLayer(TransformerLayer):
    """Self-attention, attention over the sentences, feed-forward; each with its own residual and layer norm.

    Args:
        sizes: the layer's numbers.
        queries: `tokens` or `bos`, who attends to the sentences.
    Raises:
        ValueError: other `queries`.
    """

    def __init__(self, sizes: LayerSizes, queries: str = "tokens") -> None:
        super().__init__(sizes)
        if queries not in QUERIES:
            raise ValueError(f"unknown queries {queries!r} of the sentence attention; choose one of {list(QUERIES)}")
        self.queries = queries
        self.self_attn = sizes.attention()
        self.self_attn_layer_norm = sizes.layer_norm()
        self.sentence_attn = sizes.attention()
        self.sentence_attn_layer_norm = sizes.layer_norm()

    def forward(self, x: Tensor, padding_mask: Tensor | None, positions: Tensor, sentences_padding: Tensor) -> Tensor:
        """Runs the layer.

        Args:
            x: (B, T, C) and padding_mask: (B, T), True = padding, no row all padding.
            positions: (B, S) where the sentences start, and sentences_padding: (B, S), from `sentence_positions`.
        Returns:
            (B, T, C).
        """
        x = self.residual(x, self.self_attn_layer_norm, lambda h: self.self_attn(h, key_padding_mask=padding_mask)[0])
        attention, norm = self.sentence_attn, self.sentence_attn_layer_norm
        if self.queries == "tokens":
            x = self.residual(x, norm, lambda h: attention(h, gather_sentences(h, positions), sentences_padding)[0])
        else:
            states = gather_sentences(x, positions)
            states = self.residual(states, norm, lambda h: attention(h, key_padding_mask=sentences_padding)[0])
            x = scatter_sentences(x, positions, sentences_padding, states)
        return self.residual(x, self.final_layer_norm, self.feed_forward)
