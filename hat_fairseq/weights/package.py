"""Write a trained model as one folder, for all commands and for `hat_fairseq.load` (docs/using.md)."""

import argparse
import re
import shutil
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from omegaconf import OmegaConf
from torch import Tensor

import hat_fairseq

from ..data.files import json_text, parse_object, read_json
from ..data.outputs import atomic_directory
from ..data.pipeline import TextPipeline
from ..generation.options import parse_generation_options
from ..networks import NETWORKS
from ..networks.evidence import UNLIMITED
from ..package_files import BIN, CARD, CONFIG, GENERATION, MANIFEST, describe_files, is_package
from .hugging_face import write_weights

ROLES = "encoder.embed_segments.weight"
SHOWN = ("max_source_tokens", "long_source", "source_language", "max_target_tokens", "target_language")
FLAGS = {  # of fairseq-train in the model card, with the place of each in the settings of a training
    "criterion": ("criterion", "_name"),
    "optimizer": ("optimizer", "_name"),
    "lr-scheduler": ("lr_scheduler", "_name"),
    "lr": ("optimization", "lr"),
    "warmup-updates": ("lr_scheduler", "warmup_updates"),
    "batch-size": ("dataset", "batch_size"),
    "max-tokens": ("dataset", "max_tokens"),
    "update-freq": ("optimization", "update_freq"),
    "distributed-world-size": ("distributed_training", "distributed_world_size"),
    "seed": ("common", "seed"),
}


@dataclass(frozen=True)
class Trained:
    """A model that is to be packaged or exported.

    Attributes:
        data: its bin directory.
    """

    model: Any
    cfg: Any
    task: Any
    updates: int
    data: Path

    @classmethod
    def load(cls, checkpoint: Path, data: Path) -> "Trained":
        """Loads a checkpoint with its data; ValueError without settings, or for data not its own."""
        from fairseq import checkpoint_utils

        from ..register import register

        register()
        state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint), overrides := {"data": str(data)})
        if not state.get("cfg"):
            raise ValueError(f"{checkpoint} has weights and no settings of a training: train with it first")
        (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides, state=state)
        return cls(model, cfg, task, int(state["optimizer_history"][-1]["num_updates"]), data)

    @property
    def network(self) -> str:
        """Returns the registered name of the model."""
        from fairseq.models import MODEL_REGISTRY

        return next(name for name, known in MODEL_REGISTRY.items() if known is type(self.model))

    def description(self) -> dict[str, Any]:
        """Returns what `networks.build` builds from; ValueError for a model of another package."""
        if self.network not in NETWORKS:
            raise ValueError(f"the model is a {self.network}: it cannot be exported; {', '.join(NETWORKS)} can")
        positions, roles = self.positions, self.model.state_dict().get(ROLES, ())
        words = self.task.target_dictionary if len(positions) == 2 else self.task.source_dictionary
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
    def settings(self) -> dict[str, Any]:
        """Returns the numbers of the model as JSON has them."""
        config = self.model.config
        left_out = getattr(config, "training_only", ())
        values = {n: value for n, value in asdict(config).items() if not n.startswith("_") and n not in left_out}
        return {name: v if v is None or isinstance(v, bool | int | float) else str(v) for name, v in values.items()}

    @property
    def positions(self) -> tuple[int, ...]:
        """Returns the longest source, `</s>` included, and the longest target if there are targets."""
        if hasattr(self.model, "decoder"):
            return self.model.encoder.max_positions(), self.model.decoder.max_positions()
        return (min(self.model.max_positions(), getattr(self.task.cfg, "max_positions", None) or 2**31),)

    @property
    def heads(self) -> dict[str, dict[str, Any]]:
        """Returns what each classification head is about, its number of classes, its width and its labels."""
        levels = self.task.heads() if hasattr(self.task, "heads") else {}
        labels = getattr(self.task, "labels", None) or []
        heads: dict[str, dict[str, Any]] = {}
        for name, head in getattr(self.model, "classification_heads", {}).items():
            level, classes = levels.get(name, ("document",))[0], len(head.out_proj.weight)
            heads[name] = {
                "level": level,
                "classes": classes,
                "inner_dim": len(head.dense.weight) if hasattr(head, "dense") else None,
            }
            if len(labels) == classes:
                heads[name]["labels"] = labels
        return heads

    def recorded(self) -> dict[str, Any]:
        """Returns the settings of the training as `config.json` has them."""
        sections = {name: self.cfg[name] for name in ("task", "model", "criterion")}
        namespaces = [name for name, section in sections.items() if isinstance(section, Namespace)]
        return {"namespaces": namespaces, "cfg": {name: portable(section) for name, section in sections.items()}}


