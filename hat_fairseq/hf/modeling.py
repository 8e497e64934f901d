"""The encoders of hat_fairseq as models of transformers; their base is in `pretrained.py`.

    HatModel                        an encoder with any classification heads; of an encoder-decoder the encoder alone
    HatForSequenceClassification    with one head about documents
    HatForSegmentClassification     with one head about sentences or segments, or about evidence
    HatForTokenClassification       with one head about tokens
    HatForQuestionAnswering         with a head for the first and the last token of an answer
    HatForMultipleChoice            with a head whose one logit is the score of a choice
    HatForMaskedLM                  with the masked-LM head

Tensors have the names of fairseq's checkpoints. `attention_mask` leaves tokens out (segments of one length: at the end
of a row only); without it, <pad> is masked.

Legend: B documents, T tokens, N segments or paragraphs of the document with most, C channels, K classes, V words.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import PretrainedConfig
from transformers.loss.loss_utils import ForMaskedLMLoss, ForQuestionAnsweringLoss, ForSequenceClassificationLoss
from transformers.modeling_outputs import ModelOutput

from ..data.dictionary import PAD
from ..modules.embedding import initialise, token_table
from ..networks.encoder import EncoderOut, Vocabulary
from ..networks.encoder_with_heads import ENCODERS, EncoderWithHeads
from ..networks.hat import ENCODER_DECODERS, HatEncoder
from .adapters import save_heads_with_adapters
from .config import HatConfig
from .pretrained import LOSS, Asked, HatPreTrainedModel, ids_of, known_arguments
from .recording import Recording

HEAD = "sentence_classification_head"  # the name of a new head, which is fairseq's


@dataclass
class HatOutput(ModelOutput):
    """The (B, T, C) states of the tokens, and the logits of each classification head by name; None without heads.

    Logits are (B, K) of documents, (B / 2, K) of pairs in consecutive rows, (B, T, K) of tokens, (B, N, K) of segments
    or paragraphs. `hidden_states`, `attentions` and `sentence_attentions`: see `Recording`.
    """

    last_hidden_state: Tensor | None = None
    logits: ModelOutput | None = None  # whose rows a pipeline of transformers divides; of a dict it does not
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    sentence_attentions: tuple[Tensor, ...] | None = None


@dataclass
class HatHeadOutput(ModelOutput):
    """The loss, if there are labels, the logits of the head, and what `HatOutput` has beside these."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    sentence_attentions: tuple[Tensor, ...] | None = None


@dataclass
class HatAnswerOutput(ModelOutput):
    """The loss, if there are labels, and (B, T) logits of each token as the first and as the last of the answer."""

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    sentence_attentions: tuple[Tensor, ...] | None = None


