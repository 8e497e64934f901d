"""fairseq's side of the encoder-only models: `hat_roberta`, `ernie_sparse` and `hierarchical_transformer`.

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`. All start from fairseq's RoBERTa; `hat_roberta` with `--no-hierarchy`
computes the same.
"""

from argparse import ArgumentParser, Namespace
from typing import Any, ClassVar, Self

from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor

from ..modules.options import add_options
from ..networks.encoder_with_heads import ENCODERS, EncoderWithHeads
from .from_roberta import rename_old_layout, start_from_roberta
from .hat_transformer import vocabulary
from .loading import adapt_heads, adapt_state, fingerprint


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

    @property
    def new_parts(self) -> tuple[str, ...]:
        """Returns the beginnings of the names of tensors that a pretrained checkpoint may lack."""
        return self.numbers.new_parts

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
