"""Transformer layers: their base, the encoder layer, and HAT's decoder layer.

Vaswani et al. 2017, section 3: residual sub-layers, pre- or post-norm, and a feed-forward network. Parameter names
(`fc1`, `fc2`, `final_layer_norm`) and the places of dropout are fairseq's. The self-attention of an encoder layer is an
argument. With an attention to the states of the BOS tokens it is the encoder layer of Rohde et al. 2021, section 7.

The decoder layer is that of Rohde et al. 2021, section 3.3: self-attention, cross-attention to the token states,
cross-attention to the sentence states, feed-forward network. Each has its own residual connection and layer norm (the
paper does not specify the norms). Without sentences it computes what fairseq's decoder layer does.

Legend: B documents (in the decoder: B hypotheses of D documents, B = D x beam), T source tokens, S sentences of the
document with most, U target tokens, H heads, C channels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from ..kernels import GATED, Linear, feed_forward
from .attention import AttentionSizes, CrossAttention, HeadProjections, SelfAttention
from .batch_layout import BatchLayout, on_representatives
from .cache import DecoderLayerCache
from .embedding import norm_of

QUERIES = ("tokens", "bos")
NO_CACHE = (None, None, None)
# That `--checkpoint-activations` recomputes together. On a CPU larger groups are no faster: memory that is freed there
# stays in pieces.
TOKENS_OF_GROUP = {"cpu": 1024, "cuda": 8192}
REACHES_OF_GROUP = 16  # at least, so that the neighbours that are computed with a group are an eighth of it at most


Masked = tuple[Tensor, Tensor | None]  # states, and the mask of `kernels.attend` that hides their padding


class SourceStates(Protocol):
    """What a decoder layer reads of the source (`networks.encoder.EncoderOut`)."""

    @property
    def masked(self) -> tuple[Masked, Masked | None]:
        """Returns (D, T, C) states of the tokens and (D, S, C) states of the sentences, with their masks."""


@dataclass(frozen=True)
class LayerSizes:
    """Hyperparameters of a transformer layer.

    `normalize_before`: pre-norm instead of post-norm. `ffn_bias`: both maps of the feed-forward network have one.
    `kv_heads`: heads of keys and values in a decoder's attention to the tokens; None: as many as of queries.
    """

    embed_dim: int
    ffn_embed_dim: int
    num_heads: int
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: str = "relu"
    normalize_before: bool = False
    layer_norm_eps: float = 1e-5
    rms_norm: bool = False
    norm_bias: bool = True
    ffn_bias: bool = True
    kv_heads: int | None = None

    @property
    def attention_sizes(self) -> AttentionSizes:
        """Returns the sizes of the attentions of the layer."""
        return AttentionSizes(self.embed_dim, self.num_heads, self.attention_dropout)

    def norm(self) -> nn.Module:
        return norm_of(self.embed_dim, self.layer_norm_eps, self.rms_norm, self.norm_bias)

    def final_norm(self) -> nn.Module | None:
        """Builds the norm after the last layer of a pre-norm stack."""
        return self.norm() if self.normalize_before else None


def run_layer(layer: Callable[..., Any], *args: Any, checkpoint: bool = False, **kwargs: Any) -> Any:
    """Calls `layer(*args, **kwargs)`; with `checkpoint` its activations are recomputed in the backward pass.

    fairseq's own wrapper is reentrant: it fails if a layer uses a tensor that needs a gradient and is no argument.
    """
    if checkpoint and torch.is_grad_enabled():
        return torch_checkpoint(layer, *args, use_reentrant=False, **kwargs)
    return layer(*args, **kwargs)


def tokens_of_group(x: Tensor) -> int:
    """Returns how many tokens of each document of (B, T, C) states `--checkpoint-activations` recomputes together."""
    return TOKENS_OF_GROUP.get(x.device.type, max(TOKENS_OF_GROUP.values())) // len(x)


def run_in_parts(layer: "EncoderLayer", x: Tensor, layout: BatchLayout, reach: int) -> Tensor:
    """Runs a layer that looks no further than `reach` tokens, and recomputes it later, one group of tokens at a time.

    A group is computed together with its neighbours within reach, whose own states no other group needs.
    """
    group = max(tokens_of_group(x), REACHES_OF_GROUP * reach)
    if x.size(1) <= group:
        return run_layer(layer, x, layout, checkpoint=True)
    numbers = torch.arange(x.size(1), device=x.device).unsqueeze(0)
    parts, out, begin, nothing = x.split(group, dim=1), [], 0, x[:, :0]
    for before, part, after in zip((nothing, *parts), parts, (*parts[1:], nothing), strict=False):
        sides, end = (before[:, -reach:], after[:, :reach]), begin + part.size(1)
        around = layout.part(begin - sides[0].size(1), end + sides[1].size(1), numbers)
        out.append(run_layer(_between, *sides, part, around, layer, checkpoint=True))
        begin = end
    return torch.cat(out, dim=1)


def _between(before: Tensor, after: Tensor, x: Tensor, layout: BatchLayout, layer: "EncoderLayer") -> Tensor:
    inner = slice(before.size(1), before.size(1) + x.size(1))
    return layer.forward(torch.cat([before, x, after], dim=1), layout, inner)


class TransformerLayer(nn.Module):
    """Base of all layers: residual connections, layer norms and the feed-forward network."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.sizes = sizes
        inner = sizes.ffn_embed_dim * (2 if sizes.activation in GATED else 1)
        self.fc1 = Linear(sizes.embed_dim, inner, bias=sizes.ffn_bias)
        self.fc2 = Linear(sizes.ffn_embed_dim, sizes.embed_dim, bias=sizes.ffn_bias)
        self.final_layer_norm = sizes.norm()
        self.dropout = nn.Dropout(sizes.dropout)
        self.activation_dropout = nn.Dropout(sizes.activation_dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises the feed-forward network as fairseq does."""
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def residual(
        self, x: Tensor, layer_norm: nn.Module | None, sublayer: Callable[..., Tensor], *args: Any, **kwargs: Any
    ) -> Tensor:
        """Computes LN(x + f(x, ...)) (post-norm) or x + f(LN(x), ...) (pre-norm), with dropout on f's output."""
        assert layer_norm is not None
        if self.sizes.normalize_before:
            return x + self.dropout(sublayer(layer_norm(x), *args, **kwargs))
        return layer_norm(x + self.dropout(sublayer(x, *args, **kwargs)))

    def feed_forward(self, x: Tensor) -> Tensor:
        dropout = self.activation_dropout.p if self.training else 0.0
        return feed_forward(x, self.fc1, self.fc2, self.sizes.activation, dropout)


class SentenceAttention(HeadProjections):
    """Every position attends to the layout's representatives; if it has none, to every position. O(T S) operations."""

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C)."""
        return self.attend(x, *self._memory(x, layout))

    def weights(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Returns (B, H, T, S) attention weights of `forward`."""
        return self.explicit_weights(x, *self._memory(x, layout))

    def _memory(self, x: Tensor, layout: BatchLayout) -> tuple[Tensor, Tensor | None]:
        inner = layout
        if layout.representatives is not None:
            x, inner = layout.representatives.gather(x), layout.among_representatives
        mask = inner.key_mask(x)
        return x, None if mask is None else mask.allowed


