#!/usr/bin/env python3
"""Is training faster than fairseq's? An update of our HAT-BART beside one of fairseq's own BART of the same width.

    python benchmarks/training_fairseq.py

HAT has its hierarchy, fairseq's BART has none: HAT computes more. 3,072 source and 512 target tokens, the widths of
BART-base and BART-large, attention dropout 0.1 (as both fine-tune) and 0; once 512 to 512 tokens; once four documents
instead of one. "ours, checkpointed" has `--checkpoint-activations`. 2 + 2 layers instead of 6 + 6 and 12 + 12: the
layers are all alike, and fewer of them favour fairseq's memory, since the tables weigh more.
"""

from __future__ import annotations

from harness import Facts, Job, Setting, run
from peers import fairseq_bart, ours
from train_step import OURS, SIZES, THEIRS, checked_loss, checked_parameters, model_sizes, same_loss, update_job

COMMON = {"documents": 1, "target": 512, "layers": 2, "vocabulary": 50265}
LONG = {"name": "{source:,} to {target} tokens, width {width}, attention dropout {attention_dropout}", **COMMON}
TWO = {"contenders": ["ours", "fairseq"]}
MANY = {"name": LONG["name"] + ", {documents} documents", "documents": 4, "rounds": 1}
SETTINGS = [
    {**LONG, "source": 3072, **SIZES[768], "attention_dropout": 0.1},
    {**LONG, "source": 3072, **SIZES[768], "attention_dropout": 0.0, **TWO},
    {**LONG, "source": 3072, **SIZES[1024], "attention_dropout": 0.1, **TWO},
    {**LONG, "source": 3072, **SIZES[1024], "attention_dropout": 0.0, **TWO},
    {**LONG, "source": 512, **SIZES[768], "attention_dropout": 0.1, **TWO},
    {**LONG, **MANY, "source": 3072, **SIZES[768], "attention_dropout": 0.0, **TWO},
]
CHECKPOINTED = "ours, checkpointed"
CONTENDERS = ("ours", CHECKPOINTED, "fairseq")


def main() -> None:
    run(
        "training_fairseq",
        __doc__ or "",
        build,
        contenders=CONTENDERS,
        settings=SETTINGS,
        reference="ours",
        check=check,
        rounds=3,
    )


def build(name: str, setting: Setting) -> Job:
    sizes = model_sizes(setting)
    if name == "fairseq":
        job = update_job(fairseq_bart(**sizes), THEIRS, setting)
        return Job(job.step, job.facts, lambda: {**job.finish(), **same_loss(setting)})
    return update_job(ours("hat_bart_base", checkpoint_activations=name == CHECKPOINTED, **sizes), OURS, setting)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    sentences = [checked_parameters(setting, ends["ours"], ends["fairseq"])]
    return [*sentences, checked_loss(setting, ends["fairseq"])]


if __name__ == "__main__":
    main()
