"""Layers, embeddings, encoder and decoder of the models.

Legend: as in attention_hat_fairseq.py; V vocabulary.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PretrainedConfig
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import ModelOutput

from .attention_hat_fairseq import Attention, Batch, PoolingAttention, allowed_keys, chosen_layers, given

BOS, PAD, EOS = 0, 1, 2  # in every dictionary of fairseq
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh}


@dataclass
class EncoderOutput(ModelOutput):
    """States of tokens (B, T, C) and of sentences (B, S, C) or None, and where they exist: (B, T) and (B, S)."""

    last_hidden_state: Tensor | None = None
    tokens_mask: Tensor | None = None
    sentences: Tensor | None = None
    sentences_mask: Tensor | None = None


class Layer(nn.Module):
    """Residual sub-layers, post-norm or pre-norm, and the feed-forward network."""

    def __init__(self, settings: SimpleNamespace, side: str):
        super().__init__()
        self.settings, self.channels = settings, getattr(settings, f"{side}_embed_dim")
        self.num_heads = getattr(settings, f"{side}_attention_heads")
        self.pre_norm = getattr(settings, f"{side}_normalize_before")
        inner = getattr(settings, f"{side}_ffn_embed_dim")
        self.fc1, self.fc2 = nn.Linear(self.channels, inner), nn.Linear(inner, self.channels)
        self.final_layer_norm = self.norm()

    def norm(self) -> nn.LayerNorm:
        return nn.LayerNorm(self.channels, eps=self.settings.layer_norm_eps)

    def attention(self, inner: int | None = None, kv_heads: int | None = None) -> Attention:
        return Attention(self.channels, self.num_heads, self.settings.attention_dropout, inner, kv_heads)

    def residual(self, x: Tensor, norm: nn.LayerNorm, sublayer) -> Tensor:
        if self.pre_norm:
            return x + F.dropout(sublayer(norm(x)), self.settings.dropout, self.training)
        return norm(x + F.dropout(sublayer(x), self.settings.dropout, self.training))

    def feed_forward(self, x: Tensor) -> Tensor:
        x = ACTIVATIONS[self.settings.activation_fn](self.fc1(x))
        return self.fc2(F.dropout(x, self.settings.activation_dropout, self.training))


class EncoderLayer(Layer):
    """Self-attention, attention to the sentences if there is one, feed-forward; then among the representatives.

    Args:
        number: of the layer, which decides about its attention; None: full attention over sentences.
    """

    def __init__(self, settings: SimpleNamespace, number: int | None = None):
        super().__init__(settings, "encoder")
        self.number = number
        inner = None if number is None else settings.encoder_qkv_dim
        pools = number is not None and settings.encoder_attention == "pooling" and number in chosen_layers(settings)
        if pools:
            self.self_attn = PoolingAttention(self.channels, self.num_heads, settings.attention_dropout, settings)
        else:
            self.self_attn = self.attention(inner)
        self.self_attn_layer_norm = self.norm()
        self.queries = self.weights = None
        if number is not None and not settings.no_hierarchy:
            self.queries = getattr(settings, "sentence_queries", None)  # of the encoder-only HAT
            self.weights = getattr(settings, "representative_weights", None)  # of ERNIE-Sparse
        if self.queries is not None:
            self.sentence_attn, self.sentence_attn_layer_norm = self.attention(), self.norm()
        if self.weights == "separate":
            self.representative_attn = self.attention(inner)
        if self.weights is not None and settings.representative_update == "residual":
            self.representative_attn_layer_norm = self.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        allowed = allowed_keys(self.settings, self.number, batch)
        x = self.residual(x, self.self_attn_layer_norm, lambda h: self.self_attn.among(h, allowed, batch))
        if self.queries == "tokens":
            x = self.residual(x, self.sentence_attn_layer_norm, lambda h: self.to_sentences(h, batch.gather(h), batch))
        elif self.queries == "bos":
            states, norm = batch.gather(x), self.sentence_attn_layer_norm
            x = batch.scatter(x, self.residual(states, norm, lambda h: self.to_sentences(h, h, batch)))
        x = self.residual(x, self.final_layer_norm, self.feed_forward)
        return x if self.weights is None else batch.scatter(x, self.among_representatives(batch.gather(x), batch))

    def to_sentences(self, query: Tensor, sentences: Tensor, batch: Batch) -> Tensor:
        return self.sentence_attn(query, *self.sentence_attn.keys_and_values(sentences), batch.exists[:, None, None])

    def among_representatives(self, states: Tensor, batch: Batch) -> Tensor:
        attention = self.representative_attn if self.weights == "separate" else self.self_attn
        mask = batch.exists | ~batch.exists.any(dim=1, keepdim=True)  # without any, nothing is written back

        def attend(h: Tensor) -> Tensor:
            return attention(h, *attention.keys_and_values(h), mask[:, None, None])

        if self.settings.representative_update == "replace":
            return attend(states)
        return self.residual(states, self.representative_attn_layer_norm, attend)


class DecoderLayer(Layer):
    """Causal self-attention, attention to the tokens, attention to the sentences, feed-forward (section 3.3)."""

    def __init__(self, settings: SimpleNamespace, number: int):
        super().__init__(settings, "decoder")
        self.number = number
        self.self_attn, self.self_attn_layer_norm = self.attention(), self.norm()
        self.encoder_attn = self.attention(kv_heads=settings.decoder_kv_heads)
        self.encoder_attn_layer_norm = self.norm()
        self.sentence_attn = self.sentence_attn_layer_norm = None
        if not settings.no_hierarchy:
            self.sentence_attn, self.sentence_attn_layer_norm = self.attention(), self.norm()

    def forward(self, x: Tensor, causal: Tensor, encoded: EncoderOutput, cache: EncoderDecoderCache | None) -> Tensor:
        def attend_self(h: Tensor) -> Tensor:
            keys, values = self.self_attn.keys_and_values(h)
            if cache is not None:
                keys, values = cache.self_attention_cache.update(keys, values, self.number)
            return self.self_attn(h, keys, values, causal)

        def attend_to(attention: Attention, memory: Tensor, mask: Tensor, number: int):
            return lambda h: attention(h, *memory_keys(attention, memory, cache, number), mask[:, None, None])

        x = self.residual(x, self.self_attn_layer_norm, attend_self)
        to_tokens = attend_to(self.encoder_attn, encoded.last_hidden_state, encoded.tokens_mask, self.number)
        x = self.residual(x, self.encoder_attn_layer_norm, to_tokens)
        if self.sentence_attn is not None:
            number = self.settings.decoder_layers + self.number  # behind the caches of the tokens
            to_sentences = attend_to(self.sentence_attn, encoded.sentences, encoded.sentences_mask, number)
            x = self.residual(x, self.sentence_attn_layer_norm, to_sentences)
        return self.residual(x, self.final_layer_norm, self.feed_forward)


def memory_keys(attention: Attention, memory: Tensor, cache: EncoderDecoderCache | None, number: int):
    """Keys and values of a memory, which does not change from step to step: projected once if there is a cache."""
    if cache is None:
        return attention.keys_and_values(memory)
    if not cache.is_updated.get(number):
        cache.is_updated[number] = True
        return cache.cross_attention_cache.update(*attention.keys_and_values(memory), number)
    layer = cache.cross_attention_cache.layers[number]
    return layer.keys, layer.values


class Positions(nn.Module):
    """fairseq's positions: row p + PAD + 1 is position p, row PAD is zero; learned, or sines and cosines."""

    def __init__(self, learned: bool, max_positions: int, channels: int):
        super().__init__()
        self.max_positions, self.channels = max_positions, channels
        if learned:
            self.weight = nn.Parameter(torch.zeros(max_positions + PAD + 1, channels))

    def forward(self, rows: Tensor) -> Tensor:
        """(B, T) rows -> (B, T, C)."""
        if rows.numel() and (longest := int(rows.max()) - PAD) > self.max_positions:
            raise ValueError(
                f"a text of {longest} tokens, and the model has {self.max_positions} positions: shorten it"
            )
        if hasattr(self, "weight"):
            return F.embedding(rows, self.weight)
        half = self.channels // 2
        frequencies = torch.exp(torch.arange(half, device=rows.device) * (-math.log(10000) / max(half - 1, 1)))
        angles = rows.unsqueeze(-1) * frequencies
        odd = angles.new_zeros(*rows.shape, self.channels % 2)
        return torch.cat([angles.sin(), angles.cos(), odd], dim=-1).masked_fill(rows.unsqueeze(-1) == PAD, 0)


