#!/usr/bin/env python3
"""What does hierarchy buy from a pre-trained start, on real documents?

    python studies/pretrained_hierarchy.py evidence data-bin/qmsum/bin minilm/minilm.pt --train head
    python studies/pretrained_hierarchy.py evidence data-bin/qmsum/bin minilm/minilm.pt --train upper --seeds 1 2 3
    python studies/pretrained_hierarchy.py roles data-bin/roles/bin minilm/minilm.pt --train head
    python studies/pretrained_hierarchy.py papers data-bin/papers/bin minilm/minilm.pt --train head --arms chunks

All start from all-MiniLM-L6-v2. Its embeddings and four lower layers are frozen and read a document in chunks of 512
tokens. The two upper layers have the attention of the arm, over the whole document: an arm is the flags of a model of
this package, and its layers are that model's. The vector of a turn or sentence is the mean of the states of its tokens,
of length 1. In a head that follows, layers N read 24 neighbours (about 512 tokens), layers D all vectors of the
document. In `alone`, all six layers read each turn or sentence by itself. In `chunks, three layers` the upper three
layers are trained, more parameters than any other arm has. `first 512` does not read the other tokens.

`head`: MiniLM is frozen, and the head trained. `upper`: the two upper layers are trained with it, without dropout, and
the head starts from that of `chunks` with the same seed. It runs on a GPU if there is one. Products are in bf16 there
and where the CPU has instructions for it, else in fp32. The epoch with the best first figure on the validation part is
taken. Every run is a JSON file with the sums of each test document; a run whose file exists is not repeated. Intervals
(95 %) resample test documents and trainings; where one training tested a document, they lack the variance of trainings.
The predictions, written before the runs: [predictions.md](predictions.md).

`evidence`: which turns of a meeting answer a question (QMSum; 162, 35 and 35 meetings, 1,095, 237 and 244 questions).
Figures: average precision, and F1 at one threshold, which the validation part chooses. `roles`: is a sentence of a
paper background, result or conclusion (SumPubmed; the first 400, 130 and 170 papers). Figures: accuracy, and the mean
over papers of the mean F1 of the roles.

`articles`: is an article hyperpartisan (SemEval-2019 Task 4, 645 articles). Seeds 1 to 5 each test another fifth, so
that each article is tested once, and a tenth of the others validates; seeds 6 to 10 and 11 to 15 test the same fifths
again. Figures: accuracy, and that of the articles of more than 512 tokens. `papers`: the group of organisms that a
paper studies (human, animal, plant or microbe; 951 papers of SumPubmed, cut at 4,096 tokens; 317 are tested and 64
validate). Its labels are weak: words of the abstract, which the model does not read. Figure: accuracy. In both, the
head takes the mean of the sentences after its layers; that of `mean of chunks` has no layers, but a linear layer on the
mean of the vectors.

With `--longest 1024` only the first 1,024 tokens of a document are read. The last sentence or turn may reach beyond
them, and a window looks into the chunk that follows.
"""

import copy
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
from harness import RESULTS, flags, record_of
from pretrained_data import CHUNKS, DEVICE, LOWER, PRODUCTS, ROBERTA, SEGMENTS, Data, vectors_of
from pretrained_tasks import ALONE, FIRST, QUESTIONS, TASKS, Document
from study_table import add_run, has_run
from torch import Tensor, nn

EPOCHS, LEARNING_RATE, HEAD_RATE = 2, 5e-5, 5e-4  # of a training of the upper layers, one document an update
START = {"N|N": "chunks", "N|D": "chunks, N|D", "D|D": "chunks, D|D"}  # whose head an arm of this head starts from
SPARSE = "ernie_sparse_base --encoder-embed-dim 384 --encoder-ffn-embed-dim 1536 --encoder-attention-heads 12"
SPARSE += " --encoder-layers 6 --layer-norm-eps 1e-12 --max-positions 512"
SPARSE += " --sparse-block 64 --sparse-window 3 --sparse-first 0 --sparse-last 0 --sparse-random 0"


@dataclass(frozen=True)
class Arm:
    """The flags of a model; the layers of the head, the neighbours that a layer N reads, and the lower layers."""

    model: str = CHUNKS
    head: str = "N|N"
    neighbours: int = 24
    lower: int = LOWER


