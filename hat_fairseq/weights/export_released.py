"""`hat export` of a hierarchical_transformer: a Hugging Face folder for the code of Chalkidis et al. 2022.

The folder has `config.json`, the weights under the released names, and with `--data` the labels and, for GPT-2's BPE,
the vocabulary. A model for which the authors' code would compute something else is refused; a difference that does not
concern your documents can be accepted by its name. How to call their code is printed.
"""

import argparse
import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.labels import read_label_dictionary
from ..data.outputs import atomic_directory
from .command import ARCHITECTURE
from .hugging_face import write_weights
from .released_hat import HEAD, released_config, to_hugging_face
from .released_hat_differences import CLASSES, check_expressible, instructions, refuse_differences
from .vocabulary import vocabulary_files

HEADS = "classification_heads."
TASKS = {  # what the head of a task is about
    "document_classification": "document",
    "sentence_prediction": "document",
    "multiple_choice": "choice",
    "sentence_ranking": "choice",
    "segment_classification": "segment",
    "token_classification": "token",
    "question_answering": "token",
}


def export(args: argparse.Namespace, checkpoint: dict[str, Any]) -> None:
    """Writes the folder and prints how to call the authors' code."""
    state, values, head = read_settings(checkpoint, args.path)
    state = with_one_head(state, head)
    check_expressible(values, head)
    accepted = refuse_differences(values, head, args.accept)
    tensors = to_hugging_face(state, values["max_segments"], values["segment_length"], pooled=head != "segment")
    table = state["encoder.embed_tokens.weight"]
    config = released_config(values, len(table))
    config |= {"architectures": [CLASSES[head]], "torch_dtype": str(table.dtype)[6:]}
    if head in ("document", "segment"):
        labels = labels_of(args.data, state, len(tensors["classifier.weight"]))
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    files, note = vocabulary_files(args.data, state, config["model_max_length"])
    write_folder(args.out, tensors, {"config.json": json.dumps(config, indent=2) + "\n", **files}, args.format)
    parameters = {t.data_ptr(): t.numel() for name, t in state.items() if not name.endswith("_fingerprint")}
    print(f"wrote {args.out}: {len(tensors)} tensors, {sum(parameters.values()):,} parameters")
    print("\n".join([*accepted, *instructions(values, head), note]))


def read_settings(checkpoint: dict[str, Any], path: Path) -> tuple[dict[str, Tensor], dict[str, Any], str | None]:
    """Returns state, settings, and what the head is about (None: words); ValueError for a task that is not known."""
    from ..models.segment_encoder import HierarchicalTransformerConfig

    cfg = checkpoint.get("cfg")
    model, task = (cfg["model"], cfg["task"]) if cfg else (checkpoint[ARCHITECTURE], checkpoint[ARCHITECTURE])
    model, task = (part if isinstance(part, Namespace) else Namespace(**part) for part in (model, task))
    settings = asdict(HierarchicalTransformerConfig.from_args(model))
    values = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in settings.items()}
    state = {name: tensor for name, tensor in checkpoint["model"].items() if isinstance(tensor, Tensor)}
    if not any(name.startswith(HEADS) for name in state):
        return state, values, None
    kind = getattr(task, "_name", None) or getattr(task, "task", None)
    if kind not in TASKS:
        raise ValueError(f"{path}: what the head of task {kind} is about is not known; known are {', '.join(TASKS)}")
    return state, values, TASKS[kind]


def with_one_head(state: dict[str, Tensor], head: str | None) -> dict[str, Tensor]:
    """`state` with its one classification head called `HEAD`.

    Raises:
        ValueError: several heads, or one of other sizes than theirs.
    """
    names = sorted({name.split(".")[1] for name in state if name.startswith(HEADS)})
    if len(names) > 1:
        raise ValueError(f"{len(names)} classification heads ({', '.join(names)}), and the authors' classes have one")
    if head is None:
        return state
    width, inner = state["encoder.embed_tokens.weight"].size(1), len(state[f"{HEADS}{names[0]}.dense.weight"])
    if inner != width:
        raise ValueError(f"the head is {inner} wide inside; the authors' are as wide as the model, {width}")
    return {name.replace(f"{HEADS}{names[0]}.", f"{HEADS}{HEAD}."): tensor for name, tensor in state.items()}


def labels_of(data: Path | None, state: dict[str, Tensor], num_classes: int) -> list[str]:
    """Names of the classes in order: those of `data`, or numbered ones.

    Raises:
        ValueError: `data` has other labels than the checkpoint's head, or another number of them.
    """
    from fairseq.data import Dictionary

    from ..models.fingerprint import fingerprint
    from ..models.loading.common import LABELS

    path = None if data is None else data / "label" / "dict.txt"
    if path is None or not path.is_file():
        return [f"LABEL_{number}" for number in range(num_classes)]
    labels = [label for label in read_label_dictionary(path) if not label.startswith("madeupword")]
    if len(labels) != num_classes:
        raise ValueError(f"{path} has {len(labels)} labels, the head {num_classes} classes")
    expected = next((tensor for name, tensor in state.items() if name.endswith(LABELS)), None)
    if expected is not None and not expected.equal(fingerprint(Dictionary.load(str(path)))):
        raise ValueError(f"{path} has other labels than the checkpoint, or in another order")
    return labels


def write_folder(out: Path, tensors: dict[str, Tensor], files: dict[str, str], weights_format: str | None) -> None:
    with atomic_directory(out, "config.json") as folder:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        if weights_format == "bin":
            torch.save(tensors, folder / "pytorch_model.bin")
        else:
            write_weights(folder, tensors)
