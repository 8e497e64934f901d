"""The needles stand where the benchmark says, and windows cannot know what lies beyond their reach."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import needle
import pytest
import tables
import torch
from commands import run_command
from fairseq.data import Dictionary
from needle_documents import VALUES, batch, dictionary, document, read
from torch import Tensor, nn

QUESTIONS = len(VALUES)
CHANCE = 100 / 8


@pytest.fixture(scope="module")
def meetings() -> list[list[list[str]]]:
    return read("dev")


@pytest.fixture(scope="module")
def words(meetings: list[list[list[str]]]) -> Dictionary:
    return dictionary(meetings)


@pytest.mark.parametrize("length", [length for _, length in needle.STAGES])
def test_each_answer_stands_once_at_its_distance(words: Dictionary, meetings: Any, length: int) -> None:
    for seed in range(20):
        tokens, positions, answers, distances = document(random.Random(seed), words, meetings, length)
        text = [words[token] for token in tokens]
        assert len(text) == length and text[-1] == "</s>" and positions == sorted(positions)
        front = text.index("</s>")
        assert text[:front:2] == ["<s>"] * QUESTIONS and sorted(text[1:front:2]) == sorted(VALUES)
        assert positions[:QUESTIONS] == [*range(1, front, 2)]
        for position, answer, distance in zip(positions, answers, distances, strict=True):
            key, value = text[position], words[answer]
            needle_at = position + distance
            assert text[needle_at - 4 : needle_at + 2] == ["<s>", "the", key, "is", value, "."]
            assert value in VALUES[key] and needle_at > front
            assert sum(text.count(other) for other in VALUES[key]) == 1 and text.count(key) == 2
        assert distances[QUESTIONS:] == [2] * QUESTIONS


class Reader(nn.Module):
    """Answers without learning: the word that `answer(key, text)` gives."""

    def __init__(self, words: Dictionary, answer: Any) -> None:
        super().__init__()
        self.words, self.answer = words, answer

    def forward(self, tokens: Tensor, masked_tokens: Tensor) -> tuple[Tensor, None]:
        texts = [[self.words[token] for token in row] for row in tokens.tolist()]
        said = [
            self.words.index(self.answer(text[position], text))
            for text, asked in zip(texts, masked_tokens, strict=True)
            for position in asked.nonzero().flatten().tolist()
        ]
        return nn.functional.one_hot(torch.tensor(said), len(self.words)).float(), None


def said_of(key: str, text: list[str]) -> str:
    return text[text.index(key, text.index("</s>")) + 2]


def test_a_reader_is_always_right_and_a_guess_as_often_as_chance(words: Dictionary, meetings: Any) -> None:
    reader = needle.evaluate(Reader(words, said_of), words, meetings, 240)
    assert reader["accuracy"] == [100.0] * len(needle.BINS)
    assert sum(reader["questions"]) == 240 * QUESTIONS and min(reader["questions"]) > 30
    guess = needle.evaluate(Reader(words, lambda key, text: VALUES[key][3]), words, meetings, 240)
    right = sum(a * n for a, n in zip(guess["accuracy"], guess["questions"], strict=True)) / sum(guess["questions"])
    assert right == pytest.approx(CHANCE, abs=3)  # four standard deviations of 1,920 guesses
    # Knowing the other seven answers does not help: values repeat their number as often as chance.
    other = {key: sorted(VALUES)[index - 1] for index, key in enumerate(sorted(VALUES))}
    same = Reader(words, lambda key, text: VALUES[key][VALUES[other[key]].index(said_of(other[key], text))])
    copied = needle.evaluate(same, words, meetings, 240)
    right = sum(a * n for a, n in zip(copied["accuracy"], copied["questions"], strict=True)) / sum(copied["questions"])
    assert right == pytest.approx(CHANCE, abs=3)


def test_bins_are_named_by_their_longest_distance() -> None:
    assert needle.bins(torch.tensor([[1, 16, 17], [64, 65, 512]])) == [0, 0, 1, 3, 4, 9]


@pytest.mark.parametrize("name", needle.MODELS)
def test_windows_know_what_lies_within_their_reach_and_nothing_else(
    words: Dictionary, meetings: Any, name: str
) -> None:
    """Another value in a needle changes the logits of its question if, and only if, it lies within the reach."""
    model = needle.build(name, words, seed=1).double().eval()
    tokens, positions, answers, distances = batch(random.Random(5), words, meetings, needle.LENGTH, 6)
    positions, distances = positions[:, :QUESTIONS], distances[:, :QUESTIONS]
    before, reach = needle.scores(model, tokens, positions), needle.REACH.get(name, needle.LENGTH)
    for number in range(QUESTIONS):
        other, column = tokens.clone(), torch.arange(len(tokens))
        at = positions[:, number] + distances[:, number]
        assert (tokens[column, at] == answers[:, number]).all()
        other[column, at] = words.index("the")
        changed = (needle.scores(model, other, positions) != before).any(dim=-1)[:, number]
        # The last pooled key within a window may end up to three tokens before the window does, and a token may be the
        # last of its block.
        slack = 15 if name == "blocks" else 3 * len(needle.TWO_LEVELS)
        assert changed[distances[:, number] <= reach - slack].all()
        assert not changed[distances[:, number] > reach].any()


def test_scores_are_in_the_order_of_the_answers(words: Dictionary, meetings: Any) -> None:
    tokens, positions, answers, _ = batch(random.Random(1), words, meetings, 96, 4)
    assert positions.shape == (4, 2 * QUESTIONS)
    assert (needle.scores(Reader(words, said_of), tokens, positions).argmax(dim=-1) == answers).all()


@pytest.mark.slow
def test_a_model_that_finds_nothing_shows_nothing(tmp_path: Path) -> None:
    out = tmp_path / "needle_look.json"
    flags = ["--seeds", 1, "--updates", 2, "--documents", 1, "--out", out]
    result = run_command(sys.executable, Path(needle.__file__).with_name("needle_look.py"), *flags, check=False)
    assert result.returncode == 1 and not out.exists()
    assert result.stderr.splitlines()[-1].startswith("seed 1: the model answers no far question right")


@pytest.mark.slow
def test_the_benchmark_runs_and_its_result_is_rendered(tmp_path: Path) -> None:
    out = tmp_path / "needle.json"
    flags = ["--seeds", 1, 2, "--updates", 3, "--models", "window", "segments", "--out", out]
    run_command(sys.executable, Path(needle.__file__), *flags)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert [(run["model"], run["seed"]) for run in record["runs"]] == [
        (name, seed) for seed in (1, 2) for name in ("window", "segments")
    ]
    assert record["summary"] == needle.summary(record["runs"]) and out.with_suffix(".png").is_file()
    table = tables.needle(record)
    assert table.count("\n| ") == 1 + len(needle.BINS) + 3 and "\n| 49 to 64 | 237 |" in table
