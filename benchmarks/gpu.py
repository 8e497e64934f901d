#!/usr/bin/env python3
"""How fast is it on a GPU?

    python benchmarks/gpu.py                                        # on one GPU
    python benchmarks/gpu.py --settings 0 --rounds 1 --set width=32 heads=4 layers=1 source=128 new=8   # anywhere

Generation is beside transformers and CTranslate2, with eight documents and with one; CTranslate2 computes in float16,
the others in bfloat16. Training is an update of BART-base's sizes on 3,072 to 512 tokens, or of BART-large's, and the
encoders do a forward and backward pass. `sh benchmarks/gpu_job.sh OUT` does all of it within 12 minutes. Without a GPU
all compute in fp32. `pytest -m gpu` compares losses, gradients and texts of a GPU with those of the CPU.
"""

from typing import Any

import generation
import long_encoders
import training
from harness import Facts, Job, Setting, run

FP16, PEER = "hat fp16", "ctranslate2 fp16"
CONTENDERS = ("hat", FP16, "plain", "transformers", PEER, "fairseq", *long_encoders.FEW)


def generating(batch: int, *contenders: str) -> Setting:
    name = "generation, {source:,} tokens x {batch}, {new} new, beside " + contenders[-1]
    return generation.setting(3072, batch, name=name, contenders=contenders, rounds=5)


def updating(name: str, **more: Any) -> Setting:
    name = "update, {documents} documents of {source:,} to {target} tokens" + name
    return training.setting(3072, 768, 6, 0.1, "plain", "fairseq", name=name, documents=4, **more)


def large(source: int) -> Setting:
    name = "hat_bart_large, update, 1 document of {source:,} to {target} tokens"
    return training.setting(source, 1024, 12, 0.0, "plain", "fairseq", name=name)


SETTINGS: list[Setting] = [
    *(generating(batch, "hat", "plain", "transformers") for batch in (8, 1)),
    *(generating(batch, "hat", FP16, "plain", PEER) for batch in (8, 1)),
    updating(""),
    updating(" or less", shares=[1, 0.75, 0.5, 0.25]),
    *(
        long_encoders.setting("4 documents of {length:,} tokens, forward and backward", length, [1] * 4)
        for length in (4096, 8192)
    ),
    *(large(source) for source in (3072, 512)),
    *(
        long_encoders.setting("1 document of {length:,} tokens, forward and backward", length)
        for length in (4096, 16384)
    ),
]


def module_of(chosen: Setting) -> Any:
    return long_encoders if "length" in chosen else training if "target" in chosen else generation


def build(name: str, chosen: Setting) -> Job:
    return module_of(chosen).build(name, chosen)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    return module_of(chosen).check(chosen, ends)


if __name__ == "__main__":
    versions = ["transformers", "ctranslate2"]
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=9, versions=versions)
