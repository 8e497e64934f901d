"""Figures of the papers that an edit of a base must not change, and what holds for all recipes; read by fairseq."""

from __future__ import annotations

import math
from argparse import Namespace

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler

from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from hat_fairseq.register import register

register()  # the tasks and architectures that the recipes name

# As printed: documents or tokens of an update, updates, highest learning rate.
PRINTED = {
    "arxiv": (128, 30_000, 3e-5),  # Rohde et al. 2021, section 4
    "cnn_dm": (64, 20_000, 3e-5),
    "wmt20_en_de": (131_072, 50_000, 1e-4),
    "wmt20_en_cs": (131_072, 15_000, 5e-4),
    "ted17_zh_en": (16_384, 8000, 1e-3),
    "poolingformer_arxiv_16k": (128, 15_862, 2e-4),  # Zhang et al. 2021, section 3.2
    "natural_questions": (64, 20_000, 2e-5),
    "roberta_pretraining": (8192, 500_000, 6e-4),  # Liu et al. 2019, Table 9
    "race": (16, 21_968, 1e-5),  # 4 epochs, Table 10
    "hierarchical_transformer_pretraining": (128, 50_000, 1e-4),  # Chalkidis et al. 2022, model card
    "ernie_sparse_wikihop": (48 // 2, 54_690, 3e-5),  # Liu et al. 2022, Table 9; two passes halve the batch
}
WARMUP = {"lra_listops": 1000, "lra_text": 8000, "lra_retrieval": 8000, "lra_image": 175, "lra_pathfinder": 312}


def parsed(name: str) -> Namespace:
    words = recipes.build_commands("train", name)[0][4:]
    return options.parse_args_and_arch(options.get_training_parser(), input_args=words)


@pytest.mark.parametrize("name", PRINTED)
def test_settings_are_as_printed(name: str) -> None:
    given = parsed(name)
    update = (given.batch_size or given.max_tokens) * given.update_freq[0] * given.distributed_world_size
    assert (update, given.max_update, *given.lr) == PRINTED[name]


@pytest.mark.parametrize("name", files.names())
def test_rows_fit_the_model(name: str) -> None:
    given, preprocess = parsed(name), files.load(files.find(name))["preprocess"]
    for side, limit in {"source": "max_source_positions", "target": "max_target_positions"}.items():
        positions = getattr(given, limit, getattr(given, "max_positions", None))
        if f"max-{side}-tokens" in preprocess and positions is not None:
            assert int(str(preprocess[f"max-{side}-tokens"])) <= positions, side


class Optimizer(FairseqOptimizer):
    """Plain SGD whose learning rate the schedulers of fairseq set."""

    def __init__(self) -> None:
        super().__init__(None)
        self._optimizer = torch.optim.SGD([torch.zeros(1)], lr=1)


@pytest.mark.parametrize("name", WARMUP)
def test_learning_rates_of_long_range_arena_are_those_of_the_authors(name: str) -> None:
    """As `create_learning_rate_scheduler` of lra_benchmarks computes them."""
    config = convert_namespace_to_omegaconf(parsed(name))
    warmup, updates, scheduler = WARMUP[name], config.optimization.max_update, config.lr_scheduler
    scheduled = build_lr_scheduler(scheduler, Optimizer())
    for t in (0, 1, warmup // 2, warmup - 1, warmup, warmup + 1, 3 * warmup, updates // 2, updates):
        if scheduler._name == "inverse_sqrt":
            rate = 0.05 * min(1, t / warmup) / math.sqrt(max(t, warmup))
        else:
            rate = scheduler.lr[0] * min(1, t / warmup)
            rate *= 0.5 * (1 + math.cos(math.pi * max(0.0, (t - warmup) / updates)))
        assert scheduled.step_update(int(t)) == pytest.approx(rate, rel=1e-9, abs=1e-15), t


@pytest.mark.parametrize("name", [name for name in files.names() if f"{name}_pretraining" in files.names()])
def test_pretraining_reads_the_same_folder_and_model(name: str) -> None:
    own, pretraining = (files.load(files.find(f"{name}{suffix}")) for suffix in ("", "_pretraining"))
    assert pretraining["preprocess"] == own["preprocess"] | {"out": f"data-bin/{name}"}
    given = parsed(f"{name}_pretraining")
    assert given.data == f"data-bin/{name}/bin/input0" and given.arch == own["train"]["arch"]
    assert given.tokens_per_sample == given.max_positions == parsed(name).max_positions
