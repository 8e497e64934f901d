"""Checks of `gpu.py`: models and beam search compute on the device what they compute on the CPU.

The reference is always fp32 on the CPU with weights that are rounded to the type of the check, so that only the
rounding of activations remains. Distances are ||a - b|| / ||b||, of gradients over all parameters together.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.sequence_generator import SequenceGenerator
from fairseq.utils import apply_to_sample
from peers import BOS, EOS, PAD, decisive, ours
from torch import Tensor, nn
from train_step import OURS, criterion_of, relative, sample
from worker import Facts, where

from hat_fairseq.generation.beam_search import BeamSearchGenerator

SIZES = {"width": 64, "heads": 4, "layers": 2, "vocabulary": 500, "max_positions": 512}
SIZES |= {f"{part}dropout": 0.0 for part in ("", "attention_", "activation_")}
SIZES |= {"max_source_positions": 512, "max_target_positions": 128}
# The gradient of ReLU jumps at 0: an input whose sign rounding changes gets another gradient altogether. In fp16 that
# is one input in 5,000, so the distance grows with the root of the rounding error: 0.035 instead of 0.005 with GELU.
SIZES |= {"activation_fn": "gelu"}
WINDOWS = {"attention_window": 8, "pooling_window": 32, "pooling_cells": "token", "encoder_attention_layers": "1"}
BLOCKS = {"encoder_attention": "block-sparse", "sparse_block": 8, "sparse_random": 1}
# One small model of every family and every attention of an encoder: architecture and flags.
MODELS: dict[str, tuple[str, Facts]] = {
    "hat_transformer": ("hat_transformer_tiny", {}),
    "hat_transformer-prenorm": (
        "hat_transformer_tiny",
        {"encoder_normalize_before": True, "decoder_normalize_before": True},
    ),
    "hat_bart": ("hat_bart_base", {}),
    "hat_bart-plain": ("hat_bart_base", {"no_hierarchy": True}),
    "poolingformer_bart": ("poolingformer_bart_base", WINDOWS),
    "hat_roberta": ("hat_roberta_tiny", {}),
    "hat_roberta-full": ("hat_roberta_tiny", {"no_hierarchy": True}),
    "hat_roberta-window": ("hat_roberta_tiny", {"encoder_attention": "window", "attention_window": 8}),
    "hat_roberta-blocks": ("hat_roberta_tiny", BLOCKS),
    "poolingformer": ("poolingformer_tiny", WINDOWS),
    "hierarchical_transformer": ("hierarchical_transformer_tiny", {}),
    "hierarchical_transformer-marker": (
        "hierarchical_transformer_tiny",
        {"segment_by": "marker", "segment_length": 32},
    ),
    "ernie_sparse": ("ernie_sparse_tiny", {}),
    "ernie_sparse-lra": ("ernie_sparse_lra_pathfinder", {"encoder_qkv_dim": 32, **BLOCKS}),
    "bigbird-lra": ("bigbird_lra_listops", BLOCKS),  # with blocks of 64 documents this short have full attention
    "transformer-lra": ("transformer_lra_listops", {}),
}
SEARCHES = ("hat_bart", "hat_bart-plain", "poolingformer_bart")
BATCH = {"documents": 4, "source": 300, "target": 60, "vocabulary": 500, "shares": [1, 0.15, 0.8, 0.04]}
# Largest distance of loss and outputs, about twice what rounding costs on a CPU; gradients may be three times as far.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.01}
TIE = 1e-4  # between the scores of two texts
NEW = 20  # tokens of the longest text
SEARCH_OPTIONS: tuple[Facts, ...] = (
    {},
    {"beam_size": 1},
    {"beam_size": 5, "len_penalty": 2.0, "min_len": 4},
    {"min_len": 12, "no_repeat_ngram_size": 2},
    {"unk_penalty": 2.0, "temperature": 1.4, "normalize_scores": False},
)


def small_model(name: str, **sizes: Any) -> Any:
    """A model of `MODELS` whose attention is sharp, so that an error anywhere changes the outputs; without dropout."""
    arch, flags = MODELS[name]
    model = ours(arch, **{**SIZES, **flags, **sizes})
    with torch.no_grad():
        for part, weight in model.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=(2 if "q_proj" in part or "k_proj" in part else 1) * weight.size(1) ** -0.5)
    return model


def batch(**changes: Any) -> dict[str, Any]:
    """Documents with padding and a question, on the device."""
    found = sample({**BATCH, **changes})
    found["net_input"]["src_tokens"][:, 5] = EOS  # ends the question, whose tokens are global
    return found


def on_a_gpu_only(what: str) -> Facts:
    """The entry of a check that ran without a GPU and could not do `what`."""
    return {"not on this device": [what]} if where() == "cpu" else {}


def equality(name: str) -> Facts:
    """Loss, outputs and gradients of a training step in fp32, bf16 and fp16."""
    base, there = small_model(name), batch()
    here = apply_to_sample(lambda tensor: tensor.cpu(), there)
    found: Facts = {"ok": True}
    for dtype, tolerance in TOLERANCES.items():
        rounded = copy.deepcopy(base).to(dtype)
        expected = step(copy.deepcopy(rounded).float(), here)
        distances = compared(step(rounded.to(where()), there), expected)
        found["ok"] &= all(  # false for NaN, too
            distance <= tolerance * (3 if what == "gradients" else 1) for what, distance in distances.items()
        )
        found[str(dtype)[6:]] = distances
    return found | on_a_gpu_only("the GPU's side: both are the CPU's")


def step(model: Any, data: dict[str, Any]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Loss, outputs and gradients, in fp32 on the CPU."""
    loss, logits = loss_and_logits(model, data)
    loss.backward()
    gradients = {n: p.grad.float().cpu() for n, p in model.named_parameters() if p.grad is not None}
    return loss.detach().float().cpu(), logits.detach().float().cpu(), gradients


