"""The networks of the four papers, as compositions of `modules`: torch only, without fairseq and without a dictionary.

config.py       the numbers of every encoder, and the table of its self-attentions
encoder.py      what all encoders are composed of
hat.py          HAT, the encoder-decoder
roberta.py, ernie_sparse.py, hierarchical_transformer.py
                one encoder-only network each: its numbers, its parts, the state of a document
encoder_with_heads.py
                an encoder with a masked-LM head or classification heads

`build` makes any of them from a description in plain numbers, which `hat export` writes.
"""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from torch import nn

from .encoder import Vocabulary
from .encoder_with_heads import ENCODERS, EncoderWithHeads
from .hat import ENCODER_DECODERS, EncoderDecoder

NETWORKS = ENCODER_DECODERS | ENCODERS


def build(description: Mapping[str, Any]) -> nn.Module:
    """Builds the network, with initial weights; its tensors have the names of fairseq's checkpoints.

    Args:
        description: `network`, its registered name; `settings`, the fields of its dataclass; `vocab_size`. Of an
            encoder-decoder `source_vocab_size`, `num_roles`, `max_source_positions` and `max_target_positions`. Of an
            encoder `heads` by name: `level`, `classes` and `inner_dim`.
    Raises:
        ValueError: an unknown network, or settings that contradict each other.
    """
    name = description["network"]
    if name not in NETWORKS:
        raise ValueError(f"the network {name!r:.80} is unknown; known are {', '.join(NETWORKS)}")
    numbers, target = NETWORKS[name].from_args(Namespace(**description["settings"])), description["vocab_size"]
    if name in ENCODER_DECODERS:
        positions = description["max_source_positions"], description["max_target_positions"]
        source = Vocabulary(description["source_vocab_size"])
        return EncoderDecoder(numbers, source, Vocabulary(target), positions, description["num_roles"])
    model = EncoderWithHeads()
    model.compose(numbers, Vocabulary(target))
    for name, head in description["heads"].items():
        model.register_classification_head(name, head["classes"], head["inner_dim"], head["level"])
    return model
