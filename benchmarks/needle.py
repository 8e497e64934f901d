#!/usr/bin/env python3
"""Does it find what is far away? Encoders trained from scratch read an answer in a real document, at a known distance.

    python benchmarks/needle.py

A document is eight questions and the text of AMI meetings, 512 tokens in all: `<s> colour <s> city ... </s> <s>
sentence ...`. Eight sentences are inserted at random positions, one for each question ("the colour is red ."), each
with one of eight values: the needles. The model predicts the value at the word of the question, with its masked-LM
head. Distance is the number of tokens from this word to the value. Values are independent of each other, so a guess is
right in 12.5 % of the cases. Models are trained on the training meetings and measured on the validation meetings.

All models have 4 layers of width 64 (`hierarchical_transformer` also two cross-segment layers) and the same updates on
the same documents, without dropout. Two things help training: documents grow from 96 to 192 to 512 tokens, and the loss
(not the accuracy) also includes a prediction at the key word of each needle, two tokens from the answer. Without them,
windows and segments stayed at chance in trial runs. The settings were chosen in trial runs with seed 1 on the same
validation meetings.

The window is 16 tokens on either side, so four layers reach 4 x 16 = 64 tokens. The second level, 64 tokens on either
side in the last two layers, adds 2 x 64. Its pooled keys are those of the document (`pooling`) or of each token's own
window (`pooling, token`). HAT has the same window, and attention to sentences. The segments of
`hierarchical_transformer` are the sentences. In `window, global` the tokens of the questions are global. Block-sparse
attention has blocks of 16 and attends to the neighbouring ones, so four layers reach 79 tokens. It is measured alone,
with a representative token for each block (ERNIE-Sparse), and with a random block and BigBird's global blocks: the
first, which contains the questions, and the last.

The window alone finds needles up to 32 tokens away, 41 to 93 % of those from 33 to 48, few from 49 to 64, and none
beyond 64. The second level finds nearly all up to 64 tokens, 58 % from 65 to 96, and none beyond, although it reaches
192; where its pooled keys begin makes no difference. Full attention, HAT on the window, and global questions find the
needle at any distance. `hierarchical_transformer` does so with two seeds; with the third it is right in about 40 % at
every distance. Blocks alone find few needles beyond 64 tokens and none beyond 96. With representatives they find 62 to
71 % beyond 64 tokens, and with global blocks all.
"""

import gzip
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import experiments
import torch
from fairseq.data import Dictionary
from render import labelled
from torch import Tensor, nn
from torch.nn import functional

AMI = Path(__file__).resolve().parents[1] / "preprocess" / "ami_data"
FACTS = {
    "animal": "cat dog horse sheep rabbit tiger goat duck",
    "city": "paris london rome berlin madrid vienna oslo prague",
    "colour": "red blue green yellow black white orange purple",
    "day": "monday tuesday wednesday thursday friday saturday sunday holiday",
    "fruit": "apple banana lemon cherry grape melon peach plum",
    "metal": "gold silver copper iron tin zinc lead nickel",
    "month": "january february march april june july august october",
    "sport": "tennis golf rugby chess hockey judo polo cricket",
}
VALUES = {key: values.split() for key, values in FACTS.items()}
PLANTED = {*VALUES, *(value for values in VALUES.values() for value in values)}
NUMBERED = {f"k{key}": [f"k{key}v{value}" for value in range(8)] for key in range(16)}  # for more questions
NEEDLE, VALUE = 6, 4  # tokens of `<s> the colour is red .`, and the place of the value
WORDS = 1000  # of the meetings; the others are <unk>
Meetings = list[list[list[str]]]  # words of sentences of meetings

LAYERS, LENGTH, WINDOW, SECOND, TWO_LEVELS = 4, 512, 16, 64, (2, 3)
UPDATES, TESTED = 1200, 240  # of a training, and documents
SIZES = {"embed_dim": 64, "ffn_embed_dim": 128, "attention_heads": 4, "layers": LAYERS}


@dataclass(frozen=True)
class Task:
    """What documents and training are like.

    Attributes:
        stages: share of the updates, tokens of a document and number of questions: short documents first.
        documents: the longest ones of an update; an update of shorter ones has as many tokens.
        bins: the longest distance of each.
        even: least and largest distance of needles, spread evenly; None: any distance, evenly over the logarithms.
        lead: tokens of text before the questions.
        align: needles begin at the first token after a multiple of so many tokens, if not 0.
        values: the values of each key.
    """

    stages: tuple[tuple[float, int, int], ...] = ((0.7, 96, 8), (0.85, 192, 8), (1.0, LENGTH, 8))
    documents: int = 3
    bins: tuple[int, ...] = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
    even: tuple[int, int] | None = None
    lead: int = 0
    align: int = 0
    values: dict[str, list[str]] = field(default_factory=lambda: VALUES)
    learning_rate: float = 2e-3
    warm_up: int = experiments.WARM_UP


