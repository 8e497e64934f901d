"""The documents of `needle.py`: questions, meetings, and sentences with the answers planted in them."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from collections import Counter
from pathlib import Path

import torch
from fairseq.data import Dictionary
from torch import Tensor

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
NEEDLE = 6  # tokens, `<s> the colour is red .`
WORDS = 1000  # of the meetings; the others are <unk>
Meetings = list[list[list[str]]]  # words of sentences of meetings


def read(split: str) -> Meetings:
    """Sentences of 4 to 15 words of each meeting, without those that have a word of a needle."""
    meetings = []
    with gzip.open(AMI / f"ami.{split}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            texts = [text for turn in json.loads(line)["turns"] for text in re.findall(r"[^.?!]+[.?!]", turn["text"])]
            sentences = [text.lower().split() for text in texts]
            meetings.append([words for words in sentences if 4 <= len(words) <= 15 and not PLANTED & set(words)])
    return meetings


def dictionary(meetings: Meetings) -> Dictionary:
    """The words of the needles, and the most frequent words of the meetings."""
    result = Dictionary()
    counts = Counter(word for meeting in meetings for words in meeting for word in words)
    for word in [*sorted(PLANTED), "the", "is", ".", *(word for word, _ in counts.most_common(WORDS))]:
        result.add_symbol(word)
    return result


def document(rng: random.Random, words: Dictionary, meetings: Meetings, length: int) -> tuple[list[int], ...]:
    """Token ids; positions of the questions' words, then of the needles' key words; answers; distances to them."""
    keys, values = rng.sample(sorted(VALUES), len(VALUES)), {key: rng.choice(VALUES[key]) for key in VALUES}
    tokens = [token for key in keys for token in (words.bos(), words.index(key))] + [words.eos()]
    front = len(tokens)
    # Distances are spread evenly over their logarithms, so that each bin has its share.
    latest = length - front - len(VALUES) * NEEDLE - 16  # 16: the longest sentence and its `<s>`
    planned = sorted((front + math.exp(rng.uniform(0, math.log(latest))), key) for key in VALUES)
    meeting = rng.choice(meetings)
    sentence, answer_at = rng.randrange(len(meeting)), {}
    while len(tokens) < length:
        if planned and planned[0][0] <= len(tokens):
            key = planned.pop(0)[1]
            text = ["the", key, "is", values[key], "."]
            answer_at[key] = len(tokens) + text.index(values[key]) + 1
        else:
            text = meeting[sentence % len(meeting)]
            sentence += 1
        tokens += [words.bos(), *map(words.index, text)]
    asked = [*zip(range(1, front, 2), keys, strict=False), *((at - 2, key) for key, at in answer_at.items())]
    answers = [words.index(values[key]) for _, key in asked]
    distances = [answer_at[key] - position for position, key in asked]
    return [*tokens[: length - 1], words.eos()], [position for position, _ in asked], answers, distances


def batch(rng: random.Random, words: Dictionary, meetings: Meetings, length: int, size: int) -> tuple[Tensor, ...]:
    """(B, T) token ids; (B, 16) positions in ascending order, answers and distances, the questions' 8 first."""
    return tuple(map(torch.tensor, zip(*(document(rng, words, meetings, length) for _ in range(size)), strict=True)))
