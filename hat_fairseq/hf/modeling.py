"""The encoders of hat_fairseq as models of transformers; `generation.py` shares their base.

    HatModel                        an encoder with any classification heads; of an encoder-decoder the encoder alone
    HatForSequenceClassification    with one head about documents
    HatForSegmentClassification     with one head about sentences or segments, or about evidence
    HatForTokenClassification       with one head about tokens
    HatForQuestionAnswering         with a head for the first and the last token of an answer
    HatForMultipleChoice            with a head whose one logit is the score of a choice
    HatForMaskedLM                  with the masked-LM head

Tensors have the names of fairseq's checkpoints. `attention_mask` leaves tokens out; <pad> is left out without it.

Legend: B documents, T tokens, N segments or paragraphs of the document with most, C channels, K classes, V words.
"""

import logging
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import PretrainedConfig, PreTrainedModel
from transformers.loss.loss_utils import ForMaskedLMLoss, ForQuestionAnsweringLoss, ForSequenceClassificationLoss
from transformers.modeling_outputs import ModelOutput

from ..data.dictionary import PAD, UNKNOWN
from ..kernels import PackedLinear, set_precision
from ..modules.embedding import SinusoidalPositions, initialise, token_table
from ..modules.heads import MaskedLMHead
from ..networks.config import EncoderConfig
from ..networks.encoder import Encoder, EncoderOut, Vocabulary
from ..networks.encoder_with_heads import ENCODERS, EncoderWithHeads
from ..networks.ernie_sparse import ErnieSparseConfig
from ..networks.evidence import EvidenceEncoder
from ..networks.hat import ENCODER_DECODERS, Decoder, HatEncoder
from .config import HasLoader, HatConfig, listed
from .recording import Recording

LOSS = ("num_items_in_batch", "ignore_index")  # further arguments of the losses of transformers
HEAD = "sentence_classification_head"  # the name of a new head, which is fairseq's

logger = logging.getLogger(__name__)


@dataclass
class Asked:
    """What a call of a model asks for beside its output."""

    states: bool
    weights: bool
    tuples: bool

    def answer(self, output: ModelOutput) -> Any:
        return output.to_tuple() if self.tuples else output


def known_arguments(
    arguments: Mapping[str, Any], config: PretrainedConfig, known: Iterable[str] = ()
) -> tuple[Asked, dict[str, Any]]:
    """Divides the arguments of a `forward` in what is asked for and the others, as far as they are set.

    Raises:
        ValueError: any other name than the `known` ones.
    """
    names = {"states": "output_hidden_states", "weights": "output_attentions", "return_dict": "return_dict"}
    asked = {own: arguments.get(name) for own, name in names.items()}
    asked = {own: getattr(config, names[own], None) if value is None else value for own, value in asked.items()}
    others = {name: value for name, value in arguments.items() if name not in names.values() and value is not None}
    if unknown := others.keys() - set(known):
        raise ValueError(f"{listed(unknown)}: the forward of this model does not take this")
    return Asked(bool(asked["states"]), bool(asked["weights"]), asked["return_dict"] is False), others


def reads_markers(config: EncoderConfig) -> bool:
    """Returns whether a network finds sentences or segments by the ids of their markers."""
    if getattr(config, "segment_by", None) == "marker":
        return True
    return not getattr(config, "no_hierarchy", True) and not isinstance(config, ErnieSparseConfig)


def ids_of(
    input_ids: Tensor | None, attention_mask: Tensor | None, inputs_embeds: Tensor | None, config: EncoderConfig
) -> Tensor:
    """Returns (B, T) ids, with <pad> where the mask is 0.

    With embeddings alone the tokens are unknown words without markers.

    Raises:
        ValueError: neither ids nor embeddings; embeddings alone for a model that reads markers.
    """
    if input_ids is None:
        if inputs_embeds is None:
            raise ValueError("give input_ids, or inputs_embeds")
        if reads_markers(config):
            raise ValueError("inputs_embeds: give input_ids, too; they say where the sentences of hat_fairseq begin")
        input_ids = torch.full(inputs_embeds.shape[:2], UNKNOWN, device=inputs_embeds.device)
    return input_ids if attention_mask is None else input_ids.masked_fill(attention_mask == 0, PAD)


