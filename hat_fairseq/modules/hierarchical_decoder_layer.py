"""A decoder layer that attends to tokens and to sentences.

Rohde et al. 2021, section 3.3: self-attention, cross-attention over the token states, cross-attention over the sentence
states, feed-forward; each with its own residual and layer norm (the paper leaves the norms open; ours follow the base
scheme, post- or pre-norm). Exactly one attention and one norm more than a plain layer; without sentences it *is*
fairseq's layer.

Legend: B hypotheses, T target tokens, D documents (B = D x beam), S source tokens, N sentences, C channels.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from .attention import MultiheadAttention
from .cache import DecoderLayerCache
from .transformer_layer import LayerSizes, TransformerLayer


@dataclass(frozen=True)
class AttentionWeights:
    """Weights of the two cross-attentions of a layer: (B, H, T, S) over tokens, (B, H, T, N) over sentences or None."""

    tokens: Tensor
    sentences: Tensor | None


class HierarchicalDecoderLayer(TransformerLayer):
    """Decoder layer with an optional cross-attention over sentences.

    Args:
        sizes: the layer's numbers.
        sentences: False builds the plain layer, without any parameter for sentences.
    """

    def __init__(self, sizes: LayerSizes, sentences: bool = True) -> None:
        super().__init__(sizes)
        self.self_attn = self.attention(MultiheadAttention)
        self.self_attn_layer_norm = self.norm()
        self.encoder_attn = self.attention(partial(MultiheadAttention, kv_heads=sizes.kv_heads))
        self.encoder_attn_layer_norm = self.norm()
        self.sentence_attn = self.attention(MultiheadAttention) if sentences else None
        self.sentence_attn_layer_norm = self.norm() if sentences else None

    def forward(
        self,
        x: Tensor,
        tokens: Tensor,
        tokens_mask: Tensor | None,
        sentences: Tensor | None = None,
        sentences_mask: Tensor | None = None,
        cache: DecoderLayerCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, AttentionWeights | None]:
        """Runs the layer.

        Args:
            x: (B, T, C) target states; with a cache only the T new ones.
            tokens: (D, S, C), and tokens_mask: (D, 1, 1, S), see `mask_of_keys`.
            sentences: (D, N, C), and sentences_mask: (D, 1, 1, N); not read by a plain layer.
            cache: what earlier steps left; it is updated.
        Returns:
            (B, T, C), and the weights of the cross-attentions if asked.
        """
        kept = (None, None, None) if cache is None else (cache.self_attn, cache.encoder_attn, cache.sentence_attn)
        x, _ = self._attend(x, self.self_attn, self.self_attn_layer_norm, cache=kept[0], causal=True)
        to_tokens = {"cache": kept[1], "need_weights": need_weights}
        x, token_weights = self._attend(
            x, self.encoder_attn, self.encoder_attn_layer_norm, tokens, tokens_mask, **to_tokens
        )
        sentence_weights = None
        if self.sentence_attn is not None and self.sentence_attn_layer_norm is not None:
            assert sentences is not None, "a hierarchical layer needs the sentence states"
            to_sentences = {"cache": kept[2], "need_weights": need_weights}
            x, sentence_weights = self._attend(
                x, self.sentence_attn, self.sentence_attn_layer_norm, sentences, sentences_mask, **to_sentences
            )
        x = self.residual(x, self.final_layer_norm, self.feed_forward)
        return x, None if token_weights is None else AttentionWeights(token_weights, sentence_weights)

    def _attend(
        self, x: Tensor, attention: MultiheadAttention, layer_norm: nn.Module, *memory: Tensor | None, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """One attention in its residual; returns its weights as well."""
        weights = None

        def sublayer(h: Tensor) -> Tensor:
            nonlocal weights
            out, weights = attention(h, *memory, **options)
            return out

        return self.residual(x, layer_norm, sublayer), weights
