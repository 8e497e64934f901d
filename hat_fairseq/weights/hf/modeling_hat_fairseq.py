"""The models of hat_fairseq for transformers: hierarchical and sparse attention for long documents.

HAT (Rohde, Wu and Liu 2021): each sentence of the source begins with `<s>`. Token layers, then layers over the states
at the `<s>` tokens; each decoder layer attends to the tokens and then to the sentences. The encoder-only HAT attends to
the sentences in each layer. Poolingformer (Zhang et al. 2021): windows, and pooled keys on top. ERNIE-Sparse (Liu et
al. 2022): BigBird's blocks, and representative tokens that attend to each other.

Attention is dense, with masks: plain code that computes the numbers of hat_fairseq, which has the fast kernels.
Parameters have fairseq's names. Needs torch and transformers.

Legend: B documents, T source tokens, U target tokens, S sentences or representatives, C channels, H heads, E = C / H, V
vocabulary, M cells of K tokens.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.generation.logits_process import (
    ForcedEOSTokenLogitsProcessor,
    LogitsProcessor,
    LogitsProcessorList,
)
from transformers.modeling_outputs import (
    MaskedLMOutput,
    ModelOutput,
    Seq2SeqLMOutput,
    SequenceClassifierOutput,
)

BOS, PAD, EOS = 0, 1, 2  # in every dictionary of fairseq
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh}


class HatFairseqConfig(PretrainedConfig):
    """Settings of hat_fairseq under their names there (`settings`), and what transformers has to know."""

    model_type = "hat_fairseq"

    def __init__(self, settings: dict | None = None, **kwargs):
        self.settings = settings or {}
        super().__init__(**kwargs)


@dataclass
class EncoderOutput(ModelOutput):
    """States of tokens (B, T, C) and of sentences (B, S, C) or None, and where they exist: (B, T) and (B, S)."""

    last_hidden_state: Tensor | None = None
    tokens_mask: Tensor | None = None
    sentences: Tensor | None = None
    sentences_mask: Tensor | None = None


@dataclass
class Batch:
    """What the layers of an encoder know of a batch.

    Attributes:
        real: (B, T) True = a token, no padding.
        is_global: (B, T) True = attends to all tokens and is attended to by all; None: there are none.
        positions, exists: (B, S) where the tokens stand that represent sentences or blocks, and whether there is one.
    """

    real: Tensor
    is_global: Tensor | None = None
    positions: Tensor | None = None
    exists: Tensor | None = None

    def gather(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, S, C)."""
        return x.gather(1, self.positions.unsqueeze(-1).expand(-1, -1, x.size(-1)))

    def scatter(self, x: Tensor, states: Tensor) -> Tensor:
        """(B, T, C) states in which those of the representatives are the (B, S, C) `states`."""
        rows, slots = self.exists.nonzero(as_tuple=True)
        x = x.clone()
        x[rows, self.positions[rows, slots]] = states[rows, slots]
        return x


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017)."""

    def __init__(self, channels: int, heads: int, dropout: float, inner: int | None = None):
        super().__init__()
        inner = inner or channels
        self.num_heads, self.dropout = heads, dropout
        self.q_proj, self.k_proj = nn.Linear(channels, inner), nn.Linear(channels, inner)
        self.v_proj, self.out_proj = nn.Linear(channels, inner), nn.Linear(inner, channels)

    def heads(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, H, T, E)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.heads(self.k_proj(memory)), self.heads(self.v_proj(memory))

    def merged(self, queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """(B, H, U, E), (B, H, T, E) and bool that broadcasts to (B, H, U, T) -> (B, U, C), before `out_proj`."""
        dropout = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(queries, keys, values, allowed, dropout)
        return out.transpose(1, 2).flatten(2)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """(B, U, C) queries; (B, H, T, E) keys and values; `allowed`: bool, broadcast to (B, H, U, T)."""
        return self.out_proj(self.merged(self.heads(self.q_proj(query)), keys, values, allowed))

    def among(self, x: Tensor, allowed: Tensor, batch: Batch) -> Tensor:
        """Self-attention of (B, T, C)."""
        return self(x, *self.keys_and_values(x), allowed)


def allowed_keys(settings: SimpleNamespace, number: int | None, batch: Batch) -> Tensor:
    """(B, 1 or H, T, T) True = the query attends to the key, in layer `number` of an encoder (None: full attention)."""
    real, name = batch.real, "full"
    if number is not None:
        name = settings.encoder_attention
        if number not in chosen_layers(settings):
            name = "window" if name == "pooling" else "full"
    places = torch.arange(real.size(1), device=real.device)
    query, key = places[:, None], places[None]
    if name == "full":
        return real[:, None, None].expand(-1, -1, len(places), -1)
    if name == "block-sparse":
        near = torch.stack([block_sparse(settings, number, len(places), int(row.sum())) for row in real]).to(
            real.device
        )
    elif name == "segments":
        length = given(settings.segment_length, 128)
        near = (query // length == key // length)[None, None]
    else:
        near = ((query - key).abs() <= given(settings.attention_window, 128))[None]
        if batch.is_global is not None:
            near = near | batch.is_global[:, :, None] | batch.is_global[:, None]
        near = near[:, None]
    return near & real[:, None, None] | (query == key)  # padding attends to itself: a softmax over no key is NaN


def given(value: int | None, default: int) -> int:
    return default if value is None else value


def chosen_layers(settings: SimpleNamespace) -> set[int]:
    """The layers with `encoder_attention`, `0,6-8`; None: all."""
    if settings.encoder_attention_layers is None:
        return set(range(settings.encoder_layers))
    ends = [part.split("-") for part in settings.encoder_attention_layers.split(",")]
    return {number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)}


def block_sparse(settings: SimpleNamespace, seed: int, size: int, length: int) -> Tensor:
    """(H, size, size) BigBird's blocks for a document of `length` tokens; the draws are those of the published code."""
    block, window = given(settings.sparse_block, 64), given(settings.sparse_window, 3)
    drawn, first, last = (
        given(getattr(settings, f"sparse_{x}"), n) for x, n in (("random", 3), ("first", 1), ("last", 1))
    )
    heads, count, dense = settings.encoder_attention_heads, -(-length // block), first + window + last + 2 * drawn
    inside = torch.arange(size) < count * block
    if count <= dense:
        return (inside[:, None] & inside).expand(heads, -1, -1)
    published = count * block in (1024, 3072, 4096) and 1024 // block >= dense
    end, side, random = (
        min(count - last, 1024 // block if published else dense),
        window // 2,
        np.random.RandomState(seed),
    )
    seen = torch.zeros(heads, count, count, dtype=torch.bool)
    for head in range(heads):
        for row in range(count):
            seen[head, row, max(0, row - side) : row + side + 1] = True
            if first <= row < count - last:
                others = random.permutation([other for other in range(first, end) if abs(other - row) > side])
                seen[head, row, others[:drawn].tolist()] = True
    globals_ = [*range(first), *range(count - last, count)]
    seen[:, globals_] = seen[:, :, globals_] = True
    numbers = (torch.arange(size) // block).clamp(max=count - 1)
    return seen[:, numbers][:, :, numbers] & inside[:, None] & inside


class Pooling(nn.Module):
    """Pools the states of a cell of tokens: mean, max, or weights from its middle token or its mean (LDConv)."""

    def __init__(self, name: str, kernel: int, heads: int, channels: int):
        super().__init__()
        self.name, self.kernel = name, kernel
        if "ldconv" in name:
            self.weight = nn.Parameter(torch.zeros(heads, kernel, channels // heads))

    def forward(self, cells: Tensor, real: Tensor) -> Tensor:
        """(B, H, M, K, E) states and (B, 1, M, K) True = a token -> (B, H, M, E); zeros for a cell without tokens."""
        if self.name == "max":
            lowest = cells.masked_fill(~real.unsqueeze(-1), torch.finfo(cells.dtype).min).amax(dim=3)
            return lowest.masked_fill(~real.any(dim=-1, keepdim=True), 0)
        weights = real.to(cells.dtype) / real.sum(dim=-1, keepdim=True).clamp(min=1)
        if "ldconv" in self.name:
            context = (weights.unsqueeze(-1) * cells).sum(dim=3)
            if self.name == "ldconv":
                middle = self.kernel // 2
                context = torch.where(real[..., middle, None], cells[:, :, :, middle], cells[:, :, :, 0])
            scores = (context @ self.weight.transpose(1, 2)).masked_fill(~real, -math.inf)
            weights = scores.softmax(dim=-1).masked_fill(~real, 0)
        return (weights.unsqueeze(-1) * cells).sum(dim=3)


class PoolingAttention(Attention):
    """Poolingformer's two levels: y of the window, and z of pooled keys in a wider window; the projection of y + z."""

    def __init__(self, channels: int, heads: int, dropout: float, settings: SimpleNamespace):
        super().__init__(channels, heads, dropout)
        self.window, self.stride = given(settings.pooling_window, 512), given(settings.pooling_stride, 4)
        self.kernel, self.variant = given(settings.pooling_kernel, 5), settings.pooling_variant
        self.pooled = nn.Module()
        if self.variant != "share-weights":
            self.pooled.q_proj, self.pooled.k_proj = nn.Linear(channels, channels), nn.Linear(channels, channels)
            self.pooled.v_proj = nn.Linear(channels, channels)
        pooling = settings.key_pooling or "ldconv"
        self.pooled.key_pooling = Pooling(pooling, self.kernel, heads, channels)
        self.pooled.value_pooling = Pooling(pooling, self.kernel, heads, channels)

    def among(self, x: Tensor, allowed: Tensor, batch: Batch) -> Tensor:
        y = self.merged(self.heads(self.q_proj(x)), *self.keys_and_values(x), allowed)
        source, level = x if self.variant == "mix" else y, self if self.variant == "share-weights" else self.pooled
        places = torch.arange(x.size(1), device=x.device)
        first = torch.arange(0, x.size(1), self.stride, device=x.device)  # of each cell
        members = first[:, None] + torch.arange(self.kernel, device=x.device)  # M x K
        inside = members.clamp(max=x.size(1) - 1)
        real = (batch.real[:, inside] & (members < x.size(1))).unsqueeze(1)
        keys = self.pooled.key_pooling(self.heads(level.k_proj(source))[:, :, inside], real)
        values = self.pooled.value_pooling(self.heads(level.v_proj(source))[:, :, inside], real)
        query = places[:, None]
        near = (first >= query - self.window) & (first + self.kernel - 1 <= query + self.window)
        sees = near & real.any(dim=-1).unsqueeze(2) | (query // self.stride == first // self.stride)
        return self.out_proj(y + self.merged(self.heads(level.q_proj(source)), keys, values, sees))


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

    def attention(self, inner: int | None = None) -> Attention:
        return Attention(self.channels, self.num_heads, self.settings.attention_dropout, inner)

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
        self.encoder_attn, self.encoder_attn_layer_norm = self.attention(), self.norm()
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

    def __init__(self, config: HatFairseqConfig, settings: SimpleNamespace):
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

    def __init__(self, config: HatFairseqConfig, settings: SimpleNamespace):
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


class HatPreTrainedModel(PreTrainedModel):
    config_class = HatFairseqConfig
    _supports_sdpa = True

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embed_tokens

    def get_output_embeddings(self) -> None:
        return None


class HatForConditionalGeneration(HatPreTrainedModel, GenerationMixin):
    """Encoder and decoder, with `generate`: beam search gives the best hypothesis of fairseq, and its score."""

    def __init__(self, config: HatFairseqConfig):
        super().__init__(config)
        settings = SimpleNamespace(**config.settings)
        self.shared = settings.share_all_embeddings
        self.encoder, self.decoder = HatEncoder(config, settings), HatDecoder(config, settings)
        self.post_init()

    def get_encoder(self, *args, **kwargs) -> HatEncoder:
        return self.encoder

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **unused,
    ) -> Seq2SeqLMOutput:
        """(B, T) source ids, and (B, U) target ids that begin with `</s>`, or `labels`, which are shifted -> logits."""
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, role_ids)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids, or labels, or call generate")
            decoder_input_ids = F.pad(labels[:, :-1].masked_fill(labels[:, :-1] < 0, PAD), (1, 0), value=EOS)
        if use_cache and labels is None and past_key_values is None:
            past_key_values = EncoderDecoderCache(DynamicCache(), DynamicCache())
        table = (self.encoder if self.shared else self.decoder).embed_tokens.weight
        logits = self.decoder(decoder_input_ids, table, encoder_outputs, past_key_values)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.masked_fill(labels.eq(PAD), -100).flatten())
        states = encoder_outputs.last_hidden_state
        return Seq2SeqLMOutput(loss, logits, past_key_values, encoder_last_hidden_state=states)

    def _get_logits_processor(self, generation_config, *args, **kwargs) -> LogitsProcessorList:
        """At the greatest length fairseq allows `</s>` only, and counts its probability; transformers counts 1."""
        processors = super()._get_logits_processor(generation_config, *args, **kwargs)
        last = OnlyEos(generation_config.max_length)
        return LogitsProcessorList(last if isinstance(p, ForcedEOSTokenLogitsProcessor) else p for p in processors)


class ClassificationHead(nn.Module):
    """Dropout, dense, activation, dropout, projection, as RoBERTa's."""

    def __init__(self, config: HatFairseqConfig, settings: SimpleNamespace):
        super().__init__()
        width = settings.encoder_embed_dim
        self.dense = nn.Linear(width, config.classifier_inner_dim)
        self.out_proj = nn.Linear(config.classifier_inner_dim, config.num_labels)
        self.activation, self.dropout = ACTIVATIONS[settings.pooler_activation_fn], nn.Dropout(settings.pooler_dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(self.dropout(self.activation(self.dense(self.dropout(x)))))


class HatForSequenceClassification(HatPreTrainedModel):
    """Scores of a document's classes, from its first token or from its pooled representatives."""

    def __init__(self, config: HatFairseqConfig):
        super().__init__(config)
        settings = SimpleNamespace(**config.settings)
        self.encoder, self.classifier = HatEncoder(config, settings), ClassificationHead(config, settings)
        self.pooling = getattr(settings, "document_pooling", "first") if self.encoder.inserts else "first"
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **unused
    ) -> SequenceClassifierOutput:
        """(B, T) ids, and (B,) numbers of the right classes for the loss -> (B, classes) logits."""
        encoded = self.encoder(input_ids, attention_mask)
        logits = self.classifier(self.document_states(encoded))
        return SequenceClassifierOutput(None if labels is None else F.cross_entropy(logits, labels), logits)

    def document_states(self, encoded: EncoderOutput) -> Tensor:
        """The (B, C) states that the head reads."""
        if self.pooling == "first":
            first = encoded.tokens_mask.to(torch.uint8).argmax(dim=1)
            return encoded.last_hidden_state[torch.arange(len(first), device=first.device), first]
        mask = encoded.sentences_mask | ~encoded.sentences_mask.any(dim=1, keepdim=True)
        spans, mask = encoded.sentences, mask.unsqueeze(-1)
        if self.pooling == "mean":
            return (spans * mask).sum(dim=1) / mask.sum(dim=1)
        sign = 1 if self.pooling == "max" else -1
        return sign * (sign * spans).masked_fill(~mask, -math.inf).amax(dim=1)


class MaskedLMHead(nn.Module):
    """Dense, activation, layer norm, and the table of tokens (or one of its own) with a bias."""

    def __init__(self, config: HatFairseqConfig, settings: SimpleNamespace):
        super().__init__()
        width = settings.encoder_embed_dim
        self.dense, self.layer_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=settings.layer_norm_eps)
        self.activation, self.bias = ACTIVATIONS[settings.activation_fn], nn.Parameter(torch.zeros(config.vocab_size))
        self.weight = nn.Parameter(torch.zeros(config.vocab_size, width)) if settings.untie_weights_roberta else None

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        x = self.layer_norm(self.activation(self.dense(x)))
        return F.linear(x, table if self.weight is None else self.weight, self.bias)


class HatForMaskedLM(HatPreTrainedModel):
    """Scores of words."""

    def __init__(self, config: HatFairseqConfig):
        super().__init__(config)
        settings = SimpleNamespace(**config.settings)
        self.encoder, self.lm_head = HatEncoder(config, settings), MaskedLMHead(config, settings)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **unused
    ) -> MaskedLMOutput:
        """(B, T) ids, and (B, T) the right ones for the loss, -100 elsewhere -> (B, T, V) logits."""
        states = self.encoder(input_ids, attention_mask).last_hidden_state
        logits = self.lm_head(states, self.encoder.embed_tokens.weight)
        return MaskedLMOutput(
            None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits
        )


class OnlyEos(LogitsProcessor):
    def __init__(self, max_length: int):
        self.max_length = max_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.size(1) != self.max_length - 1:
            return scores
        only = torch.full_like(scores, -math.inf)
        only[:, EOS] = scores[:, EOS]
        return only