def is_padded_on_left(real: Tensor) -> bool:
    """Returns whether a row of a (B, T) mask, True for tokens, begins with padding and has something else."""
    return bool((real.any(dim=1) & ~real[:, 0]).any())


class HatPreTrainedModel(HasLoader, PreTrainedModel):
    """Loading, initialisation, recomputed layers and precision of all models."""

    config_class = HatConfig
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _no_split_modules = {"EncoderLayer", "HierarchicalDecoderLayer", "RepresentativeLayer", "SegmentLayer"}

    @property
    def core(self) -> Any:
        """Returns the encoder without heads."""
        raise NotImplementedError

    @property
    def vocab_size(self) -> int:
        """Returns the words of the table of embeddings, of an encoder-decoder that of the target."""
        return int(self.config.vocab_size)

    def post_init(self) -> None:
        first: dict[nn.Parameter, str] = {}
        names = [(name, first.setdefault(p, name)) for name, p in self.named_parameters(remove_duplicate=False)]
        self._tied_weights_keys = {name: other for name, other in names if name != other}
        self._began_without_memory = self._has_no_memory()
        super().post_init()

    def _has_no_memory(self) -> bool:
        return any(parameter.is_meta for parameter in self.parameters())

    def init_weights(self) -> None:
        """Ties the tables; the networks have initialised themselves, unless they were built on the device "meta"."""
        if self._began_without_memory and not self._has_no_memory():
            super().init_weights()
        else:
            self.tie_weights(recompute_mapping=False)

    def mark_tied_weights_as_initialized(self, loading_info: Any) -> None:
        """Marks the names of tables that another name gives; a table that no file has stays missing.

        transformers marks parameters. Here the names of a table are one parameter, which would count as loaded.
        """
        missing = loading_info.missing_keys & set(self.all_tied_weights_keys.values())
        missing = {source for source in missing if self.get_parameter(source).is_meta}
        super().mark_tied_weights_as_initialized(loading_info)
        loading_info.missing_keys |= missing
        for source in missing:
            setattr(self.get_parameter(source), "_is_hf_initialized", False)  # noqa: B010 - transformers reads it

    def _init_weights(self, module: nn.Module) -> None:
        """Initialises what a folder lacks; transformers protects the tensors that it has loaded."""
        if isinstance(module, nn.LayerNorm | SinusoidalPositions):
            module.reset_parameters()
        elif isinstance(module, nn.Linear | nn.Embedding):
            initialise(module, self.core.config.init or "bert")
        else:
            for parameter in module.parameters(recurse=False):
                nn.init.zeros_(parameter)

    def _set_gradient_checkpointing(
        self, enable: bool = True, gradient_checkpointing_func: Any = None, every_n_layers: int = 1
    ) -> None:
        """Recomputes every layer in the backward pass, without reentrance; ValueError for other ways to do that."""
        check_recomputing(gradient_checkpointing_func, every_n_layers)
        for module in self.modules():
            if isinstance(module, Encoder | Decoder):
                module.checkpoint = enable
                setattr(module, "gradient_checkpointing", enable)  # noqa: B010 - transformers reads it

    def get_input_embeddings(self) -> nn.Module:
        return self.core.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        raise ValueError("tables of hat_fairseq have several names: resize_token_embeddings changes them, not this")

    def get_output_embeddings(self) -> nn.Module | None:
        return None

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        """Gives the tables of the tokens more rows, or fewer, under all their names.

        Args:
            new_num_tokens: rows; None: as many as now.
            pad_to_multiple_of: the rows are rounded up to a multiple of this.
            mean_resizing: new rows are the mean of the others; otherwise N(0, 0.02).
        Raises:
            ValueError: source and target have tables of their own; `pad_to_multiple_of` is no integer.
        """
        if not isinstance(pad_to_multiple_of, int | None):
            raise ValueError(f"pad_to_multiple_of={pad_to_multiple_of}: give an integer")
        table = self.core.embed_tokens
        size = table.num_embeddings if new_num_tokens is None else new_num_tokens
        size += -size % (pad_to_multiple_of or 1)
        if size == table.num_embeddings:
            return table
        if self.config.is_encoder_decoder and not self.config.share_all_embeddings and hasattr(self, "decoder"):
            raise ValueError("resize_token_embeddings: source and target of this model of hat_fairseq have two tables")
        if getattr(self.core.config, "untie_weights_roberta", False) and getattr(self.encoder, "lm_head", None):
            raise ValueError("resize_token_embeddings: the masked-LM head has a table of its own, of this size")
        old = table.weight
        new = nn.Parameter(resized(old.detach(), size, mean_resizing), old.requires_grad)
        for module in self.modules():
            for name, parameter in module._parameters.items():
                if parameter is old:
                    module._parameters[name] = new
            if isinstance(module, nn.Embedding) and module.weight is new:
                module.num_embeddings = size
            if isinstance(module, nn.Linear) and module.weight is new:
                module.out_features = size
            if isinstance(module, MaskedLMHead):
                module.resize(size)
        self.config.vocab_size = self.config.source_vocab_size = size
        return table

    def train(self, mode: bool = True) -> Self:
        """Sets the mode; ValueError for training after `prepare_for_inference` on a CPU."""
        if mode:
            refuse_packed(self, "trained")
        return super().train(mode)

    def save_pretrained(self, *args: Any, **options: Any) -> None:
        """Saves weights and configuration.

        Raises:
            ValueError: the weights are not there after `prepare_for_inference`; two names of one table have different
                values, of which a folder would have one.
        """
        refuse_packed(self, "saved")
        for name, other in self._tied_weights_keys.items():
            if not torch.equal(self.get_parameter(name), self.get_parameter(other)):
                raise ValueError(
                    f"{name} and {other} are one table in this model, and have different values now: a folder has one "
                    "of them. With peft, train them with ensure_weight_tying=True"
                )
        super().save_pretrained(*args, **options)

    def prepare_for_inference(self, precision: str = "fp32") -> Self:
        """Makes the model as fast as `hat generate` and `hat predict`; it can then not be trained, moved or saved.

        Args:
            precision: fp32, fp16 or bf16; on a CPU fp32, bf16 or int8.
        """
        set_precision(self.eval(), precision)
        return self


