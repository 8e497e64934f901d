"""A small fine-tuned model for every kind of data, made by the real commands."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import labelled
import torch
from commands import REPOSITORY, USER_DIR
from warm import WarmPython

from hat_fairseq.data.kinds import KINDS
from hat_fairseq.fairseq_fixes.trust import allow_checkpoint_types

AMI = REPOSITORY / "preprocess" / "ami_data"
MARKERS = "--arch hierarchical_transformer_tiny --segment-by marker --max-segments 99"
ROBERTA = "--arch hat_roberta_tiny --max-positions 400"
MODELS = {
    "classification": f"{MARKERS} --criterion document_labels",
    "choice": f"{ROBERTA} --criterion document_labels",
    "candidates": f"{ROBERTA} --criterion document_labels",
    "segments": "--arch hierarchical_transformer_tiny --criterion document_labels",
    "tokens": f"{ROBERTA} --criterion document_labels",
    "qa": f"{ROBERTA} --criterion answer_spans",
    "document_qa": f"{ROBERTA} --criterion document_answers",
}
LENGTHS = {
    "qa": "--splitter punctuation --max-source-tokens 51 --long-source chunk --window-overlap 12",
    "document_qa": "--max-source-tokens 91 --long-source chunk --window-overlap 50 --negative-windows 0.9",
}


@dataclass(frozen=True)
class FineTuned:
    """`raw`: JSON lines; `data`: what hat preprocess made of them; `checkpoint`: of a training of two updates."""

    kind: str
    raw: Path
    data: Path
    checkpoint: Path


def write_meetings(folder: Path) -> None:
    """{split}.jsonl with the first AMI meetings of each split."""
    for split, name, count in (("train", "train", 5), ("valid", "dev", 1), ("test", "test", 2)):
        with gzip.open(AMI / f"ami.{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            (folder / f"{split}.jsonl").write_text("".join(line for line, _ in zip(lines, range(count), strict=False)))


def fine_tune(kind: str, meetings: Path, folder: Path, warm: WarmPython) -> FineTuned:
    """Preprocess the data of a kind and train two updates, in `folder`."""
    raw, data, save = folder / kind, folder / f"{kind}-data", folder / f"{kind}-model"
    splits = ["train", "valid", "test"]
    for split in splits:
        labelled.write(kind, meetings / f"{split}.jsonl", raw / f"{split}.jsonl")
    flags = f"--out {data} --bpe learned --num-codes 200 --kind {kind} {LENGTHS.get(kind, '')}"
    warm.run(f"hat_fairseq.cli preprocess {raw} {flags}".split(), folder, folder / "log")
    flags = f"--save-dir {save} --optimizer adam --lr 1e-2 --cpu --batch-size 4 --max-update 2 --num-workers 0"
    flags += f" --user-dir {USER_DIR} --no-epoch-checkpoints --disable-validation --seed 3 {MODELS[kind]}"
    warm.run(f"fairseq_cli.train {data}/bin --task {KINDS[kind].task} {flags}".split(), folder, folder / "log")
    spread(save / "checkpoint_last.pt")
    return FineTuned(kind, raw, data, save / "checkpoint_last.pt")


def spread(checkpoint: Path) -> None:
    """Draw all tables and matrices anew, larger: after so few updates a model says the same of everything."""
    allow_checkpoint_types()
    state = torch.load(checkpoint, weights_only=True)
    generator = torch.Generator().manual_seed(1)
    for name, tensor in state["model"].items():
        if tensor.dim() == 2:
            torch.nn.init.normal_(tensor, std=1.0 if "classification_heads" in name else 0.12, generator=generator)
    torch.save(state, checkpoint)
