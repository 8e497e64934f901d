"""The base of the encoders of encoder-only networks: what their heads read, and how their tensors are called.

Legend: B documents, T tokens, N markers (or paragraphs) of the document with most, C channels, K classes.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..modules.batch_layout import representatives_at, safe_padding_mask, sentence_starts, span_means
from ..modules.embedding import initialise
from ..modules.heads import paragraphs_of_tokens, pool
from .encoder import Encoder, EncoderOut


class HeadedEncoder(Encoder):
    """An encoder with heads.

    Attributes:
        named_as_roberta: its tensors have the names of fairseq's RoBERTa, `encoder.sentence_encoder.`.
        has_masked_lm: a model begins with a masked-LM head, which the first classification head replaces.
        reads_first_token: the state of a document is that of its first token.
        no_choices: why it has no head for choices, if it has none.
        lm_head: of an encoder that is not named as RoBERTa.
    """

    named_as_roberta: ClassVar[bool] = True
    has_masked_lm: ClassVar[bool] = True
    no_choices: ClassVar[str] = ""
    reads_first_token: Any
    lm_head: nn.Module | None

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        """Builds a classification head for states of one of `LEVELS`; ValueError for one that the encoder lacks."""
        raise NotImplementedError

    def check_levels(self, levels: Set[str]) -> None:
        """Raises ValueError for heads of these `LEVELS` that cannot stand beside each other."""

    def open_store(self) -> None:
        """Opens the file in which a training keeps what the encoder computes, if it keeps something."""

    def save_vectors(self) -> None:
        """Saves what is new in that file."""

    def read_training_data(self, heads: Iterable[Any], dataset: Any) -> None:
        """Tells new heads what they know of a dataset of `tasks` before a training begins."""

    def after_validation(self, heads: Iterable[Any], sums: Mapping[str, Any]) -> None:
        """Tells heads the meters of a validation, by name."""

    def initialise_head(self, head: nn.Module) -> None:
        """Gives a new head its initial weights."""
        initialise(head, self.config.init)

    def document_state(self, head: Any, encoded: EncoderOut) -> Tensor:
        """Returns the (B, C) states of documents that a head reads."""
        raise NotImplementedError

    def head_logits(self, head: Any, encoded: EncoderOut, tokens: Tensor) -> Tensor:
        """Computes the logits of a head; see `EncoderWithHeads.head_logits`."""
        vocabulary = self.vocabulary
        if head.level in ("document", "pair"):  # the documents of a pair are consecutive rows
            return head(self.document_state(head, encoded))
        if head.level == "token":
            return head(encoded.tokens)
        starts = sentence_starts(tokens, vocabulary.bos, vocabulary.pad)
        if head.level in ("paragraph", "paragraphs"):
            paragraphs, counts = paragraphs_of_tokens(tokens, starts, vocabulary.bos, vocabulary.eos, vocabulary.pad)
            states, empty = span_means(encoded.tokens, paragraphs, max(1, int(counts.max())))
            if head.level == "paragraphs":
                states = pool("mean", states, safe_padding_mask(empty))  # the states of empty paragraphs are zeros
            return head(states)
        fewest, most = torch.stack(starts.sum(dim=1).aminmax()).tolist()
        # a document with fewer markers repeats its first state
        return head(representatives_at(starts, most, fewest).gather(encoded.tokens))