def refuse_packed(model: nn.Module, done: str) -> None:
    """Raises ValueError for a model whose weights only the processor's own routines can read."""
    if any(isinstance(module, PackedLinear) for module in model.modules()):
        raise ValueError(f"a model cannot be {done} after prepare_for_inference: use the one that was loaded before")


def check_recomputing(function: Any, every_n_layers: int) -> None:
    """Raises ValueError for another way to recompute layers than theirs; `use_reentrant=True` gets a warning.

    `function`: torch's `checkpoint` with its options bound to it, or None.
    """
    if every_n_layers != 1:
        raise ValueError(f"every_n_layers={every_n_layers}: the layers of hat_fairseq are recomputed all or none")
    if function is None:
        return
    if getattr(function, "func", None) is not checkpoint:
        raise ValueError("offload: hat_fairseq keeps the activations between layers on their device")
    if others := function.keywords.keys() - {"use_reentrant"}:
        raise ValueError(f"{listed(others)}: hat_fairseq recomputes layers without this option")
    if function.keywords.get("use_reentrant"):
        logger.warning("use_reentrant=True has no effect: hat_fairseq recomputes layers without reentrance")


def resized(table: Tensor, size: int, mean: bool) -> Tensor:
    """Returns the first `size` rows of a table; further rows are their mean, or N(0, 0.02)."""
    more = table.new_empty(max(0, size - len(table)), table.size(1))
    more = table.mean(dim=0).expand_as(more) if mean else more.normal_(std=0.02)
    return torch.cat([table[:size], more])


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
        HatPreTrainedModel.__init__(self, config)
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
        initialise(self.encoder, network.init or "bert")
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
        if getattr(self.core.config, "segment_by", None) == "length" and is_padded_on_left(tokens.ne(PAD)):
            raise ValueError(
                "padding on the left: the segments of hierarchical_transformer count from the first place of a row; "
                "pad on the right, as its tokenizer does"
            )
        if isinstance(self.core, EvidenceEncoder) and (asked.states or asked.weights):
            raise ValueError("output_hidden_states, output_attentions: hat_evidence encodes each turn by itself")
        with Recording(self.core, states=asked.states, weights=asked.weights) as recording:
            encoded = self.core(tokens, role_ids, words=inputs_embeds)
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

    def __init__(self, config: HatConfig):
        name, head = self._head(config)
        config = deepcopy(config)
        classes = self._classes(config, head)
        settings = {key: value for key, value in head.items() if key != "labels" or len(value) == classes}
        config.heads = {name: {**settings, "classes": classes}}
        super().__init__(config)

    def _head(self, config: HatConfig) -> tuple[str, Mapping[str, Any]]:
        """Returns the name and the settings of the head about what this class is about, or of a new one.

        Raises:
            ValueError: several heads are about that.
        """
        own = {name: head for name, head in config.heads.items() if head["level"] in self.levels}
        if len(own) > 1:
            raise ValueError(f"the heads {', '.join(own)} are of one kind: load them with AutoModel")
        if own:
            return own.popitem()
        level = self.levels[0]
        return (f"{level}_classification_head" if HEAD in config.heads else HEAD), {"level": level, "inner_dim": None}

    def _classes(self, config: HatConfig, head: Mapping[str, Any]) -> int | None:
        if head["level"] == "evidence":
            return 1
        return self.num_classes or config.classes_of(head)

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


