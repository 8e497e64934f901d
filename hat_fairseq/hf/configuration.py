"""`HatConfig`: the numbers of a model of hat_fairseq as a config of transformers."""

import shutil
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PretrainedConfig

from ..data.dictionary import EOS, SPECIAL_IDS
from ..networks.encoder_with_heads import ENCODERS

LOADER = Path(__file__).with_name("modeling_hat.py")  # in each saved folder
AUTO_MAP = {  # class of transformers -> of this package
    "AutoConfig": f"{LOADER.stem}.HatConfig",
    "AutoModel": f"{LOADER.stem}.HatModel",
    "AutoModelForMaskedLM": f"{LOADER.stem}.HatForMaskedLM",
    "AutoModelForSeq2SeqLM": f"{LOADER.stem}.HatForConditionalGeneration",
    "AutoModelForSequenceClassification": f"{LOADER.stem}.HatForSequenceClassification",
}


def write_loader(directory: str | Path) -> None:
    """Puts the file into a folder with which `trust_remote_code=True` finds this package."""
    shutil.copyfile(LOADER, Path(directory, LOADER.name))


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
    """

    model_type = "hat"

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
        self.vocab_size, self.source_vocab_size = vocab_size, source_vocab_size or vocab_size
        self.max_source_positions, self.max_target_positions = max_source_positions, max_target_positions
        self.num_roles = num_roles
        # `settings` say which tables are one; the models tell transformers their names
        fixed = {"auto_map": AUTO_MAP, "is_encoder_decoder": network not in ENCODERS, "tie_word_embeddings": True}
        super().__init__(**SPECIAL_IDS | {"decoder_start_token_id": EOS} | kwargs | fixed)

    def numbers(self, networks: Mapping[str, Any]) -> Any:
        """Returns the dataclass of `settings`; ValueError for an unknown network, or a value out of range."""
        if self.network not in networks:
            raise ValueError(f"the network is {self.network!r}; this class has {', '.join(networks)}")
        return networks[self.network].from_args(Namespace(**self.settings))

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        write_loader(save_directory)
