#!/usr/bin/env python3
"""How fast is it on a GPU? The timed checks of `gpu.py`, each a setting of `harness.py`.

    python benchmarks/gpu_speed.py --settings 0

Generation is that of the benchmarks beside transformers and CTranslate2, with eight documents and with one; CTranslate2
computes in float16, the others in bfloat16. Training is an update of BART-base's sizes on 3,072 to 512 tokens, and the
encoders do a forward and backward pass. Without a GPU, CTranslate2 computes in fp32.
"""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Sequence
from typing import Any

import generation_ctranslate2
import generation_transformers
import long_encoders
import torch
import training_fairseq
import training_hierarchy
from generation import SIZES, fairseq_job, forget_peak, hat, job, setting
from gpu_equal import on_a_gpu_only
from harness import Facts, Job, Setting, run, where
from machine import peak_memory
from peers import fairseq_bart, ours
from train_step import OURS, THEIRS, checked_loss, checked_parameters, model_sizes, update_job

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


# The name that `gpu.py` knows a setting by.
SETTINGS: dict[str, Setting] = {
    "generation/transformers-x8": generating(8, "hat", "plain", "transformers"),
    "generation/transformers-x1": generating(1, "hat", "plain", "transformers"),
    "generation/ctranslate2-x8": generating(8, "hat", FP16, "plain", PEER),
    "generation/ctranslate2-x1": generating(1, "hat", FP16, "plain", PEER),
    "training/fixed": {"name": UPDATE, "documents": 4, "source": 3072, **TRAINING},
    "training/variable": {
        "name": UPDATE + " or less",
        "documents": 4,
        "source": 3072,
        "shares": [1, 0.75, 0.5, 0.25],
        **TRAINING,
    },
    "encoders/4096": encoding(4096),
    "encoders/8192": encoding(8192),
}


def small(chosen: Setting) -> Setting:
    """What `--small` replaces in a setting."""
    sizes = {"width": 32, "heads": 4, "layers": 1, "layout": "SD", "vocabulary": 200, "positions": 512, "source": 128}
    sizes |= {"target": 16, "new": 8, "length": chosen.get("length", 0) // 16}
    return {key: value for key, value in sizes.items() if key in chosen}


def absent(chosen: Setting) -> dict[str, str]:
    """The contenders that cannot take part here, and why."""
    missing = {}
    if importlib.util.find_spec("transformers") is None:
        missing |= dict.fromkeys(("transformers", "modernbert"), "transformers is not installed")
    if importlib.util.find_spec("ctranslate2") is None:
        missing[PEER] = "ctranslate2 is not installed"
    return {name: reason for name, reason in missing.items() if name in chosen["contenders"]}


def without_a_gpu(present: Sequence[str]) -> list[str]:
    """What these contenders cannot do on the CPU."""
    return ["bfloat16 and the memory of a GPU", *["float16 in CTranslate2"] * (PEER in present)] * (where() == "cpu")


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
    """What was verified; a sentence that begins with "FAILED" where it is not, so that the times are kept."""
    try:
        if "length" in chosen:
            return long_encoders.check(chosen, ends)
        if "target" in chosen:
            return [checked_parameters(chosen, ends["hat"], ends["plain"]), checked_loss(chosen, ends["fairseq"])]
        module: Any = generation_transformers if "transformers" in ends else generation_ctranslate2
        return module.check(chosen, ends)
    except SystemExit as error:
        return [f"FAILED: {error}"]


def largest_batch(tiny: bool) -> Facts:
    """Documents of 3,072 to 512 tokens in an update before memory is exceeded, by doubling, and the peak in GB."""
    chosen = SETTINGS["training/fixed"]
    chosen = chosen | small(chosen) if tiny else chosen
    sizes, found = model_sizes(chosen), Facts()
    for name in chosen["contenders"]:
        stock = name == "fairseq"
        model = fairseq_bart(**sizes) if stock else ours("hat_bart_base", no_hierarchy=name == "plain", **sizes)
        documents = 1
        while fits(model, THEIRS if stock else OURS, {**chosen, "documents": documents}):
            found[name] = {"documents": documents, "GB": round(peak_memory() / 1e9, 3)}
            documents *= 2
            if where() == "cpu" and documents > 2:
                break
    return found | on_a_gpu_only("the end of its memory: it stops at 2 documents")


def fits(model: Any, criterion: str, chosen: Setting) -> bool:
    """Whether two updates of this many documents fit into the memory of the GPU."""
    forget_peak()
    update, enough = None, True
    try:
        update = update_job(model, criterion, chosen)
        update.step()
        update.step()  # with the optimizer's moments
    except torch.OutOfMemoryError:
        enough = False
    del update
    model.zero_grad()
    gc.collect()
    torch.cuda.empty_cache()
    return enough


if __name__ == "__main__":
    run(
        "gpu_speed",
        __doc__ or "",
        build,
        contenders=CONTENDERS,
        settings=list(SETTINGS.values()),
        reference="hat",
        check=check,
        rounds=9,
        versions=("transformers", "ctranslate2"),
    )
