"""The recipes of Long Range Arena against Table 10 of the ERNIE-Sparse paper, which repeats Tay et al. 2021."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from test_docs import commands

from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from hat_fairseq.register import register

register()  # the tasks and architectures that the recipes name

# learning rate, batch size, weight decay, warm-up, longest sequence, dropout, attention dropout, updates
TABLE: dict[str, tuple[float, ...]] = {
    "listops": (0.05, 32, 0.1, 1000, 2000, 0.1, 0.1, 5000),
    "text": (0.05, 32, 0.1, 8000, 1000, 0.1, 0.1, 20000),
    "retrieval": (0.05, 32, 0.1, 8000, 4000, 0.1, 0.1, 5000),
    "image": (5e-4, 256, 0, 175, 1024, 0.3, 0.2, 200 * (45000 // 256)),
    "pathfinder": (1e-3, 512, 0, 312, 1024, 0.2, 0.1, 200 * (160000 // 512)),
}
# embedding, heads, layers, MLP, queries, learning rate decay
SIZES = {
    "listops": (512, 8, 4, 1024, 512, "inverse_sqrt"),
    "text": (256, 4, 4, 1024, 256, "inverse_sqrt"),
    "retrieval": (128, 4, 4, 512, 128, "inverse_sqrt"),
    "image": (32, 1, 1, 64, 32, "cosine"),
    "pathfinder": (64, 2, 4, 64, 32, "cosine"),
}
MASKED = {"listops": 0.1, "text": 0.15, "retrieval": 0.15, "image": 0.5, "pathfinder": 0.5}
TASKS = pytest.mark.parametrize("task", TABLE)


def parsed(name: str, flags: Sequence[str] = ()) -> Namespace:
    words = recipes.build_commands("train", name, flags)[0][4:]
    return options.parse_args_and_arch(options.get_training_parser(), input_args=words)


@TASKS
def test_settings_are_as_printed(task: str) -> None:
    given, (_, batch, decay, warmup, length, dropout, attention_dropout, updates) = parsed(f"lra_{task}"), TABLE[task]
    (freq,) = given.update_freq
    assert given.batch_size * freq * given.distributed_world_size == batch
    assert (given.weight_decay, given.warmup_updates, given.max_update) == (decay, warmup, updates)
    assert (given.dropout, given.attention_dropout) == (dropout, attention_dropout)
    assert (given.optimizer, given.adam_betas, given.adam_eps, given.clip_norm) == ("adam", "(0.9, 0.98)", 1e-9, 0.0)
    assert (given.task, given.criterion) == ("sequence_classification", "document_labels")
    sizes = [getattr(given, f"encoder_{name}") for name in ("embed_dim", "attention_heads", "layers", "ffn_embed_dim")]
    assert (*sizes, getattr(given, "encoder_qkv_dim", sizes[0]), given.lr_scheduler) == SIZES[task]
    assert (given.representative_weights, given.activation_dropout) == ("separate", dropout)
    preprocess = files.load(files.find(f"lra_{task}"))["preprocess"]
    assert given.max_positions == int(str(preprocess["max-source-tokens"])) == length + 2  # <s> and </s>


def test_the_whole_model_of_the_page() -> None:
    """Self-attention regularization on half the batch, with twice the updates and the same highest learning rate."""
    page = (Path(__file__).parents[2] / "docs/lra.md").read_text(encoding="utf-8")
    ((_, *flags),) = (words for words in commands(page) if "self_attention_regularization" in words)
    given, plain = parsed("lra_listops", flags), parsed("lra_listops")
    assert (given.criterion, given.sar_alpha, given.sar_roll) == ("self_attention_regularization", 5, 2)
    assert given.document_pooling == "max" and given.lr == plain.lr
    assert given.batch_size * given.update_freq[0] == plain.batch_size * plain.update_freq[0] // 2
    assert (given.max_update, given.warmup_updates) == (2 * plain.max_update, 2 * plain.warmup_updates)


class Optimizer(FairseqOptimizer):
    """Plain SGD whose learning rate the schedulers of fairseq set."""

    def __init__(self) -> None:
        super().__init__(None)
        self._optimizer = torch.optim.SGD([torch.zeros(1)], lr=1)


@TASKS
def test_learning_rates_are_those_of_the_authors(task: str) -> None:
    """As `create_learning_rate_scheduler` of lra_benchmarks computes them."""
    highest, _, _, warmup, *_, updates = TABLE[task]
    given = convert_namespace_to_omegaconf(parsed(f"lra_{task}")).lr_scheduler
    scheduler = build_lr_scheduler(given, Optimizer())
    for t in (0, 1, warmup // 2, warmup - 1, warmup, warmup + 1, 3 * warmup, updates // 2, updates):
        rate = highest * min(1, t / warmup)
        if given._name == "inverse_sqrt":
            rate /= math.sqrt(max(t, warmup))
        else:
            rate *= 0.5 * (1 + math.cos(math.pi * max(0.0, (t - warmup) / updates)))
        assert scheduler.step_update(int(t)) == pytest.approx(rate, rel=1e-9, abs=1e-15), t


@TASKS
def test_pretraining_reads_the_same_folder_and_model(task: str) -> None:
    own, pretraining = (files.load(files.find(f"lra_{task}{suffix}")) for suffix in ("", "_pretraining"))
    assert pretraining["preprocess"] == own["preprocess"] | {"out": f"data-bin/lra_{task}"}
    assert pretraining["train"]["arch"] == own["train"]["arch"]
    given = parsed(f"lra_{task}_pretraining")
    assert given.data == f"data-bin/lra_{task}/bin/input0" and given.mask_prob == MASKED[task]
    assert given.tokens_per_sample == given.max_positions == parsed(f"lra_{task}").max_positions
    assert (given.task, given.criterion, given.sample_break_mode) == ("masked_document_lm", "masked_lm", "eos")


@pytest.mark.parametrize("name", ["lra_listops_small", "lra_text_small"])
def test_small_models(name: str) -> None:
    given = parsed(name)
    assert (given.encoder_layers, given.encoder_embed_dim, given.encoder_attention_heads) == (2, 64, 2)
    assert given.batch_size == 32 and given.max_positions in (402, 1002)