ARMS = {
    "first 512": Arm(),
    "alone, no neighbours": Arm(ALONE, neighbours=1),
    "alone": Arm(ALONE),
    "alone, N|D": Arm(ALONE, "N|D"),
    "alone, D|D": Arm(ALONE, "D|D"),
    "chunks, no neighbours": Arm(neighbours=1),
    "chunks": Arm(),
    "chunks, N|D": Arm(head="N|D"),
    "chunks, D|D": Arm(head="D|D"),
    "chunks, three layers": Arm(lower=3),
    "mean of chunks": Arm(head=""),
    "window": Arm(f"{ROBERTA} window --attention-window 128"),
    "window, global question": Arm(f"{ROBERTA} window --attention-window 128 --global-tokens question"),
    "S": Arm(f"{SEGMENTS} 'S|S|S|S|S|S' --segment-length 128"),
    "SD": Arm(f"{SEGMENTS} 'S|S|S|S|SD|S' --segment-length 128"),
    "HAT": Arm("hat_roberta_minilm --span-pooling mean --encoder-attention window --attention-window 128"),
    "blocks": Arm(f"{SPARSE} --no-hierarchy"),
    "representatives": Arm(SPARSE),
    "two levels": Arm(
        f"{ROBERTA} pooling --encoder-attention-layers 4-5 --attention-window 64 --pooling-window 256"
        " --key-pooling mean --pooling-variant share-weights"
    ),
}


class Training:
    """A head, the upper layers of an arm where they are trained (`upper`), and how a document is scored by them."""

    def __init__(self, data: Data, name: str, upper: bool, seed: int, most: int | None) -> None:
        self.data, self.arm, self.most = data, ARMS[name], FIRST if name == "first 512" else most
        self.splits = data.parts(seed)
        torch.manual_seed(seed)
        self.head = data.task.head(self.arm.head, self.arm.neighbours).to(DEVICE)
        self.encoder = data.model(self.arm.model, seed) if upper else None
        if self.encoder is None:
            data.prepare(self.arm.model)
        trained = [] if self.encoder is None else [self.encoder.layers[self.arm.lower :]]
        self.modules = nn.ModuleList([self.head, *trained])

    def groups(self) -> list[dict[str, Any]]:
        """The parameters with their learning rates."""
        if self.encoder is None:
            return [{"params": list(self.head.parameters()), "lr": self.data.task.learning_rate}]
        rates = (HEAD_RATE, LEARNING_RATE)
        return [{"params": list(m.parameters()), "lr": rate} for m, rate in zip(self.modules, rates, strict=True)]

    def logits(self, document: Document) -> Tensor:
        """The logits of the units that are read."""
        if self.encoder is None:
            count = int(document.owners[: self.most].max()) + 1
            units = document.vectors[self.arm.model][:count]
        else:
            lower = self.arm.lower
            units = vectors_of(self.encoder, document, self.data.lower(document, lower), self.most, lower)
        return self.head(document.vectors[QUESTIONS], units)

    def loss(self, document: Document) -> Tensor:
        logits = self.logits(document)
        return self.data.task.loss(logits, document.gold[..., : self.data.task.count(logits)].to(DEVICE))

    @torch.no_grad()
    def measure(self, split: str, decision: int | None = None) -> tuple[int, dict[str, Any]]:
        """The decision of the task, made here if it is None, and the figures of each document."""
        documents, task = self.splits[split], self.data.task
        self.modules.eval()
        outputs = [task.completed(self.logits(document).cpu(), document) for document in documents]
        decision = task.decide(outputs, documents) if decision is None else decision
        pairs = zip(outputs, documents, strict=True)
        return decision, {each.id: task.measure(output, each, decision) for output, each in pairs}