class Embeddings(nn.Module):
    """Token + position (+ role) embeddings, layer norm, dropout, of encoder or decoder."""

    def build(self, settings: SimpleNamespace, side: str, vocabulary: int | None, max_positions: int) -> None:
        """Adds the parameters; `vocabulary` None: the table of tokens is another module's."""
        channels = getattr(settings, f"{side}_embed_dim")
        self.settings = settings
        if vocabulary is not None:
            self.embed_tokens = nn.Embedding(vocabulary, channels, PAD)
        self.embed_positions = Positions(getattr(settings, f"{side}_learned_pos"), max_positions, channels)
        norm = settings.layernorm_embedding
        self.layernorm_embedding = nn.LayerNorm(channels, eps=settings.layer_norm_eps) if norm else None
        self.scale = 1.0 if settings.no_scale_embedding else math.sqrt(channels)
        final = getattr(settings, f"{side}_normalize_before")
        self.layer_norm = nn.LayerNorm(channels, eps=settings.layer_norm_eps) if final else None

    def embed(self, tokens: Tensor, table: Tensor, rows: Tensor, roles: Tensor | None = None) -> Tensor:
        """(B, T) ids and rows of positions -> (B, T, C); `roles`: (B, T, C) or None."""
        x = self.scale * F.embedding(tokens, table) + self.embed_positions(rows).to(table.dtype)
        x = x if roles is None else x + roles
        x = x if self.layernorm_embedding is None else self.layernorm_embedding(x)
        return F.dropout(x, self.settings.dropout, self.training)