class EncoderLayer(TransformerLayer):
    """Self-attention, optional attention to sentences, feed-forward network; each with residual and layer norm.

    Args:
        self_attn: the self-attention; its `forward` takes (x, layout).
        sentence_attn: the attention to the representatives, with the same `forward`; None: there is none.
        queries: the tokens that attend to the representatives: `tokens` (all) or `bos` (the representatives; the states
            of other tokens stay unchanged). The paper does not say which.
    """

    def __init__(
        self,
        sizes: LayerSizes,
        self_attn: nn.Module,
        sentence_attn: nn.Module | None = None,
        queries: str = "tokens",
    ) -> None:
        super().__init__(sizes)
        assert queries in QUERIES
        self.queries = queries
        self.self_attn = self_attn
        self.self_attn_layer_norm = sizes.norm()
        self.sentence_attn = sentence_attn
        self.sentence_attn_layer_norm = None if sentence_attn is None else sizes.norm()

    def reach(self, layout: BatchLayout) -> int | None:
        """Returns how far from a token the layer looks for its state; None: at the whole document, or nobody knows."""
        whole = self.sentence_attn is not None or layout.global_tokens is not None
        return None if whole else getattr(self.self_attn, "reach", None)

    def forward(self, x: Tensor, layout: BatchLayout, inner: slice | None = None) -> Tensor:
        """Maps (B, T, C) -> (B, T, C); `inner`: of the tokens in it alone, if the layer has a `reach`."""
        x = self.residual(x, self.self_attn_layer_norm, self.self_attn, layout)
        x = x if inner is None else x[:, inner]
        if self.sentence_attn is not None and self.queries == "tokens":
            x = self.residual(x, self.sentence_attn_layer_norm, self.sentence_attn, layout)
        elif self.sentence_attn is not None:
            among = self.sentence_attn_layer_norm, self.sentence_attn, layout.among_representatives
            x = on_representatives(x, layout, self.residual, *among)
        return self.residual(x, self.final_layer_norm, self.feed_forward)


class HierarchicalDecoderLayer(TransformerLayer):
    """Decoder layer; `sentences`: with cross-attention to sentences."""

    def __init__(self, sizes: LayerSizes, sentences: bool = True) -> None:
        super().__init__(sizes)
        self.self_attn = SelfAttention(sizes.attention_sizes)
        self.self_attn_layer_norm = sizes.norm()
        self.encoder_attn = CrossAttention(replace(sizes.attention_sizes, kv_heads=sizes.kv_heads))
        self.encoder_attn_layer_norm = sizes.norm()
        self.sentence_attn = CrossAttention(sizes.attention_sizes) if sentences else None
        self.sentence_attn_layer_norm = sizes.norm() if sentences else None

    def forward(self, x: Tensor, memory: SourceStates, cache: DecoderLayerCache | None = None) -> Tensor:
        """Runs the layer.

        Args:
            x: (B, U, C) target states; with a cache only the U new ones.
            memory: of the D documents.
            cache: keys and values of earlier steps; the layer updates it.
        Returns:
            (B, U, C).
        """
        own, of_tokens, of_sentences = NO_CACHE if cache is None else cache
        tokens, sentences = memory.masked
        x = self.residual(x, self.self_attn_layer_norm, self.self_attn, own)
        x = self.residual(x, self.encoder_attn_layer_norm, self.encoder_attn, *tokens, cache=of_tokens)
        if self.sentence_attn is not None:
            assert sentences is not None
            norm = self.sentence_attn_layer_norm
            x = self.residual(x, norm, self.sentence_attn, *sentences, cache=of_sentences)
        return self.residual(x, self.final_layer_norm, self.feed_forward)
