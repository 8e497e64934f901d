"""`EncoderWithHeads`, the network of every encoder-only model: an encoder with a masked-LM or classification heads.

A classification head reads the states of documents, of pairs of documents, of segments (at their `<s>` markers), of
tokens, of paragraphs (the mean of their tokens), or the mean of the paragraphs. A forward pass may compute several
heads. The first classification head replaces the masked-LM head, so that every parameter gets a gradient in every step.

Legend: B documents, T tokens, N markers (or paragraphs) of the document with most, C channels, K classes, V words.
"""

from typing import Any

from torch import Tensor, nn

from ..modules.embedding import initialise
from ..modules.heads import LinearMaskedLMHead, MaskedLMHead
from .encoder import EncoderOut, Vocabulary
from .ernie_sparse import ErnieSparseEncoder
from .headed_encoder import HeadedEncoder
from .hierarchical_transformer import HierarchicalTransformerEncoder
from .roberta import HatRobertaEncoder

ENCODERS: dict[str, type[HeadedEncoder]] = {
    "hat_roberta": HatRobertaEncoder,
    "ernie_sparse": ErnieSparseEncoder,
    "hierarchical_transformer": HierarchicalTransformerEncoder,
}


class NamedAsRoberta(nn.Module):
    """An encoder and its masked-LM head under the names of fairseq's RoBERTa."""

    def __init__(self, sentence_encoder: HeadedEncoder, lm_head: MaskedLMHead | None) -> None:
        super().__init__()
        self.sentence_encoder, self.lm_head = sentence_encoder, lm_head

    def forward(self, src_tokens: Tensor, roll: int = 0) -> EncoderOut:
        """Encodes (B, T) token ids; see `Encoder.forward`."""
        return self.sentence_encoder(src_tokens, roll=roll)


class EncoderWithHeads(nn.Module):
    """An encoder and its heads.

    Args:
        encoder_class: one of `ENCODERS`.
        config: of its `config_class`.
    """

    encoder: NamedAsRoberta | HeadedEncoder

    def __init__(self, encoder_class: type[Any], config: Any, vocabulary: Vocabulary) -> None:
        nn.Module.__init__(self)  # not super(): fairseq's or transformers' class stands beside this one
        encoder: HeadedEncoder = encoder_class(config, vocabulary)
        sizes = config.encoder_sizes()
        table = None if config.untie_weights_roberta else encoder.embed_tokens.weight
        head: MaskedLMHead
        if config.family.linear_head:
            head = LinearMaskedLMHead(sizes.embed_dim, vocabulary.size, table)
        else:
            head = MaskedLMHead(sizes.embed_dim, vocabulary.size, sizes.activation, table, config.layer_norm_eps)
        lm_head = head if encoder.has_masked_lm else None
        if encoder.named_as_roberta:
            self.encoder = NamedAsRoberta(encoder, lm_head)
        else:
            self.encoder, encoder.lm_head = encoder, lm_head
        initialise(self, config.init)
        self.classification_heads = nn.ModuleDict()

    @property
    def core(self) -> HeadedEncoder:
        """Returns the encoder without heads."""
        return self.encoder.sentence_encoder if isinstance(self.encoder, NamedAsRoberta) else self.encoder

    def encode(self, tokens: Tensor, roll: int = 0) -> EncoderOut:
        """Encodes (B, T) ids; see `Encoder.forward`."""
        return self.encoder(tokens, roll=roll)

    def lm_logits(self, states: Tensor) -> Tensor:
        """Maps (..., C) states of tokens -> (..., V) logits; ValueError for a model without masked-LM head."""
        if self.encoder.lm_head is None:
            raise ValueError("the model has no masked-LM head; it has classification heads instead")
        return self.encoder.lm_head(states)

    def head_logits(self, name: str, encoded: EncoderOut, tokens: Tensor) -> Tensor:
        """Computes the logits of one classification head.

        Args:
            encoded: what `encode` returned for the (B, T) `tokens`.
        Returns:
            (B, K) of documents, (B / 2, K) of pairs in consecutive rows, (B, N, K) of segments or paragraphs, (B, T, K)
            of tokens.
        """
        return self.core.head_logits(self.classification_head(name), encoded, tokens)

    def add_head(self, name: str, num_classes: int, inner_dim: int | None = None, level: str = "document") -> None:
        """Adds a classification head, or replaces the one of this name, and removes the masked-LM head.

        Args:
            num_classes: K.
            inner_dim: channels of its hidden layer; the model's by default.
            level: one of `modules.heads.LEVELS`.
        Raises:
            ValueError: a level that is unknown, that the encoder does not have, or that excludes other heads; a name
                that torch cannot give to a module.
        """
        heads = self.classification_heads
        self.core.check_levels({level, *(str(head.level) for other, head in heads.items() if other != name)})
        if name not in heads and (not name or "." in name or hasattr(heads, name)):
            raise ValueError(f"a head cannot be called {name!r}: torch has no module of this name; choose another one")
        head = self.core.head(num_classes, inner_dim, level)
        self.core.initialise_head(head)
        heads[name] = head.train(self.training)
        self.encoder.lm_head = None

    def classification_head(self, name: str) -> Any:
        """Returns the head of this name; ValueError if there is none."""
        if name not in self.classification_heads:
            has = ", ".join(self.classification_heads) or "none"
            raise ValueError(f"no classification head {name!r}; the model has: {has}")
        return self.classification_heads[name]
