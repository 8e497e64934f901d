#!/usr/bin/env python3
"""Is training faster than fairseq's? An update of HAT-BART, hierarchy included, and of fairseq's own BART.

    python benchmarks/training_fairseq.py

An update is forward, backward, clipping and fairseq's Adam, with dropout 0.1 and label smoothing 0.1. fairseq's BART
has the same width and 6 + 6 layers but no hierarchy. Without attention dropout both sides use torch's fused attention,
and the gain on linear layers and loss is about the cost of the hierarchy. The memory of one document is then mostly
parameters, gradients and Adam's moments, 16 bytes for each of HAT's parameters; with four documents it is mostly
activations.
"""

from __future__ import annotations

from harness import Facts, Job, Setting, run
from peers import model_of
from train_step import CHUNKED, SIZES, STOCK, checked_loss, checked_parameters, model_sizes, same_loss, update_job

COMMON = {"documents": 1, "target": 512, "layers": 6, "vocabulary": 50265}
NAME = "{source:,} to {target} tokens, {layers} + {layers} layers, attention dropout {attention_dropout}"
LONG = {"name": NAME, **COMMON}
TWO = {"contenders": ["ours", "fairseq"]}
MANY = {"name": NAME + ", {documents} documents", "documents": 4, "rounds": 1}
SETTINGS = [
    {**LONG, "source": 3072, **SIZES[768], "attention_dropout": 0.1},
    {**LONG, "source": 3072, **SIZES[768], "attention_dropout": 0.0, **TWO},
    {**LONG, "source": 3072, **SIZES[1024], "layers": 12, "rounds": 1, "attention_dropout": 0.0, **TWO},
    {**LONG, "source": 512, **SIZES[768], "attention_dropout": 0.1, **TWO},
    {**LONG, **MANY, "source": 3072, **SIZES[768], "attention_dropout": 0.0, **TWO},
]
CHECKPOINTED = "ours, checkpointed"
CONTENDERS = ("ours", CHECKPOINTED, "fairseq")


def build(name: str, setting: Setting) -> Job:
    sizes = model_sizes(setting)
    if name == "fairseq":
        job = update_job(model_of("bart_base", **sizes), STOCK, setting)
        return Job(job.step, job.facts, lambda: {**job.finish(), **same_loss(setting)})
    model = model_of("hat_bart_base", checkpoint_activations=name == CHECKPOINTED, **sizes)
    return update_job(model, CHUNKED, setting)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    sentences = [checked_parameters(setting, ends["ours"], ends["fairseq"])]
    return [*sentences, checked_loss(setting, ends["fairseq"])]


if __name__ == "__main__":
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="ours", rounds=3)
