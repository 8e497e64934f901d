"""`HatConfig`, and the encoders of hat_fairseq as models of transformers; `generation.py` shares their base.

    HatModel                        with any classification heads
    HatForSequenceClassification    with one head about documents
    HatForMaskedLM                  with the masked-LM head

Tensors have the names of fairseq's checkpoints. `attention_mask` leaves tokens out; <pad> is left out without it.

Legend: B documents, T tokens, N segments or paragraphs of the document with most, C channels, K classes, V words.
"""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.loss.loss_utils import ForMaskedLMLoss, ForSequenceClassificationLoss
from transformers.modeling_outputs import MaskedLMOutput, ModelOutput, SequenceClassifierOutput

from ..data.dictionary import EOS, PAD, SPECIAL_IDS
from ..kernels import set_precision
from ..model_folder import AUTO_MAP, MODEL_TYPE, write_loader
from ..modules.embedding import SinusoidalPositions, initialise
from ..networks.encoder import Encoder, Vocabulary
from ..networks.encoder_with_heads import ENCODERS, EncoderWithHeads
from ..networks.hat import ENCODER_DECODERS, Decoder

NETWORKS = {**ENCODERS, **ENCODER_DECODERS}
LOSS = ("num_items_in_batch", "ignore_index")  # further arguments of the losses of transformers
KEYS_OF_HEAD = {"level", "classes", "inner_dim", "labels"}  # labels are for the export
HEAD = "sentence_classification_head"  # the name of a new head, which is fairseq's


class HasLoader:
    """A class that `trust_remote_code=True` finds through the loader."""

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "") -> None:
        """Does nothing: transformers would copy this file, and the loader is enough."""


class HatConfig(HasLoader, PretrainedConfig):
    """The settings of a model under their names in hat_fairseq, and what transformers has to know.

    Args:
        network: one of `ENCODERS` or `ENCODER_DECODERS`.
        settings: the fields of its dataclass in `networks`; those that are absent have their defaults.
        vocab_size: of the dictionary; of an encoder-decoder that of the target.
        source_vocab_size, max_source_positions, max_target_positions, num_roles: of an encoder-decoder.
        heads: the classification heads of an encoder by name: `level`, one of `modules.heads.LEVELS`, `classes`, and
            `inner_dim`, the channels of the hidden layer, None for those of the network.

    Raises:
        ValueError: a setting that the network does not have, or one outside of `settings`.
    """

    model_type = MODEL_TYPE

    def __init__(
        self,
        network: str = "",
        settings: dict[str, Any] | None = None,
        vocab_size: int = 0,
        source_vocab_size: int | None = None,
        max_source_positions: int = 1024,
        max_target_positions: int = 1024,
        num_roles: int = 0,
        heads: dict[str, dict[str, Any]] | None = None,
        **kwargs: Any,
    ):
        self.network, self.settings, self.heads = network, settings or {}, heads or {}
        self._check_names(kwargs)
        self.vocab_size, self.source_vocab_size = vocab_size, source_vocab_size or vocab_size
        self.max_source_positions, self.max_target_positions = max_source_positions, max_target_positions
        self.num_roles = num_roles
        # `settings` say which tables are one; the models tell transformers their names
        fixed = {"auto_map": AUTO_MAP, "is_encoder_decoder": network not in ENCODERS, "tie_word_embeddings": True}
        super().__init__(**SPECIAL_IDS | {"decoder_start_token_id": EOS} | kwargs | fixed)

    def _check_names(self, others: Mapping[str, Any]) -> None:
        """Raises ValueError for a name that has no effect."""
        if self.network in NETWORKS:
            known = {item.name for item in fields(NETWORKS[self.network])}
            if unknown := sorted(self.settings.keys() - known):
                raise ValueError(f"the network {self.network} has no setting {unknown[0]!r}; it has {listed(known)}")
            if outside := sorted(others.keys() & known):
                raise ValueError(f"{outside[0]!r} is a setting of the network: give it in `settings`")
        for name, head in self.heads.items():
            if unknown := sorted(head.keys() - KEYS_OF_HEAD):
                raise ValueError(f"the head {name!r} has no {unknown[0]!r}; it has {listed(KEYS_OF_HEAD)}")

    def numbers(self, networks: Mapping[str, Any]) -> Any:
        """Returns the dataclass of `settings`; ValueError for an unknown network, or a value out of range."""
        if self.network not in networks:
            raise ValueError(f"the network is {self.network!r}; this class has {', '.join(networks)}")
        return networks[self.network].from_args(Namespace(**self.settings))

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        write_loader(save_directory)


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def known_arguments(
    arguments: Mapping[str, Any], config: PretrainedConfig, known: Iterable[str] = ()
) -> dict[str, Any]:
    """Returns those of the arguments of a `forward` that have an effect and are given.

    Raises:
        ValueError: they or the configuration ask for attentions, states of layers or a tuple; or any other name.
    """
    asked = {name: arguments.get(name) for name in ("output_attentions", "output_hidden_states", "return_dict")}
    asked = {name: getattr(config, name, None) if value is None else value for name, value in asked.items()}
    if asked.pop("return_dict") is False:
        raise ValueError(
            "return_dict=False: the models of hat_fairseq return no tuples; call .to_tuple() on the output"
        )
    for name, value in asked.items():
        if value:
            raise ValueError(f"{name}=True: these models do not return them; `hat look` shows attention")
    others = {name: value for name, value in arguments.items() if name not in (*asked, "return_dict")}
    others = {name: value for name, value in others.items() if value is not None}
    if unknown := others.keys() - set(known):
        raise ValueError(f"{listed(unknown)}: the forward of this model does not take this")
    return others


