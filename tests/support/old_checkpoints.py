"""Small checkpoints of an earlier version: the commands that make them, and what is compared.

`test_old_checkpoints.py` compares outputs of the models, and the losses of two further updates.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor
from warm import WarmPython

from hat_fairseq.register import register

register()

DATA = {
    "documents": "--bpe learned --num-codes 60 --roles --max-source-tokens 41 --max-target-tokens 21 "
    "--long-source truncate --long-target truncate",
    "classification": "--bpe learned --num-codes 60 --kind classification",
    "mlm": "--bpe learned --num-codes 60 --max-source-tokens 41 --kind mlm",
}
SIZES = "--encoder-embed-dim 16 --encoder-ffn-embed-dim 24 --encoder-attention-heads 2"
DECODER = "--decoder-embed-dim 16 --decoder-ffn-embed-dim 24 --decoder-attention-heads 2 --decoder-layers 1"
TO_TEXT = (
    f"--task document_to_text --criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 {DECODER} "
    "--max-source-positions 41 --max-target-positions 21"
)
# Name: kind of data, flags of fairseq-train.
CHECKPOINTS = {
    "hat_bart": ("documents", f"--arch hat_bart_base --encoder-layers 2 {TO_TEXT}"),
    "hat_transformer_roles": (
        "documents",
        f"--arch hat_transformer_tiny --encoder-layers 1 --role-stream role {TO_TEXT}",
    ),
    "hat_roberta": (
        "classification",
        "--arch hat_roberta_base --encoder-layers 2 --task document_classification --criterion document_labels "
        "--max-positions 99",
    ),
    "hierarchical_transformer": (
        "mlm",
        "--arch hierarchical_transformer_base_4096 --task masked_document_lm --criterion masked_lm "
        "--sample-break-mode eos --tokens-per-sample 41 --layout S|SD --segment-length 8 --max-segments 6",
    ),
}
COMMON = (
    f"{SIZES} --dropout 0.1 --attention-dropout 0.1 --optimizer adam --lr 3e-2 --lr-scheduler polynomial_decay "
    "--warmup-updates 2 --total-num-update 10 --clip-norm 1.0 --batch-size 2 --seed 3 --cpu --num-workers 0 "
    "--no-epoch-checkpoints --disable-validation --log-format json --log-interval 1"
)
RESUMED = 6  # updates; they stopped after 4, and an epoch has five


def preprocess(warm: WarmPython, kind: str, raw: Path, folder: Path) -> Path:
    """Runs `hat preprocess` in `folder`, and returns the data directory relative to it."""
    out = Path("data") / kind
    words = ["hat_fairseq.cli", "preprocess", str(raw / kind), "--out", str(out), *DATA[kind].split()]
    warm.run(words, folder, folder / "old.log")
    return out / "bin"


def train(warm: WarmPython, name: str, data: Path, folder: Path, user_dir: str, updates: int) -> list[float]:
    """Runs `fairseq-train` in `folder` up to update `updates`, and returns the losses of its updates."""
    flags = (
        f"--user-dir {user_dir} --save-dir checkpoints/{name} --max-update {updates} {COMMON} {CHECKPOINTS[name][1]}"
    )
    output = warm.run(["fairseq_cli.train", str(data), *flags.split()], folder, folder / "old.log")
    return [float(json.loads(log)["loss"]) for log in re.findall(r"train_inner \| (\{.*?\})", output)]


def load(path: Path, data: Path) -> tuple[Any, Any]:
    """The task and the model of a checkpoint, as fairseq's commands load them."""
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], arg_overrides={"data": str(data)})
    return task, models[0].eval()


def outputs(model: Any, net_input: dict[str, Any], dtype: torch.dtype) -> Tensor:
    """The logits of a model that computes in `dtype`, as fp32."""
    arguments = {"roles" if name == "segments" else name: value for name, value in net_input.items()}
    with torch.no_grad():
        return model.to(dtype)(**arguments)[0].float()
