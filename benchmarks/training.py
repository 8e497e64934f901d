#!/usr/bin/env python3
"""Is training faster than fairseq's? An update of HAT-BART, of its baseline without hierarchy and of fairseq's BART.

    python benchmarks/training.py

An update is forward, backward, clipping at 0.1 and fairseq's Adam, with dropout 0.1 and label smoothing 0.1, on random
documents with a sentence every 32 tokens, without padding. fairseq's BART has `label_smoothed_cross_entropy`, the same
width and layers as HAT, but no hierarchy; ours the same loss in chunks. Without attention dropout both sides use
torch's fused attention, and the gain on linear layers and loss is about the cost of the hierarchy. The memory of one
document is then mostly parameters, gradients and Adam's moments, 16 bytes for each of HAT's parameters; with four
documents it is mostly activations.

The last settings show what the hierarchy costs. The lengths are those of documents (3,072 to 512 tokens) and of
translation (512 to 512), the widths those of BART-base and BART-large. With 2 + 2 layers HAT's one layer over the
sentences weighs more than with 6 or 12, so the ratios are upper bounds for deep models. The memory of 11.8M and 21.0M
more parameters is 16 bytes for each of them.
"""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from harness import Facts, Job, Setting, dtype, run, where
from peers import EOS, PAD, copy_weights, documents, model_of
from torch import Tensor

STOCK, CHUNKED = "label_smoothed_cross_entropy", "chunked_label_smoothed_cross_entropy"
SIZES = {768: {"width": 768, "heads": 12}, 1024: {"width": 1024, "heads": 16}}
# Those of the recipe ami_small, about.
SMALL = {"source": 1023, "target": 400, "documents": 4, "layers": 2, "width": 128, "heads": 4, "vocabulary": 4000}
CHECKPOINTED = "hat, checkpointed"
AMP = "hat, amp"
CONTENDERS = ("hat", AMP, CHECKPOINTED, "plain", "fairseq")


def setting(source: int, width: int, layers: int, dropout: float, *others: str, **more: Any) -> Setting:
    """A setting of `harness.py` for HAT and `others`; `more` replaces entries or adds some."""
    name = "{source:,} to {target} tokens x {documents}, {layers} + {layers} layers of {width}, attention dropout "
    sizes = {"source": source, "target": 512, "documents": 1, "layers": layers, "vocabulary": 50265, **SIZES[width]}
    facts = {"name": f"{name}{dropout}", **sizes, "attention_dropout": dropout, "contenders": ["hat", *others]}
    return facts | more


SETTINGS = [
    setting(3072, 768, 6, 0.1, AMP, CHECKPOINTED, "fairseq"),
    setting(3072, 768, 6, 0.0, AMP, "fairseq"),
    setting(3072, 1024, 12, 0.0, "fairseq", rounds=1),
    setting(512, 768, 6, 0.1, AMP, "fairseq"),
    setting(3072, 768, 6, 0.0, "fairseq", documents=4, rounds=1),
    *(setting(source, width, 2, 0.1, "plain") for source in (3072, 512) for width in SIZES),
]


def build(name: str, chosen: Setting) -> Job:
    sizes = model_sizes(chosen)
    if name == "fairseq":
        job = update_job(model_of("bart_base", **sizes), STOCK, chosen)
        return Job(job.step, job.facts, lambda: {**job.finish(), **same_loss(chosen)})
    flags = {"no_hierarchy": name == "plain", "checkpoint_activations": name == CHECKPOINTED}
    return update_job(model_of("hat_bart_base", **flags, **sizes), CHUNKED, chosen, amp=name == AMP)


def update_job(model: Any, criterion: str, chosen: Setting, amp: bool = False) -> Job:
    """Updates of `model` on `documents` documents of `source` tokens with targets of `target` tokens.

    `amp`: under autocast to bf16, as `--amp` on a CPU.
    """
    model.to(where(), dtype()).train()
    loss_of, batch = criterion_of(criterion), sample(chosen)
    tokens = int(batch["net_input"]["src_lengths"].sum()) + batch["ntokens"]
    config = FairseqAdamConfig(lr=[3e-5], adam_betas="(0.9, 0.999)", adam_eps=1e-8, weight_decay=0.01)
    optimizer = FairseqAdam(config, list(model.parameters()))
    last: dict[str, float] = {}

    def step() -> Facts:
        optimizer.zero_grad()
        with torch.autocast(where(), torch.bfloat16, enabled=amp):
            loss, size, _ = loss_of(model, batch)
        optimizer.backward(loss)
        optimizer.multiply_grads(1 / size)
        optimizer.clip_grad_norm(0.1)
        optimizer.step()
        last["loss"] = float(loss.detach()) / size
        return {"tokens": tokens}

    parameters = {name: parameter.numel() for name, parameter in model.named_parameters()}
    hierarchy = sum(n for name, n in parameters.items() if "sentence_attn" in name or "hierarchical_encoder" in name)
    facts = {"parameters": sum(parameters.values()), "of_the_hierarchy": hierarchy}
    return Job(step, facts, lambda: dict(last))


