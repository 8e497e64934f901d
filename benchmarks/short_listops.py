#!/usr/bin/env python3
"""Can sparse attention compute? Encoders trained from scratch on short ListOps expressions, beside simple baselines.

    python benchmarks/short_listops.py

The expressions are those of Long Range Arena (Tay et al. 2021), shorter: 20 to 60 symbols. Half of them have two levels
of operators with at most ten arguments, half three levels with at most five. `[MAX 2 [MIN 4 7 ] 0 ]` has two levels,
and is 4. A model predicts the value at `<s>`, with its masked-LM head. The loss (not the accuracy) also includes the
values of all operators, at the operators. A model sees 96,000 different expressions once, and is tested on 2,000
others. The learning rate and these values in the loss were chosen in trial runs of full attention with seed 1.

All models have 4 layers of width 64. Blocks have 4 symbols and attend to the neighbouring ones. They are measured
alone, with a global block at the beginning (BigBird without random blocks), with a representative token for each block
(ERNIE-Sparse), and with both. The baselines are fitted on the same 96,000 expressions: the most frequent value of all,
of the operator at the root, and of this operator with its value for its own digits.

Prediction, written before the runs but those of full attention with seed 1: full attention is right more often than the
best baseline, with two levels more than with three. Blocks with a global block come close to it. Representatives add
less than a global block does, and blocks alone are not better than the best baseline.

What came out, with five seeds: full attention, blocks with a global one, and representatives with a global block are
right in 55 to 60 % and 45 to 49 %, on the mean 4 to 8 points more than the best baseline. Representatives alone are at
the best baseline, about 10 points above blocks alone, which are 2 and 6 points above that of the operator. So
representatives carry information between blocks. Beside a global block they add 0 to 3 points with three levels, and
nothing reliable with two; they have more parameters.
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from itertools import accumulate, islice
from typing import Any

import experiments
import numpy as np
import torch
from fairseq.data import Dictionary
from needle import SIZES
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from hat_fairseq.data.readers import READERS

sys.path.append(str(READERS))
from listops import END, FUNCTIONS, OPERATORS, SYMBOLS, Limits, expressions  # noqa: E402

SIZE, TESTED = 32, 2000  # expressions of an update, and of the test
UPDATES, LEARNING_RATE, WARM_UP = 3000, 2e-3, 200
LIMITS = [Limits(19, 61, max_depth=levels + 1, max_args=args) for levels, args in ((2, 10), (3, 5))]
LEVELS = (2, 3)  # of operators
BLOCKS = {"encoder_attention": "block-sparse", "sparse_block": 4, "sparse_last": 0, "sparse_random": 0}
REPRESENTATIVES = {**BLOCKS, "representative_weights": "separate"}
MODELS: dict[str, dict[str, Any]] = {
    "full": {"no_hierarchy": True},
    "blocks": {"no_hierarchy": True, **BLOCKS, "sparse_first": 0},
    "blocks, global": {"no_hierarchy": True, **BLOCKS, "sparse_first": 1},
    "representatives": {**REPRESENTATIVES, "sparse_first": 0},
    "representatives, global": {**REPRESENTATIVES, "sparse_first": 1},
}
Example = tuple[Sequence[str], Any]  # symbols, value


def main() -> None:
    words = Dictionary()
    for symbol in SYMBOLS.tolist():
        words.add_symbol(symbol)
    tested = drawn(TESTED)
    guesses = right_guesses(drawn(SIZE * UPDATES + TESTED)[TESTED:], tested)

    def trained(name: str, updates: int, seed: int) -> nn.Module:
        model, data = build(name, words, seed), drawn(SIZE * updates + TESTED)[TESTED:]
        order = random.Random(seed).sample(range(len(data)), len(data))

        def loss_of(update: int) -> Tensor:
            tokens, positions, values = batch([data[i] for i in order[SIZE * update : SIZE * (update + 1)]], words)
            return cross_entropy(model(tokens, masked_tokens=positions)[0], values)

        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
        experiments.optimise(model, optimizer, updates, loss_of, WARM_UP)
        return model

    experiments.experiment(
        "short_listops",
        list(MODELS),
        UPDATES,
        {"expressions of an update": SIZE, "learning rate": LEARNING_RATE},
        trained,
        lambda model: evaluate(model, words),
        draw,
        levels=LEVELS,
        baselines={name: accuracies(tested, right)["accuracy"] for name, right in guesses.items()},
        chance=10,
    )


def build(name: str, words: Dictionary, seed: int) -> Any:
    arch = "ernie_sparse_base" if name.startswith("representatives") else "hat_roberta_base"
    return experiments.build(arch, seed, SIZES, words, max_positions=64, **MODELS[name])


@cache
def drawn(number: int) -> list[Example]:
    """The first different expressions of one stream, of two and of three levels in turn."""
    streams = [expressions(np.random.default_rng(0), limits) for limits in LIMITS]
    pairs = (pair for both in zip(*streams, strict=True) for pair in both)
    different = dict(islice(pairs, 2 * number))
    return [(text.split(), value) for text, value in islice(different.items(), number)]


def batch(examples: Sequence[Example], words: Dictionary) -> tuple[Tensor, Tensor, Tensor]:
    """(B, T) token ids, (B, T) True = `<s>` or an operator, and their values in the order of the positions."""
    rows, values = [], []
    for symbols, value in examples:
        rows.append(torch.tensor([words.bos(), *map(words.index, symbols), words.eos()]))
        values += [value, *inner_values(symbols)]
    tokens = pad_sequence(rows, batch_first=True, padding_value=words.pad())
    operators = torch.tensor([words.index(operator) for operator in OPERATORS])
    positions = torch.isin(tokens, operators) | (tokens == words.bos())
    return tokens, positions, torch.tensor([words.index(str(value)) for value in values])


def inner_values(symbols: Sequence[str]) -> list[int]:
    """The value of each operator, in their order."""
    values: list[int] = []
    open_operators: list[tuple[int, str, list[int]]] = []  # number, operator, arguments
    for symbol in symbols:
        if symbol in FUNCTIONS:
            open_operators.append((len(values), symbol, []))
            values.append(0)
            continue
        if symbol == END:
            number, operator, arguments = open_operators.pop()
            values[number] = FUNCTIONS[operator](arguments)
        value = values[number] if symbol == END else int(symbol)
        if open_operators:
            open_operators[-1][2].append(value)
    return values


@torch.no_grad()
def evaluate(model: nn.Module, words: Dictionary) -> dict[str, list[float]]:
    tested, right = drawn(TESTED), []
    for start in range(0, TESTED, 100):
        tokens, positions, values = batch(tested[start : start + 100], words)
        first = positions.nonzero()[:, 1] == 0
        right += (model(tokens, masked_tokens=positions)[0].argmax(dim=1) == values)[first].tolist()
    return accuracies(tested, right)


def accuracies(examples: Sequence[Example], right: Sequence[bool]) -> dict[str, list[float]]:
    """In percent, and the number of expressions, for each number of levels."""
    deepest = [max(accumulate((s[0] == "[") - (s == "]") for s in symbols)) for symbols, _ in examples]
    chosen = [[one for one, depth in zip(right, deepest, strict=True) if depth == level] for level in LEVELS]
    return {"accuracy": [round(100 * sum(c) / len(c), 1) for c in chosen], "questions": list(map(len, chosen))}


def views(symbols: Sequence[str]) -> dict[str, Hashable]:
    """What each baseline reads of an expression."""
    root, *rest = symbols
    level, digits = 0, []
    for symbol in rest:
        level += symbol.startswith("[") - (symbol in (END, "X"))  # X: as readers write it
        if level == 0 and symbol.isdigit():
            digits.append(int(symbol))
    value = FUNCTIONS[root](digits) if digits else None
    return {"constant": (), "root operator": root, "root operator and its digits": (root, value)}


def right_guesses(
    training: Iterable[Example],
    tested: Sequence[Example],
    views: Callable[[Sequence[str]], dict[str, Hashable]] = views,
) -> dict[str, list[bool]]:
    """Whether the most frequent value of the training expressions that look alike is right; of all if none does."""
    counts: defaultdict[Hashable, Counter[Any]] = defaultdict(Counter)
    for symbols, value in training:
        for view in views(symbols).items():
            counts[view][value] += 1

    def guess(view: Hashable) -> Any:
        return (counts.get(view) or counts["constant", ()]).most_common(1)[0][0]

    names = views(tested[0][0])
    return {name: [guess((name, views(symbols)[name])) == value for symbols, value in tested] for name in names}


def draw(record: dict[str, Any], axis: Any) -> None:
    """The models, and a dashed line for each baseline."""
    experiments.draw_seeds(record, axis, LEVELS, "levels of operators")
    for name, row in record["baselines"].items():
        axis.plot(LEVELS, row, linestyle="--", label=name)


if __name__ == "__main__":
    main()