def masked(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Returns the (B, T) ids, with <pad> where the mask is 0."""
    return input_ids if attention_mask is None else input_ids.masked_fill(attention_mask == 0, PAD)


class HatPreTrainedModel(HasLoader, PreTrainedModel):
    """Loading, initialisation, recomputed layers and precision of all models."""

    config_class = HatConfig
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    numbers: Any  # the dataclass of `config.settings`
    core: Encoder

    def post_init(self) -> None:
        first: dict[nn.Parameter, str] = {}
        names = [(name, first.setdefault(p, name)) for name, p in self.named_parameters(remove_duplicate=False)]
        self._tied_weights_keys = {name: other for name, other in names if name != other}
        super().post_init()

    def init_weights(self) -> None:
        """Ties the tables; the networks have initialised themselves."""
        self.tie_weights(recompute_mapping=False)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialises what a folder lacks; transformers protects the tensors that it has loaded."""
        if isinstance(module, nn.LayerNorm | SinusoidalPositions):
            module.reset_parameters()
        elif isinstance(module, nn.Linear | nn.Embedding):
            initialise(module, getattr(self.numbers, "init", "bert"))
        else:
            for parameter in module.parameters(recurse=False):
                nn.init.zeros_(parameter)

    def _set_gradient_checkpointing(self, enable: bool = True, *args: Any, **kwargs: Any) -> None:
        for module in self.modules():
            if isinstance(module, Encoder | Decoder):
                module.checkpoint = enable
                setattr(module, "gradient_checkpointing", enable)  # noqa: B010 - transformers reads it

    def get_input_embeddings(self) -> nn.Module:
        return self.core.embed_tokens

    def get_output_embeddings(self) -> None:
        return None

    def prepare_for_inference(self, precision: str = "fp32") -> Self:
        """Makes the model as fast as `hat generate` and `hat predict`; it can then not be trained, moved or saved.

        Args:
            precision: fp32, fp16 or bf16; on a CPU fp32, bf16 or int8.
        """
        set_precision(self.eval(), precision)
        return self


@dataclass
class HatOutput(ModelOutput):
    """The (B, T, C) states of the tokens, and the logits of each classification head by name.

    Logits are (B, K) of documents, (B / 2, K) of pairs in consecutive rows, (B, T, K) of tokens, (B, N, K) of segments
    or paragraphs.
    """

    last_hidden_state: Tensor | None = None
    logits: dict[str, Tensor] | None = None


class HatModel(HatPreTrainedModel, EncoderWithHeads):
    """An encoder with the classification heads that `config.heads` names."""

    def __init__(self, config: HatConfig):
        super().__init__(config)
        self.compose(config.numbers(ENCODERS), Vocabulary(config.vocab_size))
        for name, head in config.heads.items():
            self.register_classification_head(name, head["classes"], head["inner_dim"], head["level"])
        self.post_init()

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **others: Any
    ) -> Any:
        """Computes the states and the logits of all heads of (B, T) ids."""
        known_arguments(others, self.config)
        tokens = masked(input_ids, attention_mask)
        encoded = self.encoder(tokens)
        logits = {name: self.head_logits(name, encoded, tokens) for name in self.classification_heads}
        return HatOutput(encoded.tokens, logits)


class HatForSequenceClassification(HatModel):
    """An encoder with one head about documents, which is new if `config.heads` is empty."""

    def __init__(self, config: HatConfig):
        heads = config.heads or {HEAD: {"level": "document", "inner_dim": None}}
        if [head["level"] for head in heads.values()] != ["document"]:
            raise ValueError(f"the heads {', '.join(heads)} are not one head about documents: load with AutoModel")
        config.heads = {name: head | {"classes": config.num_labels} for name, head in heads.items()}
        super().__init__(config)

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **loss: Any
    ) -> SequenceClassifierOutput:
        """Computes (B, K) logits of (B, T) ids; `labels`: (B,) classes, or as `config.problem_type` says."""
        loss = known_arguments(loss, self.config, LOSS)
        (logits,) = super().forward(input_ids, attention_mask).logits.values()
        value = None if labels is None else ForSequenceClassificationLoss(labels, logits, self.config, **loss)
        return SequenceClassifierOutput(value, logits)


class HatForMaskedLM(HatModel):
    """An encoder with the masked-LM head."""

    def __init__(self, config: HatConfig):
        config.heads = {}
        super().__init__(config)

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **loss: Any
    ) -> MaskedLMOutput:
        """Computes (B, T, V) logits of (B, T) ids; `labels`: (B, T) right ids, -100 for none."""
        loss = known_arguments(loss, self.config, LOSS)
        logits = self.encoder.lm_head(self.encoder(masked(input_ids, attention_mask)).tokens)
        value = None if labels is None else ForMaskedLMLoss(logits, labels, logits.size(-1), **loss)
        return MaskedLMOutput(value, logits)
