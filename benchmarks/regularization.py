#!/usr/bin/env python3
"""What does self-attention regularization cost? A training step with it beside two passes of the plain criterion.

    python benchmarks/regularization.py --threads 2

A document of 2,048 tokens through 3 layers of `ernie_sparse_base`, with a head for 11 classes, forward and backward.
`two passes` is the criterion `document_labels` twice, the second time with the tokens rolled, and the sum of the losses
without their divergence.
"""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import torch
from harness import Facts, Job, Setting, dtype, run, where
from long_encoders import our_model

ALPHA, ROLL = 10.0, 8
SIZES = {"layers": 3, "layout": "S", "width": 768, "heads": 12, "vocabulary": 50265, "positions": 4096}
SETTINGS = [{"name": "{length:,} tokens", "length": 2048, "segment": 128, "classes": 11, "roll": ROLL, **SIZES}]


def main() -> None:
    contenders = ["regularized", "two passes"]
    run(
        "regularization",
        __doc__ or "",
        job,
        contenders=contenders,
        settings=SETTINGS,
        reference="two passes",
        check=check,
    )


def job(name: str, setting: Setting) -> Job:
    """One forward and backward."""
    from fairseq.criterions import CRITERION_REGISTRY, build_criterion

    model: Any = our_model("ernie_sparse", Namespace(**setting))
    model.register_classification_head("head", num_classes=setting["classes"])
    model.to(where(), dtype()).train()
    task = SimpleNamespace(
        kind="classification",
        labels=[str(number) for number in range(setting["classes"])],
        logits=lambda model, sample: model(**sample["net_input"], classification_head_name="head")[0],
    )
    tokens = torch.randint(4, setting["vocabulary"] - 1, (1, setting["length"]), device=where())
    sample = {"net_input": {"src_tokens": tokens}, "target": torch.tensor([3], device=where())}
    sample |= {"ntokens": tokens.numel(), "nsentences": 1}
    rolled = {**sample, "net_input": {"src_tokens": tokens, "roll": setting["roll"]}}
    flags = {"base_criterion": "document_labels", "sar_alpha": ALPHA, "sar_roll": setting["roll"]}
    regularized = build_criterion(SimpleNamespace(criterion="self_attention_regularization", **flags), task)
    plain = CRITERION_REGISTRY["document_labels"](task)
    last: dict[str, float] = {}

    def step() -> Facts:
        model.zero_grad(set_to_none=True)
        if name == "regularized":
            loss, _, log = regularized(model, sample)
            last["loss"] = float(2 * log["nll_loss"])
        else:
            loss = plain(model, sample)[0] + plain(model, rolled)[0]
            last["loss"] = float(loss.detach())
        loss.backward()
        return {"tokens": 2 * tokens.numel()}

    return Job(step, {}, lambda: {"loss": last["loss"]})


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """Both compute finite losses; the models have random weights of their own."""
    if wrong := [name for name, end in ends.items() if not 0 < end["loss"] < 100]:
        raise SystemExit(f"{setting['name']}: {', '.join(wrong)} did not compute a loss")
    return ["finite losses of both"]


if __name__ == "__main__":
    main()
