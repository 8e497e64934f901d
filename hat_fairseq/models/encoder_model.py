"""fairseq's side of the encoder-only models.

They are `hat_roberta`, `hat_units`, `ernie_sparse` and `hierarchical_transformer`.

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`. All start from fairseq's RoBERTa; `hat_roberta` with `--no-hierarchy`
computes the same.
"""

import logging
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from ..networks.encoder_with_heads import ENCODERS, EncoderWithHeads
from .adapting import ROBERTA, adapt_heads, adapt_state, declare, fingerprint, is_roberta, rename_old_layout
from .hat_transformer import vocabulary

logger = logging.getLogger(__name__)

Logits = Tensor | dict[str, Tensor]
TABLE = "embed_positions.weight"
POSITIONS, SEGMENTS = f"encoder.{TABLE}", "encoder.segment_positions.weight"
FIRST_NORM = "encoder.layers.0.cross_segment.self_attn_layer_norm.weight"


class EncoderModel(EncoderWithHeads, BaseFairseqModel):
    """An encoder with heads as fairseq calls it."""

    encoder_class: ClassVar[Any]
    # True for inference: then a checkpoint without this model's heads is an error.
    heads_must_load: Any = False
    has_mask: Any = False  # the dictionary has <mask>

    def __init__(self, config: Any, dictionary: Dictionary) -> None:
        BaseFairseqModel.__init__(self)
        EncoderWithHeads.__init__(self, self.encoder_class, config, vocabulary(dictionary))
        self.encoder.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        self.config, self.has_mask = config, "<mask>" in dictionary

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        declare(parser, cls.encoder_class.config_class)

    @classmethod
    def read_config(cls, args: Namespace) -> Any:
        """Reads the config from the flags of a run or of a checkpoint."""
        return cls.encoder_class.config_class.from_args(args)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> Self:
        return cls(cls.read_config(args), task.source_dictionary)

    def max_positions(self) -> int:
        return self.core.max_tokens

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
            masked_tokens: (B, T) bool of N tokens; return the (N, V) logits of these only.
            classification_head_name: return the logits of this head, see `head_logits`; with several names, a
                dictionary of them.
            roll: see `Encoder.forward`.
        Returns:
            The states or logits, by default the (B, T, V) masked-LM logits of all tokens; and a dictionary with
            `spans` (B, S, C) and `spans_padding` (B, S) if the encoder has them.
        """
        encoded = self.encode(src_tokens, roll)
        extra: dict[str, Any] = {}
        if encoded.spans is not None:
            extra = {"spans": encoded.spans, "spans_padding": encoded.spans_padding}
        if isinstance(classification_head_name, str):
            return self.head_logits(classification_head_name, encoded, src_tokens), extra
        if classification_head_name is not None:
            return {name: self.head_logits(name, encoded, src_tokens) for name in classification_head_name}, extra
        if features_only:
            return encoded.tokens, extra
        return self.lm_logits(encoded.tokens if masked_tokens is None else encoded.tokens[masked_tokens]), extra

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
        """Adds a head as `add_head` does; fairseq's tasks call this. ValueError without a number of classes."""
        if num_classes is None:
            raise ValueError(f"classification head {name!r}: the number of classes is missing (--num-classes)")
        self.add_head(name, num_classes, inner_dim, level)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adapts a checkpoint of RoBERTa before loading; ValueError if it does not fit."""
        if not self.core.named_as_roberta:
            start_from_roberta(state_dict, self)
        rename_old_layout(state_dict)
        adapt_heads(state_dict, self)
        adapt_state(state_dict, self)


for _name, _encoder in ENCODERS.items():  # classes of this module, as pickles name them
    _class = f"{_encoder.__name__.removesuffix('Encoder')}Model"
    globals()[_class] = register_model(_name)(type(_class, (EncoderModel,), {"encoder_class": _encoder}))


def start_from_roberta(state: dict[str, Tensor], model: nn.Module) -> None:
    """Converts the `state` of a RoBERTa in place to one of `hierarchical_transformer`; any other state is unchanged.

    As in Chalkidis et al. 2022, layer i of both kinds starts from RoBERTa's layer i, positions from those of the first
    segment, and positions of segments from the first rows of the position table; without one they are new. The
    embedding of the token type is zero where RoBERTa has none. Heads other than the masked-LM head stay unchanged.

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
        if name in (POSITIONS, SEGMENTS) and TABLE in roberta:
            first = 0 if name == POSITIONS else 1
            rows = roberta[TABLE][first : first + len(tensor)]
            if len(rows) < len(tensor):
                raise ValueError(
                    f"{name} needs {first + len(tensor)} positions of RoBERTa, which has {first + len(rows)}"
                )
            converted[name] = rows.clone()
        elif name in (SEGMENTS, FIRST_NORM):  # of rotary positions, and of a layer without a norm of its own
            converted[name] = roberta.get(source, tensor.clone())
        elif name == "encoder.embed_token_type.weight":
            converted[name] = roberta.get("embed_token_type.weight", tensor.new_zeros(tensor.shape))
        elif source in roberta:
            converted[name] = roberta[source]
        elif name.startswith("encoder.layers."):
            raise ValueError(f"RoBERTa has no {source}: fewer layers than --layout has, or another layout of tensors")
    logger.info("started from RoBERTa: both kinds of layer i from its layer i, positions cropped")
    state.clear()
    state.update(converted)
