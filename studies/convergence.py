#!/usr/bin/env python3
"""Does a masked LM converge faster with the hierarchy of HAT?

    python studies/convergence.py minilm --root PUBMED --size small

Rohde et al. 2021, section 7, say so of pre-training. `hierarchy` is `hat_roberta` with six layers, each with an
attention to the sentences' BOS tokens; `six layers` is the network without it, `eight layers` has nearly as many
parameters as `hierarchy`. All learn from random weights, without dropout, to predict 15 % of the tokens in rows of
whole sentences of a paper of SumPubmed, at most 512 tokens. The figures are bits a masked token of papers of `val`,
whose masks are the same for all, after so many updates; less is better. The learning rate is constant after a tenth of
the updates, so that each point of a training is comparable. `frequencies` predicts each token by its frequency in the
training papers; with these the bias of the output begins, so that no update is spent on them. Seconds are those of the
CPU, or of the clock on a GPU, without the measurements.

MINILM is a folder of `hat import`, of which only the vocabulary is used. `--size full` is for one GPU; with `--minutes`
no run begins that would end later.
"""

import gzip
import json
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
import torch.nn.functional as F
from continued_pretraining import rows_of
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from harness import RESULTS, flags, record_of, synchronise
from pretrained_data import DEVICE, PRODUCTS, build, products
from pretrained_tasks import BOS, Document
from study_table import add_missing
from torch import Tensor

from hat_fairseq.data.tokenizer_bpe import TokenizerBpe

ARMS = {"six layers": "--encoder-layers 6 --no-hierarchy", "hierarchy": "--encoder-layers 6"}
ARMS |= {"eight layers": "--encoder-layers 8 --no-hierarchy"}
TOKENS, MASKED, PAD = 512, 0.15, 1  # of a row
LAST_SPECIAL = 3  # `<unk>`


@dataclass(frozen=True)
class Size:
    """The width, rows and learning rate of an update, updates, measurements, papers, and first rows of a tested one."""

    width: int
    rows: int
    rate: float
    updates: int
    measurements: int
    papers: int
    tests: int
    first: int

    @property
    def every(self) -> int:
        """The updates between measurements."""
        return self.updates // self.measurements

    def flags(self, arm: str) -> str:
        sizes = f"--encoder-embed-dim {self.width} --encoder-ffn-embed-dim {4 * self.width}"
        heads = f"--encoder-attention-heads {self.width // 32}"
        return f"hat_roberta_base {sizes} {heads} --max-positions {TOKENS} {ARMS[arm]}"


SIZES = {"small": Size(64, 2, 2e-3, 120, 4, 60, 24, 2), "full": Size(512, 32, 5e-4, 1600, 8, 1100, 60, 20)}
Rows = list[tuple[str, Tensor]]  # the paper of each row, and its ids
Scores = dict[str, tuple[float, int]]


def rows_of_papers(path: Path, most: int, first: int | None, bpe: TokenizerBpe, dictionary: Dictionary) -> Rows:
    """The first rows, None: all, of the first papers of a file of SumPubmed."""
    rows = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for paper in map(json.loads, islice(lines, most)):
            units = [[BOS, *map(dictionary.index, bpe.encode(text))] for text in sum(paper["sections"], [])]
            document = Document(paper["article_id"], torch.tensor(sum(units, [])), [], torch.zeros(0))
            rows += [(document.id, row) for row in islice(rows_of(document, TOKENS), first)]
    return rows


