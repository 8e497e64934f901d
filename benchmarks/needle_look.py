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

import random
from typing import Any

import torch
from harness import RESULTS, flags, write_result
from needle import LENGTH, MODELS, NEEDLE, VALUES, batch, build, dictionary, read, scores, train
from torch import Tensor, nn

from hat_fairseq.analysis.recording import Recorder

FAR = 64  # tokens: four layers with windows of 16


def main() -> None:
    parser = flags(RESULTS / "needle_look.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--documents", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(1)
    training, validation = read("train"), read("dev")
    words = dictionary(training)
    runs = []
    for seed in args.seeds:
        model = train(build(MODELS["hat"], words, seed), words, training, args.updates, seed).eval()
        rng = random.Random(0)
        looked = [look(model, *batch(rng, words, validation, LENGTH, 1)) for _ in range(args.documents)]
        attention, named = (torch.cat(each) for each in zip(*looked, strict=True))
        if not len(named):
            raise SystemExit(f"seed {seed}: the model answers no far question right; give it more --updates")
        by_layer = attention.mean(dim=0)
        row = {"seed": seed, "questions": len(named), "layer": int(by_layer.argmax())}
        row["attention"] = round(float(by_layer.max()), 3)
        row["occlusion"] = round(100 * float(named.float().mean()), 1)
        print(row, flush=True)
        runs.append(row)
    settings = {"updates": args.updates, "documents": args.documents, "distance": FAR}
    write_result(args.out, settings=settings, runs=runs)


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
    answers, distances, units = answers[0, :questions], distances[0, :questions], recorder.numbers
    asked = [q for q in range(questions) if logits[q].argmax() == answers[q] and distances[q] > FAR]
    others = range(questions, int(units.max()) + 1)  # the questions themselves stay
    occluded = [answered(model, tokens[:, units != unit], positions, answers) for unit in others]
    lowest = torch.stack(occluded).argmin(dim=0) + questions
    needles = [int(units[positions[0, question] + distances[question]]) for question in asked]
    assert all(int((units == needle).sum()) == NEEDLE for needle in needles)
    attention = [mean[:, question, needle] for question, needle in zip(asked, needles, strict=True)]
    named = [bool(lowest[question] == needle) for question, needle in zip(asked, needles, strict=True)]
    return torch.stack(attention) if attention else mean.new_zeros(0, len(mean)), torch.tensor(named, dtype=torch.bool)


def answered(model: nn.Module, tokens: Tensor, positions: Tensor, answers: Tensor) -> Tensor:
    """(Q,) log-probabilities of the answers."""
    logits = scores(model, tokens, positions[:, : len(answers)])[0]
    return logits.log_softmax(dim=-1).gather(1, answers[:, None])[:, 0]


if __name__ == "__main__":
    main()