ANY_DISTANCE = Task()
LOCAL = {"encoder_attention": "window", "attention_window": WINDOW}
LEVELS = {
    "encoder_attention": "pooling",
    "encoder_attention_layers": f"{TWO_LEVELS[0]}-{TWO_LEVELS[-1]}",
    "pooling_window": SECOND,
}
BLOCKS = {
    "encoder_attention": "block-sparse",
    "sparse_block": 16,
    "sparse_first": 0,
    "sparse_last": 0,
    "sparse_random": 0,
}
MODELS: dict[str, dict[str, Any]] = {
    "full": {"no_hierarchy": True},
    "window": {"no_hierarchy": True, **LOCAL},
    "pooling, token": {"no_hierarchy": True, **LOCAL, **LEVELS},
    "hat": LOCAL,
    "segments": {
        "arch": "hierarchical_transformer",
        "layout": "S|SD|SD|S",
        "segment_by": "marker",
        "segment_length": 16,
        "max_segments": LENGTH // 4,
    },
    "window, global": {"no_hierarchy": True, **LOCAL, "global_tokens": "question"},
    "blocks": {"no_hierarchy": True, **BLOCKS},
    "representatives": {"arch": "ernie_sparse_base", **BLOCKS, "representative_weights": "separate"},
    "blocks, global": {"no_hierarchy": True, **BLOCKS, "sparse_first": 1, "sparse_last": 1, "sparse_random": 1},
}
# Tokens that information travels at most; None: any number.
REACH = {
    "window": LAYERS * WINDOW,
    **dict.fromkeys(("pooling", "pooling, token"), LAYERS * WINDOW + len(TWO_LEVELS) * SECOND),
    "blocks": (LAYERS + 1) * 16 - 1,
}


def main() -> None:
    experiment("needle", MODELS, ANY_DISTANCE, reach=REACH)


def experiment(question: str, models: Mapping[str, Mapping[str, Any]], task: Task, **content: Any) -> None:
    """Train and evaluate models on needles; `models` has the flags of each."""
    training, validation = read("train"), read("dev")
    words = dictionary(training, task.values)
    experiments.experiment(
        question,
        list(models),
        UPDATES,
        {"tokens of an update": task.documents * task.stages[-1][1], "learning rate": task.learning_rate},
        lambda name, updates, seed: train(build(models[name], words, seed), words, training, updates, seed, task),
        lambda model: evaluate(model, words, validation, task),
        draw,
        bins=task.bins,
        chance=12.5,
        **content,
    )


def read(split: str) -> Meetings:
    """Sentences of 4 to 15 words of each meeting, without those that have a word of a needle."""
    meetings = []
    with gzip.open(AMI / f"ami.{split}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            texts = [text for turn in json.loads(line)["turns"] for text in re.findall(r"[^.?!]+[.?!]", turn["text"])]
            sentences = [text.lower().split() for text in texts]
            meetings.append([words for words in sentences if 4 <= len(words) <= 15 and not PLANTED & set(words)])
    return meetings


def dictionary(meetings: Meetings, values: dict[str, list[str]] = VALUES) -> Dictionary:
    """The words of the needles, and the most frequent words of the meetings."""
    result = Dictionary()
    counts = Counter(word for meeting in meetings for words in meeting for word in words)
    planted = {*values, *(value for each in values.values() for value in each)}
    for word in [*sorted(planted), "the", "is", ".", *(word for word, _ in counts.most_common(WORDS))]:
        result.add_symbol(word)
    return result


def document(
    rng: random.Random,
    words: Dictionary,
    meetings: Meetings,
    length: int,
    questions: int = 8,
    task: Task = ANY_DISTANCE,
    offset: int = 0,
) -> tuple[list[int], ...]:
    """Token ids; positions of the questions' words, then of the needles' key words; answers; distances to them.

    Args:
        offset: of needles behind a multiple of `task.align` tokens.
    """
    keys = rng.sample(sorted(task.values), questions)
    values = {key: rng.choice(task.values[key]) for key in task.values if key in keys}
    front = task.lead + 2 * questions + 1
    question_at = dict(zip(keys, range(task.lead + 1, front, 2), strict=False))
    if task.even:
        planned = sorted((question_at[key] + rng.uniform(*task.even) - VALUE, key) for key in values)
    else:  # so that each bin has its share
        latest = length - front - questions * max(NEEDLE, task.align) - 16  # 16: the longest sentence and its `<s>`
        planned = sorted((front + math.exp(rng.uniform(0, math.log(latest))), key) for key in values)
    meeting = rng.choice(meetings)
    sentence, answer_at = rng.randrange(len(meeting)), {}
    tokens: list[int] = []

    def add(text: Sequence[str], room: int) -> None:
        tokens.extend([words.bos(), *map(words.index, text)][:room])

    while len(tokens) < task.lead:
        add(meeting[sentence % len(meeting)], task.lead - len(tokens))
        sentence += 1
    tokens += [token for key in keys for token in (words.bos(), words.index(key))] + [words.eos()]
    while len(tokens) < length:
        behind = (len(tokens) - offset) % task.align if task.align else 0
        if planned and planned[0][0] <= len(tokens) and not behind:
            key = planned.pop(0)[1]
            answer_at[key] = len(tokens) + VALUE
            add(["the", key, "is", values[key], "."], NEEDLE)
        else:
            add(meeting[sentence % len(meeting)], (task.align or length) - behind)
            sentence += 1
    assert not planned, "no room for all needles"
    asked = [*((question_at[key], key) for key in keys), *((at - 2, key) for key, at in answer_at.items())]
    answers = [words.index(values[key]) for _, key in asked]
    distances = [answer_at[key] - position for position, key in asked]
    return [*tokens[: length - 1], words.eos()], [position for position, _ in asked], answers, distances


def batch(
    rng: random.Random, words: Dictionary, meetings: Meetings, length: int, size: int, *more: Any
) -> tuple[Tensor, ...]:
    """(B, T) token ids; (B, 2 Q) positions in ascending order, answers and distances, the Q questions' first.

    Args:
        more: further arguments of `document`.
    """
    documents = (document(rng, words, meetings, length, *more) for _ in range(size))
    return tuple(map(torch.tensor, zip(*documents, strict=True)))


def build(flags: Mapping[str, Any], words: Dictionary, seed: int) -> nn.Module:
    flags = {"arch": "hat_roberta_base", "max_positions": LENGTH, **flags}
    return experiments.build(seed=seed, sizes=SIZES, dictionary=words, **flags)


def scores(model: nn.Module, tokens: Tensor, positions: Tensor, roll: int = 0) -> Tensor:
    """(B, T) token ids, (B, N) ascending positions -> (B, N, V) logits of the answers there."""
    asked = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, positions, True)
    return model(tokens, masked_tokens=asked, roll=roll)[0].unflatten(0, positions.shape)


