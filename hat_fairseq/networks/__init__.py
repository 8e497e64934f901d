"""The networks of the four papers, made of `modules`; that over units is in `units`.

They need torch only, no fairseq and no dictionary.

config.py       the config of every encoder, and the table of its self-attentions
families.py     the parts of published encoders, a record for each family
encoder.py      the base of all encoders
hat.py          HAT, the encoder-decoder
headed_encoder.py
                the base of those with heads: what a head reads
roberta.py, ernie_sparse.py, hierarchical_transformer.py
                one encoder-only network each: its config, and its encoder
encoder_with_heads.py
                an encoder with a masked-LM head or classification heads

`build` makes any of them from a description, which `hat export` writes.
"""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..options import as_in_python, options_of
from .config import Sizes
from .encoder import Vocabulary
from .encoder_with_heads import ENCODERS, EncoderWithHeads
from .hat import ENCODER_DECODERS, EncoderDecoder
from .headed_encoder import HeadedEncoder

NETWORKS: dict[str, Any] = ENCODER_DECODERS | {name: encoder.config_class for name, encoder in ENCODERS.items()}


def register_encoder(name: str, encoder: type[HeadedEncoder]) -> None:
    """Makes an encoder-only network known under a name."""
    ENCODERS[name], NETWORKS[name] = encoder, encoder.config_class


@as_in_python()
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
    config, target = NETWORKS[name].from_args(Namespace(**description["settings"])), description["vocab_size"]
    for size, each in options_of(Sizes).items():
        each.check(description.get(size, each.default))
    if name in ENCODER_DECODERS:
        positions = description["max_source_positions"], description["max_target_positions"]
        source = Vocabulary(description["source_vocab_size"])
        return EncoderDecoder(config, source, Vocabulary(target), positions, description["num_roles"])
    model = EncoderWithHeads(ENCODERS[name], config, Vocabulary(target))
    for head_name, head in description["heads"].items():
        model.add_head(head_name, head["classes"], head["inner_dim"], head["level"])
    return model


def without_training(description: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a description without settings of the training, which name files that a model writes."""
    dropped = getattr(NETWORKS.get(description["network"]), "training_only", ())
    settings = {name: value for name, value in description["settings"].items() if name not in dropped}
    return {**description, "settings": settings}


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Loads the tensors; a table that is used twice may be there under one of its names. RuntimeError for others."""
    known = dict(tensors)
    tie_tables(known, model)
    model.load_state_dict(known)


def tie_tables(state: dict[str, Tensor], model: nn.Module) -> None:
    """Gives shared tables all of their names; the first name, that of the embedding, decides."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    for shared in names.values():
        if stored := [state[name] for name in shared if name in state]:
            state |= dict.fromkeys(shared, stored[0])


from ..units import network as _units  # noqa: E402, F401 - registers the network over units, which needs this module
