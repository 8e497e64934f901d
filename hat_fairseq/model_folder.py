"""The folder of a model: `hat export` writes it, every command and transformers' `from_pretrained` read it.

config.json, model.safetensors      the network and its weights; modeling_hat.py finds the classes of this package
generation_config.json              of a model that writes texts, how it generates
bin                                 the data's dictionaries, pipeline and BPE, for which tokenizer_config.json is
hat_fairseq.json                    the training: its settings, the fingerprints of its dictionaries, names of tensors
README.md, manifest.json            the model card; the size and the SHA-256 of each file

Read are also folders that transformers saved.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self

from hat_fairseq.data.checksums import MANIFEST, Checksums
from hat_fairseq.data.dictionary import find_dictionary, read_labels
from hat_fairseq.data.files import Fields, check_lfs
from hat_fairseq.former import todays, todays_name

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, CONFIG = "model.safetensors", "config.json"
SHARDS = f"{WEIGHTS}.index.json"  # which tensor is in which file, of weights in several
ORIGIN, GENERATION, CARD, BIN = "hat_fairseq.json", "generation_config.json", "README.md", "bin"
#: What git, the Hub, and Python (which pip lets compile `modeling_hat.py`) put beside the files; nothing reads it here.
OF_HUB = (".git", ".gitattributes", ".cache", "__pycache__")
KEYS = ("updates", "namespaces", "cfg", "names", "fingerprints", "generation")  # of ORIGIN
#: What `networks.build` takes, with the defaults of `hf.HatConfig`, which are not in the file.
DESCRIPTION = {"network": "", "settings": {}, "vocab_size": 0, "source_vocab_size": None, "num_roles": 0, "heads": {}}
DESCRIPTION |= {"max_source_positions": 1024, "max_target_positions": 1024}
FINGERPRINT = "_fingerprint"  # the end of the names of tensors that say which dictionary it was
# RoBERTa of transformers has a row that is added to each position.
TYPES, POSITIONS = "roberta.embeddings.token_type_embeddings.weight", "encoder.sentence_encoder.embed_positions.weight"
PIPELINE = "pipeline.json"  # which version 0.5 wrote beside config.json
MODEL_TYPE, LOADER = "hat", Path(__file__).with_name("hf") / "modeling_hat.py"
CLASSES = {  # class of transformers -> of this package
    "AutoConfig": "HatConfig",
    "AutoModel": "HatModel",
    "AutoModelForMaskedLM": "HatForMaskedLM",
    "AutoModelForMultipleChoice": "HatForMultipleChoice",
    "AutoModelForQuestionAnswering": "HatForQuestionAnswering",
    "AutoModelForSeq2SeqLM": "HatForConditionalGeneration",
    "AutoModelForSequenceClassification": "HatForSequenceClassification",
    "AutoModelForTokenClassification": "HatForTokenClassification",
}
AUTO_MAP = {name: f"{LOADER.stem}.{own}" for name, own in CLASSES.items()}
TOKENIZER, TOKENIZER_MAP = "tokenizer_config.json", {"AutoTokenizer": (f"{LOADER.stem}.HatTokenizer", None)}
SAVED_BY_TRANSFORMERS = "transformers_version"  # a key of config.json
OTHER_PROBLEMS = ("regression", "multi_label_classification")  # values of problem_type without one label of several
#: What a description or weights that do not fit end in where a network is built.
BUILDING = AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError


def is_model_folder(path: str | Path) -> bool:
    """Returns whether it is a folder with a model, or what is left of one."""
    return any((Path(path) / name).is_file() for name in (WEIGHTS, SHARDS, CONFIG))


@dataclass(frozen=True)
class ModelFolder:
    """What a folder says of its model.

    Attributes:
        config: config.json.
        origin: ORIGIN; empty of a model that transformers trained alone.
    """

    path: Path
    config: Fields
    origin: Fields

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Reads config.json and ORIGIN; ValueError for one that is missing or damaged, and for a pointer of Git LFS."""
        path = Path(path)
        for file in sorted([*path.glob("*"), *path.glob(f"{BIN}/**/*")]):
            check_lfs(file)
        config = Fields.read(path / CONFIG)
        if "cfg" in config or (path / PIPELINE).is_file():
            raise ValueError(f"{path} was written by version 0.5: export the checkpoint again with hat export")
        return cls(path, config, Fields.read(path / ORIGIN, KEYS, optional=True))

    @cached_property
    def description(self) -> dict[str, Any] | None:
        """Returns what `networks.build` takes; None of what is no network of this package."""
        of_other_class = "description" in self.config
        stated = self.config.get("description", dict) if of_other_class else self.config.record
        if "network" not in stated:
            return None
        description = {name: stated.get(name, default) for name, default in DESCRIPTION.items()}
        description["settings"] = todays(description["network"], description["settings"])
        description["network"] = todays_name(description["network"])
        if of_other_class and SAVED_BY_TRANSFORMERS in self.config:  # whose class does not know the description
            heads, classes = Fields(description["heads"], f"{self.config.where}: heads"), len(self._names()) or 2
            description["heads"] = {name: {**heads.get(name, dict), "classes": classes} for name in heads.record}
        return description

    def _names(self) -> list[str]:
        """Returns the names of classes in config.json; transformers leaves them out if they are `LABEL_0, LABEL_1`."""
        names = self.config.get("id2label", dict) if self.config.record.get("id2label") else {}
        return [str(names.get(str(number))) for number in range(len(names))]

    @property
    def head(self) -> dict[str, Any]:
        """Returns the only head of the description; an empty one where there is none, or several."""
        heads = (self.description or {}).get("heads")
        only = next(iter(heads.values())) if isinstance(heads, dict) and len(heads) == 1 else None
        return only if isinstance(only, dict) and isinstance(only.get("classes"), int) else {}

    def labels(self, trained: Sequence[str]) -> list[str]:
        """Returns the names of the classes of the only head: those of config.json, else those of the training.

        transformers changes the former. Its `LABEL_0` and so on say nothing, unless there are no others.

        Args:
            trained: the labels of the dictionary.
        """
        if not self.head:
            return list(trained)
        classes = self.head["classes"]
        default = [f"LABEL_{number}" for number in range(classes)]
        for names in (self._names(), list(trained)):
            if len(names) == classes and names != default:
                return names
        return default

    def check_has_classes(self, names_labels: bool) -> None:
        """Raises ValueError for a head about documents whose logits are not those of labels with a name each.

        Args:
            names_labels: the kind of data has a logit for each label.
        """
        head, problem = self.head, self.config.record.get("problem_type")
        if head.get("level") != "document":
            return
        if problem is None and names_labels and head["classes"] == 1 and len(self.trained_labels()) != 1:
            problem = "regression"  # which num_labels=1 means in transformers
        if problem in OTHER_PROBLEMS:
            raise ValueError(
                f"{self.path}: its problem_type is {problem}, and hat_fairseq predicts one of several labels: load it "
                "with transformers, AutoModelForSequenceClassification"
            )
        names = self.labels(self.trained_labels()) if names_labels else []
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"{self.path / CONFIG}: id2label has {twice[0]!r:.80} twice; give each class its own name")

    def trained_labels(self) -> list[str]:
        """Reads the labels of the dictionary of the training; none without one."""
        path = find_dictionary(self.data, "label")
        return read_labels(path) if path else []

    @property
    def data(self) -> Path:
        return as_bin(self.path)

    def part(self, name: str) -> Fields:
        """Returns an object of `origin`; an empty one without it."""
        return Fields(self.origin.record.get(name, {}), f"{self.origin.where}: {name}")

    def no_model(self, error: Exception) -> ValueError:
        """Returns the error for a folder whose network cannot be built."""
        cause = f"{type(error).__name__}: {' '.join(str(error).split()):.400}"
        return ValueError(f"{self.path}: no model can be built from it ({cause})")

    def tensors(self) -> dict[str, Tensor]:
        """Reads the weights under all names that they have in a checkpoint, and the fingerprints.

        ValueError for any file of the folder that is missing, or has changed since its manifest was written.
        """
        import torch

        if (self.path / MANIFEST).is_file():
            check_files(self.path)
        stored, names = read_weights(self.path), self.part("names").record
        if (bias := stored.pop("final_logits_bias", None)) is not None and bool(bias.any()):
            raise ValueError(f"{self.path}: final_logits_bias is not zero, and our BART has no bias on its output")
        types, renamed = stored.pop(TYPES, None), {}
        for name, other in names.items():
            if not isinstance(other, str):
                raise self.origin.error(f"{name!r} cannot be tied to {other!r:.80}")
            if other in stored:  # else the head is another one now
                renamed[name] = stored[other]
        tensors = {name: tensor for name, tensor in stored.items() if name not in names.values()} | renamed
        if types is not None and bool(types.any()):  # trained further: every token has this row
            tensors[POSITIONS] = tensors[POSITIONS] + types
        fingerprints = self.part("fingerprints")
        for name in fingerprints.record:
            if not name.endswith(FINGERPRINT):
                raise fingerprints.error(f"{name!r:.80} is no fingerprint")
            tensors[name] = torch.tensor(fingerprints.items(name, int))
        return tensors