def token_loss(logits: Tensor, labels: Tensor, num_items_in_batch: Any = None, ignore_index: int = -100) -> Tensor:
    """Computes the cross-entropy of (M, K) logits, summed and divided by the number of labels of the whole update."""
    if num_items_in_batch is None:
        return cross_entropy(logits.float(), labels, ignore_index=ignore_index)
    return cross_entropy(logits.float(), labels, ignore_index=ignore_index, reduction="sum") / num_items_in_batch


def evidence_loss(logits: Tensor, labels: Tensor, num_items_in_batch: Any = None, ignore_index: int = -100) -> Tensor:
    """Computes the cross-entropy of (B, Q, N) logits of yes or no; see `token_loss`."""
    counted = labels != ignore_index
    losses = binary_cross_entropy_with_logits(logits[counted].float(), labels[counted].float(), reduction="none")
    return losses.mean() if num_items_in_batch is None else losses.sum() / num_items_in_batch


class HatForSequenceClassification(HatForHead):
    """An encoder with one head about documents; labels (B,) are classes, or as `config.problem_type` says."""

    def loss_of(self, logits: Tensor, labels: Tensor, **loss: Any) -> Tensor:
        return ForSequenceClassificationLoss(labels, logits, self.config, **loss)


class HatForSegmentClassification(HatForHead):
    """An encoder with one head about sentences or segments (B, N, K), or about evidence (B, Q, N), questions by units.

    Labels are (B, N) classes of the sentences, or (B, Q, N) 1 for a unit that is evidence, 0 for one that is not.
    """

    levels = ("segment", "evidence")

    def loss_of(self, logits: Tensor, labels: Tensor, **loss: Any) -> Tensor:
        (head,) = self.classification_heads.values()
        if head.level != "evidence":
            return super().loss_of(logits, labels, **loss)
        if logits.shape != labels.shape:
            raise ValueError(
                f"labels of shape {tuple(labels.shape)}: evidence has one for each question and unit of a document, "
                f"here {tuple(logits.shape)}"
            )
        return evidence_loss(logits, labels, **loss)


class HatForTokenClassification(HatForHead):
    """An encoder with one head about tokens; labels are (B, T) classes."""

    levels = ("token",)


class HatForQuestionAnswering(HatForHead):
    """An encoder with a head for each token as the first and as the last of an answer."""

    levels, num_classes = ("token",), 2

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
        asked, loss = known_arguments(others, self.config, LOSS[:1])  # a position outside of the row is ignored
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
        return self.encoder.lm_head  # type: ignore[return-value]

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
