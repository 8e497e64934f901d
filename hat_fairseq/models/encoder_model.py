"""The base of all encoder-only models: an encoder with a masked-LM head or with classification heads.

A classification head reads the states of documents, of pairs of documents, of segments (at their `<s>` markers), of
tokens, of paragraphs (the mean of their tokens), or the mean of the paragraphs. A forward pass may compute several
heads. The first classification head replaces the masked-LM head, so that every parameter gets a gradient in every step.
A subclass defines the state of a document (`document_state`) and the tensors that a pretrained checkpoint may lack
(`new_parts`). Its encoder defines what `hat look` shows (`units`, `shown_attentions`).

Legend: B documents, T tokens, N markers (or paragraphs) of the document with most, C channels, K classes, V words.
"""

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import torch
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderModel
from torch import Tensor, nn

from ..modules.heads import ClassificationHead
from ..modules.paragraphs import mean_of_paragraphs, paragraph_means, paragraph_numbers
from ..modules.representatives import Representatives, representatives_at
from ..modules.sentences import sentence_of_each_token, sentence_starts
from .config import EncoderConfig
from .embedding import initialise
from .encoder import EncoderOut
from .encoder_attention import NEW_PARTS
from .loading.common import adapt_heads, adapt_state
from .loading.roberta import rename_old_layout

Logits = Tensor | dict[str, Tensor]