def train(
    model: nn.Module,
    words: Dictionary,
    meetings: Meetings,
    updates: int,
    seed: int,
    task: Task = ANY_DISTANCE,
    loss: Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor] | None = None,
) -> nn.Module:
    """Models of the same seed see the same documents; `loss` of model, tokens, positions and answers."""
    rng, longest = random.Random(seed), task.stages[-1][1]

    def loss_of(update: int) -> Tensor:
        length, questions = next(stage[1:] for stage in task.stages if update < stage[0] * updates)
        size = task.documents * longest // length
        tokens, positions, answers, _ = batch(rng, words, meetings, length, size, questions, task)
        return (loss or cross_entropy)(model, tokens, positions, answers)

    optimizer = torch.optim.Adam(model.parameters(), lr=task.learning_rate, betas=(0.9, 0.98))
    experiments.optimise(model, optimizer, updates, loss_of, task.warm_up)
    return model


def cross_entropy(model: nn.Module, tokens: Tensor, positions: Tensor, answers: Tensor) -> Tensor:
    return functional.cross_entropy(scores(model, tokens, positions).flatten(0, 1), answers.flatten())


@torch.no_grad()
def evaluate(
    model: nn.Module, words: Dictionary, meetings: Meetings, task: Task = ANY_DISTANCE
) -> dict[str, list[float]]:
    """Accuracy of the questions in percent and their number, for each bin of distances."""
    rng, counts = random.Random(0), Counter[tuple[int, bool]]()
    _, length, questions = task.stages[-1]
    for _ in range(TESTED // 8):
        tokens, positions, answers, distances = batch(rng, words, meetings, length, 8, questions, task)
        right = scores(model, tokens, positions[:, :questions]).argmax(dim=-1) == answers[:, :questions]
        counts.update(zip(bins(distances[:, :questions], task), right.flatten().tolist(), strict=True))
    number = [counts[index, True] + counts[index, False] for index in range(len(task.bins))]
    accuracy = [round(100 * counts[index, True] / total, 1) for index, total in enumerate(number)]
    return {"accuracy": accuracy, "questions": number}


def bins(distances: Tensor, task: Task) -> list[int]:
    """The number of the bin of each distance."""
    return torch.bucketize(distances.flatten(), torch.tensor(task.bins)).tolist()


def draw(record: dict[str, Any], axis: Any) -> None:
    """Accuracy over distance, the range of the seeds, and how far windows reach."""
    ends = record["bins"]
    for number, (name, row) in enumerate(record["summary"].items()):
        label, size = (
            labelled(record["question"], name).replace("`", "").replace("\\", ""),
            max(3, 11 - 1.5 * number),
        )
        line = axis.plot(ends, [value["mean"] for value in row], marker="o", markersize=size, label=label)
        color, extremes = line[0].get_color(), ([value[end] for value in row] for end in ("least", "most"))
        axis.fill_between(ends, *extremes, color=color, alpha=0.15)
        if name in record.get("reach", {}):
            axis.axvline(record["reach"][name], color=color, linestyle=":")
    axis.set(xscale="log", xlabel="distance in tokens, up to")
    axis.set_xticks(ends, [str(distance) for distance in ends])
    axis.minorticks_off()


if __name__ == "__main__":
    main()
