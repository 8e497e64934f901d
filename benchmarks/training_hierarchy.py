#!/usr/bin/env python3
"""What does the hierarchy cost in training? An update of HAT-BART beside one of its plain twin.

    python benchmarks/training_hierarchy.py

Documents (3,072 to 512 tokens) and the sizes of translation (512 to 512), at the widths of BART-base and BART-large,
a sentence every 32 tokens, attention dropout 0.1 as in the recipes. 2 + 2 layers: HAT's one layer over the sentences
weighs more beside 2 token-level layers than beside 6 or 12, so the ratios are those of deep models at worst.
"""

from __future__ import annotations

from harness import Facts, Job, Setting, run
from peers import ours
from train_step import OURS, SIZES, checked_parameters, model_sizes, update_job

COMMON = {"documents": 1, "target": 512, "layers": 2, "vocabulary": 50265, "attention_dropout": 0.1}
CONTENDERS = ("hat", "plain")
SETTINGS = [
    {"name": "{source:,} to {target} tokens, width {width}", "source": source, **SIZES[width], **COMMON}
    for source in (3072, 512)
    for width in (768, 1024)
]


def main() -> None:
    run(
        "training_hierarchy",
        __doc__ or "",
        build,
        contenders=CONTENDERS,
        settings=SETTINGS,
        reference="plain",
        check=check,
    )


def build(name: str, setting: Setting) -> Job:
    model = ours("hat_bart_base", no_hierarchy=name == "plain", **model_sizes(setting))
    return update_job(model, OURS, setting)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    return [checked_parameters(setting, ends["hat"], ends["plain"])]


if __name__ == "__main__":
    main()
