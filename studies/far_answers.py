#!/usr/bin/env python3
"""How far from its question does an attention find an answer, with equally many keys?

    hat import minilm --out minilm/model.pt
    python studies/far_answers.py nq-open-oracle.jsonl.gz minilm/model.pt

Natural Questions as Liu et al. 2023 (lost in the middle) have them: a question, its short answers and the paragraph of
Wikipedia that has them, each of its own article. A document is drawn: the question, then paragraphs of other questions,
and among them the right one. Which paragraph is it? The distance is the number of tokens between the question and the
first token of the answer. A test question has one document of 4,096 tokens, about 40 paragraphs, in which the right
paragraph stands at five places: within 128 tokens, from 128 to 512, to 1,024, to 2,048, and further.

All start from all-MiniLM-L6-v2, which has seen Natural Questions. Its embeddings and four lower layers are frozen and
read the question and each paragraph apart, so only the two upper layers can compare them. These are trained, with a
vector that marks the question and a linear layer on the mean of the states of a paragraph: first in documents of 384
tokens, about three paragraphs, to learn the comparison, then in half as many of 512 to 4,096 tokens. These stages and
their rates were chosen by the accuracy of `full` in training documents. `two levels` is Poolingformer: windows of 64
tokens on either side, then pooled keys (the mean of 5 tokens, every 4) of 512 on either side; 385 keys a token.
`windows` of 192 on either side have as many. `windows, global question`: all tokens have the question's tokens too.
`BM25` and `cosine` (vectors of MiniLM) compare question and paragraph alone, so that no distance matters to them.

`small`: 100 test questions; `full`: 400, with eight times the training, for a GPU. Intervals and
[predictions](predictions.md) are as in `pretrained_hierarchy.py`.
"""

import gzip
import json
import logging
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
from harness import RESULTS, flags, record_of
from pretrained_data import DEVICE, EOS, LOWER, PRODUCTS, ROBERTA, Models, opened_models, refuse, states_of
from pretrained_hierarchy import fit
from pretrained_tasks import ALONE, BOS, WIDTH, Figures
from study_table import add_run, has_run
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hat_fairseq.modules.batch_layout import span_means
from hat_fairseq.units.rules import Words, weights_of

TASK, PAD, PARAGRAPH, BATCH = "far answers", 1, 128, 8
BINS = (0, 128, 512, 1024, 2048, 4096)
STAGES = ((2, 5e-4, (384,)), (1, 2e-4, (512, 1024, 2048, 4096)))  # share of documents, learning rate, their tokens
SIZES = {"small": (400, 100), "full": (3200, 400)}  # documents of the last stage, test questions
ARMS = {
    "two levels": f"{ROBERTA} pooling --attention-window 64 --pooling-window 512 --pooling-kernel 5 --pooling-stride 4"
    " --key-pooling mean --pooling-variant share-weights",
    "windows": f"{ROBERTA} window --attention-window 192",
    "windows, global question": f"{ROBERTA} window --attention-window 192 --global-tokens question",
    "full": f"{ROBERTA} full",
}


@dataclass(frozen=True)
class Item:
    """A question with its paragraph: texts, ids, the token of the paragraph where the answer begins, and states."""

    id: str
    question: str
    paragraph: str
    asked: Tensor
    tokens: Tensor
    answer: int
    states: tuple[Tensor, Tensor] | None = None


@dataclass(frozen=True)
class Drawn:
    """A document: a question, and paragraphs, of which the one of this number is the right one."""

    asked: Item
    paragraphs: tuple[Item, ...]
    place: int


def read(path: Path, models: Models, tokenizer: Tokenizer) -> Iterator[Item]:
    """Yields questions whose answer is among the tokens of their paragraph that are read, each paragraph once."""
    seen = set[str]()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, record in enumerate(map(json.loads, lines)):
            text = record["ctxs"][0]["text"]
            asked, tokens = (tokenizer.encode(each, add_special_tokens=False) for each in (record["question"], text))
            begins = [begin for each in record["answers"] if (begin := text.lower().find(each.lower())) >= 0]
            ends = [end for _, end in tokens.offsets[: PARAGRAPH - 2]]
            if text in seen or not begins or min(begins) >= ends[-1]:
                continue
            seen.add(text)
            ids = (torch.tensor([BOS, *map(models.dictionary.index, each.tokens[: PARAGRAPH - 2]), EOS])
                   for each in (asked, tokens))  # fmt: skip
            answer = 1 + sum(end <= min(begins) for end in ends)
            yield Item(str(number), record["question"], text[: ends[-1]], *ids, answer)