def portable(section: Any) -> dict[str, Any]:
    """Returns settings as plain data, without paths of this machine."""
    plain: Any = vars(section)
    if not isinstance(section, Namespace):
        plain = OmegaConf.to_container(section, resolve=True, enum_to_str=True)
    return {name: value for name, value in plain.items() if name != "data" and not str(value).startswith("/")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path, help="checkpoint of a training")
    parser.add_argument("--data", type=Path, required=True, metavar="BIN", help="bin directory that it was trained on")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    defaults = "fairseq generation options as JSON, e.g. '{\"beam\": 4}', for those who give none"
    parser.add_argument("--generation", default="{}", metavar="JSON", help=defaults)
    parser.add_argument("--score", type=Path, metavar="FILE", help="output of hat score --json, for the model card")
    fields = 'fields of the front matter of the model card as JSON, e.g. \'{"license": "mit"}\'; they win'
    parser.add_argument("--card", default="{}", metavar="JSON", help=fields)
    parser.add_argument("--half", action="store_true", help="store fp16, half as large; models still compute in fp32")
    parser.add_argument("--overwrite", action="store_true", help="replace a folder of this command")


def main(args: argparse.Namespace) -> int:
    """Loads a checkpoint with its data, and writes the folder."""
    generation = parse_generation_options(args.generation, "--generation")
    chosen = parse_object(args.card, "--card")
    scores = as_json(read_json(args.score)) if args.score else None
    TextPipeline.load(args.data)  # an error there comes before the long steps
    if args.out.exists() and not is_package(args.out):
        raise ValueError(f"--out {args.out} exists and is no folder of hat package; choose another directory")
    with atomic_directory(args.out, MANIFEST, args.overwrite) as folder:
        trained = Trained.load(args.checkpoint, args.data)
        if generation and not hasattr(trained.model, "decoder"):
            raise ValueError("--generation is for models that write texts; remove it")
        parameters = write_package(folder, args.out.resolve().name, trained, args.half, generation, chosen, scores)
    print(f"wrote {args.out}: {parameters}")
    return 0


def write_package(
    folder: Path,
    name: str,
    trained: Trained,
    half: bool = False,
    generation: dict[str, Any] | None = None,
    chosen: dict[str, Any] | None = None,
    scores: str | None = None,
) -> str:
    """Writes the files of a package; returns how many parameters the model has, and in which precision.

    Args:
        name: of the model, in its card.
        half: store fp16.
        generation: fairseq's options for those who give none.
        chosen: fields of the front matter of the card, which win.
        scores: for the card.
    """
    model, cfg, pipeline = trained.model, trained.cfg, TextPipeline.load(trained.data)
    tied = write_state(folder, model.state_dict(), half)
    config = {"updates": trained.updates, "tied": tied} | trained.recorded()
    if trained.network in NETWORKS:
        config["description"] = trained.description()
    for path in [*trained.data.glob("dict*.txt"), *trained.data.glob("*/dict.txt")]:
        copy = folder / BIN / path.relative_to(trained.data)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    pipeline.save(folder / BIN)
    names = SHOWN if pipeline.kind.has_target else SHOWN[: 3 if pipeline.kind.is_text else 2]
    facts = {
        "architecture, task": f"{cfg['model']._name}, {cfg['task']._name}",
        "parameters": f"{sum(each.numel() for each in model.parameters()):,} in {'fp16' if half else 'fp32'}",
        "updates": f"{trained.updates:,}",
        "longest input and output": "any" if model.max_positions() == UNLIMITED else model.max_positions(),
        **{name.replace("_", " "): getattr(pipeline.settings, name) for name in names},
        "trained on": trained_on(trained.data.resolve().with_name("manifest.json")),
        "trained with": trained_with(cfg),
        "written by": f"hat_fairseq {hat_fairseq.__version__}",
    }
    (folder / CONFIG).write_text(as_json(config), encoding="utf-8")
    (folder / GENERATION).write_text(as_json(generation or {}), encoding="utf-8")
    front = front_matter(pipeline, [trained.network, cfg["task"]._name], chosen or {})
    (folder / CARD).write_text(front + card(name, facts, scores), encoding="utf-8")
    (folder / MANIFEST).write_text(as_json(describe_files(folder)), encoding="utf-8")
    return str(facts["parameters"])


