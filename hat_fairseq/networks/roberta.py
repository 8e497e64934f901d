"""RoBERTa with an attention to the sentences in every layer (Rohde et al. 2021, section 7).

Without hierarchy it is RoBERTa, and with windows and pooling it is Poolingformer (Zhang et al. 2021).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from ..modules.embedding import token_table
from ..modules.heads import HEAD_ACTIVATIONS, ClassificationHead, PairClassificationHead
from ..modules.layers import QUERIES, EncoderLayer, SentenceAttention
from ..modules.options import option
from .config import NEW_PARTS, TokenEncoderConfig, span_pooling
from .encoder import EncoderOut, EncoderParts, Vocabulary
from .hat import arrangement


@dataclass
class RobertaConfig(TokenEncoderConfig):
    """An encoder with a masked-LM head and classification heads: its numbers, and what is made of them."""

    max_positions: int | None = option(None, "longest document in tokens (default: --tokens-per-sample, else 512)")
    pooler_dropout: float = option(0.0, "dropout in classification heads", least=0, most=1)
    pooler_activation_fn: str = option("tanh", "activation in classification heads", choices=[*HEAD_ACTIVATIONS])
    pooler_inner_dim: int | None = option(
        None, "hidden channels of classification heads (default: the encoder's width)"
    )
    init: str = option(
        "bert",
        "initial weights: bert: N(0, 0.02); xavier: Xavier-uniform, embeddings N(0, 1)",
        choices=("bert", "xavier"),
    )
    untie_weights_roberta: bool = option(False, "the masked-LM head does not share the token embeddings")
    like_roberta: ClassVar = True  # its tensors are named as in fairseq's RoBERTa

    def encoder_parts(self, words: Vocabulary) -> EncoderParts:
        """Builds RoBERTa, with an attention to the sentences unless `no_hierarchy`."""
        sizes, layers = self.layer_sizes(), []
        for attention in self.layer_attentions(self.encoder_layers):
            to_sentences = None if self.no_hierarchy else SentenceAttention(*sizes.attention_sizes)
            layers.append(EncoderLayer(sizes, attention, to_sentences, getattr(self, "sentence_queries", "tokens")))
        return self.parts_of(words, layers, arrange=arrangement(self, words))

    def parts_of(self, words: Vocabulary, layers: Iterable[nn.Module], **others: Any) -> EncoderParts:
        """Returns the parts of a RoBERTa with these layers."""
        assert self.max_positions is not None
        return EncoderParts(
            words,
            token_table(words.size, self.encoder_embed_dim, words.pad),
            self.embedding_sizes("encoder", self.max_positions, "--max-positions"),
            layers,
            layer_norm=self.layer_sizes().final_norm(),
            checkpoint=self.checkpoint_activations,
            **others,
        )

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> ClassificationHead:
        """Builds a classification head for states of one of `LEVELS`."""
        width, dropout, activation = self.encoder_embed_dim, self.pooler_dropout, self.pooler_activation_fn
        inner_dim = inner_dim or self.pooler_inner_dim or width
        if level == "pair":
            return PairClassificationHead(width, inner_dim, num_classes, dropout, activation)
        return ClassificationHead(width, inner_dim, num_classes, dropout, dropout, level, activation)

    def document_state(self, head: Any, encoded: EncoderOut) -> Tensor:
        """Takes the (B, C) states of the documents' first tokens, RoBERTa's `<s>`."""
        states, padding = encoded.tokens, encoded.tokens_padding
        if padding is None:
            return states[:, 0]
        first = (~padding).to(states.device, dtype=states.dtype).argmax(dim=1)
        return states.gather(1, first.view(-1, 1, 1).expand(-1, 1, states.size(2))).squeeze(1)


@dataclass
class HatRobertaConfig(RobertaConfig):
    """RoBERTa with an attention to sentences."""

    sentence_queries: str = option(
        "tokens", "which tokens attend to the sentences: all, or the BOS tokens only", choices=QUERIES
    )
    span_pooling: str = span_pooling("sentence")
    new_parts = ("sentence_attn.", "sentence_attn_layer_norm.", *NEW_PARTS)