def distances(before: Sequence[Item], right: Item) -> list[int]:
    """The tokens between question and answer, if 0, 1, 2 ... of these paragraphs stand before the right one."""
    return [tokens + right.answer for tokens in accumulate((len(each.tokens) for each in before), initial=0)]


def fillers(right: Item, items: Sequence[Item], longest: int, chance: random.Random) -> list[Item]:
    """Other paragraphs, as many as fit beside the right one."""
    others, left = list[Item](), longest - len(right.tokens) - len(right.asked)
    for each in chance.sample(items, len(items)):
        if each is not right:
            left -= len(each.tokens)
            if left < 0:
                break
            others.append(each)
    return others


def document(right: Item, others: Sequence[Item], place: int) -> Drawn:
    return Drawn(right, (*others[:place], right, *others[place:]), place)


def training(items: Sequence[Item], count: int, lengths: Sequence[int], seed: int) -> Iterator[Drawn]:
    """Draws documents of the training, the right paragraph anywhere."""
    chance = random.Random(seed)
    for _ in range(count):
        others = fillers(right := chance.choice(items), items, chance.choice(lengths), chance)
        yield document(right, others, chance.randint(0, len(others)))


def tests(right: Item, items: Sequence[Item]) -> dict[str, Drawn]:
    """The documents of a test question: the same paragraphs, the right one at each distance."""
    chance = random.Random(right.id)
    others, drawn = fillers(right, items, BINS[-1], chance), dict[str, Drawn]()
    for low, high in pairwise(BINS):
        places = [place for place, far in enumerate(distances(others, right)) if low <= far < high]
        drawn[f"{low:,} to {high:,}"] = document(right, others, chance.choice(places))
    return drawn


class Finder(nn.Module):
    """Upper layers with an attention over question and paragraphs, and a linear layer on the mean of a paragraph."""

    def __init__(self, models: Models, model: str, seed: int) -> None:
        super().__init__()
        self.encoder = models.model(model, seed)
        self.layers, self.mark = self.encoder.layers[LOWER:], nn.Parameter(torch.randn(WIDTH, device=DEVICE) / 4)
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)).to(DEVICE)

    def forward(self, drawn: Drawn) -> Tensor:
        """The (1, N) logits of the paragraphs."""
        asked, parts = drawn.asked, drawn.paragraphs
        sizes = torch.tensor([len(each.tokens) for each in parts], device=DEVICE)
        tokens = torch.cat([asked.asked, *(each.tokens for each in parts)])
        states = torch.cat([asked.states[0] + self.mark, *(each.states[1].float() for each in parts)])
        x = states_of(self.encoder, tokens[None], LOWER, states[None])[:, len(asked.asked) :]
        owners = torch.arange(len(parts), device=DEVICE).repeat_interleave(sizes)
        return self.head(span_means(x, owners[None], len(parts))[0][0]).T


