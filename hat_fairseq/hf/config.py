"""`HatConfig`, the settings of a model under their names in hat_fairseq, and what transformers has to know."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import fields
from numbers import Number
from typing import Any

from transformers import PretrainedConfig

from ..data.dictionary import EOS, SPECIAL, SPECIAL_IDS
from ..data.files import Fields, at
from ..former import todays, todays_name
from ..model_folder import AUTO_MAP, MODEL_TYPE, write_loader
from ..networks import NETWORKS
from ..networks.config import Head, Sizes
from ..networks.encoder import UNLIMITED
from ..networks.families import renamed
from ..networks.hat import ENCODER_DECODERS
from ..networks.roberta import DEFAULT_POSITIONS
from ..options import as_in_python, check_values, options_of

KEYS_OF_HEAD = {*options_of(Head), "labels"}  # labels are for the export
TOKENS = SPECIAL_IDS | {"decoder_start_token_id": EOS}  # those of every dictionary
OF_ENCODER_DECODERS = ("source_vocab_size", "max_target_positions", "num_roles")


class HasLoader:
    """A class that `trust_remote_code=True` finds through the loader."""

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "") -> None:
        """Does nothing: transformers would copy this file, and the loader is enough."""


class HatConfig(HasLoader, PretrainedConfig):
    """The settings of a model under their names in hat_fairseq, and what transformers has to know.

    A setting can be read and changed as an attribute, also by `from_pretrained(..., dropout=0.2)`. Width, heads and
    layers have transformers' names as well.

    Args:
        network: one of `NETWORKS`.
        settings: the fields of its dataclass in `networks`; those that are absent have their defaults.
        vocab_size: of the dictionary; of an encoder-decoder that of the target.
        source_vocab_size, max_target_positions, num_roles: of an encoder-decoder.
        max_source_positions: the longest source; by default 1,024 tokens, and of an encoder what its network takes.
        heads: the classification heads of an encoder by name: `level`, one of `modules.heads.LEVELS`, `classes`,
            `inner_dim`, the channels of the hidden layer, None for those of the network, and `labels`, the names of the
            classes. With one head these are the labels of the configuration, unless others are stated; with several
            it has none, until a model takes one of the heads.

    Raises:
        ValueError: a setting that the network does not have, of another type, or without effect.
    """

    model_type = MODEL_TYPE
    attribute_map = {
        "hidden_size": "encoder_embed_dim",
        "intermediate_size": "encoder_ffn_embed_dim",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }

    def __init__(
        self,
        network: str = "",
        settings: dict[str, Any] | None = None,
        vocab_size: int = len(SPECIAL),
        source_vocab_size: int | None = None,
        max_source_positions: int | None = None,
        max_target_positions: int = 1024,
        num_roles: int = 0,
        heads: dict[str, dict[str, Any]] | None = None,
        **kwargs: Any,
    ):
        sizes = (vocab_size, source_vocab_size, max_source_positions, max_target_positions, num_roles)
        vocab_size, source_vocab_size, max_source_positions, max_target_positions, num_roles = map(plain, sizes)
        self.network, self.heads = network, heads or {}
        flat = {name: kwargs.pop(name) for name in [*kwargs] if self.attribute_map.get(name, name) in self._known()}
        flat = {self.attribute_map.get(name, name): value for name, value in flat.items()}
        self.settings = {name: plain(value) for name, value in (renamed(settings or {}) | flat).items()}
        self._check_names()
        if "max_positions" in self._known() and self.settings.get("max_positions") is None:
            self.settings["max_positions"] = DEFAULT_POSITIONS
        self.vocab_size, self.source_vocab_size = vocab_size, source_vocab_size or vocab_size
        self.max_source_positions, self.max_target_positions = 1024, max_target_positions
        if max_source_positions is not None:
            self.max_source_positions = max_source_positions
        elif network in NETWORKS and network not in ENCODER_DECODERS:
            longest = UNLIMITED if getattr(NETWORKS[network], "unlimited", False) else self._positions()
            # Settings of another type are refused with their names when the network is built.
            self.max_source_positions = longest if isinstance(longest, int) else 1024
        self.num_roles = num_roles
        with as_in_python():
            check_values(Sizes, self)
        if self.heads and not {"num_labels", "id2label"} & kwargs.keys():
            kwargs |= labels_of(self.heads)
        refuse_untied(kwargs)
        stated = {name: value for name, value in kwargs.items() if value is not None or name not in self._fixed()}
        super().__init__(**self._fixed() | stated | {"auto_map": AUTO_MAP})

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Reads config.json; one of `hat export` says `tie_word_embeddings: false`, because it has each table once.

        Settings of a training are left out: a folder of somebody else must not choose a file that is written.
        """
        refuse_untied(kwargs)
        former = str(config_dict.get("network"))
        network = todays_name(former)
        dropped = getattr(NETWORKS.get(network), "training_only", ())
        stated = {name: value for name, value in config_dict.items() if name not in dropped}
        if isinstance(settings := stated.get("settings"), Mapping):
            settings = todays(former, settings)
            stated["settings"] = {name: value for name, value in settings.items() if name not in dropped}
            stated["network"] = network
        return super().from_dict({**stated, "tie_word_embeddings": True}, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Returns a setting of the network, or its default."""
        own = self.__dict__
        name = type(self).attribute_map.get(name, name)
        if name == "encoder_layers" and own.get("network") == "hierarchical_transformer":
            return self.layout.count("|") + 1
        if name == "max_position_embeddings" and own.get("network") in NETWORKS:
            return self._positions()
        if "settings" not in own or name not in self._known():
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        default = NETWORKS[own["network"]].__dataclass_fields__[name].default
        return own["settings"].get(name, default)

    def __setattr__(self, name: str, value: Any) -> None:
        key = self.attribute_map.get(name, name)
        fixed = self._fixed() if name != "tie_word_embeddings" else {}  # which peft sets when it merges
        self._check_change(name, value)
        if value not in (None, fixed.get(name, value)):
            raise ValueError(f"{name}={value}: for the network {self.network} this is {fixed[name]}; remove it")
        network = self.__dict__.get("network")
        of_layout = key == "encoder_layers" and network == "hierarchical_transformer"
        if of_layout or (name == "max_position_embeddings" and network in NETWORKS):
            if value != (derived := getattr(self, name)):
                raise ValueError(f"{name}={value}: other settings of {network} make it {derived}")
            return
        own = self.__dict__
        if name == "heads" and "id2label" in own and own["id2label"] == labels_of(own["heads"])["id2label"]:
            own.update(labels_of(value))  # no others are stated
        if "settings" in self.__dict__ and key in self._known():
            self.settings[key] = value
        elif key != name:
            raise ValueError(f"{name!r} is no setting of the network {self.network}")
        else:
            super().__setattr__(name, value)

    def _check_change(self, name: str, value: Any) -> None:
        """Raises ValueError for a change, after all is stated, that would have no effect."""
        own = self.__dict__
        if "auto_map" not in own or own.get(name, value) == value:
            return
        if name == "network":
            raise ValueError(
                f"network={value!r}: a model of the network {self.network} cannot become one; make a new one"
            )
        follows = name == "source_vocab_size" and value == self.vocab_size  # when the table gets another size
        if name in OF_ENCODER_DECODERS and self.network not in ENCODER_DECODERS and not follows:
            raise ValueError(f"{name}={value!r}: this is for encoder-decoders, and {self.network} is an encoder")

    def _fixed(self) -> dict[str, Any]:
        """Returns what cannot be chosen.

        `settings` say which tables are one; the models tell transformers their names.
        """
        network = self.__dict__.get("network")
        return TOKENS | {"is_encoder_decoder": network in ENCODER_DECODERS, "tie_word_embeddings": True}

    def _known(self) -> set[str]:
        """Returns the names of the settings of the network."""
        network = self.__dict__.get("network")
        return {item.name for item in fields(NETWORKS[network])} if network in NETWORKS else set()

    def _positions(self) -> int:
        if self.network in ENCODER_DECODERS:
            return self.max_source_positions
        if self.network == "hierarchical_transformer":
            return self.max_segments * self.segment_length
        return self.max_positions

    def _check_names(self) -> None:
        """Raises ValueError for a name that has no effect."""
        if (known := self._known()) and (unknown := sorted(self.settings.keys() - known)):
            raise ValueError(f"the network {self.network} has no setting {unknown[0]!r}; it has {listed(known)}")
        for name, head in self.heads.items():
            Fields(head, f"the head {name!r}", KEYS_OF_HEAD)
            if missing := sorted(KEYS_OF_HEAD - {"labels"} - head.keys()):
                raise ValueError(f"the head {name!r} lacks {missing[0]!r}; it needs level, classes and inner_dim")
            with at(f"the head {name!r}"), as_in_python():
                check_values(Head, Namespace(**head))
        if self.heads and self.__dict__.get("network") in ENCODER_DECODERS:
            raise ValueError(f"heads: the network {self.network} has no classification heads")

    def network_config(self, networks: Iterable[str]) -> Any:
        """Returns the dataclass of `settings`.

        Raises:
            ValueError: another network than one of `networks`, or a value of another type or out of range.
        """
        if self.network not in networks:
            raise ValueError(f"the network is {self.network!r}; this class has {', '.join(networks)}")
        with as_in_python():
            return NETWORKS[self.network].from_args(Namespace(**self.settings))

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        write_loader(save_directory)


def plain(value: Any) -> Any:
    """Returns a number of numpy as Python's, which JSON has; anything else as it is."""
    return value.item() if isinstance(value, Number) and hasattr(value, "item") else value


def labels_of(heads: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the labels of the only head, as transformers names them: none of several, two without any."""
    if len(heads) > 1:
        return {"id2label": {}, "label2id": {}}
    head = next(iter(heads.values()), {"classes": PretrainedConfig().num_labels})
    names = head.get("labels") or [f"LABEL_{number}" for number in range(head["classes"])]
    return {"id2label": dict(enumerate(names)), "label2id": {name: number for number, name in enumerate(names)}}


def refuse_untied(options: Mapping[str, Any]) -> None:
    """Raises ValueError for `tie_word_embeddings=False`: the settings of a network say which tables are one."""
    if options.get("tie_word_embeddings") is False:
        raise ValueError("tie_word_embeddings=False: the settings of the network say which tables are one; remove it")


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
