#!/usr/bin/env python3
"""How fast is it on a GPU?

    python benchmarks/gpu.py                                        # on one GPU
    python benchmarks/gpu.py --settings 0 --rounds 1 --set width=32 heads=4 layers=1 source=128 new=8   # anywhere

Generation is that of the benchmarks beside transformers and CTranslate2, with eight documents and with one; CTranslate2
computes in float16, the others in bfloat16. Training is an update of BART-base's sizes on 3,072 to 512 tokens, and the
encoders do a forward and backward pass. Without a GPU all compute in fp32. `pytest -m gpu` compares losses, gradients
and texts of a GPU with those of the CPU.
"""

from __future__ import annotations

from typing import Any

import generation_ctranslate2
import generation_transformers
import long_encoders
import torch
import training_fairseq
import training_hierarchy
from generation import SIZES, fairseq_job, hat, job, setting
from harness import Facts, Job, Setting, run, where
from train_step import checked_loss, checked_parameters

from hat_fairseq.generation.beam_search import BeamSearchGenerator

FP16, PEER = "hat fp16", "ctranslate2 fp16"
CONTENDERS = ("hat", FP16, "plain", "transformers", PEER, "fairseq", *long_encoders.FEW)
TRAINING = {**SIZES, "target": 512, "attention_dropout": 0.1, "contenders": ("hat", "plain", "fairseq")}
UPDATE = "update, {documents} documents of {source:,} to {target} tokens"


def generating(batch: int, *contenders: str) -> Setting:
    name = "generation, {source:,} tokens x {batch}, {new} new, beside " + contenders[-1]
    return setting(3072, batch, name=name, contenders=contenders, rounds=5)


def encoding(length: int) -> Setting:
    sizes = {**long_encoders.SIZES, **long_encoders.LAYOUT}
    name = "4 documents of {length:,} tokens, forward and backward"
    return {"name": name, "length": length, "shares": [1] * 4, "contenders": long_encoders.FEW, **sizes}


SETTINGS: list[Setting] = [
    *(generating(batch, "hat", "plain", "transformers") for batch in (8, 1)),
    *(generating(batch, "hat", FP16, "plain", PEER) for batch in (8, 1)),
    {"name": UPDATE, "documents": 4, "source": 3072, **TRAINING},
    {"name": UPDATE + " or less", "documents": 4, "source": 3072, "shares": [1, 0.75, 0.5, 0.25], **TRAINING},
    encoding(4096),
    encoding(8192),
]


def build(name: str, chosen: Setting) -> Job:
    if "length" in chosen:
        return long_encoders.job(name, chosen)
    if "target" in chosen:
        module: Any = training_fairseq if name == "fairseq" else training_hierarchy
        return module.build(name, chosen)
    if name == "transformers":
        return generation_transformers.build(name, chosen)
    if name == PEER:
        return generation_ctranslate2.ctranslate2_job("float16" if where() == "cuda" else "float32", False, chosen)
    if name == FP16:
        return job(hat(chosen), BeamSearchGenerator, chosen, kind=torch.float16)
    return fairseq_job(name, chosen)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    if "length" in chosen:
        return long_encoders.check(chosen, ends)
    if "target" in chosen:
        return [checked_parameters(chosen, ends["hat"], ends["plain"]), checked_loss(chosen, ends["fairseq"])]
    module: Any = generation_transformers if "transformers" in ends else generation_ctranslate2
    return module.check(chosen, ends)


if __name__ == "__main__":
    versions = ["transformers", "ctranslate2"]
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=9, versions=versions)
