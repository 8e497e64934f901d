"""A network from a description in plain numbers, as `hat package` and `hat export` write it into `config.json`."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from torch import nn

from .decoder import Decoder
from .encoder import Encoder, Vocabulary
from .encoder_with_heads import ENCODERS, EncoderWithHeads
from .hat import ENCODER_DECODERS, hat_encoder_parts, token_tables

NETWORKS = ENCODER_DECODERS | ENCODERS


class EncoderDecoder(nn.Module):
    """The encoder and the decoder of HAT."""

    def __init__(self, numbers: Any, source: Vocabulary, target: Vocabulary, positions: tuple[int, int], roles: int):
        super().__init__()
        tables = token_tables(numbers, source, target)
        self.encoder = Encoder(hat_encoder_parts(numbers, source, tables[0], positions[0], roles))
        self.decoder = Decoder(numbers, tables[1], positions[1])


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