def marked(starts: Tensor) -> tuple[Tensor, Tensor]:
    """(B, T) bool -> (B, S) the positions that are True, 0 beyond the last; (B, S) True = there is one."""
    positions = [row.nonzero().flatten() for row in starts]
    counts = torch.tensor([len(row) for row in positions], device=starts.device)
    table = pad_sequence(positions, batch_first=True)
    return table, torch.arange(table.size(1), device=starts.device) < counts.unsqueeze(1)


def sentence_starts(tokens: Tensor, real: Tensor) -> Tensor:
    """(B, T) ids -> (B, T), True at each `<s>` and at the first token of each document."""
    return tokens.eq(BOS) & real | (real & real.cumsum(dim=1).eq(1))


def global_tokens(tokens: Tensor, real: Tensor, rule: str | None) -> Tensor | None:
    """(B, T) True = global: the first token, or the question before the first `</s>` that is not the last token."""
    number = real.cumsum(dim=1)
    if rule is None or rule == "first":
        return None if rule is None else real & number.eq(1)
    ends = tokens.eq(EOS) & (number < number[:, -1:])
    return real & ends.cumsum(dim=1).eq(0) & ends.any(dim=1, keepdim=True)


class HierarchicalEncoder(nn.Module):
    """Encoder layers over the states of the sentences (Rohde et al. 2021, section 3.2)."""

    def __init__(self, settings: SimpleNamespace):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.hierarchical_encoder_layers))
        norm = nn.LayerNorm(settings.encoder_embed_dim, eps=settings.layer_norm_eps)
        self.layer_norm = norm if settings.encoder_normalize_before else None

    def forward(self, sentences: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            sentences = layer(sentences, Batch(mask))
        return sentences if self.layer_norm is None else self.layer_norm(sentences)


class HatEncoder(Embeddings):
    """Layers over the tokens, with sentences or representatives as the settings say."""

    main_input_name = "input_ids"

    def __init__(self, config: PretrainedConfig, settings: SimpleNamespace):
        super().__init__()
        self.build(settings, "encoder", config.source_vocab_size, config.max_source_positions)
        channels, roles = settings.encoder_embed_dim, config.num_roles
        self.embed_segments = nn.Embedding(roles, channels, PAD) if roles else None
        self.layers = nn.ModuleList(EncoderLayer(settings, number) for number in range(settings.encoder_layers))
        has_layers = not settings.no_hierarchy and hasattr(settings, "hierarchical_encoder_layers")
        self.hierarchical_encoder = HierarchicalEncoder(settings) if has_layers else None
        self.inserts = not settings.no_hierarchy and hasattr(settings, "representative_weights")

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, role_ids: Tensor | None = None, **unused
    ):
        """(B, T) ids, and of roles if the model has them; padding is `<pad>`, and what `attention_mask` leaves out."""
        if (role_ids is None) != (self.embed_segments is None):
            needs = "needs role_ids, which its tokenizer makes of turns" if role_ids is None else "has no roles"
            raise ValueError(f"the model {needs}")
        tokens = input_ids if attention_mask is None else input_ids.masked_fill(~attention_mask.bool(), PAD)
        order = tokens.eq(PAD).to(torch.uint8).argsort(dim=1, stable=True)  # padding on the left moves to the right
        tokens = tokens.gather(1, order)
        real = tokens.ne(PAD)
        roles = None if role_ids is None else self.embed_segments(role_ids.gather(1, order))
        batch, rows, slots = Batch(real), real.cumsum(dim=1) * real + PAD, None
        if self.inserts:
            tokens, batch, rows, slots = self.with_representatives(tokens)
        elif not self.settings.no_hierarchy:
            batch = Batch(real, None, *marked(sentence_starts(tokens, real)))
        batch.is_global = global_tokens(tokens, batch.real, self.settings.global_tokens)
        x = self.embed(tokens, self.embed_tokens.weight, rows, roles)
        for layer in self.layers:
            x = layer(x, batch)
        x = x if self.layer_norm is None else self.layer_norm(x)
        spans = None if batch.positions is None else batch.gather(x)
        if self.hierarchical_encoder is not None:
            spans = self.hierarchical_encoder(spans, batch.exists)
        x = x if slots is None else x[:, slots]
        x = x.gather(1, order.argsort(dim=1).unsqueeze(-1).expand_as(x))
        return EncoderOutput(x, real.gather(1, order.argsort(dim=1)), spans, batch.exists)

    def with_representatives(self, tokens: Tensor) -> tuple[Tensor, Batch, Tensor, Tensor]:
        """Puts a `<s>` before each block of tokens behind the global blocks (Liu et al. 2022, section 3.2).

        Returns:
            (B, T') ids, their batch, the rows of their positions, and the (T,) slots of the tokens.
        """
        settings, length = self.settings, tokens.size(1)
        block = given(settings.sparse_block, 64)
        start, width = given(settings.sparse_first, 1) * block, block - 1
        numbers = torch.arange(length, device=tokens.device)
        slots = numbers + ((numbers - start).div(width, rounding_mode="floor") + 1).clamp(min=0)
        heads = torch.arange(start, length, width, device=tokens.device)  # the first token of each block
        places = slots[heads] - 1
        size = length + len(heads)
        exists = tokens[:, heads].ne(PAD)
        ids = tokens.new_full((len(tokens), size), PAD).index_copy(1, slots, tokens)
        ids[:, places] = torch.where(exists, BOS, PAD)
        numbers = torch.zeros(size, dtype=torch.long, device=tokens.device)
        numbers[slots], numbers[places] = torch.arange(length, device=tokens.device), heads
        real = ids.ne(PAD)
        rows = real.cumsum(dim=1) if settings.representative_positions == "sequence" else numbers + 1
        positions = places.expand(len(tokens), -1).masked_fill(~exists, 0)
        if not len(heads):  # the first token stands for the document
            positions, exists = positions.new_zeros(len(tokens), 1), exists.new_zeros(len(tokens), 1)
        return ids, Batch(real, None, positions, exists), rows * real + PAD, slots


