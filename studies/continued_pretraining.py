#!/usr/bin/env python3
"""Does the marker of a sentence learn faster after continued pre-training, with or without a loss of its own?

    python studies/continued_pretraining.py data-bin/roles/bin minilm/model.pt --root PUBMED

All start from all-MiniLM-L6-v2 as `hat_roberta_minilm`, whose attention to the markers starts from random values. `MLM`
and `MLM and markers` go on for 2,000 updates of a row of whole sentences, at most 128 tokens, from the 1,100 papers of
the training part of SumPubmed; learning rate 1e-4, fp32, one seed. The first predicts masked words, the second also
predicts them from the marker of their sentence alone (`marker_masked_lm`, weight 1). `untrained` does not go on;
`no hierarchy` is MiniLM without the attention to markers. Then the encoder is frozen and reads rows of 256 tokens. The
vector of a sentence is the state of its marker, of length 1. A head without neighbours learns its role (as in `roles`)
from the first 80 papers of the training part, whose texts are among the 1,100. The first 20 papers of `val` choose the
epoch, the first 100 of `test` are for the figures; no text of these two was pre-trained on.

Self-attention regularization belongs to fine-tuning: its paper (Liu et al. 2022, Table 8) has weight 0 in pre-training.
It needs an encoder whose tokens can be rolled: ERNIE-Sparse from MiniLM, frozen. `blocks` and `blocks, SAR` learn from
two passes, rolled by 0 and 32 tokens; the second adds the divergence of the two predictions with weight 1.

Runs, intervals and [predictions](predictions.md) are as in `pretrained_hierarchy.py`.
"""

import gzip
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
import torch.nn.functional as F
from harness import RESULTS, flags, record_of
from pretrained_data import EOS, Data, products
from pretrained_hierarchy import SPARSE, fit, mean
from pretrained_tasks import BOS, TASKS, Document
from study_table import add_run, has_run
from torch import Tensor

from hat_fairseq.criterions.self_attention_regularization import symmetric_divergence

HAT, LONGEST, PRETRAINED, ROLLS = "hat_roberta_minilm", 256, 128, (0, 32)  # tokens of a row
ARMS = {"no hierarchy": f"{HAT} --no-hierarchy", "untrained": HAT, "MLM": HAT, "MLM and markers": HAT}
ARMS |= {"blocks": SPARSE, "blocks, SAR": SPARSE}  # their heads learn from two passes
CRITERIONS = {"MLM": "masked_lm", "MLM and markers": "marker_masked_lm"}
COMMAND = (sys.executable, "-m", "hat_fairseq.cli")
PAPERS = {"train": 80, "valid": 20, "test": 100}
TRAIN = f"--task masked_document_lm --arch {HAT} --max-positions 512 --tokens-per-sample {PRETRAINED} "
TRAIN += "--sample-break-mode eos --batch-size 1 --optimizer adam --lr 1e-4 --lr-scheduler polynomial_decay "
TRAIN += "--warmup-updates 100 --total-num-update 2000 --max-update 2000 --clip-norm 1 --weight-decay 0.01 --cpu "
TRAIN += "--disable-validation --no-epoch-checkpoints --save-interval-updates 500 --keep-interval-updates 1 "
TRAIN += "--num-workers 0 --log-format json --log-interval 50"


