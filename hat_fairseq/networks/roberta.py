"""RoBERTa with an attention to the sentences in every layer (Rohde et al. 2021, section 7).

Without hierarchy it is RoBERTa, and with windows and pooling it is Poolingformer (Zhang et al. 2021).

Legend: B documents, T tokens, C channels.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from ..modules.embedding import EmbeddingSizes, token_table
from ..modules.heads import HEAD_ACTIVATIONS, ClassificationHead, PairClassificationHead
from ..modules.layers import QUERIES, EncoderLayer, SentenceAttention
from ..options import option
from .config import NEW_PARTS, TokenEncoderConfig, span_pooling
from .encoder import DocumentEncoder, EncoderOut, Vocabulary, build_attentions
from .headed_encoder import HeadedEncoder

DEFAULT_POSITIONS = 512


@dataclass
class RobertaConfig(TokenEncoderConfig):
    """An encoder with a masked-LM head and classification heads."""

    max_positions: int | None = option(
        None,
        f"the maximum number of tokens of a document (default: --tokens-per-sample, else {DEFAULT_POSITIONS})",
        least=1,
    )
    pooler_dropout: float = option(0.0, "the dropout in classification heads", least=0, most=1)
    pooler_activation_fn: str = option("tanh", "the activation in classification heads", choices=[*HEAD_ACTIVATIONS])
    pooler_inner_dim: int | None = option(
        None, "the number of hidden channels of classification heads (default: the width of the encoder)", least=1
    )
    init: str = option(
        "bert",
        "draw initial weights from N(0, 0.02) (bert), or Xavier-uniform with embeddings from N(0, 1) (xavier)",
        choices=("bert", "xavier"),
    )
    untie_weights_roberta: bool = option(False, "do not share the token embeddings with the masked-LM head")

    def embedding(self) -> EmbeddingSizes:
        """Returns the sizes of the embeddings."""
        assert self.max_positions is not None
        return self.encoder_embedding(self.max_positions, "--max-positions")


@dataclass
class HatRobertaConfig(RobertaConfig):
    """RoBERTa with an attention to sentences."""

    sentence_queries: str = option(
        "tokens",
        "let all tokens attend to the sentences, or only the BOS tokens",
        choices=QUERIES,
        excludes="no_hierarchy",
        tolerated=True,
    )
    span_pooling: str = span_pooling("sentence", excludes="no_hierarchy", tolerated=True)
    new_parts = ("sentence_attn.", "sentence_attn_layer_norm.", *NEW_PARTS)


class RobertaEncoder(HeadedEncoder, DocumentEncoder):
    """RoBERTa's encoder, and what its classification heads read."""

    config: RobertaConfig

    def __init__(self, config: RobertaConfig, vocabulary: Vocabulary, layers: Iterable[nn.Module]) -> None:
        table = token_table(vocabulary.size, config.encoder_embed_dim, vocabulary.pad)
        super().__init__(config, vocabulary, table, config.embedding(), layers)

    @property
    def reads_first_token(self) -> bool:
        """Returns whether the state of a document is that of its first token."""
        return True

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        """Builds a classification head for states of one of `LEVELS`; `inner_dim`: None for the config's."""
        config = self.config
        width, dropout, activation = config.encoder_embed_dim, config.pooler_dropout, config.pooler_activation_fn
        inner_dim = inner_dim or config.pooler_inner_dim or width
        if level == "pair":
            return PairClassificationHead(width, inner_dim, num_classes, dropout, activation)
        return ClassificationHead(width, inner_dim, num_classes, dropout, dropout, level, activation)

    def document_state(self, head: nn.Module, encoded: EncoderOut) -> Tensor:
        """Takes the (B, C) states of the documents' first tokens, RoBERTa's `<s>`."""
        states, padding = encoded.tokens, encoded.tokens_padding
        if padding is None:
            return states[:, 0]
        first = (~padding).to(states.device, dtype=states.dtype).argmax(dim=1)
        return states.gather(1, first.view(-1, 1, 1).expand(-1, 1, states.size(2))).squeeze(1)


class HatRobertaEncoder(RobertaEncoder):
    """RoBERTa's encoder with an attention to the sentences in every layer, unless `no_hierarchy`."""

    config_class = HatRobertaConfig

    def __init__(self, config: HatRobertaConfig, vocabulary: Vocabulary) -> None:
        sizes, layers = config.encoder_sizes(), []
        for attention in build_attentions(config, config.encoder_layers):
            to_sentences = None if config.no_hierarchy else SentenceAttention(sizes.attention_sizes)
            layers.append(EncoderLayer(sizes, attention, to_sentences, config.sentence_queries))
        super().__init__(config, vocabulary, layers)