def masked(tokens: Tensor, words: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs and which tokens are predicted, 15 %: of these 80 % are `<mask>`, the last word, and 10 % another word."""
    chosen = (torch.rand(tokens.shape, generator=draw) < MASKED) & (tokens > LAST_SPECIAL)
    fate = torch.rand(tokens.shape, generator=draw)
    others = torch.randint(LAST_SPECIAL + 1, words - 1, tokens.shape, generator=draw)
    inputs = tokens.where(~chosen | (fate >= 0.9), others.where(fate >= 0.8, words - 1))
    return inputs, chosen


def batch_of(rows: Sequence[Tensor], words: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(B, T) tokens, inputs, and which tokens are predicted."""
    tokens = collate_tokens(list(rows), PAD)
    return tokens, *masked(tokens, words, draw)


class Training:
    """A network from random weights, its training and its measurements."""

    def __init__(self, size: Size, arm: str, seed: int, dictionary: Dictionary, log_frequencies: Tensor) -> None:
        torch.manual_seed(seed)
        self.size, self.words = size, len(dictionary)
        self.model = build(size.flags(arm), dictionary)
        self.model.encoder.lm_head.bias.data.copy_(log_frequencies)
        self.model.to(DEVICE)
        self.draw = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), size.rate, (0.9, 0.98), weight_decay=0.01)

    def nats(self, tokens: Tensor, inputs: Tensor, chosen: Tensor) -> Tensor:
        """(M,) nats of the chosen ones of the (B, T) tokens, from the inputs."""
        with products():
            logits = self.model(inputs.to(DEVICE), masked_tokens=chosen.to(DEVICE))[0]
        return F.cross_entropy(logits.float(), tokens[chosen].to(DEVICE), reduction="none")

    def update(self, number: int, rows: Sequence[Tensor]) -> None:
        """Makes the update of this number, from 1."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.size.rate * min(1.0, 10 * number / self.size.updates)
        self.optimizer.zero_grad()
        self.nats(*batch_of(rows, self.words, self.draw)).mean().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


@torch.no_grad()
def measured(rows: Rows, size: Size, words: int, nats: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Scores:
    """Sum and number of the bits of the masked tokens of each paper; the masks are always the same."""
    draw, sums = torch.Generator().manual_seed(0), Scores()
    for first in range(0, len(rows), size.rows):
        names, own = zip(*rows[first : first + size.rows], strict=True)
        tokens, inputs, chosen = batch_of(own, words, draw)
        bits = nats(tokens, inputs, chosen).cpu() / math.log(2)
        for name, part in zip(names, bits.split(chosen.sum(dim=1).tolist()), strict=True):
            total, count = sums.get(name, (0.0, 0))
            sums[name] = round(total + float(part.sum()), 3), count + len(part)
    return sums


def seconds() -> float:
    """Seconds of the CPU, or of the clock when the GPU is done."""
    synchronise()
    return time.perf_counter() if DEVICE.type == "cuda" else time.process_time()


def drawn(rows: Rows, size: Size, seed: int) -> Iterator[list[Tensor]]:
    """The rows of each update, all of them in each pass."""
    draw, order = torch.Generator().manual_seed(seed), list[int]()
    for _ in range(size.updates):
        while len(order) < size.rows:
            order += torch.randperm(len(rows), generator=draw).tolist()
        yield [rows[order.pop(0)][1] for _ in range(size.rows)]


def run(size: Size, rows: dict[str, Rows], dictionary: Dictionary, arm: str, seed: int) -> dict[str, Any]:
    """Trains an arm; returns what is written."""
    spent, curve, start = 0.0, list[Any](), log_frequencies(rows["train"], len(dictionary))
    training = Training(size, arm, seed, dictionary, start)
    scores: dict[str, Scores] = {}
    begin = seconds()
    for number, batch in enumerate(drawn(rows["train"], size, seed), 1):
        training.update(number, batch)
        if number % size.every == 0:
            spent += seconds() - begin
            own = measured(rows["valid"], size, len(dictionary), training.nats)
            for name, value in own.items():
                scores.setdefault(name, {})[f"after {number:,} updates"] = value
            sums = [sum(part) for part in zip(*own.values(), strict=True)]
            curve.append([number, round(spent, 2), round(sums[0] / sums[1], 4)])
            begin = seconds()
    parameters = sum(p.numel() for p in training.model.parameters())
    return {"products": PRODUCTS, "parameters": parameters, "cpu_seconds": spent, "curve": curve, "scores": scores}


def log_frequencies(rows: Rows, words: int) -> Tensor:
    """(V,) logarithms of the frequencies of the tokens that may be predicted; special ones have a small one."""
    counts = torch.bincount(torch.cat([row for _, row in rows]), minlength=words) + 0.1
    counts[: LAST_SPECIAL + 1] = 0.1
    return (counts / counts.sum()).log()


def frequencies(size: Size, rows: dict[str, Rows], dictionary: Dictionary) -> dict[str, Any]:
    """The figures of the frequencies of tokens in the training papers."""
    nats = -log_frequencies(rows["train"], len(dictionary))
    own = measured(rows["valid"], size, len(dictionary), lambda tokens, _, chosen: nats[tokens[chosen]])
    numbers = range(size.every, size.updates + 1, size.every)
    return {"scores": {name: {f"after {n:,} updates": value for n in numbers} for name, value in own.items()}}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "convergence.csv.gz")
    parser.add_argument("minilm", type=Path, help="folder of hat import")
    parser.add_argument("--root", type=Path, required=True, help="folder of SumPubmed")
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no run begins that would end later")
    args = parser.parse_args()
    files = {"train": args.root / "train.jsonl.gz", "valid": args.root / "val.jsonl.gz"}
    for path in (*files.values(), args.minilm / "tokenizer.json", args.minilm / "dict.txt"):
        if not path.is_file():
            parser.error(f"{path} is missing: the text of --help says which folders are needed")
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * args.minutes
    size, dictionary = SIZES[args.size], Dictionary.load(str(args.minilm / "dict.txt"))
    dictionary.add_symbol("<mask>")
    bpe = TokenizerBpe.load(args.minilm / "tokenizer.json")
    most = {"train": (size.papers, None), "valid": (size.tests, size.first)}
    rows = {name: rows_of_papers(path, *most[name], bpe, dictionary) for name, path in files.items()}
    task = f"convergence, {args.size}"

    runs = {(task, "rules", "frequencies", 0): partial(frequencies, size, rows, dictionary)}
    for seed in args.seeds:
        for arm in args.arms:
            runs[task, "all", arm, seed] = partial(run, size, rows, dictionary, arm, seed)
    add_missing(args.out, runs, end, record_of)


if __name__ == "__main__":
    main()