class HatModel(EncoderWithHeads, HatPreTrainedModel):
    """An encoder with the classification heads that `config.heads` names; of an encoder-decoder its encoder."""

    _keys_to_ignore_on_load_unexpected = [r"decoder\."]

    def __init__(self, config: HatConfig):
        HatPreTrainedModel.__init__(self, config)  # type: ignore[call-arg]
        if config.network in ENCODER_DECODERS and type(self) is HatModel:
            self._build_encoder_alone(config)
        else:
            network = config.network_config(ENCODERS)
            EncoderWithHeads.__init__(self, ENCODERS[config.network], network, Vocabulary(config.vocab_size))
            for name, head in config.heads.items():
                self.add_head(name, head["classes"], head["inner_dim"], head["level"])
        self.post_init()

    def _build_encoder_alone(self, config: HatConfig) -> None:
        network, source = config.network_config(ENCODER_DECODERS), Vocabulary(config.source_vocab_size)
        table = token_table(source.size, network.encoder_embed_dim, source.pad)
        self.encoder: Any = HatEncoder(network, source, table, config.max_source_positions, config.num_roles)
        if network.init is not None:
            initialise(self.encoder, network.init)
        self.classification_heads = nn.ModuleDict()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        role_ids: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Computes the states and the logits of all heads of (B, T) ids.

        Args:
            inputs_embeds: (B, T, C) embeddings of the tokens in place of those of the table.
            role_ids: (B, T) roles, of the encoder of an encoder-decoder that has roles.
            others: `output_hidden_states`, `output_attentions` and `return_dict`.
        """
        asked, _ = known_arguments(others, self.config)
        tokens, encoded, recorded = self._encoded(asked, input_ids, attention_mask, inputs_embeds, role_ids)
        logits = {name: self.head_logits(name, encoded, tokens) for name in self.classification_heads}
        return asked.answer(HatOutput(encoded.tokens, ModelOutput(logits) if logits else None, **recorded))

    def _encoded(
        self,
        asked: Asked,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        inputs_embeds: Tensor | None,
        role_ids: Tensor | None = None,
    ) -> tuple[Tensor, EncoderOut, dict[str, Any]]:
        """Returns (B, T) ids, the output of the encoder, and the states and weights that are asked for."""
        tokens = ids_of(input_ids, attention_mask, inputs_embeds, self.core.config)
        real = tokens.ne(PAD)
        if getattr(self.core.config, "segment_by", None) == "length" and bool((real[:, 1:] & ~real[:, :-1]).any()):
            raise ValueError(
                "padding on the left, or a token that is masked: the segments of hierarchical_transformer count from "
                "the first place of a row; pad on the right, as its tokenizer does"
            )
        if self.core.of_units and (asked.states or asked.weights):
            network = next(name for name, encoder in ENCODERS.items() if encoder is type(self.core))
            raise ValueError(f"output_hidden_states, output_attentions: {network} encodes each turn by itself")
        with Recording(self.core, states=asked.states, weights=asked.weights) as recording:
            encoded = self.core(tokens, role_ids, embeddings=inputs_embeds)
        recorded: dict[str, Any] = {}
        if asked.states:
            recorded["hidden_states"] = (*recording.hidden[:-1], encoded.tokens)
        if asked.weights:
            recorded |= {"attentions": recording.attentions, "sentence_attentions": recording.sentences or None}
        return tokens, encoded, recorded


class HatForHead(HatModel):
    """An encoder with the classification head of `config.heads` that the class is about; without one it is new."""

    levels: ClassVar[tuple[str, ...]] = ("document",)
    num_classes: ClassVar[int | None] = None  # None: `config.num_labels`
    has_new_head: Any = True  # no folder had it

    def __init__(self, config: HatConfig):
        config = deepcopy(config)
        config.heads = head_of(config, type(self))
        save_heads_with_adapters()
        super().__init__(config)

    @property
    def own_heads(self) -> list[str]:
        """Returns the names of the modules that adapters of peft are saved with."""
        return [f"classification_heads.{name}" for name in self.classification_heads]

    def mark_tied_weights_as_initialized(self, loading_info: Any) -> None:
        """Notes, as transformers' hook after loading a folder, too, whether that had the head."""
        super().mark_tied_weights_as_initialized(loading_info)
        self.has_new_head = any(name.startswith("classification_heads.") for name in loading_info.missing_keys)

    def load_state_dict(self, *args: Any, **options: Any) -> Any:
        self.has_new_head = False
        return super().load_state_dict(*args, **options)

    @classmethod
    def takes(cls, head: Mapping[str, Any], config: HatConfig) -> bool:
        """Returns whether a head of one of the `levels` is about what this class is about."""
        return True

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Computes the logits of the head for (B, T) ids; see `HatModel.forward`.

        `labels`: what the loss is of, see the class; -100 for none.
        """
        asked, loss = known_arguments(others, self.config, LOSS)
        tokens, encoded, recorded = self._encoded(asked, input_ids, attention_mask, inputs_embeds)
        (name,) = self.classification_heads
        logits = self.head_logits(name, encoded, tokens)
        value = None if labels is None else self.loss_of(logits, labels, **loss)
        return asked.answer(HatHeadOutput(value, logits, **recorded))

    def loss_of(self, logits: Tensor, labels: Tensor, **loss: Any) -> Tensor:
        """Computes the cross-entropy of (..., K) logits and (...) labels."""
        return token_loss(logits.flatten(0, -2), labels.flatten(), **loss)


def head_of(config: HatConfig, kind: type[HatForHead]) -> dict[str, dict[str, Any]]:
    """Returns the head that a class has, under its name: the one of `config.heads` about the same, or a new one.

    Its classes are the labels of the configuration; where it states none, those of the head.

    Raises:
        ValueError: several heads are about that.
    """
    own = {name: h for name, h in config.heads.items() if h["level"] in kind.levels and kind.takes(h, config)}
    if len(own) > 1:
        raise ValueError(f"the heads {', '.join(own)} are of one kind: load them with AutoModel")
    level = kind.levels[0]
    new = f"{level}_classification_head" if HEAD in config.heads else HEAD
    head: Mapping[str, Any] = {"level": level, "inner_dim": None}
    name, head = own.popitem() if own else (new, head)
    classes = kind.num_classes or config.num_labels or head.get("classes", PretrainedConfig().num_labels)
    if head["level"] == "evidence":
        classes = 1
    settings = {key: value for key, value in head.items() if key != "labels" or len(value) == classes}
    return {name: {**settings, "classes": classes}}


def token_loss(logits: Tensor, labels: Tensor, num_items_in_batch: Any = None, ignore_index: int = -100) -> Tensor:
    """Computes the cross-entropy of (M, K) logits, summed and divided by the number of labels of the whole update."""
    if num_items_in_batch is None:
        return cross_entropy(logits.float(), labels, ignore_index=ignore_index)
    return cross_entropy(logits.float(), labels, ignore_index=ignore_index, reduction="sum") / num_items_in_batch


def evidence_loss(logits: Tensor, labels: Tensor, num_items_in_batch: Any = None, ignore_index: int = -100) -> Tensor:
    """Computes the cross-entropy of logits of yes or no, and labels of the same shape; see `token_loss`."""
    counted = labels != ignore_index
    losses = binary_cross_entropy_with_logits(logits[counted].float(), labels[counted].float(), reduction="none")
    return losses.mean() if num_items_in_batch is None else losses.sum() / num_items_in_batch


class HatForSequenceClassification(HatForHead):
    """An encoder with one head about documents; labels (B,) are classes, or as `config.problem_type` says.

    `hat_units` has words beside the network for one label of several alone: its probabilities sum to 1.
    """

    def __init__(self, config: HatConfig):
        if getattr(config, "problem_type", None) in ("multi_label_classification", "regression"):
            config = deepcopy(config)
            if hasattr(config, "no_words"):
                config.no_words = True
        super().__init__(config)

    def loss_of(self, logits: Tensor, labels: Tensor, **loss: Any) -> Tensor:
        value = ForSequenceClassificationLoss(labels, logits, self.config, **loss)
        number = loss.get("num_items_in_batch")
        config: Any = self.config
        if number is None or config.problem_type == "single_label_classification":
            return value
        return value * labels.numel() / number  # transformers has the mean of these rows


class HatForSegmentClassification(HatForHead):
    """An encoder with one head about sentences or segments (B, N, K), or about evidence (B, Q, 1 + N, 2).

    Labels are (B, N) classes of the sentences. Those of evidence are (B, Q, N): 1 for a unit that is in a passage about
    the question, 0 for one that is not; or they have the shape of the logits: for each question of the whole document,
    then of its units, as passages and as lines.
    """

    levels = ("segment", "evidence")

    def loss_of(self, logits: Tensor, labels: Tensor, **loss: Any) -> Tensor:
        (head,) = self.classification_heads.values()
        if head.level != "evidence":
            return super().loss_of(logits, labels, **loss)
        passages = logits[:, :, 1:, 0]
        if labels.shape not in (logits.shape, passages.shape):
            raise ValueError(
                f"labels of shape {tuple(labels.shape)}: evidence has one for each question and unit of a document, "
                f"here {tuple(passages.shape)}, or for all of its outputs, {tuple(logits.shape)}"
            )
        return evidence_loss(logits if labels.shape == logits.shape else passages, labels, **loss)


class HatForTokenClassification(HatForHead):
    """An encoder with one head about tokens; labels are (B, T) classes."""

    levels = ("token",)

    @classmethod
    def takes(cls, head: Mapping[str, Any], config: HatConfig) -> bool:
        """Leaves a head with two classes that nobody named to answers, unless it was saved as one of this class."""
        saved = config.architectures or ()
        if HatForQuestionAnswering.__name__ in saved:
            return False
        named = any(name != f"LABEL_{number}" for number, name in (config.id2label or {}).items())
        return cls.__name__ in saved or head["classes"] != 2 or "labels" in head or named


class HatForQuestionAnswering(HatForHead):
    """An encoder with a head for each token as the first and as the last of an answer."""

    levels, num_classes = ("token",), 2

    @classmethod
    def takes(cls, head: Mapping[str, Any], config: HatConfig) -> bool:
        """Leaves a head whose classes have names to tokens."""
        saved = HatForTokenClassification.__name__ in (config.architectures or ())
        return not saved and head["classes"] == 2 and "labels" not in head

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Computes (B, T) logits of the first and of the last token; the positions (B,) are those of the right answer.

        Raises:
            ValueError: one of the positions without the other.
        """
        if (start_positions is None) != (end_positions is None):
            raise ValueError("give start_positions and end_positions, or neither")
        known = ["num_items_in_batch"]  # it ignores positions outside of a row
        asked, loss = known_arguments(others, self.config, known)
        tokens, encoded, recorded = self._encoded(asked, input_ids, attention_mask, inputs_embeds)
        (name,) = self.classification_heads
        logits = self.head_logits(name, encoded, tokens).masked_fill(tokens.eq(PAD).unsqueeze(-1), -1e4)
        start, end = (each.contiguous() for each in logits.unbind(dim=-1))
        value = None
        if start_positions is not None:
            value = ForQuestionAnsweringLoss(start, end, start_positions, end_positions, **loss)
        return asked.answer(HatAnswerOutput(value, start, end, **recorded))


