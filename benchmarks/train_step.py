"""One update of fairseq-train, shared by the benchmarks of training.

Forward, backward, clipping at 0.1 and fairseq's Adam, in training mode with dropout 0.1, on random documents and
summaries, without padding if the setting has no `shares`. fairseq's models use `label_smoothed_cross_entropy`, ours the
same in chunks; label smoothing 0.1.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from harness import Facts, Job, Setting, dtype, where
from peers import EOS, PAD, copy_weights, documents, model_of
from torch import Tensor

STOCK, CHUNKED = "label_smoothed_cross_entropy", "chunked_label_smoothed_cross_entropy"
SIZES = {768: {"width": 768, "heads": 12}, 1024: {"width": 1024, "heads": 16}}


def update_job(model: Any, criterion: str, setting: Setting) -> Job:
    """Updates of `model` on `documents` documents of `source` tokens with targets of `target` tokens."""
    model.to(where(), dtype()).train()
    loss_of, batch = criterion_of(criterion), sample(setting)
    tokens = int(batch["net_input"]["src_lengths"].sum()) + batch["ntokens"]
    config = FairseqAdamConfig(lr=[3e-5], adam_betas="(0.9, 0.999)", adam_eps=1e-8, weight_decay=0.01)
    optimizer = FairseqAdam(config, list(model.parameters()))
    last: dict[str, float] = {}

    def step() -> Facts:
        optimizer.zero_grad()
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


def sample(setting: Setting) -> dict[str, Any]:
    """A batch in the format of the task; `shares`: of the longest source and target that each document has."""
    number, lengths = setting["documents"], (setting["source"], setting["target"])
    src_tokens, words = (
        padded(documents(number, length, setting["vocabulary"], seed), setting.get("shares", [1] * number)).to(where())
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


def model_sizes(setting: Setting) -> dict[str, Any]:
    """The arguments of `peers.model_of` common to all sides."""
    return {
        **{key: setting[key] for key in ("width", "heads", "layers", "vocabulary", "attention_dropout")},
        "max_source_positions": max(setting["source"], 1024),
        "max_target_positions": max(setting["target"], 1024),
        "dropout": 0.1,
    }


def same_loss(setting: Setting) -> Facts:
    """Compares loss and gradient of the baseline without hierarchy and of fairseq's BART with the same weights.

    Without dropout, on a short text.
    """
    sizes = {**model_sizes(setting), "dropout": 0.0, "attention_dropout": 0.0, "layers": 1}
    plain = model_of("hat_bart_base", no_hierarchy=True, **sizes).to(where())
    stock = copy_weights(plain, model_of("bart_base", **sizes).to(where()))
    batch, results = sample({**setting, "source": 257, "target": 65}), []
    for model, name in ((plain, CHUNKED), (stock, STOCK)):
        loss = criterion_of(name)(model, batch)[0]
        loss.backward()
        results.append((float(loss.detach()), model.encoder.embed_tokens.weight.grad))
    (one, gradient), (other, expected) = results
    return {"plain_loss": one, "fairseq_loss": other, "gradient_difference": relative(gradient, expected)}


def relative(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


def checked_parameters(setting: Setting, hat: Facts, plain: Facts) -> str:
    """Checks that HAT has the baseline's parameters and those of the hierarchy; SystemExit if not."""
    if hat["parameters"] - hat["of_the_hierarchy"] != plain["parameters"] or not hat["of_the_hierarchy"]:
        raise SystemExit(f"{setting['name']}: {hat} has other parameters than {plain} besides those of the hierarchy")
    own = hat["of_the_hierarchy"] / 1e6
    return f"{plain['parameters'] / 1e6:.1f}M parameters, and {own:.1f}M more of the hierarchy in HAT"


def checked_loss(setting: Setting, end: Facts) -> str:
    """Checks that both sides compute the same loss; SystemExit if not."""
    difference = abs(end["plain_loss"] / end["fairseq_loss"] - 1)
    if difference > 1e-5 or end["gradient_difference"] > 1e-4:
        raise SystemExit(f"{setting['name']}: the baseline and fairseq's BART with its weights differ: {end}")
    return "the same loss (1e-5) and gradient (1e-4) of a plain twin and of fairseq's BART with its weights"
