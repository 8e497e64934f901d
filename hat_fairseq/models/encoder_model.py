"""fairseq's side of the encoder-only models: `hat_roberta`, `ernie_sparse` and `hierarchical_transformer`.

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`. All start from fairseq's RoBERTa; `hat_roberta` with `--no-hierarchy`
computes the same.
"""

import logging
import re
from argparse import ArgumentParser, Namespace
from typing import Any, ClassVar, Self

from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from ..modules.options import add_options
from ..networks.encoder_with_heads import ENCODERS, EncoderWithHeads
from .hat_transformer import vocabulary
from .loading import ROBERTA, adapt_heads, adapt_state, fingerprint, is_roberta, rename_old_layout

logger = logging.getLogger(__name__)

POSITIONS, SEGMENTS = "encoder.embed_positions.weight", "encoder.segment_positions.weight"


class EncoderModel(EncoderWithHeads, BaseFairseqModel):
    """An encoder with heads as fairseq calls it."""

    config_class: ClassVar[Any]
    # True for inference: then a checkpoint without this model's heads is an error.
    heads_must_load: Any = False
    has_mask: Any = False  # the dictionary has <mask>

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        add_options(parser, cls.config_class)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> Self:
        model, dictionary = cls(), task.source_dictionary
        model.compose(cls.config_class.from_args(args), vocabulary(dictionary))
        model.encoder.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        model.config, model.has_mask = model.numbers, "<mask>" in dictionary
        return model

    def max_positions(self) -> int:
        return self.core.max_tokens

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adapts a checkpoint of RoBERTa before loading; ValueError if it does not fit."""
        if not self.numbers.like_roberta:
            start_from_roberta(state_dict, self)
        rename_old_layout(state_dict)
        adapt_heads(state_dict, self)
        adapt_state(state_dict, self)


@register_model("hat_roberta")
class HatRobertaModel(EncoderModel):
    """RoBERTa with an attention to the sentences in every layer (Rohde et al. 2021, section 7)."""

    config_class = ENCODERS["hat_roberta"]


@register_model("ernie_sparse")
class ErnieSparseModel(EncoderModel):
    """RoBERTa with representative tokens (Liu et al. 2022)."""

    config_class = ENCODERS["ernie_sparse"]


@register_model("hierarchical_transformer")
class HierarchicalTransformerModel(EncoderModel):
    """The Hierarchical Attention Transformer of Chalkidis et al. 2022."""

    config_class = ENCODERS["hierarchical_transformer"]


def start_from_roberta(state: dict[str, Tensor], model: nn.Module) -> None:
    """Converts the `state` of a RoBERTa in place to one of `hierarchical_transformer`; any other state is unchanged.

    As in Chalkidis et al. 2022, layer i of both kinds starts from RoBERTa's layer i, positions from those of the first
    segment, and positions of segments from the first rows of the position table. The embedding of the token type is
    zero, because fairseq's RoBERTa has none. Heads other than the masked-LM head stay unchanged.

    Raises:
        ValueError: the RoBERTa has fewer layers or fewer positions than are needed.
    """
    if not is_roberta(state):
        return
    rename_old_layout(state)
    roberta = {ROBERTA.sub("", name): tensor for name, tensor in state.items()}
    converted = {name: tensor for name, tensor in state.items() if name.startswith("classification_heads.")}
    for name, tensor in model.state_dict().items():
        source = re.sub(r"\.(segment_wise|cross_segment)\.", ".", name.removeprefix("encoder."))
        if name in (POSITIONS, SEGMENTS):
            first = 0 if name == POSITIONS else 1
            rows = roberta["embed_positions.weight"][first : first + len(tensor)]
            if len(rows) < len(tensor):
                raise ValueError(
                    f"{name} needs {first + len(tensor)} positions of RoBERTa, which has {first + len(rows)}"
                )
            converted[name] = rows.clone()
        elif name == "encoder.embed_token_type.weight":
            converted[name] = tensor.new_zeros(tensor.shape)
        elif source in roberta:
            converted[name] = roberta[source]
        elif name.startswith("encoder.layers."):
            raise ValueError(f"RoBERTa has no {source}: fewer layers than --layout has, or another layout of tensors")
    logger.info("started from RoBERTa: both kinds of layer i from its layer i, positions cropped")
    state.clear()
    state.update(converted)
