"""A decoder layer that attends to tokens and to sentences.

Rohde et al. 2021, section 3.3: self-attention, cross-attention to the token states, cross-attention to the sentence
states, feed-forward network. Each has its own residual connection and layer norm, post- or pre-norm (the paper does
not specify the norms). Without sentences the layer computes what fairseq's decoder layer does.

Legend: B hypotheses, T target tokens, D documents (B = D x beam), S source tokens, N sentences, C channels.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from .attention import MultiheadAttention
from .cache import DecoderLayerCache
from .transformer_layer import LayerSizes, TransformerLayer


@dataclass(frozen=True)
class AttentionWeights:
    """Weights of the cross-attentions of a layer: (B, H, T, S) over tokens, (B, H, T, N) over sentences or None."""

    tokens: Tensor
    sentences: Tensor | None


class HierarchicalDecoderLayer(TransformerLayer):
    """Decoder layer with an optional cross-attention to sentences.

    Args:
        sizes: hyperparameters of the layer.
        sentences: False builds the plain layer, without any parameter for sentences.
    """

    def __init__(self, sizes: LayerSizes, sentences: bool = True) -> None:
        super().__init__(sizes)
        numbers = sizes.embed_dim, sizes.num_heads, sizes.attention_dropout
        self.self_attn = MultiheadAttention(*numbers)
        self.self_attn_layer_norm = self.norm()
        self.encoder_attn = MultiheadAttention(*numbers, kv_heads=sizes.kv_heads)
        self.encoder_attn_layer_norm = self.norm()
        self.sentence_attn = MultiheadAttention(*numbers) if sentences else None
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
            sentences: (D, N, C), and sentences_mask: (D, 1, 1, N); unused in a layer without sentences.
            cache: keys and values of earlier steps; the layer updates it.
            need_weights: also return the attention weights.
        Returns:
            (B, T, C), and the weights of the cross-attentions or None.
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
        """One attention with its residual connection and layer norm; returns its weights as well."""
        weights = None

        def sublayer(h: Tensor) -> Tensor:
            nonlocal weights
            out, weights = attention(h, *memory, **options)
            return out

        return self.residual(x, layer_norm, sublayer), weights
