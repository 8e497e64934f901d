#!/usr/bin/env python3
"""Does the marker of a sentence learn faster after continued pre-training, with or without a loss of its own?

    python benchmarks/continued_pretraining.py data-bin/roles/bin minilm/minilm.pt --root PUBMED

All start from all-MiniLM-L6-v2 as `hat_roberta_minilm`, in which every layer has an attention to the markers that
starts from random values. Continued pre-training, `masked_document_lm`: 2,000 updates of a row of at most 256 tokens of
whole sentences, from the 1,100 papers of the training part of SumPubmed, learning rate 1e-4, in fp32, one seed. `MLM`
predicts masked words (`masked_lm`), `MLM and markers` also predicts them from the marker of their sentence alone
(`marker_masked_lm`, weight 1; Rohde et al. 2021, section 9). `untrained` had no continued pre-training; `no hierarchy`
is MiniLM without the attention to markers.

Then the encoder is frozen. It reads papers in rows of the same kind, and the vector of a sentence is the state of its
marker, of length 1. A head that reads no neighbours learns the role of the sentence (background, result or conclusion)
from the first 100 papers of the training part, which are also among the 1,100; no labels were read there. The first 30
papers of `val` choose the epoch, and the first 100 of `test` are for the figures; their texts were not pre-trained on.

Self-attention regularization belongs to fine-tuning: in its paper (Liu et al. 2022, Table 8) its weight is 0 in
pre-training. It needs an encoder whose tokens can be rolled, so here it is ERNIE-Sparse from MiniLM, frozen: `blocks`
and `blocks, SAR` learn from two passes, rolled by 0 and 32 tokens; the second adds the divergence of the two
predictions, with the weight 1.

Figures: accuracy, the mean over papers of the mean F1 of the roles, and the accuracy after the first epoch, which says
what is learned fast. Every run is a JSON file with the sums of each test paper; a run whose file exists is not
repeated. Intervals (95 %) resample papers, after the mean over seeds. The predictions, written before the runs:
[predictions.md](predictions.md).
"""

import copy
import gzip
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import RESULTS, flags, write_result
from pretrained_data import EOS, Data
from pretrained_hierarchy import SPARSE, fit, mean
from pretrained_tasks import BOS, TASKS, Document
from torch import Tensor

from hat_fairseq.criterions.self_attention_regularization import symmetric_divergence

HAT, LONGEST, ROLL, FIRST = "hat_roberta_minilm", 256, 32, "accuracy after the first epoch"
PAPERS = {"train": 100, "valid": 30, "test": 100}
TRAIN = f"--task masked_document_lm --arch {HAT} --tokens-per-sample {LONGEST} --sample-break-mode eos --batch-size 1 "
TRAIN += "--optimizer adam --lr 1e-4 --lr-scheduler polynomial_decay --warmup-updates 100 --total-num-update 2000 "
TRAIN += "--max-update 2000 --clip-norm 1 --weight-decay 0.01 --disable-validation --no-epoch-checkpoints --cpu "
TRAIN += "--save-interval-updates 500 --keep-interval-updates 1 --num-workers 0 --log-format json --log-interval 50"


@dataclass(frozen=True)
class Arm:
    """The flags of a model, the criterion of its continued pre-training, and how two passes are trained on."""

    model: str = HAT
    criterion: str = ""
    passes: int = 1
    divergence: float = 0.0  # its weight


ARMS = {
    "no hierarchy": Arm(f"{HAT} --no-hierarchy"),
    "untrained": Arm(),
    "MLM": Arm(criterion="masked_lm"),
    "MLM and markers": Arm(criterion="marker_masked_lm"),
    "blocks": Arm(SPARSE, passes=2),
    "blocks, SAR": Arm(SPARSE, passes=2, divergence=1.0),
}


def hat(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "hat_fairseq.cli", *map(str, words)], check=True)


