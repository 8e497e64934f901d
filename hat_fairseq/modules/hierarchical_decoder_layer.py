"""A decoder layer that attends to tokens and to sentences.

Rohde et al. 2021, section 3.3: self-attention, cross-attention over the token states, cross-attention over the sentence
states, feed-forward; each with its own residual and layer norm (the paper leaves the norms open; ours follow the base
scheme, post- or pre-norm). Exactly one attention and one norm more than a plain layer; without sentences it *is*
fairseq's layer.

Legend: B hypotheses, T target tokens, D documents (B = D x beam), S source tokens, N sentences, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

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
        self.self_attn = sizes.attention()
        self.self_attn_layer_norm = nn.LayerNorm(sizes.embed_dim)
        self.encoder_attn = sizes.attention()
        self.encoder_attn_layer_norm = nn.LayerNorm(sizes.embed_dim)
        self.sentence_attn = sizes.attention() if sentences else None
        self.sentence_attn_layer_norm = nn.LayerNorm(sizes.embed_dim) if sentences else None

    def forward(
        self,
        x: Tensor,
        tokens: Tensor,
        tokens_padding: Tensor | None,
        sentences: Tensor | None = None,
        sentences_padding: Tensor | None = None,
        cache: DecoderLayerCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, AttentionWeights | None]:
        """Runs the layer.

        Args:
            x: (B, T, C) target states; with a cache only the T new ones.
            tokens: (D, S, C) and tokens_padding: (D, S), True = padding.
            sentences: (D, N, C) and sentences_padding: (D, N); not read by a plain layer.
            cache: what earlier steps left; it is updated.
        Returns:
            (B, T, C), and the weights of the cross-attentions if asked.
        """
        x = self.residual(
            x,
            self.self_attn_layer_norm,
            lambda h: self.self_attn(h, causal=True, cache=cache.self_attn if cache else None)[0],
        )
        weights: dict[str, Tensor | None] = {"tokens": None, "sentences": None}

        def attend_tokens(h: Tensor) -> Tensor:
            kept = cache.encoder_attn if cache else None
            out, weights["tokens"] = self.encoder_attn(h, tokens, tokens_padding, cache=kept, need_weights=need_weights)
            return out

        x = self.residual(x, self.encoder_attn_layer_norm, attend_tokens)
        if self.sentence_attn is not None and self.sentence_attn_layer_norm is not None:
            sentence_attn = self.sentence_attn
            assert sentences is not None, "a hierarchical layer needs the sentence states"

            def attend_sentences(h: Tensor) -> Tensor:
                kept = cache.sentence_attn if cache else None
                out, weights["sentences"] = sentence_attn(
                    h, sentences, sentences_padding, cache=kept, need_weights=need_weights
                )
                return out

            x = self.residual(x, self.sentence_attn_layer_norm, attend_sentences)
        x = self.residual(x, self.final_layer_norm, self.feed_forward)
        if weights["tokens"] is None:
            return x, None
        return x, AttentionWeights(weights["tokens"], weights["sentences"])