def run(models: Models, splits: dict[str, list[Item]], name: str, seed: int, count: int) -> dict[str, Any]:
    """Trains and measures an arm."""
    start, finder = time.process_time(), Finder(models, ARMS[name], seed)
    new, hits, stages = [finder.mark, *finder.head.parameters()], list[bool](), list[float]()

    def loss(drawn: Drawn) -> Tensor:
        logits = finder(drawn)
        hits.append(int(logits.argmax()) == drawn.place)
        return nn.functional.cross_entropy(logits, torch.tensor([drawn.place], device=DEVICE)) / BATCH

    for share, rate, lengths in STAGES:
        groups = [{"params": list(finder.layers.parameters()), "lr": rate}, {"params": new, "lr": 4 * rate}]
        documents = list(training(splits["train"], share * count, lengths, seed))
        for _ in fit(groups, finder, documents, loss, 1, BATCH, seed):
            stages.append(round(100 * statistics.mean(hits[-len(documents) // 2 :]), 1))
    with torch.no_grad():
        scores = measure(lambda drawn: finder.eval()(drawn)[0], splits["test"])
    about = {"products": PRODUCTS, "cpu_seconds": round(time.process_time() - start), "training": stages}
    return {**about, "scores": scores}


def measure(score: Callable[[Drawn], Tensor], items: Sequence[Item]) -> dict[str, Figures]:
    """Whether the right paragraph of each question has the highest score, by its distance."""
    scores = dict[str, Figures]()
    for right in items:
        is_right = {name: int(score(drawn).argmax() == drawn.place) for name, drawn in tests(right, items).items()}
        scores[right.id] = {
            "all": (sum(is_right.values()), len(is_right)),
            **{name: (x, 1) for name, x in is_right.items()},
        }
    return scores


def rules(models: Models, splits: dict[str, list[Item]]) -> Iterator[tuple[str, dict[str, Figures]]]:
    """Measures what compares question and paragraph alone."""
    weights, encoder = weights_of(each.question for each in splits["train"]), models.model(ALONE, 1)
    items = splits["test"]
    with torch.no_grad():
        asked, paragraphs = (
            encoder.alone([tuple(ids[1:-1].tolist()) for ids in every]).float()
            for every in ([each.asked for each in items], [each.tokens for each in items])
        )
    number = {each.id: place for place, each in enumerate(items)}

    def bm25(drawn: Drawn) -> Tensor:
        return torch.tensor(
            Words([drawn.asked.question], [each.paragraph for each in drawn.paragraphs]).bm25(weights)[0]
        )

    def cosine(drawn: Drawn) -> Tensor:
        return paragraphs[[number[each.id] for each in drawn.paragraphs]] @ asked[number[drawn.asked.id]]

    yield "BM25", measure(bm25, items)
    yield "cosine", measure(cosine, items)


@torch.no_grad()
def states_apart(encoder: Any, rows: Sequence[Tensor], batch: int = 32) -> Iterator[Tensor]:
    """Yields the (T, C) states of each row of ids after the lower layers, which read it alone."""
    for first in range(0, len(rows), batch):
        own = rows[first : first + batch]
        states = states_of(encoder, pad_sequence(own, batch_first=True, padding_value=PAD)).half()
        yield from (each[: len(ids)] for each, ids in zip(states, own, strict=True))


def with_states(models: Models, items: Sequence[Item]) -> list[Item]:
    """Gives the questions and paragraphs the states of the lower layers."""
    encoder = models.model(f"{ROBERTA} full", 1)
    every = [states_apart(encoder, rows) for rows in ([i.asked for i in items], [i.tokens for i in items])]
    return [replace(item, states=states) for item, states in zip(items, zip(*every, strict=True), strict=True)]


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "far_answers.csv.gz")
    parser.add_argument("questions", type=Path, help="nq-open-oracle.jsonl.gz")
    parser.add_argument("checkpoint", type=Path, help="MiniLM, from hat import, beside its vocabulary")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS), help="without a name: rules only")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    args = parser.parse_args()
    torch.set_num_threads(1)
    count, tests = SIZES[args.size]
    models = opened_models(parser, args.checkpoint)
    if not args.questions.is_file():
        refuse(parser, f"{args.questions} is no file")
    try:
        items = list(
            read(args.questions, models, Tokenizer.from_file(str(args.checkpoint.with_name("tokenizer.json"))))
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        refuse(parser, f"{args.questions} has no questions with a paragraph and answers: {error}")
    if len(items) < 2 * tests:
        refuse(
            parser,
            f"{args.questions} has {len(items)} questions: --size {args.size} tests {tests}, and trains on as many",
        )
    items = random.Random(1).sample(items, len(items))
    splits = {"test": items[:tests], "train": items[tests:]}
    for name, scores in rules(models, splits):
        add_run(args.out, record_of(task=TASK, train="rules", arm=name, seed=1, size=args.size, scores=scores))
    left = [
        (seed, name) for seed in args.seeds for name in args.arms if not has_run(args.out, TASK, "upper", name, seed)
    ]
    splits = {split: with_states(models, own) for split, own in splits.items() if left}
    for seed, name in left:
        result = run(models, splits, name, seed, count)
        add_run(args.out, record_of(task=TASK, train="upper", arm=name, seed=seed, size=args.size, **result))
        print(name, seed, f"{result['cpu_seconds']} s", flush=True)


if __name__ == "__main__":
    main()