def pretrained(criterion: str, root: Path, minilm: Path, cache: Path) -> Path:
    """The checkpoint after continued pre-training; one that was interrupted goes on."""
    texts, data, save = cache / "texts", cache / "data", cache / criterion
    if not (data / "manifest.json").is_file():
        texts.mkdir(parents=True, exist_ok=True)
        with gzip.open(root / "train.jsonl.gz", "rt", encoding="utf-8") as papers:
            rows = ({"id": p["article_id"], "segments": sum(p["sections"], [])} for p in map(json.loads, papers))
            (texts / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        bpe = ("--bpe", "tokenizer", "--bpe-dir", minilm.parent, "--max-source-tokens", str(PRETRAINED))
        words = [texts, "--kind", "mlm", "--splitter", "given", "--out", data, *bpe]
        subprocess.run([*COMMAND, "preprocess", *words], check=True)
    words = [data / "bin", *TRAIN.split(), "--criterion", criterion, "--finetune-from-model", minilm]
    subprocess.run([*COMMAND, "train", *words, "--save-dir", save], check=True)
    return save / "checkpoint_last.pt"


def rows_of(document: Document, longest: int = LONGEST) -> Iterator[Tensor]:
    """The ids of whole sentences, at most so many tokens with `</s>`; a longer sentence loses its end."""
    row: list[int] = []
    for unit in document.units:
        ids = [BOS, *unit][: longest - 1]
        if len(row) + len(ids) >= longest:
            yield torch.tensor([*row, EOS])
            row = []
        row += ids
    yield torch.tensor([*row, EOS])


@torch.no_grad()
def prepare(data: Data, model: str, path: Path) -> None:
    """Gives each document the (N, C) states of its markers, of length 1, as the vectors of each roll."""
    documents, rolls = [each for split in data.splits.values() for each in split], ROLLS[: 1 + (model == SPARSE)]
    if not path.is_file():
        encoder, passes = data.model(model, 1), []
        for document, roll in product(documents, rolls):
            with products():
                rows = [encoder(ids[None], roll=roll).tokens[0, ids.eq(BOS)] for ids in rows_of(document)]
            passes.append(F.normalize(torch.cat(rows).float(), dim=1))
        torch.save(passes, path)
    states = iter(torch.load(path))
    for document in documents:
        document.vectors = {str(roll): next(states) for roll in rolls}


def run(data: Data, seed: int, divergence: float) -> dict[str, Any]:
    """Trains and measures a head; `divergence`: the weight of that of the predictions from two passes."""
    torch.manual_seed(seed)
    start, task, head, figure = time.process_time(), data.task, data.task.head("N|N", 1), data.task.figures[0]

    def loss(document: Document) -> Tensor:
        outputs = [head(states, states) for states in document.vectors.values()]
        nll = torch.stack([task.loss(output, document.gold) for output in outputs]).sum()
        return nll + divergence * symmetric_divergence(outputs[0], outputs[-1]) / len(document.gold)

    @torch.no_grad()
    def measure(split: str) -> dict[str, Any]:
        head.eval()
        outputs = ((each, head(each.vectors["0"], each.vectors["0"])) for each in data.splits[split])
        return {each.id: task.measure(output, each, 0) for each, output in outputs}

    parameters, valid, tests = list(head.parameters()), [], []
    groups, train = [{"params": parameters, "lr": task.learning_rate}], data.splits["train"]
    for _ in fit(groups, head, train, loss, task.epochs, task.batch, seed):
        valid.append(mean(measure("valid"), figure))
        tests.append(measure("test"))
    curves = {"valid": valid, "test": [mean(each, figure) for each in tests]}
    best, first = tests[valid.index(max(valid))], f"{figure} after epoch 1"
    result: dict[str, Any] = {split: [round(100 * value, 2) for value in curve] for split, curve in curves.items()}
    result |= {"parameters": sum(p.numel() for p in parameters), "cpu_seconds": round(time.process_time() - start)}
    return result | {"scores": {name: {**row, first: tests[0][name][figure]} for name, row in best.items()}}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "continued_pretraining.csv.gz")
    parser.add_argument("data", type=Path, help="folder bin of hat preprocess")
    parser.add_argument("checkpoint", type=Path, help="MiniLM, from hat import, beside its tokenizer")
    parser.add_argument("--root", type=Path, required=True, help="folder of SumPubmed")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cache", type=Path, default=Path("cache/continued"), help="folder of checkpoints and vectors")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = Data(TASKS["roles"](), args.data, args.checkpoint, args.cache)
    data.splits = {split: data.splits[split][:most] for split, most in PAPERS.items()}
    for name in args.arms:
        checkpoint, slug = args.checkpoint, re.sub("[^A-Za-z0-9]+", "-", name)
        if name in CRITERIONS:
            checkpoint = pretrained(CRITERIONS[name], args.root, checkpoint, args.cache)
        data.state = torch.load(checkpoint, map_location="cpu", weights_only=False)["model"]
        prepare(data, ARMS[name], args.cache / f"vectors.{slug.removesuffix('-SAR')}.pt")
        for seed in args.seeds:
            if not has_run(args.out, "markers", "head", name, seed):
                result = run(data, seed, float(name.endswith("SAR")))
                add_run(args.out, record_of(task="markers", train="head", arm=name, seed=seed, **result))


if __name__ == "__main__":
    main()
