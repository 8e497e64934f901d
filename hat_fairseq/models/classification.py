"""Classification heads on an encoder, the same for `hat_roberta` and `hierarchical_transformer`.

A head is about documents, segments (the states at the `<s>` markers) or tokens. It takes the place of the masked-LM
head, so that every parameter takes part in every step.

Legend: B documents, T tokens, N markers of the longest document, C channels, K classes, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn

from ..modules.heads import ClassificationHead
from ..modules.sentences import gather_sentences, sentence_positions, sentence_starts
from .embedding import initialise_as_bert


class HasClassificationHeads:
    """Mixin of models whose encoder has a `dictionary` and an `lm_head`, which may be None."""

    encoder: Any
    classification_heads: nn.ModuleDict
    build_classification_head: Callable[[int, int | None, str], ClassificationHead]
    max_positions: Callable[[], int]
    training: bool
    # Loaded to be used as it is, not to be trained further: a checkpoint without this model's heads is an error.
    heads_must_load = False

    def register_classification_head(
        self,
        name: str,
        num_classes: int | None = None,
        inner_dim: int | None = None,
        of: str = "document",
        **unused: Any,
    ) -> None:
        """Adds a head, or replaces the one of this name, and takes the masked-LM head away; fairseq's tasks call this.

        Args:
            name: what `forward` calls it by.
            num_classes: K.
            inner_dim: channels of its hidden layer; the model's by default.
            of: `document`, `segment` or `token`.
        Raises:
            ValueError: no number of classes, or other `of`.
        """
        if num_classes is None:
            raise ValueError(f"classification head {name!r}: the number of classes is missing (--num-classes)")
        head = self.build_classification_head(num_classes, inner_dim, of)
        initialise_as_bert(head)
        self.classification_heads[name] = head.train(self.training)
        self.encoder.lm_head = None

    def classification_head(self, name: str) -> ClassificationHead:
        if name not in self.classification_heads:
            has = ", ".join(self.classification_heads) or "none"
            raise ValueError(f"no classification head {name!r}; the model has: {has}")
        return cast(ClassificationHead, self.classification_heads[name])

    def word_logits(self, states: Tensor) -> Tensor:
        """(..., C) states -> (..., V) logits of the masked-LM head."""
        if self.encoder.lm_head is None:
            raise ValueError("the masked-LM head was replaced by a classification head; say which, or features_only")
        return self.encoder.lm_head(states)

    def starts(self, src_tokens: Tensor) -> Tensor:
        """(B, T) token ids -> (B, T), True where a segment starts."""
        return sentence_starts(src_tokens, self.encoder.dictionary.bos(), self.encoder.dictionary.pad())

    def states_of(self, of: str, states: Tensor, src_tokens: Tensor) -> Tensor:
        """The states that a head about segments or tokens reads.

        Args:
            states: (B, T, C) of the tokens.
        Returns:
            (B, N, C), a document's first state where it has fewer markers; or (B, T, C).
        """
        if of == "token":
            return states
        return gather_sentences(states, sentence_positions(self.starts(src_tokens))[0])

    def surely_takes(self) -> int:
        """A document of at most so many tokens is never too long."""
        return self.max_positions()

    def takes(self, tokens: Tensor) -> bool:
        """Whether a document of (T,) token ids is short enough."""
        return len(tokens) <= self.max_positions()

    def get_normalized_probs(
        self, net_output: tuple[Tensor, Any], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """(..., K) or (..., V) probabilities, or their logarithms, in fp32, from what `forward` returned."""
        logits = net_output[0].float()
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)
