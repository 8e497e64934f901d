"""The models of `golden/predictions`: `python tests/support/golden_models.py NAME ...` makes them anew, and other ones.

They are small encoders or sequence-to-sequence models of one update, whose weights are then drawn so large that their
scores lie far apart: no label and no text hangs on the last digits of a processor. They are stored in 16 bits.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import tempfile
from pathlib import Path

import torch
from commands import REPOSITORY, USER_DIR, run_command

FOLDER = REPOSITORY / "tests/golden/predictions"
SIZES = "--encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --encoder-attention-heads 2"
ROBERTA = f"--arch hat_roberta_tiny --encoder-layers 2 --max-positions 120 {SIZES}"
SEGMENTS = f"--arch hierarchical_transformer_tiny --layout S|SD --max-positions 120 {SIZES}"
LABELS = "--criterion document_labels"
TEXTS = f"--task document_to_text --arch hat_transformer_tiny {SIZES} --encoder-layers 1 --decoder-layers 2 "
TEXTS += "--decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2 --max-target-positions 60 "
TEXTS += "--criterion label_smoothed_cross_entropy"
MODELS = {
    "classification": f"--task document_classification {SEGMENTS} {LABELS} --segment-by marker --max-segments 9",
    "pair": f"--task document_classification {ROBERTA} {LABELS}",
    "choice": f"--task multiple_choice {ROBERTA} {LABELS}",
    "candidates": f"--task candidate_selection {ROBERTA} {LABELS}",
    "segments": f"--task segment_classification {SEGMENTS} {LABELS}",
    "tokens": f"--task token_classification {ROBERTA} {LABELS}",
    "qa": f"--task question_answering {ROBERTA} --criterion answer_spans",
    "document_qa": f"--task document_question_answering {ROBERTA} --criterion document_answers",
    "sequence": f"--task sequence_classification {ROBERTA} {LABELS} --no-hierarchy",
    "byte_sequence": f"--task sequence_classification {ROBERTA} {LABELS} --no-hierarchy",
    "byte_pair": f"--task sequence_classification {ROBERTA} {LABELS} --no-hierarchy",
    "summaries": f"{TEXTS} --role-stream role --max-source-positions 60",
    "translation": f"{TEXTS} --max-source-positions 60",
}
ENSEMBLES = ("pair", "summaries")  # with a second model of other weights
TRAINING = f"--user-dir {USER_DIR} --optimizer adam --cpu --batch-size 4 --max-update 1 --num-workers 0 --seed 1 "
TRAINING += "--disable-validation --no-epoch-checkpoints"


def make(name: str) -> None:
    """Preprocesses as the transcript does, trains one update, draws the weights and writes `NAME/model.pt.gz`."""
    transcript = (FOLDER / name / "transcript.txt").read_text(encoding="utf-8")
    command = re.match(r"\$ hat (preprocess .*) --out data", transcript)
    assert command, f"the transcript of {name} begins with another command than hat preprocess ... --out data"
    with tempfile.TemporaryDirectory() as work:
        run_command("hat", *command[1].split(), "--out", f"{work}/data", cwd=FOLDER / name)
        run_command("fairseq-train", f"{work}/data/bin", *f"{MODELS[name]} {TRAINING} --save-dir {work}".split())
        state = torch.load(f"{work}/checkpoint_last.pt", weights_only=False)
    state = {**state, "last_optimizer_state": None}
    state["cfg"]["task"]["data"] = "data/bin"
    for number, file in enumerate(("model.pt.gz", "second.pt.gz")[: 1 + (name in ENSEMBLES)]):
        generator = torch.Generator().manual_seed(number)
        state["model"] = {key: drawn(key, tensor, generator) for key, tensor in state["model"].items()}
        content = io.BytesIO()
        torch.save(state, content)
        (FOLDER / name / file).write_bytes(gzip.compress(content.getvalue(), mtime=0))


def drawn(name: str, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Weights in 16 bits; those of an embedding, and of a head, are larger than what is added up in a layer."""
    if tensor.dim() == 2:
        std = 1.0 if "embed" in name or "heads" in name else 0.4
        tensor = (torch.randn(tensor.shape, generator=generator) * std * 16).round() / 16  # compresses well
    return tensor.half() if tensor.is_floating_point() else tensor


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        make(each)
