"""`hat export` of a hierarchical_transformer: a Hugging Face folder for the code of Chalkidis et al. 2022.

The folder has `config.json`, the weights under the released names, and with `--data` the labels and, for GPT-2's BPE,
the vocabulary. Settings that no class of theirs has are refused. A difference on some documents is refused unless it is
accepted by its name. Everything else is a matter of how their model is called, and is printed.
"""

import argparse
import json
from argparse import Namespace
from collections.abc import Mapping
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
from .vocabulary import vocabulary_files

CLASSES = {  # what a head is about -> their class
    None: "HATForMaskedLM",
    "document": "HATForSequenceClassification",
    "segment": "HATModelForSequentialSentenceClassification",
    "choice": "HATForMultipleChoice",
}
LAST = 128  # their pooling `last` reads this token, counted from the end, whatever the length of a segment
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
    """`state` with its one classification head called `HEAD`; ValueError for several heads, or for other sizes."""
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
    """Names of the classes in order: those of `data`, or numbered ones; ValueError if the head has others."""
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


def check_expressible(values: Mapping[str, Any], head: str | None) -> None:
    """ValueError for settings that no class of theirs has; `head`: what the head is about, None for words."""
    if head not in CLASSES:
        raise ValueError(f"a head of each {head}: the authors' classes for it cannot be constructed")
    if str(values["activation_fn"]) != "gelu":
        raise ValueError(f"--activation-fn {values['activation_fn']}: the authors' code has gelu only; train with it")
    pooling = str(values["pooling"])
    reads_last = pooling == "last" and values["segment_length"] != LAST
    if head in ("document", "choice") and (pooling == "mean" or reads_last):
        why = f"reads the token {LAST} from the end" if reads_last else "does not exist"
        raise ValueError(
            f"--pooling {pooling}: in the authors' code it {why}; train the head with --pooling max, attentive or first"
        )


def refuse_differences(values: Mapping[str, Any], head: str | None, accepted: list[str]) -> list[str]:
    """The accepted differences between their code and ours, for documents on which they compute something else.

    ValueError for another difference, with how to avoid it; or an accepted name that is none.
    """
    found, length = {}, values["segment_length"]  # name -> what is lost and how to avoid it
    if str(values["segment_by"]) == "marker":
        found["segment-by"] = (
            f"their model cuts after every {length} tokens, not at <s>: train with --segment-by length; or pad each "
            f"segment to {length} tokens before the model, as their tokenizer does with given segments"
        )
    elif head == "segment":
        found["segment-by"] = (
            f"their head reads the first of every {length} tokens, ours every <s>: train with --segment-by marker; or "
            f"have a <s> after every {length} tokens and nowhere else"
        )
    if head in ("document", "choice") and values["pooling"] != "first" and not values["pool_padded_segments"]:
        found["pool-padded-segments"] = (
            "their pooling also reads the segments beyond a document's end: train the head with "
            "--pool-padded-segments; or give their model documents of equally many segments in a batch"
        )
    if surplus := sorted(set(accepted) - found.keys()):
        raise ValueError(f"--accept {' '.join(surplus)}: no difference of this model")
    if not found.keys() <= set(accepted):
        raise ValueError(f"{'. Also, '.join(found.values())}. To export it all the same: --accept {' '.join(found)}")
    return [f"accepted: {difference}" for difference in found.values()]


def instructions(values: Mapping[str, Any], head: str | None) -> list[str]:
    """Instructions for calling their model so that it computes what ours does."""
    pooling = f", pooling={str(values['pooling'])!r}" if head in ("document", "choice") else ""
    length = values["segment_length"]
    lines = [
        f"class: {CLASSES[head]}.from_pretrained(DIR{pooling})",
        f"input_ids: a multiple of {length} tokens, padded with 1; a document ends with </s>, which their tokenizer "
        "does not add",
        "attention_mask: 0 in segments of nothing but padding, else 1 (--attend-segment-padding)"
        if values["attend_segment_padding"]
        else "attention_mask: input_ids != 1 (their tokenizer gives 1 for padding inside a segment)",
        "segment positions: added, so their code must be of January 2024 or later; older code, and the code of the "
        "released weights, leaves them out"
        if str(values["segment_positions"]) == "add"
        else "segment positions: a table of zeros, which any version of their code may add",
    ]
    if values["activation_dropout"]:
        lines.append(f"lost, matters in training only: --activation-dropout {values['activation_dropout']}")
    return lines
