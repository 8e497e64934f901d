"""A trained model that is to be written as a folder: its network's configuration, and the settings of its training."""

from argparse import Namespace
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from ..data.files import Fields, check_lfs
from ..model_folder import (
    BUILDING,
    DESCRIPTION,
    FINGERPRINT,
    MANIFEST,
    SAVED_BY_TRANSFORMERS,
    TOKENIZER,
    ModelFolder,
    is_model_folder,
)
from ..networks import NETWORKS, build, fill, without_training

ROLES = "encoder.embed_segments.weight"


@dataclass(frozen=True)
class Trained:
    """A model with its task and settings.

    Attributes:
        data: its bin directory.
        folder: that the model was loaded from; None for a checkpoint.
    """

    model: Any
    cfg: Any
    task: Any
    updates: int
    data: Path
    folder: ModelFolder | None = None

    @classmethod
    def load(cls, checkpoint: Path, data: Path) -> "Trained":
        """Loads a checkpoint with its data; ValueError without settings, or for data not its own."""
        from fairseq import checkpoint_utils

        from ..register import register

        register()
        check_lfs(checkpoint)
        state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint), overrides := {"data": str(data)})
        if not state.get("cfg"):
            raise ValueError(f"{checkpoint} has weights and no settings of a training: train with it first")
        (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides, state=state)
        folder = ModelFolder.open(checkpoint) if is_model_folder(checkpoint) else None
        return cls(model, cfg, task, int(state["optimizer_history"][-1]["num_updates"]), data, folder)

    @property
    def network(self) -> str:
        """Returns the registered name of the model."""
        from fairseq.models import MODEL_REGISTRY

        return next(name for name, known in MODEL_REGISTRY.items() if known is type(self.model))

    @property
    def longest(self) -> Any:
        """Returns the longest input, of a model that writes texts with the longest output."""
        return self.model.max_positions()

    @property
    def has_mask(self) -> bool:
        return "<mask>" in self.task.source_dictionary

    def state(self) -> dict[str, Tensor]:
        """Returns the weights and the fingerprints of dictionaries under their names in a checkpoint."""
        return dict(self.model.state_dict())

    @property
    def writes_texts(self) -> bool:
        return hasattr(self.model, "decoder")

    def description(self) -> dict[str, Any]:
        """Returns what `networks.build` builds from, of a network of this package."""
        positions, roles = self.positions, self.model.state_dict().get(ROLES, ())
        words = self.task.target_dictionary if self.writes_texts else self.task.source_dictionary
        return {
            "vocab_size": len(words),
            "network": self.network,
            "settings": self.settings,
            "heads": self.heads,
            "source_vocab_size": len(self.task.source_dictionary),
            "num_roles": len(roles),
            **dict(zip(("max_source_positions", "max_target_positions"), positions, strict=False)),
        }

    @property
    def training_only(self) -> tuple[str, ...]:
        """Returns the names of the settings of the model that belong to its training, such as a file that is kept."""
        return getattr(self.config, "training_only", ())

    @property
    def config(self) -> Any:
        """Returns the configuration of the network; None for a model of fairseq itself."""
        return getattr(self.model, "config", None)

    @property
    def settings(self) -> dict[str, Any]:
        """Returns the configuration of the model as JSON has it."""
        dropped = self.training_only
        values = {n: value for n, value in asdict(self.config).items() if not n.startswith("_") and n not in dropped}
        return {name: v if v is None or isinstance(v, bool | int | float) else str(v) for name, v in values.items()}

    @property
    def positions(self) -> tuple[int, ...]:
        """Returns the longest source, `</s>` included, and the longest target if there are targets."""
        if self.writes_texts:
            return self.model.encoder.max_positions(), self.model.decoder.max_positions()
        return (min(self.model.max_positions(), getattr(self.task.cfg, "max_positions", None) or 2**31),)

    @property
    def heads(self) -> dict[str, dict[str, Any]]:
        """Returns what each classification head is about, its number of classes, its width and its labels."""
        levels = self.task.heads() if hasattr(self.task, "heads") else {}
        labels = getattr(self.task, "labels", None) or []
        if labels and self.folder:
            labels = self.folder.labels(labels)
        heads: dict[str, dict[str, Any]] = {}
        for name, head in getattr(self.model, "classification_heads", {}).items():
            output = head.linear if head.out_proj is None else head.out_proj  # labels of units without layers
            level, classes = levels.get(name, ("document",))[0], len(output.weight)
            heads[name] = {
                "level": level,
                "classes": classes,
                "inner_dim": len(head.dense.weight) if hasattr(head, "dense") else None,
            }
            if len(labels) == classes:
                heads[name]["labels"] = labels
        return heads

    def recorded(self) -> dict[str, Any]:
        """Returns the settings of the training as the folder has them."""
        sections = {name: self.cfg[name] for name in ("task", "model", "criterion")}
        namespaces = [name for name, section in sections.items() if isinstance(section, Namespace)]
        recorded = {name: portable(section) for name, section in sections.items()}
        recorded["model"] = {n: value for n, value in recorded["model"].items() if n not in self.training_only}
        return {"namespaces": namespaces, "cfg": recorded}