class EncoderModel(FairseqEncoderModel, ABC):
    """An encoder and its heads. A subclass names its config and builds its encoder."""

    config_class: ClassVar[type[EncoderConfig]]
    new_parts: ClassVar[tuple[str, ...]] = NEW_PARTS  # names of tensors that a pretrained checkpoint may lack
    encoder: Any
    can_roll: ClassVar[bool] = True  # `forward` takes `roll`
    # True for inference: then a checkpoint without this model's heads is an error.
    heads_must_load = False

    def __init__(self, config: Any, encoder: nn.Module) -> None:
        super().__init__(encoder)
        self.config = config
        initialise(self, self.initialisation())
        self.classification_heads = nn.ModuleDict()

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        gen_parser_from_dataclass(parser, cls.config_class(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> Self:
        config = cls.config_class.from_args(args)
        return cls(config, cls.build_encoder(config, task))

    # What a model defines

    def initialisation(self) -> str:
        """The argument `how` of `embedding.initialise`."""
        return "bert"

    @classmethod
    @abstractmethod
    def build_encoder(cls, config: Any, task: Any) -> nn.Module:
        """The encoder, with a `dictionary` and an `lm_head`."""

    @abstractmethod
    def build_classification_head(self, num_classes: int, inner_dim: int | None, of: str) -> ClassificationHead:
        """A head of this model; `of` is one of `modules.heads.OF`."""

    @abstractmethod
    def document_state(self, head: ClassificationHead, encoded: EncoderOut, src_tokens: Tensor) -> Tensor:
        """The (B, C) state of each document, which a head of documents reads."""

    # Whether the state of a document is that of its first token; `hat look` then shows the attention of this token.
    reads_first_token: ClassVar[bool] = False

    def safe_length(self) -> int:
        """The number of tokens up to which every document fits."""
        return self.max_positions()

    def fits(self, tokens: Tensor) -> bool:
        """Whether a document of (T,) token ids fits."""
        return len(tokens) <= self.max_positions()

    # Forward

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
        masked_tokens: Tensor | None = None,
        classification_head_name: str | Sequence[str] | None = None,
        from_sentences: bool = False,
        roll: int = 0,
        **unused: Any,
    ) -> tuple[Logits, dict[str, Any]]:
        """Encodes (B, T) token ids; fairseq's tasks also send lengths and ids, which are not needed.

        Args:
            features_only: return the (B, T, C) states.
            masked_tokens: (B, T) bool; return the (N, V) logits of these N tokens only.
            classification_head_name: return the logits of this head: (B, K) of documents, (B, N, K) of segments or
                paragraphs, (B, T, K) of tokens. With several names, return a dictionary of them.
            from_sentences: add `sentence_logits`, the masked-LM logits from the BOS state of each token's sentence.
            roll: as for `Encoder.forward` (Liu et al. 2022, section 3.3).
        Returns:
            The states or logits, by default the (B, T, V) masked-LM logits of all tokens; and a dictionary with
            `segments` (B, S, C) and `segments_padding` (B, S) if the encoder has them.
        """
        encoded = self.encoder(src_tokens, roll=roll)
        extra: dict[str, Any] = {}
        if encoded.spans is not None:
            extra = {"segments": encoded.spans, "segments_padding": encoded.spans_padding}
        if isinstance(classification_head_name, str):
            return self.head_logits(classification_head_name, encoded, src_tokens), extra
        if classification_head_name is not None:
            return {name: self.head_logits(name, encoded, src_tokens) for name in classification_head_name}, extra
        if features_only:
            return encoded.tokens, extra
        if from_sentences:
            states = Representatives(sentence_of_each_token(self.starts(src_tokens))).gather(encoded.tokens)
            extra["sentence_logits"] = self.word_logits(states, masked_tokens)
        return self.word_logits(encoded.tokens, masked_tokens), extra

    def word_logits(self, states: Tensor, masked_tokens: Tensor | None = None) -> Tensor:
        """(B, T, C) states -> (B, T, V) logits of the masked-LM head, or (N, V) of the N masked tokens."""
        if self.encoder.lm_head is None:
            raise ValueError("no masked-LM head: give classification_head_name or features_only")
        return self.encoder.lm_head(states if masked_tokens is None else states[masked_tokens])

    def head_logits(self, name: str, encoded: EncoderOut, src_tokens: Tensor) -> Tensor:
        """The logits of one classification head."""
        head = self.classification_head(name)
        if head.of in ("document", "pair"):  # the documents of a pair are consecutive rows
            return head(self.document_state(head, encoded, src_tokens))
        if head.of == "token":
            return head(encoded.tokens)
        if head.of in ("paragraph", "paragraphs"):
            states, empty = self.paragraphs(encoded.tokens, src_tokens)
            return head(states if head.of == "paragraph" else mean_of_paragraphs(states, empty))
        starts = self.starts(src_tokens)
        fewest, most = torch.stack(starts.sum(dim=1).aminmax()).tolist()
        # a document with fewer markers repeats its first state
        return head(representatives_at(starts, most, fewest).gather(encoded.tokens))

    def paragraphs(self, states: Tensor, src_tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The (B, N, C) states of the paragraphs in the last part of each row; (B, N), True = it has no tokens."""
        words = self.encoder.dictionary
        starts = self.starts(src_tokens)
        numbers, counts = paragraph_numbers(src_tokens, starts, words.bos(), words.eos(), words.pad())
        return paragraph_means(states, numbers, max(1, int(counts.max())))

    def starts(self, src_tokens: Tensor) -> Tensor:
        """(B, T) token ids -> (B, T), True where a sentence or segment of the input starts."""
        return sentence_starts(src_tokens, self.encoder.dictionary.bos(), self.encoder.dictionary.pad())

    def get_normalized_probs(
        self, net_output: tuple[Tensor, Any], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """(..., K) or (..., V) probabilities, or their logarithms, in fp32, from what `forward` returned."""
        logits = net_output[0].float()
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """fairseq's hook before loading: adapts a checkpoint of RoBERTa; ValueError if it does not fit."""
        rename_old_layout(state_dict)
        adapt_heads(state_dict, self)
        adapt_state(state_dict, self)

    # Heads

    def register_classification_head(
        self,
        name: str,
        num_classes: int | None = None,
        inner_dim: int | None = None,
        of: str = "document",
        **unused: Any,
    ) -> None:
        """Adds a head, or replaces the one of this name, and removes the masked-LM head; fairseq's tasks call this.

        Args:
            name: its name in `forward`.
            num_classes: K.
            inner_dim: channels of its hidden layer; the model's by default.
            of: one of `modules.heads.OF`.
        Raises:
            ValueError: no number of classes, or unknown `of`.
        """
        if num_classes is None:
            raise ValueError(f"classification head {name!r}: the number of classes is missing (--num-classes)")
        head = self.build_classification_head(num_classes, inner_dim, of)
        initialise(head, self.initialisation())
        self.classification_heads[name] = head.train(self.training)
        self.encoder.lm_head = None

    def classification_head(self, name: str) -> ClassificationHead:
        if name not in self.classification_heads:
            has = ", ".join(self.classification_heads) or "none"
            raise ValueError(f"no classification head {name!r}; the model has: {has}")
        return cast(ClassificationHead, self.classification_heads[name])
