#!/usr/bin/env python3
"""Does what `hat look` shows point to the evidence? A trained HAT on the needles of `needle.py`.

    python benchmarks/needle_look.py

The model is `hat` of `needle.py`: four layers with a window of 16 tokens, and attention to sentences. It answers
questions from inserted sentences, the needles. The figures are about the questions that it answers right and whose
needle is more than 64 tokens away, beyond the reach of the window. Attention is the weight on the needle from the
sentence of the question, mean of the heads, in the layer where it is largest over all documents. Occlusion leaves out
one sentence of the meeting or one needle at a time; the figure is how often the question's needle changes the
log-probability of the answer most.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from needle import LENGTH, NEEDLE, VALUES, batch, build, dictionary, read, scores, train
from recipe_runs import RESULTS, mean_and_deviation, write_result
from torch import Tensor, nn

from hat_fairseq.analysis.look import Look
from hat_fairseq.analysis.page import page
from hat_fairseq.analysis.recording import Recorder

FAR = 64  # tokens: four layers with windows of 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--out", type=Path, default=RESULTS / "needle_look.json")
    parser.add_argument("--page", type=Path, help="also write the page of hat look for one document")
    args = parser.parse_args()
    torch.set_num_threads(1)
    training, validation = read("train"), read("dev")
    words = dictionary(training)
    runs = []
    for seed in args.seeds:
        model = train(build("hat", words, seed), words, training, args.updates, seed).eval()
        rng = random.Random(0)
        found = [look(model, *batch(rng, words, validation, LENGTH, 1)) for _ in range(args.documents)]
        attention = torch.cat([each for each, _ in found])  # questions x layers
        named = torch.cat([each for _, each in found])
        if not len(named):
            raise SystemExit(f"seed {seed}: the model answers no far question right; give it more --updates")
        by_layer = attention.mean(dim=0)
        runs.append(
            {
                "seed": seed,
                "questions": len(named),
                "layer": int(by_layer.argmax()),
                "attention": round(float(by_layer.max()), 3),
                "occlusion": round(100 * float(named.float().mean()), 1),
            }
        )
        print(runs[-1], flush=True)
        if args.page and seed == args.seeds[0]:
            seen = see(model, words, *batch(random.Random(0), words, validation, LENGTH, 1)[:3])
            args.page.write_text(page(seen), encoding="utf-8")
    settings = {"updates": args.updates, "documents": args.documents, "distance": FAR}
    write_result("needle_look", args.out, settings=settings, runs=runs, summary=summary(runs))


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and deviation over the seeds."""
    return {name: mean_and_deviation(name, [run[name] for run in runs]) for name in ("attention", "occlusion")}


@torch.no_grad()
def look(
    model: nn.Module, tokens: Tensor, positions: Tensor, answers: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    """For each far question with a right answer: (N, L) attention to its needle, (N,) whether occlusion names it."""
    questions = len(VALUES)
    encoder: Any = model.core
    with Recorder(encoder, tokens) as recorder:
        logits = scores(model, tokens, positions[:, :questions])[0]
    (shown,) = [one for one in recorder.maps() if one.queries == "source"]
    mean = shown.weights.mean(dim=1)  # L x S x S
    answers, distances = answers[0, :questions], distances[0, :questions]
    asked = [q for q in range(questions) if logits[q].argmax() == answers[q] and distances[q] > FAR]
    units = recorder.numbers
    changes = leave_out(model, tokens, positions, answers, logits, units)
    attention, named = [], []
    for question in asked:
        needle = int(units[positions[0, question] + distances[question]])
        assert int((units == needle).sum()) == NEEDLE
        attention.append(mean[:, question, needle])
        named.append(int(changes[:, question].argmin()) + questions == needle)
    return torch.stack(attention) if attention else mean.new_zeros(0, len(mean)), torch.tensor(named, dtype=torch.bool)


def leave_out(
    model: nn.Module, tokens: Tensor, positions: Tensor, answers: Tensor, logits: Tensor, units: Tensor
) -> Tensor:
    """(S - Q, Q) change in the log-probabilities of the answers without a sentence; the questions themselves stay."""
    before, changes = logits.log_softmax(dim=-1), []
    for unit in range(len(answers), int(units.max()) + 1):
        after = scores(model, tokens[:, units != unit], positions[:, : len(answers)])[0].log_softmax(dim=-1)
        changes.append((after - before).gather(1, answers[:, None])[:, 0])
    return torch.stack(changes)


@torch.no_grad()
def see(model: nn.Module, words: Dictionary, tokens: Tensor, positions: Tensor, answers: Tensor) -> Look:
    """What `hat look` shows of a document: the rows of the occlusion are the questions."""
    questions = len(VALUES)
    encoder: Any = model.core
    with Recorder(encoder, tokens) as recorder:
        logits = scores(model, tokens, positions[:, :questions])[0]
    answers, units = answers[0, :questions], recorder.numbers
    changes = leave_out(model, tokens, positions, answers, logits, units)
    texts = [[words[token] for token in tokens[0, units == unit].tolist()] for unit in range(recorder.num_units)]
    source = tuple(" ".join(word for word in text if word not in ("<s>", "</s>")) for text in texts)
    rows = tuple(f"{source[number]}? {words[answer]}" for number, answer in enumerate(answers.tolist()))
    before = logits.log_softmax(dim=-1).gather(1, answers[:, None])[:, 0]
    change = torch.cat([changes.new_zeros(questions, questions), changes]).T
    looked = Look("needles", "hat", "sentence", source, recorder.lengths, tuple(recorder.maps()))
    return looked.with_occlusion(rows, before, change)


if __name__ == "__main__":
    main()
