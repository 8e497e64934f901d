#!/usr/bin/env python3
"""Which fast part earns its lines? Each part alone is replaced by its plain version.

    python studies/ablation.py

The first contender is the package as it is. In each other one a single part is replaced; a time above 1 is lost without
the part. All contenders compute the same hypotheses, losses and gradients, which is checked. An update is forward,
backward, clipping and Adam, with dropout 0.1; those of width 128 have about the sizes of the recipe `ami_small`, and
random documents. An encoder has three layers, and no dropout; its time is that of forward and backward.

A part stays if it saves 10 % of the time or a quarter of the memory in a case that a recipe runs. Tried and left out,
because slower or less than that: a cache that does not move, top-k by blocks or on logits, attention without dropout in
blocks, a step in two products, one product for queries, keys and values, `torch.compile` of a step, OpenVINO, int8
weights with bf16 inputs, dividing a batch among processes or threads, and FlexAttention for windows (a whole encoder
takes 0.94 of the time, after 2 to 30 s of compiling for each length). Left out for other reasons: MKL or oneDNN by
measurement in training (one seed had several results), and a backward pass of our own for attention with dropout
(updates take 2.6 times as long without its 230 lines). CUDA graphs and row-wise attention on a GPU are unmeasured.
"""

from collections.abc import Callable

import benchmark_path  # noqa: F401 finds `generation`
import generation
import long_encoders
import torch
import torch.nn.functional as F
import training
from generation import same_hypotheses
from harness import Facts, Job, Setting, run
from peers import model_of
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import hat_fairseq.criterions.chunked_label_smoothed_cross_entropy as criterion
from hat_fairseq.kernels import attention, blocks, naive, precision
from hat_fairseq.modules import block_sparse

LOGITS = 1 << 24  # of a chunk of the loss, as in `kernels.loss`
KEYS = 1 << 14  # of a chunk of blocks, as in `kernels.blocks`


def loss_to_checkpoint() -> None:
    """Label-smoothed loss: logits of a chunk of positions, recomputed in the backward pass."""

    def chunked(
        features: Tensor, weight: Tensor, target: Tensor, smoothing: float, pad: int, count_correct: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        assert not count_correct
        features, target = features.flatten(0, -2), target.flatten()
        size = max(1, LOGITS // len(weight))
        parts = [
            checkpoint(naive.label_smoothed_loss, f, weight, t, smoothing, pad, use_reentrant=False)
            for f, t in zip(features.split(size), target.split(size), strict=True)
        ]
        loss, nll = (torch.stack(sums).sum() for sums in zip(*parts, strict=True))
        return loss, nll.detach(), torch.zeros(())

    criterion.chunked_label_smoothed_loss = chunked


def maps_to_linear() -> None:
    """`nn.Linear` in place of weights in oneDNN's layout."""
    precision.pack_linears = lambda model, precision="fp32": 0


def blocks_to_checkpoint() -> None:
    """Blocks of keys: gathered for a chunk of query blocks, recomputed in the backward pass by autograd."""

    def attend(q: Tensor, k: Tensor, v: Tensor, table: blocks.KeyBlocks, dropout: float = 0.0) -> Tensor:
        shape, chunk = q.shape, max(1, KEYS // table.added.size(1))
        q, k, v = (x.flatten(0, 2) for x in (q, k, v))
        parts = zip(q.split(chunk), table.block_ids.split(chunk), table.added.split(chunk), strict=True)
        out = [checkpoint(_blocks, part, k, v, *pair, dropout, use_reentrant=False) for part, *pair in parts]
        return torch.cat(out).view(shape)

    block_sparse.attend_blocks = attend


def _blocks(q: Tensor, k: Tensor, v: Tensor, numbers: Tensor, added: Tensor, dropout: float) -> Tensor:
    """(n, L, E) queries and all blocks of keys -> (n, L, E)."""
    keys, values = (x[numbers].flatten(1, 2).unsqueeze(1) for x in (k, v))
    return F.scaled_dot_product_attention(q.unsqueeze(1), keys, values, added[:, None, None], dropout).squeeze(1)


def short_attention_in_bf16() -> None:
    """SDPA of few keys or narrow heads in bf16, also where a backward pass follows."""
    attention.is_backward_faster_in_fp32 = lambda queries, num_keys: False
    blocks.is_backward_faster_in_fp32 = attention.is_backward_faster_in_fp32


# Contender: the function that it calls.
PLAIN: dict[str, Callable[[], None] | None] = {
    "as it is": None,
    "chunked loss": loss_to_checkpoint,
    "packed maps": maps_to_linear,
    "search": None,
    "blocks": blocks_to_checkpoint,
    "short attention": short_attention_in_bf16,
}


def with_parts(setting: Setting, *parts: str) -> Setting:
    """A setting with the contenders that change something in it."""
    return setting | {"contenders": ["as it is", *parts]}


SETTINGS = [
    *(with_parts(generation.setting(*sizes), "packed maps", "search") for sizes in ((3072, 1), (512, 4))),
    *(
        with_parts(training.setting(3072, 768, 6, dropout) | sizes, "chunked loss")
        for sizes, dropout in (({}, 0.1), ({}, 0.0), (training.SMALL, 0.0), (training.SMALL, 0.1))
    ),
    *(
        with_parts(
            long_encoders.setting("ernie_sparse, {length:,} tokens", length) | {"model": "ernie_sparse"}, "blocks"
        )
        for length in (4096, 16384)
    ),
    *(
        with_parts(
            long_encoders.setting(f"{model}, autocast, {{length:,}} tokens, width {{width}}", 4096)
            | {"model": model + long_encoders.AMP, "width": width},
            "short attention",
        )
        for model in (long_encoders.HIERARCHICAL, "poolingformer", "ernie_sparse")
        for width in (384, 768)
    ),
]


def build(name: str, setting: Setting) -> Job:
    if replace := PLAIN[name]:
        replace()
    if "new" in setting:
        search = generation.fairseqs_search if name == "search" else generation.our_search
        return generation.job(generation.hat(setting), search, setting)
    if "model" in setting:
        return long_encoders.build(setting["model"], setting)
    job = training.build("hat", setting)
    return Job(job.step, job.facts, lambda: exact_loss(setting))


def exact_loss(setting: Setting) -> Facts:
    """The loss and a gradient of a new model on a short text, with an attention dropout that drops no weight."""
    sizes = {**training.model_sizes(setting), "dropout": 0.0, "layers": 1}
    sizes["attention_dropout"] = 1e-9 if setting["attention_dropout"] else 0.0
    model = model_of("hat_bart_base", **sizes)
    batch = training.sample({**setting, "source": 257, "target": 400, "documents": 1})
    loss, size, _ = training.criterion_of(training.CHUNKED)(model, batch)
    loss.backward()
    return {"loss": float(loss.detach()) / size, "gradient": float(model.encoder.embed_tokens.weight.grad.norm())}


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    if "new" in setting:
        return [same_hypotheses(ends, list(ends))]
    facts = [key for key in ("loss", "magnitude", "gradient") if key in ends["as it is"]]
    most = 1e-2 if setting.get("model", "").endswith(long_encoders.AMP) else 1e-4
    for name, end in ends.items():
        for key in facts:
            if abs(end[key] / ends["as it is"][key] - 1) > most:
                raise SystemExit(f"{setting['name']}: {key} of {name} is {end[key]}, not {ends['as it is'][key]}")
    return [f"the same {' and '.join(facts)} to {most:g}"]


if __name__ == "__main__":
    run(build, check, contenders=tuple(PLAIN), settings=SETTINGS, reference="as it is", rounds=3)
