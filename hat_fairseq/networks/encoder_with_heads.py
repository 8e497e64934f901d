"""`EncoderWithHeads`, the network of every encoder-only model: an encoder with a masked-LM or classification heads.

A classification head reads the states of documents, of pairs of documents, of segments (at their `<s>` markers), of
tokens, of paragraphs (the mean of their tokens), or the mean of the paragraphs. A forward pass may compute several
heads. The first classification head replaces the masked-LM head, so that every parameter gets a gradient in every step.

Legend: B documents, T tokens, N markers (or paragraphs) of the document with most, C channels, K classes, V words.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from ..modules.attention import safe_padding_mask
from ..modules.batch_layout import representatives_at, sentence_starts, span_means
from ..modules.embedding import initialise
from ..modules.heads import ClassificationHead, MaskedLMHead, paragraph_numbers, pool
from .encoder import Encoder, EncoderOut, EncoderParts, Vocabulary
from .ernie_sparse import ErnieSparseConfig
from .hierarchical_transformer import HierarchicalTransformerConfig
from .roberta import HatRobertaConfig

Logits = Tensor | dict[str, Tensor]
ENCODERS: dict[str, Any] = {
    "hat_roberta": HatRobertaConfig,
    "ernie_sparse": ErnieSparseConfig,
    "hierarchical_transformer": HierarchicalTransformerConfig,
}


class RobertaEncoder(nn.Module):
    """An `Encoder` and a masked-LM head under the names of fairseq's RoBERTa (`sentence_encoder`, `lm_head`)."""

    def __init__(self, parts: EncoderParts, lm_head: MaskedLMHead) -> None:
        super().__init__()
        self.sentence_encoder = Encoder(parts)
        self.lm_head: MaskedLMHead | None = lm_head

    def forward(self, src_tokens: Tensor, roll: int = 0) -> EncoderOut:
        """Encodes (B, T) token ids; see `Encoder.forward`."""
        return self.sentence_encoder(src_tokens, roll=roll)


class EncoderWithHeads(nn.Module):
    """An encoder and its heads."""

    encoder: Any
    numbers: Any  # one of the classes in `ENCODERS`

    def compose(self, numbers: Any, words: Vocabulary) -> None:
        """Adds the encoder, initialises it, and adds an empty dictionary of heads; call it from the constructor."""
        self.numbers, self.words = numbers, words
        parts = numbers.encoder_parts(words)
        sizes, tied = numbers.layer_sizes(), not getattr(numbers, "untie_weights_roberta", False)
        table = parts.table.weight if tied else None
        head = MaskedLMHead(sizes.embed_dim, words.size, sizes.activation, table, sizes.layer_norm_eps)
        if numbers.like_roberta:
            self.encoder = RobertaEncoder(parts, head)
        else:
            self.encoder = Encoder(replace(parts, more={**parts.more, "lm_head": head}))
        initialise(self, self.numbers.init)
        self.classification_heads = nn.ModuleDict()

    @property
    def core(self) -> Encoder:
        """Returns the encoder without heads."""
        return self.encoder.sentence_encoder if self.numbers.like_roberta else self.encoder

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
        masked_tokens: Tensor | None = None,
        classification_head_name: str | Sequence[str] | None = None,
        roll: int = 0,
        **unused: Any,
    ) -> tuple[Logits, dict[str, Any]]:
        """Encodes (B, T) token ids; fairseq's tasks also send lengths and ids, which are not needed.

        Args:
            features_only: return the (B, T, C) states.
            masked_tokens: (B, T) bool; return the (N, V) logits of these N tokens only.
            classification_head_name: return the logits of this head: (B, K) of documents, (B, N, K) of segments or
                paragraphs, (B, T, K) of tokens. With several names, return a dictionary of them.
            roll: see `Encoder.forward`.
        Returns:
            The states or logits, by default the (B, T, V) masked-LM logits of all tokens; and a dictionary with
            `spans` (B, S, C) and `spans_padding` (B, S) if the encoder has them.
        """
        encoded = self.encoder(src_tokens, roll=roll)
        extra: dict[str, Any] = {}
        if encoded.spans is not None:
            extra = {"spans": encoded.spans, "spans_padding": encoded.spans_padding}
        if isinstance(classification_head_name, str):
            return self.head_logits(classification_head_name, encoded, src_tokens), extra
        if classification_head_name is not None:
            return {name: self.head_logits(name, encoded, src_tokens) for name in classification_head_name}, extra
        if features_only:
            return encoded.tokens, extra
        if self.encoder.lm_head is None:
            raise ValueError("no masked-LM head: give classification_head_name or features_only")
        return self.encoder.lm_head(encoded.tokens if masked_tokens is None else encoded.tokens[masked_tokens]), extra

    def head_logits(self, name: str, encoded: EncoderOut, src_tokens: Tensor) -> Tensor:
        """Computes the logits of one classification head."""
        head = self.classification_head(name)
        if head.level in ("document", "pair"):  # the documents of a pair are consecutive rows
            return head(self.numbers.document_state(head, encoded))
        if head.level == "token":
            return head(encoded.tokens)
        words, starts = self.words, sentence_starts(src_tokens, self.words.bos, self.words.pad)
        if head.level in ("paragraph", "paragraphs"):
            numbers, counts = paragraph_numbers(src_tokens, starts, words.bos, words.eos, words.pad)
            states, empty = span_means(encoded.tokens, numbers, max(1, int(counts.max())))
            if head.level == "paragraphs":
                states = pool("mean", states, safe_padding_mask(empty))  # the states of empty paragraphs are zeros
            return head(states)
        fewest, most = torch.stack(starts.sum(dim=1).aminmax()).tolist()
        # a document with fewer markers repeats its first state
        return head(representatives_at(starts, most, fewest).gather(encoded.tokens))

    @property
    def reads_first_token(self) -> bool:
        """Whether the state of a document may be that of its first token; `hat look` then shows its attention."""
        return self.numbers.like_roberta

    def get_normalized_probs(
        self, net_output: tuple[Tensor, Any], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """Returns (..., K) or (..., V) probabilities, or their logarithms, in fp32, from what `forward` returned."""
        logits = net_output[0].float()
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)

    def register_classification_head(
        self,
        name: str,
        num_classes: int | None = None,
        inner_dim: int | None = None,
        level: str = "document",
        **unused: Any,
    ) -> None:
        """Adds a head, or replaces the one of this name, and removes the masked-LM head; fairseq's tasks call this.

        Args:
            num_classes: K.
            inner_dim: channels of its hidden layer; the model's by default.
            level: one of `modules.heads.LEVELS`.
        Raises:
            ValueError: no number of classes, or unknown level.
        """
        if num_classes is None:
            raise ValueError(f"classification head {name!r}: the number of classes is missing (--num-classes)")
        head = self.numbers.head(num_classes, inner_dim, level)
        initialise(head, self.numbers.init)
        self.classification_heads[name] = head.train(self.training)
        self.encoder.lm_head = None

    def classification_head(self, name: str) -> ClassificationHead:
        if name not in self.classification_heads:
            has = ", ".join(self.classification_heads) or "none"
            raise ValueError(f"no classification head {name!r}; the model has: {has}")
        return cast(ClassificationHead, self.classification_heads[name])