def as_bin(folder: Path) -> Path:
    """Returns the `bin` of a folder, or the folder, of a tokenizer that transformers saved."""
    return folder / BIN if (folder / BIN).is_dir() else folder


def write_loader(folder: str | Path) -> None:
    """Puts the file into a folder with which `trust_remote_code=True` finds this package."""
    shutil.copyfile(LOADER, Path(folder, LOADER.name))


def check_files(folder: Path) -> None:
    """Compares a folder with its manifest; ValueError for a file too few or too many, changed, or outside of it."""
    if not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder / MANIFEST} is missing: not a whole folder of hat export; copy it again")
    fields = Fields.read(folder / MANIFEST, ("files", "sha256"))
    sizes, hashes = fields.get("files", dict), fields.get("sha256", dict)
    for name in sizes:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise fields.error(f"refused, because it names {name!r}, which is outside of the folder")
    way_out = f"if transformers has saved into the folder, remove {MANIFEST}"
    for path in sorted(folder.rglob("*")):
        if path.relative_to(folder).parts[0] in OF_HUB:
            continue
        if is_foreign_link(path, folder) or not (path.is_dir() or str(path.relative_to(folder)) in {MANIFEST, *sizes}):
            raise ValueError(f"{path} is a link, or not in {MANIFEST}: remove it; {way_out}")
    for name, problem in Checksums(hashes, sizes).problems(folder, sizes):
        raise ValueError(f"{folder / name} {problem}; copy the folder again; {way_out}")


