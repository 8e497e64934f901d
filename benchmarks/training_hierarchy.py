#!/usr/bin/env python3
"""What does the hierarchy cost in training? An update of HAT-BART and of its baseline without hierarchy.

    python benchmarks/training_hierarchy.py

An update is forward, backward, clipping and fairseq's Adam for one document, with a sentence every 32 tokens, dropout
and attention dropout 0.1. The lengths are those of documents (3,072 to 512 tokens) and of translation (512 to 512), the
widths those of BART-base and BART-large. With 2 + 2 layers HAT's one layer over the sentences weighs more than with 6
or 12, so the ratios are upper bounds for deep models. Each parameter of the hierarchy takes 16 bytes (itself, its
gradient, two moments of Adam): 11.8M and 21.0M of them are the difference in memory.
"""

from __future__ import annotations

from harness import Facts, Job, Setting, run
from peers import model_of
from train_step import CHUNKED, SIZES, checked_parameters, model_sizes, update_job

COMMON = {"documents": 1, "target": 512, "layers": 2, "vocabulary": 50265, "attention_dropout": 0.1}
CONTENDERS = ("hat", "plain")
SETTINGS = [
    {"name": "{source:,} to {target} tokens, width {width}", "source": source, **SIZES[width], **COMMON}
    for source in (3072, 512)
    for width in (768, 1024)
]


def build(name: str, setting: Setting) -> Job:
    model = model_of("hat_bart_base", no_hierarchy=name == "plain", **model_sizes(setting))
    return update_job(model, CHUNKED, setting)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    return [checked_parameters(setting, ends["hat"], ends["plain"])]


if __name__ == "__main__":
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="plain")
