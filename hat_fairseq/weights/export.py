"""Write a trained hierarchical_transformer as a Hugging Face folder, for the code of Chalkidis et al. 2022.

`config.json`, the weights under the released names, and with `--data` the labels and, for GPT-2's BPE, the vocabulary.
Where the authors' code would compute something else than the trained model, the export is refused; a difference that
does not concern your documents is accepted by its name. What their code has to be told is printed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .checkpoint import ARCHITECTURE
from .export_vocabulary import labels_of, vocabulary_files
from .released_hat import HEAD, to_hugging_face
from .released_hat_config import released_config
from .released_hat_differences import CLASSES, check_expressible, differences, instructions

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=["hf"], required=True, help="hf: the folder that Hugging Face's classes read")
    parser.add_argument("--path", type=Path, required=True, help="checkpoint of a hierarchical_transformer")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; it must not exist")
    parser.add_argument("--format", choices=["safetensors", "bin"], default="safetensors", help="of the weights")
    parser.add_argument(
        "--data", type=Path, metavar="BIN", help="the bin directory of the training, for labels and vocabulary"
    )
    parser.add_argument(
        "--accept",
        nargs="+",
        default=[],
        metavar="NAME",
        help="export although the authors' code differs in this on some documents; the refusal names it",
    )


def main(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise ValueError(f"{args.out} exists; give another --out")
    state, values, head = read_checkpoint(args.path)
    state = with_one_head(state, head)
    check_expressible(values, head)
    refuse_differences(values, head, args.accept)
    tensors = to_hugging_face(state, values["max_segments"], values["segment_length"], pooled=head != "segment")
    table = state["encoder.embed_tokens.weight"]
    labels = labels_of(args.data, state, len(tensors["classifier.weight"])) if head in ("document", "segment") else None
    config = released_config(values, len(table), CLASSES[head], labels) | {"torch_dtype": str(table.dtype)[6:]}
    files, note = vocabulary_files(args.data, state, config["model_max_length"])
    write_folder(args.out, tensors, config, files, args.format)
    parameters = {t.data_ptr(): t.numel() for name, t in state.items() if not name.endswith("_fingerprint")}
    print(f"wrote {args.out}: {len(tensors)} tensors, {sum(parameters.values()):,} parameters")
    print("\n".join([*instructions(values, head), note]))
    return 0


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any], str | None]:
    """State, settings, and what the head is about (None: it predicts words), of a checkpoint of training or import.

    Raises:
        ValueError: another model, or settings that are not in the checkpoint.
    """
    from fairseq import checkpoint_utils

    from ..models.hierarchical_transformer import HierarchicalTransformerModel
    from ..models.hierarchical_transformer_config import HierarchicalTransformerConfig

    if not path.is_file():
        raise ValueError(f"{path} is no file")
    checkpoint = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if ARCHITECTURE in checkpoint:
        args = Namespace(**checkpoint[ARCHITECTURE])
        task = args.task
    elif checkpoint.get("cfg") is not None:
        args, task = checkpoint["cfg"]["model"], name_of(checkpoint["cfg"]["task"], "_name", "task")
    else:
        raise ValueError(f"{path} has weights and no settings of a training; hat import keeps them")
    if not is_of(args, HierarchicalTransformerModel):
        raise ValueError(
            f"{path} is a {name_of(args, 'arch', '_name')}: only hierarchical_transformer has a counterpart at Hugging "
            "Face's"
        )
    if hasattr(args, "items"):
        args = Namespace(**args)
    settings = asdict(HierarchicalTransformerConfig.from_args(args))
    values = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in settings.items()}
    state = {name: tensor for name, tensor in checkpoint["model"].items() if isinstance(tensor, Tensor)}
    if not any(name.startswith(HEADS) for name in state):
        return state, values, None
    if task not in TASKS:
        raise ValueError(f"{path}: what the head of task {task} is about is not known; known are {', '.join(TASKS)}")
    return state, values, TASKS[task]


def name_of(settings: Any, *keys: str) -> str | None:
    """What settings of a checkpoint, a Namespace or a dictionary, have under the first of `keys` that they have."""
    values = (settings.get(key) if hasattr(settings, "get") else getattr(settings, key, None) for key in keys)
    return next((value for value in values if value), None)


def is_of(args: Any, model: type) -> bool:
    """Whether these are the settings of `model`."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

    return (ARCH_MODEL_REGISTRY | MODEL_REGISTRY).get(name_of(args, "arch", "_name")) is model


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


def refuse_differences(values: dict[str, Any], head: str | None, accepted: list[str]) -> None:
    """ValueError for differences that were not accepted, and for accepted names that are none."""
    found = differences(values, head)
    if surplus := sorted(set(accepted) - {difference.name for difference in found}):
        raise ValueError(f"--accept {' '.join(surplus)}: no difference of this model")
    if any(difference.name not in accepted for difference in found):
        reasons = ". Also, ".join(f"{difference.lost}: {difference.remedy}" for difference in found)
        names = " ".join(difference.name for difference in found)
        raise ValueError(f"{reasons}. To export it all the same: --accept {names}")
    for difference in found:
        print(f"accepted: {difference.lost}: {difference.remedy}")


def write_folder(
    out: Path, tensors: dict[str, Tensor], config: dict[str, Any], files: dict[str, str], weights_format: str
) -> None:
    """Fill a temporary folder beside `out` and rename it, so that `out` is never a part of a folder."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        for name, text in {"config.json": json.dumps(config, indent=2) + "\n", **files}.items():
            (partial / name).write_text(text, encoding="utf-8")
        if weights_format == "bin":
            torch.save(tensors, partial / "pytorch_model.bin")
        else:
            from safetensors.torch import save_file

            copies = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}  # no memory is shared
            save_file(copies, partial / "model.safetensors", metadata={"format": "pt"})
        partial.chmod(0o755)
        partial.rename(out)
    except BaseException:
        shutil.rmtree(partial)
        raise
