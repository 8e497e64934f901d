#!/usr/bin/env python3
"""Which fast part earns its lines? Each part alone is replaced by its plain version (`plain_parts.py`).

    python benchmarks/ablation.py

The first contender is the package as it is. In each other one a single part is replaced; a time above 1 is lost without
the part. All contenders compute the same hypotheses, losses and gradients, which is checked. An update is forward,
backward, clipping and Adam, with dropout 0.1. `update of ami_small` has about the sizes of that recipe, and random
documents. An encoder has three layers, and no dropout; its time is that of forward and backward. docs/speed.md names
the parts that have been removed since.
"""

from __future__ import annotations

import generation
import long_encoders
from fairseq.sequence_generator import SequenceGenerator
from generation import same_hypotheses
from harness import Facts, Job, Setting, run
from peers import ours
from plain_parts import PLAIN
from train_step import OURS, SIZES, criterion_of, model_sizes, sample, update_job

from hat_fairseq.generation.beam_search import BeamSearchGenerator

LONG = {"source": 3072, "target": 512, "documents": 1, "layers": 6, "vocabulary": 50265, **SIZES[768]}
SMALL = {"source": 1023, "target": 400, "documents": 4, "layers": 2, "width": 128, "heads": 4, "vocabulary": 4000}
GENERATION = ("packed maps", "oneDNN", "step", "search")
UPDATE = ("chunked loss", "oneDNN")


def settings() -> list[Setting]:
    """The cases, each with the contenders that change something in it."""
    cases: list[tuple[Setting, tuple[str, ...]]] = []
    for source, batch in ((3072, 1), (512, 4)):
        cases.append((generation.setting(source, batch), GENERATION))
    for name, sizes, dropout in (
        ("update, 3,072 to 512 tokens, attention dropout", LONG, 0.1),
        ("update, 3,072 to 512 tokens", LONG, 0.0),
        ("update of ami_small", SMALL, 0.0),
        ("update of ami_small, attention dropout", SMALL, 0.1),
    ):
        cases.append(({"name": name, **sizes, "attention_dropout": dropout}, UPDATE))
    for length in (4096, 16384):
        for model, parts in (("poolingformer", ("oneDNN",)), ("ernie_sparse", ("blocks", "oneDNN"))):
            case = {"name": f"{model}, {length:,} tokens", "model": model, "length": length, "shares": [1]}
            cases.append(({**case, **long_encoders.SIZES, **long_encoders.LAYOUT}, parts))
    return [{**case, "contenders": ["as it is", *names]} for case, names in cases]


def build(name: str, setting: Setting) -> Job:
    for replace in PLAIN[name]:
        replace()
    if "new" in setting:
        generator = SequenceGenerator if name == "search" else BeamSearchGenerator
        return generation.job(generation.hat(setting), generator, setting)
    if "model" in setting:
        return long_encoders.job(setting["model"], setting)
    job = update_job(ours("hat_bart_base", **model_sizes(setting)), OURS, setting)
    return Job(job.step, job.facts, lambda: exact_loss(setting))


def exact_loss(setting: Setting) -> Facts:
    """The loss and a gradient of a new model on a short text, with an attention dropout that drops no weight."""
    sizes = {**model_sizes(setting), "dropout": 0.0, "layers": 1}
    sizes["attention_dropout"] = 1e-9 if setting["attention_dropout"] else 0.0
    model = ours("hat_bart_base", **sizes)
    loss, size, _ = criterion_of(OURS)(model, sample({**setting, "source": 257, "target": 400, "documents": 1}))
    loss.backward()
    return {"loss": float(loss.detach()) / size, "gradient": float(model.encoder.embed_tokens.weight.grad.norm())}


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    if "new" in setting:
        return [same_hypotheses(ends, list(ends))]
    facts = [key for key in ("loss", "magnitude", "gradient") if key in ends["as it is"]]
    for name, end in ends.items():
        for key in facts:
            if abs(end[key] / ends["as it is"][key] - 1) > 1e-4:
                raise SystemExit(f"{setting['name']}: {key} of {name} is {end[key]}, not {ends['as it is'][key]}")
    return [f"the same {' and '.join(facts)} to 1e-4"]


def main() -> None:
    run(
        "ablation",
        __doc__ or "",
        build,
        contenders=tuple(PLAIN),
        settings=settings(),
        reference="as it is",
        check=check,
        rounds=3,
    )


if __name__ == "__main__":
    main()
