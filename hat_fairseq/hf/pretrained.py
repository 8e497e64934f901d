"""What all models of transformers share: arguments of a forward, ids, recomputed layers, resizing, saving.

`modeling.py` has the encoders, `generation.py` the encoder-decoder.

Legend: B documents, T tokens, C channels.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from ..data.dictionary import PAD, UNKNOWN
from ..kernels import PackedLinear, set_precision
from ..modules.embedding import SinusoidalPositions, initialise, reset_table
from ..modules.heads import MaskedLMHead
from ..networks.config import EncoderConfig
from ..networks.encoder import Encoder
from ..networks.ernie_sparse import ErnieSparseConfig
from ..networks.hat import Decoder
from .config import HasLoader, HatConfig, listed

# Of any model, whatever `init` of its config says.
WITHOUT_INIT = (nn.LayerNorm, nn.RMSNorm, SinusoidalPositions)
LOSS = ("num_items_in_batch", "ignore_index")  # further arguments of the losses of transformers

logger = logging.getLogger(__name__)


def has_own_init(module: nn.Module) -> bool:
    """Returns whether the initial weights of a module do not depend on `init` of the config."""
    return isinstance(module, WITHOUT_INIT) or bool(getattr(module, "own_init", False))


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

    def _initialize_weights(self, module: nn.Module, *_: Any) -> None:
        """Calls `_init_weights` also for modules without tensors of their own, which transformers would leave out."""
        super()._initialize_weights(module)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialises what a folder lacks as a new model does, parts before the modules around them.

        transformers protects the tensors that it has loaded, but not rows of them.
        """
        how = self.core.config.init
        if isinstance(module, nn.Embedding):
            if not getattr(module.weight, "_is_hf_initialized", False):
                initialise(module, how) if how else reset_table(module)
        elif isinstance(module, nn.Linear) and how:
            initialise(module, how)
        elif has_own_init(module) or how is None and hasattr(module, "reset_parameters"):
            getattr(module, "reset_parameters")()  # noqa: B009 - mypy takes it for a tensor
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
                peft = "train them with ensure_weight_tying=True"
                if self.config.is_encoder_decoder:
                    peft = "remove the tables of embeddings from target_modules and modules_to_save"
                raise ValueError(
                    f"{name} and {other} are one table in this model, and have different values now: a folder has one "
                    f"of them. With peft, {peft}"
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