class HatDecoder(Embeddings):
    """Decoder layers and the output projection; tables that are tied are the encoder's or its own."""

    def __init__(self, config: PretrainedConfig, settings: SimpleNamespace):
        super().__init__()
        shared = settings.share_all_embeddings
        self.build(settings, "decoder", None if shared else config.vocab_size, config.max_target_positions)
        self.layers = nn.ModuleList(DecoderLayer(settings, number) for number in range(settings.decoder_layers))
        tied = shared or settings.share_decoder_input_output_embed
        self.output_projection = None if tied else nn.Linear(settings.decoder_embed_dim, config.vocab_size, bias=False)

    def forward(
        self, tokens: Tensor, table: Tensor, encoded: EncoderOutput, cache: EncoderDecoderCache | None
    ) -> Tensor:
        """(B, U) ids, of which a cache has seen the ones before -> (B, U, V) logits."""
        seen = 0 if cache is None else cache.get_seq_length()
        places = torch.arange(seen, seen + tokens.size(1), device=tokens.device)
        x = self.embed(tokens, table, (places + PAD + 1).expand_as(tokens))
        causal = places.unsqueeze(1) >= torch.arange(seen + tokens.size(1), device=tokens.device)
        for layer in self.layers:
            x = layer(x, causal, encoded, cache)
        x = x if self.layer_norm is None else self.layer_norm(x)
        return F.linear(x, table) if self.output_projection is None else self.output_projection(x)