def is_foreign_link(path: Path, folder: Path) -> bool:
    """Returns whether it is a link, unless it is one of the Hugging Face Hub's cache, from a snapshot to its blobs."""
    caches = (parent.parent for parent in folder.absolute().parents if parent.name == "snapshots")
    return path.is_symlink() and path.resolve().parent not in [cache.resolve() / "blobs" for cache in caches]


def check_links(folder: Path) -> None:
    """Raises ValueError for a link: what it leads to is no part of the model, and may be private."""
    for path in sorted([*folder.glob("*"), *folder.glob("*/*"), *folder.glob(f"{BIN}/*/*")]):
        is_read = path.relative_to(folder).parts[0] not in OF_HUB and path.suffix not in (".bin", ".idx")
        if is_read and is_foreign_link(path, folder):
            raise ValueError(f"{path} is a link, which is not followed: copy the file to its place, or remove the link")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file; ValueError that names it if it is damaged, or a pointer of Git LFS."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    check_lfs(path)
    try:
        return load_file(path)
    except (SafetensorError, LookupError, RuntimeError, TypeError) as error:  # also of types that torch lacks
        raise ValueError(f"{path} is not a complete safetensors file: {error}; copy it again") from error


def read_weights(
    folder: Path, file: str = WEIGHTS, read: Callable[[Path], dict[str, Tensor]] = read_tensors
) -> dict[str, Tensor]:
    """Reads `file`, also in shards; ValueError for a file or a tensor that is missing or damaged."""
    if not (index := folder / f"{file}.index.json").is_file() or (folder / file).is_file():
        if not (folder / file).is_file():
            raise ValueError(f"{folder / file} is missing; copy the folder again")
        return read(folder / file)
    names = Fields.read(index).get("weight_map", dict)
    weights: dict[str, Tensor] = {}
    for name in sorted({*map(str, names.values())}):
        if Path(name).name != name or not (path := index.parent / name).is_file():
            raise ValueError(f"{index} names the file {name!r:.80}, which is not beside it; fetch all shards")
        weights |= read(path)
    if missing := sorted(names.keys() - weights.keys()):
        raise ValueError(f"{index}: {len(missing)} tensors are in none of its files: {', '.join(missing[:8])}")
    return weights


def bare_checkpoint(model: dict[str, Any], cfg: Any = None, updates: int = 0) -> dict[str, Any]:
    """Returns the least that fairseq reads of a checkpoint: the weights, epoch 1 and no optimizer state."""
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": updates}
    return {
        "args": None,
        "cfg": cfg,
        "model": model,
        "optimizer_history": [history],
        "last_optimizer_state": None,
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