def write_state(folder: Path, state: dict[str, Tensor], half: bool) -> dict[str, str]:
    """Writes each tensor once, and returns for each other name of it the one under which it is written."""
    names, tensors = first_names(state), dict[str, Tensor]()
    for name in dict.fromkeys(names.values()):
        tensor = state[name]
        tensors[name] = tensor.half() if half and tensor.is_floating_point() else tensor
        if not torch.equal(tensors[name].isfinite(), tensor.isfinite()):
            raise ValueError(f"{name} has numbers up to {float(tensor.abs().max()):g}, too large for fp16: no --half")
    write_weights(folder, tensors)
    return {name: first for name, first in names.items() if first != name}


def first_names(state: dict[str, Tensor]) -> dict[str, str]:
    """Returns for each name the first one of the same tensor; tied weights have several."""
    first = dict[Any, str]()
    return {
        name: first.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name)
        for name, tensor in state.items()
    }


def as_json(value: Any) -> str:
    return json_text(value, indent=1) + "\n"


def trained_on(path: Path) -> str | None:
    """Returns the reader and the numbers of documents that a manifest of `hat preprocess` names; None without one."""
    if not path.is_file():
        return None
    manifest = read_json(path)
    counts = (f"{name} {split['documents']:,}" for name, split in manifest["splits"].items())
    return f"{Path(manifest['reader']).name}; documents: {', '.join(counts)}"


def trained_with(cfg: Any) -> str | None:
    """Returns the flags of a training in its settings; None if it records none."""
    flags = []
    for flag, (section, name) in FLAGS.items():
        value = getattr(cfg.get(section), name, None)
        if value is not None:
            text = value if isinstance(value, str | int | float) else ",".join(map(str, value))
            flags.append(f"--{flag} {text}")
    return f"`{' '.join(flags)}`" if flags else None


def front_matter(pipeline: TextPipeline, tags: list[str], chosen: dict[str, Any]) -> str:
    """Returns the head of README.md that the Hugging Face Hub reads; fields that are unknown are left out."""
    kind, settings = pipeline.kind, pipeline.settings
    languages = [settings.source_language] if kind.is_text else []
    if kind.has_target and settings.target_language != settings.source_language:
        languages.append(settings.target_language)
    fields = {
        "language": languages,
        "library_name": "hat_fairseq",
        "pipeline_tag": "translation" if len(languages) > 1 else kind.hub_task,
        "tags": tags,
        **chosen,
    }
    known = {name: value for name, value in fields.items() if value}
    return f"---\n{yaml.safe_dump(known, sort_keys=False, allow_unicode=True)}---\n\n"


def card(name: str, facts: dict[str, Any], scores: str | None) -> str:
    """Returns the text of README.md; of files of this machine that have scores, the names are enough."""
    rows = "".join(f"| {what} | {value} |\n" for what, value in facts.items() if value is not None)
    use = f'`hat_fairseq.load("{name}")` in Python, or a checkpoint for the commands of hat_fairseq.'
    text = f"# {name}\n\n{use}\n\n| | |\n|---|---|\n{rows}"
    if scores is None:
        return text
    return text + "\nScores:\n\n```\n" + re.sub(r'(?<=")/[^"]*/', "", scores) + "```\n"