def criterion_of(name: str) -> Any:
    """fairseq's criterion of this name, with label smoothing 0.1."""
    task = Namespace(target_dictionary=Namespace(pad=lambda: PAD))
    return CRITERION_REGISTRY[name](task, sentence_avg=False, label_smoothing=0.1)


def sample(chosen: Setting) -> dict[str, Any]:
    """A batch in the format of the task; `shares`: of the longest source and target that each document has."""
    number, lengths = chosen["documents"], (chosen["source"], chosen["target"])
    src_tokens, words = (
        padded(documents(number, length, chosen["vocabulary"], seed), chosen.get("shares", [1] * number)).to(where())
        for seed, length in enumerate(lengths)
    )
    words = words.masked_fill(words.eq(0), 4)  # a summary without sentence markers
    shifted = torch.cat([torch.full_like(words[:, :1], EOS), words[:, :-1]], dim=1).masked_fill(words.eq(PAD), PAD)
    inputs = {"src_tokens": src_tokens, "src_lengths": src_tokens.ne(PAD).sum(1), "prev_output_tokens": shifted}
    return {"net_input": inputs, "target": words, "ntokens": int(words.ne(PAD).sum()), "nsentences": number}


def padded(tokens: Tensor, shares: Sequence[float]) -> Tensor:
    """(B, T) tokens of which each row keeps its share, at least `</s>`; in place."""
    for row, share in zip(tokens, shares, strict=True):
        end = max(1, int(share * len(row)))
        row[end - 1], row[end:] = EOS, PAD
    return tokens


def model_sizes(chosen: Setting) -> dict[str, Any]:
    """The arguments of `peers.model_of` common to all sides."""
    return {
        **{key: chosen[key] for key in ("width", "heads", "layers", "vocabulary", "attention_dropout")},
        "max_source_positions": max(chosen["source"], 1024),
        "max_target_positions": max(chosen["target"], 1024),
        "dropout": 0.1,
    }


def same_loss(chosen: Setting) -> Facts:
    """Compares loss and gradient of the baseline without hierarchy and of fairseq's BART with the same weights.

    Without dropout, on a short text.
    """
    sizes = {**model_sizes(chosen), "dropout": 0.0, "attention_dropout": 0.0, "layers": 1}
    plain = model_of("hat_bart_base", no_hierarchy=True, **sizes).to(where())
    stock = copy_weights(plain, model_of("bart_base", **sizes).to(where()))
    batch, results = sample({**chosen, "source": 257, "target": 65}), []
    for model, name in ((plain, CHUNKED), (stock, STOCK)):
        loss = criterion_of(name)(model, batch)[0]
        loss.backward()
        results.append((float(loss.detach()), model.encoder.embed_tokens.weight.grad))
    (one, gradient), (other, expected) = results
    return {"plain_loss": one, "fairseq_loss": other, "gradient_difference": relative(gradient, expected)}


def relative(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    """Compares parameters, and losses if fairseq takes part; SystemExit if they differ."""
    hat, other = ends["hat"], ends["plain" if "plain" in ends else "fairseq"]
    if hat["parameters"] - hat["of_the_hierarchy"] != other["parameters"] or not hat["of_the_hierarchy"]:
        raise SystemExit(f"{chosen['name']}: {hat} has other parameters than {other} besides those of the hierarchy")
    own = hat["of_the_hierarchy"] / 1e6
    sentences = [f"{other['parameters'] / 1e6:.1f}M parameters, and {own:.1f}M more of the hierarchy in HAT"]
    if end := ends.get("fairseq"):
        if abs(end["plain_loss"] / end["fairseq_loss"] - 1) > 1e-5 or end["gradient_difference"] > 1e-4:
            raise SystemExit(f"{chosen['name']}: the baseline and fairseq's BART with its weights differ: {end}")
        same = "the same loss (1e-5) and gradient (1e-4) of a plain twin and of fairseq's BART with its weights"
        sentences.append(same)
    return sentences


if __name__ == "__main__":
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=3)
