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
END, SEPARATOR, BIAS = 2, 8, 6.0  # numbers of `</s>` and `<sep>`
SEEDS = {"classification": 4, "pair": 2, "choice": 2, "candidates": 3, "segments": 1, "document_qa": 3}
SEEDS |= {"sequence": 4, "byte_pair": 2, "summaries": 3}  # with these outputs vary; of others 0
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
        state["model"] = drawn(state["model"], SEEDS.get(name, 0) + number)
        content = io.BytesIO()
        torch.save(state, content)
        (FOLDER / name / file).write_bytes(gzip.compress(content.getvalue(), mtime=0))


def drawn(model: dict[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
    """Weights in 16 bits, in steps that compress well.

    What a decoder says next depends on the last token more than on the source. The first column of its embeddings,
    times BIAS, is added to the scores of the tokens: texts end, and have no token that is never in a text.
    """
    generator, weights = torch.Generator().manual_seed(seed), {}
    for name, tensor in model.items():
        if name in ("decoder.embed_tokens.weight", "decoder.output_projection.weight"):
            tensor = weights["encoder.embed_tokens.weight"]
        elif tensor.dim() == 2:
            std = 0.35 if name.startswith("decoder") and "attn" in name else 1.0
            std = 0.5 if name.startswith("encoder") and (".q_" in name or ".k_" in name) else std  # no hard attention
            tensor = (torch.randn(tensor.shape, generator=generator) * std * 16).round() / 16
            if name == "encoder.embed_tokens.weight" and "decoder.embed_tokens.weight" in model:
                tensor[:, 0] = 0
                tensor[[END, SEPARATOR], 0] = torch.tensor([1.0, 0.75])
                tensor[[0, 1, 3, *range(-7, 0)], 0] = -2.0
        elif name == "decoder.layers.1.final_layer_norm.weight":
            tensor[0] = 0
        elif name == "decoder.layers.1.final_layer_norm.bias":
            tensor[0] = BIAS
        weights[name] = tensor.half() if tensor.is_floating_point() else tensor
    return weights


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        make(each)
