#!/usr/bin/env python3
"""What does it cost to read the first tokens of a meeting, and what does it bring?

    OMP_NUM_THREADS=1 python studies/pretrained_length.py --threads 1

Seconds and peak memory (weights included) from the tokens of a meeting and seven questions to a score of each question
and turn, with the networks of `pretrained_hierarchy.py`: MiniLM and a head of two layers, in bf16 products. Both arms
read chunks of 512 tokens in the four lower layers. `chunks, N|D`: chunks in the two upper ones too, and a head whose
second layer reads all turns. `window`: windows of 128 tokens on either side, and a head that reads 24 neighbours.
Weights and tokens are random; a turn has 24 tokens, about as in QMSum. The longest setting is about the mean of its
meetings. What the length brings is in the rows with `tokens` in their names under `evidence` in
`pretrained_hierarchy.py`; the plot has both, with CPU seconds, because other work shared
the machine.
"""

from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
from fairseq.data import Dictionary
from harness import Facts, Job, Setting, forget_peak, run
from pretrained_data import CHUNKS, build, states_of, vectors_of
from pretrained_hierarchy import ARMS
from pretrained_tasks import BOS, Document, Evidence

WORDS, TURN, QUESTION, QUESTIONS = 30500, 24, 16, 7
LENGTHS = (1024, 2048, 4096, 8192, 12288)


def text(length: int, unit: int) -> torch.Tensor:
    """Random ids with a marker at the start of each unit."""
    ids = torch.randint(4, WORDS, (length,))
    ids[::unit] = BOS
    return ids


def job(name: str, setting: Setting) -> Job:
    """Reads one meeting."""
    words, arm = Dictionary(), ARMS[name]
    for number in range(WORDS):
        words.add_symbol(f"w{number}")
    below, encoder = (build(model, words).core.eval() for model in (CHUNKS, arm.model))
    shared: dict[str, Any] = dict(below.named_parameters())
    for key, parameter in encoder.named_parameters():
        if key in shared and shared[key].shape == parameter.shape:
            parameter.data = shared[key].data  # one copy of the weights in memory
    head = Evidence().head(arm.head, arm.neighbours).eval()
    document = Document("meeting", text(setting["length"], TURN), [], torch.zeros(0))
    asked = Document("questions", text(QUESTIONS * QUESTION, QUESTION), [], torch.zeros(0))
    forget_peak()

    @torch.no_grad()
    def step() -> Facts:
        none = torch.zeros(1, 0, 1)
        questions, units = (
            vectors_of(network, each, (states_of(below, each.tokens[None]), none))
            for network, each in ((below, asked), (encoder, document))
        )
        scores = head(questions, units)
        return {"tokens": len(document.tokens), "scores": scores.numel()}

    return Job(step, {"parameters": sum(p.numel() for p in encoder.parameters())})


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """Both arms score each turn for each question; nothing else is the same."""
    return []


if __name__ == "__main__":
    settings = [{"name": "{length} tokens", "length": length} for length in LENGTHS]
    run(job, check, contenders=["chunks, N|D", "window"], settings=settings, reference="chunks, N|D", rounds=3)
