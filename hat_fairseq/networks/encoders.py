"""The encoder-only networks: RoBERTa with sentences, segments, or representative tokens.

- RoBERTa with an attention to the sentences in every layer (Rohde et al. 2021, section 7); without hierarchy it is
  RoBERTa, and with windows and pooling it is Poolingformer (Zhang et al. 2021).
- The Hierarchical Attention Transformer (Chalkidis et al. 2022, section 3): segments before the embedding, positions
  from 0 in each segment.
- ERNIE-Sparse (Liu et al. 2022, section 3.2): a block of the attention begins with its representative, followed by
  `sparse_block - 1` tokens; the last one may be shorter. The first `sparse_first` blocks have no representatives: their
  tokens are global.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from ..modules.attention import FullAttention, safe_padding_mask
from ..modules.batch_layout import Arranged, arrange_documents
from ..modules.heads import ClassificationHead, PairClassificationHead, PooledClassificationHead, SegmentPooling
from ..modules.representative_tokens import RepresentativeLayer, RepresentativeSlots
from ..modules.segments import SegmentLayer, arrange_segments, slots_at_markers, slots_of_length
from ..modules.transformer_layer import EncoderLayer, SentenceAttention
from .attentions import NEW_PARTS, layer_attentions
from .config import (
    EncoderConfig,
    ErnieSparseConfig,
    HatRobertaConfig,
    HierarchicalTransformerConfig,
    RobertaConfig,
)
from .embedding import EmbeddingSizes, token_table
from .encoder import EncoderOut, EncoderParts, Vocabulary, token_and_span_states
from .hat import arrangement, final_norm, full_attention


@dataclass(frozen=True)
class EncoderKind:
    """What distinguishes one encoder-only network from another.

    Attributes:
        config_class: its numbers.
        parts: config and vocabulary -> the parts of its encoder.
        head: config, classes, hidden channels and level -> a classification head.
        document_state: config, head and output of the encoder -> the (B, C) state of each document.
        new_parts: names of tensors that a pretrained checkpoint may lack.
        like_roberta: tensors have the names of fairseq's RoBERTa, `encoder.sentence_encoder.*`.
    """

    config_class: type[EncoderConfig]
    parts: Callable[[Any, Vocabulary], EncoderParts]
    head: Callable[[Any, int, int | None, str], ClassificationHead]
    document_state: Callable[[Any, Any, EncoderOut], Tensor]
    new_parts: tuple[str, ...] = NEW_PARTS
    like_roberta: bool = False


def token_parts(config: RobertaConfig, words: Vocabulary, layers: Iterable[nn.Module], **others: Any) -> EncoderParts:
    """The parts of a RoBERTa with these layers."""
    assert config.max_positions is not None
    return EncoderParts(
        words,
        token_table(words.size, config.encoder_embed_dim, words.pad),
        config.embedding("encoder", config.max_positions, "--max-positions"),
        layers,
        layer_norm=final_norm(config.encoder_sizes()),
        checkpoint=config.checkpoint_activations,
        **others,
    )


def roberta_parts(config: RobertaConfig, words: Vocabulary) -> EncoderParts:
    """RoBERTa, with an attention to the sentences unless `config.no_hierarchy`."""
    sizes, layers = config.encoder_sizes(), []
    for attention in layer_attentions(config, config.encoder_layers):
        numbers = sizes.embed_dim, sizes.num_heads, sizes.attention_dropout
        to_sentences = None if config.no_hierarchy else SentenceAttention(*numbers)
        layers.append(EncoderLayer(sizes, attention, to_sentences, getattr(config, "sentence_queries", "tokens")))
    return token_parts(config, words, layers, arrange=arrangement(config, words))


def ernie_sparse_parts(config: ErnieSparseConfig, words: Vocabulary) -> EncoderParts:
    """RoBERTa with a representative before each block; without hierarchy BigBird."""
    if config.no_hierarchy:
        return roberta_parts(config, words)
    assert config.max_positions is not None
    pattern, longest = config.attention().pattern, config.max_positions
    slots = RepresentativeSlots(pattern.first * pattern.block, pattern.block - 1)
    own_positions = config.representative_positions == "sequence"
    if own_positions:  # representatives take some of the positions
        longest -= -(-max(longest - slots.num_global, 0) // (slots.block + 1))
    sizes, layers, separate = config.encoder_sizes(), [], None
    for attention in layer_attentions(config, config.encoder_layers):
        if config.representative_weights == "separate":
            numbers = sizes.embed_dim, sizes.num_heads, sizes.attention_dropout, config.encoder_qkv_dim
            separate = FullAttention(*numbers)
        layers.append(RepresentativeLayer(sizes, attention, separate, config.representative_update))

    def arrange(tokens: Tensor) -> Arranged:
        return slots.insert(arrange_documents(tokens, words.pad), words.bos, words.pad, own_positions)

    return token_parts(config, words, layers, arrange=arrange, finish=token_and_span_states, max_tokens=longest)


def hierarchical_transformer_parts(config: HierarchicalTransformerConfig, words: Vocabulary) -> EncoderParts:
    """Segment-wise and cross-segment layers; one table for the positions of segments in all layers."""
    sizes, length, kinds = config.encoder_sizes(), config.segment_length, config.layers()
    crossing = any("D" in kind for kind in kinds)
    has_positions = crossing and config.segment_positions == "add"
    positions = nn.Embedding(1 + config.max_segments, sizes.embed_dim) if has_positions else None
    layers = [
        SegmentLayer(
            sizes,
            attention if "S" in kind else None,
            full_attention(sizes) if "D" in kind else None,
            None if positions is None else positions.forward,
        )
        for kind, attention in zip(kinds, layer_attentions(config, len(kinds)), strict=True)
    ]
    by_marker = config.segment_by == "marker"
    divide = partial(slots_at_markers, bos=words.bos) if by_marker else slots_of_length

    def arrange(tokens: Tensor) -> Arranged:
        slots = divide(tokens, pad=words.pad, length=length)
        if has_positions and slots.size > config.max_segments * length:
            raise ValueError(
                f"a document has {slots.size // length} segments of up to {length} tokens, but --max-segments is "
                f"{config.max_segments}: raise it, or shorten the input"
            )
        return arrange_segments(tokens, slots, length, words.pad, config.attend_segment_padding)

    def fits(tokens: Tensor) -> bool:
        return divide(tokens[None], pad=words.pad, length=length).size <= config.max_segments * length

    return EncoderParts(
        words,
        token_table(words.size, sizes.embed_dim, words.pad),
        EmbeddingSizes(length, layer_norm_eps=config.layer_norm_eps, dropout=config.dropout, token_type=True),
        layers,
        arrange,
        token_and_span_states,
        more={"segment_positions": positions},
        max_tokens=length * config.max_segments,
        fits=fits,
        safe_tokens=config.max_segments if by_marker else 0,
        checkpoint=config.checkpoint_activations,
    )


def roberta_head(config: RobertaConfig, num_classes: int, inner_dim: int | None, level: str) -> ClassificationHead:
    width, dropout = config.encoder_embed_dim, config.pooler_dropout
    inner_dim = inner_dim or config.pooler_inner_dim or width
    activation = config.pooler_activation_fn
    if level == "pair":
        return PairClassificationHead(width, inner_dim, num_classes, dropout, activation)
    return ClassificationHead(width, inner_dim, num_classes, dropout, dropout, level, activation)


def segment_head(
    config: HierarchicalTransformerConfig, num_classes: int, inner_dim: int | None, level: str
) -> ClassificationHead:
    width, dropout = config.encoder_embed_dim, config.pooler_dropout
    inner_dim = inner_dim or width
    if level == "document":
        padded = config.pool_padded_segments
        return PooledClassificationHead(config.pooling, width, inner_dim, num_classes, dropout, padded)
    if level == "pair":
        raise ValueError("hierarchical_transformer reads single documents; for pairs use --arch hat_roberta_base")
    return ClassificationHead(width, inner_dim, num_classes, dropout, level=level)


def first_state(config: Any, head: Any, encoded: EncoderOut) -> Tensor:
    """The (B, C) states of the documents' first tokens, RoBERTa's `<s>`."""
    states, padding = encoded.tokens, encoded.tokens_padding
    if padding is None:
        return states[:, 0]
    first = (~padding).to(states.device, dtype=states.dtype).argmax(dim=1)
    return states.gather(1, first.view(-1, 1, 1).expand(-1, 1, states.size(2))).squeeze(1)


def representative_state(config: ErnieSparseConfig, head: Any, encoded: EncoderOut) -> Tensor:
    """The (B, C) pooled states of the representatives, or those of the first tokens."""
    if config.no_hierarchy or config.document_pooling == "first":
        return first_state(config, head, encoded)
    assert encoded.spans is not None and encoded.spans_padding is not None
    pool = SegmentPooling(config.document_pooling, config.encoder_embed_dim)  # without parameters
    return pool(encoded.spans, safe_padding_mask(encoded.spans_padding))


def segment_state(config: Any, head: PooledClassificationHead, encoded: EncoderOut) -> Tensor:
    """The (B, C) states of the documents, pooled from their segments by the head."""
    assert encoded.spans is not None and encoded.spans_padding is not None
    return head.pooled(encoded.spans, encoded.spans_padding)


KINDS = {
    "hat_roberta": EncoderKind(
        HatRobertaConfig,
        roberta_parts,
        roberta_head,
        first_state,
        ("sentence_attn.", "sentence_attn_layer_norm.", *NEW_PARTS),
        like_roberta=True,
    ),
    "ernie_sparse": EncoderKind(
        ErnieSparseConfig,
        ernie_sparse_parts,
        roberta_head,
        representative_state,
        ("representative_attn.", "representative_attn_layer_norm.", *NEW_PARTS),
        like_roberta=True,
    ),
    "hierarchical_transformer": EncoderKind(
        HierarchicalTransformerConfig, hierarchical_transformer_parts, segment_head, segment_state
    ),
}