@dataclass(frozen=True)
class Packaged(Trained):
    """A whole folder of `hat export`, which is written again without fairseq.

    Attributes:
        fingerprints: tensors by name, of the dictionaries.
    """

    folder: ModelFolder
    fingerprints: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: ModelFolder) -> Self:
        """Builds the network of a folder; ValueError for files that have changed."""
        tensors, sections = folder.tensors(), folder.part("cfg")
        cfg = {name: Namespace(**sections.get(name, dict)) for name in ("task", "model", "criterion")}
        fingerprints = {name: tensors.pop(name) for name in [*tensors] if name.endswith(FINGERPRINT)}
        try:
            model = build(without_training(folder.description or {}))
            fill(model, tensors)
        except BUILDING as error:
            raise folder.no_model(error) from error
        return cls(model, cfg, None, folder.origin.get("updates", int), folder.data, folder, fingerprints)

    @property
    def network(self) -> str:
        return str(self.stated()["network"])

    @property
    def config(self) -> Any:
        return NETWORKS[self.network].from_args(Namespace(**self.stated()["settings"]))

    @property
    def longest(self) -> Any:
        return self.positions if self.writes_texts else self.model.core.max_tokens

    @property
    def has_mask(self) -> bool:
        return Fields.read(self.folder.path / TOKENIZER).record.get("has_mask") is True

    @property
    def positions(self) -> tuple[int, ...]:
        stated = self.stated()
        return tuple(stated[f"max_{side}_positions"] for side in ("source", "target")[: 1 + self.writes_texts])

    def stated(self) -> dict[str, Any]:
        """Returns the description in config.json as it is there."""
        config = self.folder.config
        stated = config.get("description", dict) if "description" in config else config.record
        return {name: value for name, value in stated.items() if name in DESCRIPTION}

    def description(self) -> dict[str, Any]:
        return self.stated() | {"settings": self.settings}

    def state(self) -> dict[str, Tensor]:
        return {**self.model.state_dict(), **self.fingerprints}

    def recorded(self) -> dict[str, Any]:
        own = {name: dict(vars(section)) for name, section in self.cfg.items()}
        own["model"] = {name: value for name, value in own["model"].items() if name not in self.training_only}
        return {"namespaces": list(self.folder.origin.texts("namespaces")), "cfg": own}


def is_whole(folder: ModelFolder) -> bool:
    """Returns whether a folder is as `hat export` wrote it, with a network of this package."""
    as_written = (folder.path / MANIFEST).is_file() and SAVED_BY_TRANSFORMERS not in folder.config
    return as_written and bool(folder.origin.record) and folder.description is not None


def portable(section: Any) -> dict[str, Any]:
    """Returns settings as plain data, without paths of this machine."""
    plain: Any = vars(section)
    if not isinstance(section, Namespace):
        from omegaconf import OmegaConf

        plain = OmegaConf.to_container(section, resolve=True, enum_to_str=True)
    return {name: value for name, value in plain.items() if name != "data" and not str(value).startswith("/")}