def loss_and_logits(model: Any, data: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The chunked loss and the logits of a text; of an encoder those of a masked-LM that guesses every fifth token."""
    inputs, target = data["net_input"], data["target"]
    if hasattr(model, "decoder"):
        return criterion_of(OURS)(model, data)[0], model(**inputs)[0][target.ne(PAD)]
    tokens = inputs["src_tokens"]
    guessed = tokens.ne(PAD) & tokens.ne(BOS) & (torch.arange(tokens.size(1), device=tokens.device) % 5 == 2)
    logits = model(tokens, masked_tokens=guessed)[0]
    return F.cross_entropy(logits.float(), tokens[guessed], reduction="sum"), logits


def compared(actual: tuple[Any, ...], expected: tuple[Any, ...]) -> dict[str, float]:
    if actual[2].keys() != expected[2].keys():
        raise ValueError(f"gradients of {sorted(actual[2].keys() ^ expected[2].keys())} on one side only")
    gradients = [torch.cat([one[name].flatten() for name in expected[2]]) for one in (actual[2], expected[2])]
    pairs = {"loss": actual[:1] + expected[:1], "outputs": (actual[1], expected[1]), "gradients": gradients}
    return {name: float(f"{relative(*pair):.2g}") for name, pair in pairs.items()}


def beam(name: str) -> Facts:
    """Hypotheses of our search and of fairseq's loop on the device, and of ours in fp32 on the CPU.

    In fp32 all are the same but for ties. In bf16 and fp16 most scores are ties, so the share of the same texts as on
    the CPU is only reported, and that of fairseq's loop has to be half.
    """
    found: Facts = {"ok": True}
    for dtype, model, exact, tokens in searching(name):
        same = {"documents": 0, "fairseq": 0, "CPU": 0}
        for options in SEARCH_OPTIONS:
            texts = search(model, BeamSearchGenerator, tokens, options)
            same["documents"] += len(texts)
            same["fairseq"] += alike(texts, search(model, SequenceGenerator, tokens, options))
            same["CPU"] += alike(texts, search(exact, BeamSearchGenerator, tokens.cpu(), options))
        fp32 = dtype is torch.float32
        found["ok"] &= same["fairseq"] >= same["documents"] * (1 if fp32 else 0.5)
        found["ok"] &= not fp32 or same["CPU"] == same["documents"]
        found[str(dtype)[6:]] = same
    return found | on_a_gpu_only("the GPU's side: both are the CPU's")


def searching(name: str) -> Iterator[tuple[torch.dtype, Any, Any, Tensor]]:
    """By type: a model on the device, the same in fp32 on the CPU, and documents on the device."""
    base = decisive(small_model(name)).eval()
    base.decoder.output_projection.weight.data[EOS].normal_(std=0.7)  # texts end, some before others
    for dtype in TOLERANCES:
        rounded = copy.deepcopy(base).to(dtype)
        yield dtype, copy.deepcopy(rounded).to(where()), rounded.float(), batch()["net_input"]["src_tokens"]


def search(model: Any, generator_class: Any, tokens: Tensor, options: Facts) -> list[list[tuple[list[int], float]]]:
    """Of every document the hypotheses, best first, with their scores."""
    options = {"beam_size": 4, "max_len_a": 0, "max_len_b": NEW, **options}
    generator = generator_class([model], model.decoder.dictionary, **options)
    net_input = {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}
    found = generator.generate([model], {"net_input": net_input})
    return [[(h["tokens"].tolist(), float(h["score"])) for h in beams] for beams in found]


def alike(one: list[list[tuple[list[int], float]]], other: list[list[tuple[list[int], float]]]) -> int:
    """The documents with the same texts in the same order, or with the same scores: ties, of which either may win."""
    return sum(
        [text for text, _ in a] == [text for text, _ in b]
        or (len(a) == len(b) and all(abs(x - y) < TIE for (_, x), (_, y) in zip(a, b, strict=True)))
        for a, b in zip(one, other, strict=True)
    )
