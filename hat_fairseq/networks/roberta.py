"""RoBERTa with an attention to the sentences in every layer (Rohde et al. 2021, section 7).

Without hierarchy it is RoBERTa, and with windows and pooling it is Poolingformer (Zhang et al. 2021).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..modules.embedding import token_table
from ..modules.heads import HEAD_ACTIVATIONS, ClassificationHead, PairClassificationHead
from ..modules.layers import QUERIES, EncoderLayer, SentenceAttention
from ..modules.options import option
from .config import NEW_PARTS, EncoderConfig, TokenEncoderConfig, layer_attentions
from .encoder import EncoderOut, EncoderParts, Vocabulary
from .hat import arrangement, final_norm

INITIALISATIONS = ("bert", "xavier")  # see `embedding.initialise`


@dataclass
class RobertaConfig(TokenEncoderConfig):
    """An encoder with a masked-LM head and classification heads."""

    max_positions: int | None = option(None, "longest document in tokens (default: --tokens-per-sample, else 512)")
    pooler_dropout: float = option(0.0, "dropout in classification heads", least=0, most=1)
    pooler_activation_fn: str = option("tanh", "activation in classification heads", choices=[*HEAD_ACTIVATIONS])
    pooler_inner_dim: int | None = option(
        None, "hidden channels of classification heads (default: the encoder's width)"
    )
    init: str = option(
        "bert", "initial weights: bert: N(0, 0.02); xavier: Xavier-uniform, embeddings N(0, 1)", choices=INITIALISATIONS
    )
    untie_weights_roberta: bool = option(False, "the masked-LM head does not share the token embeddings")


@dataclass
class HatRobertaConfig(RobertaConfig):
    """RoBERTa with an attention to sentences."""

    sentence_queries: str = option(
        "tokens", "which tokens attend to the sentences: all, or the BOS tokens only", choices=QUERIES
    )


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
        layer_norm=final_norm(config.sizes()),
        checkpoint=config.checkpoint_activations,
        **others,
    )


def roberta_parts(config: RobertaConfig, words: Vocabulary) -> EncoderParts:
    """RoBERTa, with an attention to the sentences unless `config.no_hierarchy`."""
    sizes, layers = config.sizes(), []
    for attention in layer_attentions(config, config.encoder_layers):
        numbers = sizes.embed_dim, sizes.num_heads, sizes.attention_dropout
        to_sentences = None if config.no_hierarchy else SentenceAttention(*numbers)
        layers.append(EncoderLayer(sizes, attention, to_sentences, getattr(config, "sentence_queries", "tokens")))
    return token_parts(config, words, layers, arrange=arrangement(config, words))


def roberta_head(config: RobertaConfig, num_classes: int, inner_dim: int | None, level: str) -> ClassificationHead:
    width, dropout = config.encoder_embed_dim, config.pooler_dropout
    inner_dim = inner_dim or config.pooler_inner_dim or width
    activation = config.pooler_activation_fn
    if level == "pair":
        return PairClassificationHead(width, inner_dim, num_classes, dropout, activation)
    return ClassificationHead(width, inner_dim, num_classes, dropout, dropout, level, activation)


def first_state(config: Any, head: Any, encoded: EncoderOut) -> Tensor:
    """The (B, C) states of the documents' first tokens, RoBERTa's `<s>`."""
    states, padding = encoded.tokens, encoded.tokens_padding
    if padding is None:
        return states[:, 0]
    first = (~padding).to(states.device, dtype=states.dtype).argmax(dim=1)
    return states.gather(1, first.view(-1, 1, 1).expand(-1, 1, states.size(2))).squeeze(1)


HAT_ROBERTA = EncoderKind(
    HatRobertaConfig,
    roberta_parts,
    roberta_head,
    first_state,
    ("sentence_attn.", "sentence_attn_layer_norm.", *NEW_PARTS),
    like_roberta=True,
)