class HatForMultipleChoice(HatForHead):
    """An encoder with one logit for each of the (B, M, T) ids of M choices; labels (B,) are the right ones."""

    num_classes = 1

    def __init__(self, config: HatConfig):
        super().__init__(config)
        if self.core.no_choices:
            raise ValueError(self.core.no_choices)

    @classmethod
    def takes(cls, head: Mapping[str, Any], config: HatConfig) -> bool:
        """Leaves a head of several classes to labels."""
        return bool(head["classes"] == 1)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Computes (B, M) logits; see `HatModel.forward`."""
        choices = input_ids if inputs_embeds is None else inputs_embeds
        if choices is None or choices.dim() < 3:
            raise ValueError("give input_ids (B, M, T) of M choices, or inputs_embeds (B, M, T, C)")
        asked, loss = known_arguments(others, self.config, LOSS)
        flat = [None if x is None else x.flatten(0, 1) for x in (input_ids, attention_mask, inputs_embeds)]
        tokens, encoded, recorded = self._encoded(asked, *flat)
        (name,) = self.classification_heads
        logits = self.head_logits(name, encoded, tokens).view(choices.shape[:2])
        value = None if labels is None else token_loss(logits, labels, **loss)
        return asked.answer(HatHeadOutput(value, logits, **recorded))


class HatForMaskedLM(HatModel):
    """An encoder with the masked-LM head."""

    def __init__(self, config: HatConfig):
        config = deepcopy(config)
        config.heads = {}
        super().__init__(config)

    def get_output_embeddings(self) -> nn.Module:
        return self.encoder.lm_head

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Computes (B, T, V) logits of (B, T) ids; `labels`: (B, T) right ids, -100 for none."""
        asked, loss = known_arguments(others, self.config, LOSS)
        _, encoded, recorded = self._encoded(asked, input_ids, attention_mask, inputs_embeds)
        logits = self.lm_logits(encoded.tokens)
        value = None if labels is None else ForMaskedLMLoss(logits, labels, logits.size(-1), **loss)
        return asked.answer(HatHeadOutput(value, logits, **recorded))
