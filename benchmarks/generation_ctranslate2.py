#!/usr/bin/env python3
"""Is generation faster than that of CTranslate2? The same search by its `Translator`, on the CPU.

    python benchmarks/generation_ctranslate2.py --threads 2

CTranslate2 has the weights of the baseline without hierarchy and 6 + 6 layers, converted from fairseq's BART by its own
converter. One batch uses all threads, or is divided among translators of one thread each, which share the weights. Its
peak memory includes torch and fairseq (about 0.4 GB), which are needed for the conversion only. CTranslate2 truncates
sources at 1,024 tokens by default; this is switched off.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from generation import BEAM, fairseq_job, hat, job, same_hypotheses, same_search, setting, sources, stock, warmed_up
from harness import Facts, Job, Setting, dtype, forget_peak, run, where
from peers import save_ctranslate2

from hat_fairseq.generation.beam_search import BeamSearchGenerator

WHOLE, SPLIT = ("ctranslate2", "ctranslate2 int8"), ("ctranslate2 split", "ctranslate2 int8 split")
PACKAGE = ("hat", "hat int8", "plain")
CONTENDERS = (*PACKAGE, *WHOLE, *SPLIT)
ONE = setting(3072, 1, new=128, contenders=(*PACKAGE, *WHOLE))
SETTINGS = [ONE, setting(3072, 4, rounds=2), setting(512, 4, new=128)]


def build(name: str, chosen: Setting) -> Job:
    if name == "hat int8":
        return job(hat(chosen), BeamSearchGenerator, chosen, "int8")
    if name in PACKAGE:
        return fairseq_job(name, chosen)
    return ctranslate2_job("int8" if "int8" in name else "float32", name in SPLIT, chosen)


def ctranslate2_job(kind: str, split: bool, chosen: Setting) -> Job:
    """`kind`: "float32", "int8", or "float16" on a GPU, whose hypotheses are compared in fp32."""
    import ctranslate2

    threads = torch.get_num_threads()
    each = -(-chosen["batch"] // threads) if split else 0  # documents of one translator; 0: all
    workers = {"inter_threads": threads, "intra_threads": 1} if split else {"intra_threads": threads}
    kinds = dict.fromkeys((kind, "float32" if kind == "float16" else kind))  # that of `step`, that of `finish`
    with tempfile.TemporaryDirectory() as folder:
        model = stock(chosen).to(dtype()).float()  # rounded as the weights of the other contenders
        parameters, symbols = sum(p.numel() for p in model.parameters()), model.decoder.dictionary
        saved = save_ctranslate2(model, Path(folder) / "model", "int8" if kind == "int8" else "float32")
        del model
        translators = [ctranslate2.Translator(saved, where(), compute_type=k, **workers) for k in kinds]
    rows = [[symbols[i] for i in row] for row in sources(chosen).tolist()]
    last: list[ctranslate2.TranslationResult] = []

    def step(new: int = chosen["new"], translator: ctranslate2.Translator = translators[0]) -> Facts:
        last[:] = translator.translate_batch(
            rows,
            beam_size=BEAM,
            num_hypotheses=BEAM,
            length_penalty=1,
            min_decoding_length=new,
            max_decoding_length=new,
            max_batch_size=each,
            max_input_length=0,  # none is cut
            return_scores=True,
        )
        return {"tokens": len(rows) * new}

    def finish() -> Facts:
        if len(translators) > 1:
            step(translator=translators[1])
        output = [[[symbols.index(token) for token in tokens] for tokens in result.hypotheses] for result in last]
        return {"_hypotheses": output, "_scores": [result.scores for result in last]}

    forget_peak()
    facts = {"parameters": parameters}
    if where() == "cuda":
        facts["peak_bytes"] = None  # torch does not see its memory
    return Job(warmed_up(step), facts, finish)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    exact = [name for name in ends if not name.startswith("hat") and "int8" not in name]
    return [same_hypotheses(ends, exact), same_search(chosen)]


if __name__ == "__main__":
    versions = ["ctranslate2"]
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=3, versions=versions)