def pretrained(criterion: str, root: Path, minilm: Path, cache: Path) -> Path:
    """The checkpoint after continued pre-training, which goes on from the last one of an interrupted run."""
    texts, data, save = cache / "texts", cache / "data", cache / criterion
    if not (data / "manifest.json").is_file():
        texts.mkdir(parents=True, exist_ok=True)
        with gzip.open(root / "train.jsonl.gz", "rt", encoding="utf-8") as papers:
            rows = ({"id": p["article_id"], "segments": sum(p["sections"], [])} for p in map(json.loads, papers))
            (texts / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        bpe = ("--bpe", "tokenizer", "--bpe-dir", minilm.parent, "--max-source-tokens", LONGEST)
        hat("preprocess", texts, "--kind", "mlm", "--splitter", "given", "--out", data, *bpe)
    if not (save / "checkpoint_best.pt").is_file():
        words = [*TRAIN.split(), "--criterion", criterion, "--finetune-from-model", minilm, "--save-dir", save]
        hat("train", data / "bin", *words)
    return save / "checkpoint_last.pt"


def rows_of(document: Document) -> Iterator[Tensor]:
    """The ids of whole sentences, at most `LONGEST` tokens with `</s>`; a longer sentence loses its end."""
    row: list[int] = []
    for unit in document.units:
        ids = [BOS, *unit][: LONGEST - 1]
        if len(row) + len(ids) >= LONGEST:
            yield torch.tensor([*row, EOS])
            row = []
        row += ids
    yield torch.tensor([*row, EOS])


@torch.no_grad()
def vectors(encoder: Any, document: Document, roll: int) -> Tensor:
    """The (N, C) states of the markers, of length 1."""
    with torch.autocast("cpu", torch.bfloat16):
        rows = [encoder(ids[None], roll=roll).tokens[0, ids.eq(BOS)] for ids in rows_of(document)]
    return F.normalize(torch.cat(rows).float(), dim=1)


def run(data: Data, arm: Arm, seed: int, passes: list[dict[str, Tensor]]) -> dict[str, Any]:
    """Trains and measures a head; `passes`: the vectors of each document, by its id."""
    torch.manual_seed(seed)
    start, task, head = time.process_time(), data.task, data.task.head("N|N", 1)

    def logits(document: Document, number: int = 0) -> Tensor:
        return head(torch.zeros(0), passes[number][document.id])

    def loss(document: Document) -> Tensor:
        outputs = [logits(document, number) for number in range(len(passes))]
        total = sum((task.loss(output, document.gold) for output in outputs), outputs[0].new_zeros(()))
        return total + arm.divergence * symmetric_divergence(outputs[0], outputs[-1]) / len(document.gold)

    def measure(split: str) -> dict[str, Any]:
        head.eval()
        with torch.no_grad():
            return {each.id: task.measure(logits(each), each, 0) for each in data.splits[split]}

    curve, first, groups = [], {}, [{"params": list(head.parameters()), "lr": task.learning_rate}]
    best: tuple[float, Any] = (-1.0, None)
    for epoch in fit(groups, head, data.splits["train"], loss, task.epochs, task.batch, seed):
        curve.append(round(100 * mean(measure("valid"), "accuracy"), 2))
        if epoch == 1:
            first = {name: row["accuracy"] for name, row in measure("test").items()}
        if curve[-1] > best[0]:
            best = curve[-1], copy.deepcopy(head.state_dict())
    head.load_state_dict(best[1])
    scores = {name: {**row, FIRST: first[name]} for name, row in measure("test").items()}
    sizes = {"parameters": sum(p.numel() for p in head.parameters())}
    return {"valid": curve, **sizes, "cpu_seconds": round(time.process_time() - start), "scores": scores}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "continued_pretraining")
    parser.add_argument("data", type=Path, help="folder bin of hat preprocess")
    parser.add_argument("checkpoint", type=Path, help="MiniLM, from hat import, beside its tokenizer")
    parser.add_argument("--root", type=Path, help="folder of SumPubmed")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cache", type=Path, default=Path("cache/continued"), help="folder of checkpoints and vectors")
    args = parser.parse_args()
    torch.set_num_threads(1)
