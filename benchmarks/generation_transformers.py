#!/usr/bin/env python3
"""Is generation faster than that of transformers? The same search by `generate` of transformers' BART.

    python benchmarks/generation_transformers.py --threads 2

It has the weights of the baseline without hierarchy, attention by SDPA and 6 + 6 layers, and repeats every document for
its hypotheses. The static cache takes part for short sources only; it brings nothing there.
"""

from __future__ import annotations

from typing import Any

import torch
from generation import (
    BEAM,
    fairseq_job,
    plain,
    same_hypotheses,
    same_parameters,
    same_search,
    setting,
    sources,
    warmed_up,
)
from harness import Facts, Job, Setting, dtype, forget_peak, run, where
from peers import BOS, EOS, PAD, transformers_bart
from torch import Tensor

CACHES = {"transformers": None, "transformers, static cache": "static"}
CONTENDERS = ("hat", "plain", *CACHES)
SETTINGS = [setting(3072, 4, contenders=("hat", "plain", "transformers"), rounds=2), setting(512, 4, rounds=2)]


def build(name: str, chosen: Setting) -> Job:
    return transformers_job(CACHES[name], chosen) if name in CACHES else fairseq_job(name, chosen)


def transformers_job(cache: str | None, chosen: Setting) -> Job:
    model = transformers_bart(plain(chosen))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    model.to(where(), dtype())
    tokens = sources(chosen).to(where())
    last: list[Tensor] = []

    def step(new: int = chosen["new"]) -> Facts:
        last[:] = [model.generate(tokens, generation_config=search(new, cache))]
        return {"tokens": len(tokens) * new}

    def finish() -> Facts:
        if dtype() is not torch.float32:
            model.float()
            step()
        return hypotheses(model, tokens, last[0].view(len(tokens), BEAM, -1))

    forget_peak()
    return Job(warmed_up(step), {"parameters": parameters}, finish)


def search(new: int, cache: str | None) -> Any:
    """The search that fairseq does: begins with `</s>`, no token forced, scores are means over the tokens."""
    from transformers import GenerationConfig

    return GenerationConfig(
        num_beams=BEAM,
        num_return_sequences=BEAM,
        do_sample=False,
        early_stopping=False,
        length_penalty=1.0,
        min_new_tokens=new,
        max_new_tokens=new,
        decoder_start_token_id=EOS,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        use_cache=True,
        cache_implementation=cache,
    )


@torch.no_grad()
def hypotheses(model: Any, tokens: Tensor, output: Tensor) -> Facts:
    """What `same_hypotheses` compares; scores by the model itself, all tokens at once, a document after the other."""
    scores = []
    for source, beams in zip(tokens, output, strict=True):
        logits = model(input_ids=source.expand(BEAM, -1), decoder_input_ids=beams[:, :-1]).logits
        each = logits.log_softmax(-1).gather(-1, beams[:, 1:, None])
        scores.append(each.mean((1, 2)).tolist())
    return {"_hypotheses": output[:, :, 1:].tolist(), "_scores": scores}


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    same = [name for name in ends if name != "hat"]
    return [same_parameters(ends, same), same_hypotheses(ends, same), same_search(chosen)]


if __name__ == "__main__":
    versions = ["transformers"]
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=3, versions=versions)