def run(data: Data, name: str, upper: bool, seed: int, epochs: int, most: int | None) -> dict[str, Any]:
    """Trains and measures an arm, which reads at most so many tokens; returns what is written."""
    start, training = time.process_time(), Training(data, name, upper, seed, most)
    of_head = data.cache / f"head.{name if not upper else START.get(ARMS[name].head, 'chunks')}.{seed}.pt"
    if upper:
        if not of_head.is_file():
            raise SystemExit(f"{of_head} is missing: run --train head of `chunks` and `chunks, N|D` first")
        training.head.load_state_dict(torch.load(of_head, map_location=DEVICE))
    groups, modules, curve = training.groups(), training.modules, []
    best: tuple[float, int, Any] = (-1.0, 0, None)
    for number in fit(
        groups, modules, training.splits["train"], training.loss, epochs, 1 if upper else data.task.batch, seed
    ):
        decision, scores = training.measure("valid")
        value = 100 * mean(scores, data.task.figures[0])
        curve.append(round(value, 2))
        print(f"{name}, seed {seed}, epoch {number}: {value:.2f}, {time.process_time() - start:.0f} s", flush=True)
        if value > best[0]:
            best = value, decision, copy.deepcopy(modules.state_dict())
    modules.load_state_dict(best[2])
    if not (upper or most):
        torch.save(training.head.state_dict(), of_head)
    scores = training.measure("test", best[1])[1]
    sizes = {"products": PRODUCTS, "parameters": sum(p.numel() for group in groups for p in group["params"])}
    return {"valid": curve, **sizes, "cpu_seconds": round(time.process_time() - start), "scores": scores}


def fit(
    groups: list[dict[str, Any]],
    modules: nn.Module,
    documents: Sequence[Document],
    loss: Callable[[Document], Tensor],
    epochs: int,
    batch: int,
    seed: int,
) -> Iterator[int]:
    """Trains with a linear warm-up and decay; yields the number of each epoch after it."""
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), weight_decay=0.05)
    rates, order = [group["lr"] for group in groups], random.Random(seed)
    updates, done = epochs * -(-len(documents) // batch), 0
    for epoch in range(epochs):
        modules.train()
        drawn = order.sample(documents, len(documents))
        for first in range(0, len(drawn), batch):
            share = min(1, (done + 1) / (0.06 * updates)) * (1 - done / updates)
            done += 1
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = share * rate
            optimizer.zero_grad()
            for document in drawn[first : first + batch]:
                loss(document).backward()
            nn.utils.clip_grad_norm_(modules.parameters(), 1.0)
            optimizer.step()
        yield epoch + 1


def mean(scores: dict[str, Any], figure: str) -> float:
    """The mean of a figure over all questions or sentences."""
    sums, counts = zip(*(row[figure] for row in scores.values()), strict=True)
    return sum(sums) / sum(counts)


def run_rules(data: Data) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Measures the rules that a task knows, in each fold if it has folds; yields name, seed and what is written."""
    for seed in range(1, 1 + getattr(data.task, "folds", 1)):
        splits = data.parts(seed)
        for name, rule in data.task.rules(splits["train"]).items():
            decision = data.task.decide(list(map(rule, splits["valid"])), splits["valid"])
            scores = {each.id: data.task.measure(rule(each), each, decision) for each in splits["test"]}
            yield name, seed, {"scores": scores}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "pretrained_hierarchy.csv.gz")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("data", type=Path, help="folder bin of hat preprocess")
    parser.add_argument("checkpoint", type=Path, help="MiniLM, from hat import")
    parser.add_argument("--train", choices=("rules", "head", "upper"), required=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["chunks"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--epochs", type=int, help="of a training")
    parser.add_argument("--longest", type=int, help="only the first so many tokens are read, with --train head")
    parser.add_argument("--cache", type=Path, default=Path("cache"), help="folder of states and vectors (some GB)")
    args = parser.parse_args()
    if args.longest and (args.train != "head" or "first 512" in args.arms):
        parser.error("--longest is for --train head, and not for the arm `first 512`")
    torch.set_num_threads(1)
    data = Data(TASKS[args.task](), args.data, args.checkpoint, args.cache / args.task)
    data.prepare(ALONE, questions=True)
    if args.train == "rules" and args.task == "evidence":
        data.prepare(ALONE)

    def write(name: str, seed: int, result: Callable[[], dict[str, Any]]) -> None:
        if not has_run(args.out, args.task, args.train, name, seed):
            add_run(args.out, record_of(task=args.task, train=args.train, arm=name, seed=seed, **result()))

    if args.train == "rules":
        for name, seed, result in run_rules(data):
            write(name, seed, lambda result=result: result)
    epochs = args.epochs or (EPOCHS if args.train == "upper" else data.task.epochs)
    for seed in args.seeds if args.train != "rules" else []:
        for name in args.arms:
            label = f"{name}, {args.longest} tokens" if args.longest else name
            train = partial(run, data, name, args.train == "upper", seed, epochs, args.longest)
            write(label, seed, train)


if __name__ == "__main__":
    main()
