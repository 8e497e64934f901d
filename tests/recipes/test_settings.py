"""Figures of the papers that an edit of a base must not change, and what holds for all recipes; read by fairseq."""

from __future__ import annotations

import argparse
import math
from argparse import Namespace

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler

from hat_fairseq.data import preprocess
from hat_fairseq.data.options import Options
from hat_fairseq.data.readers import Reader, find_reader
from hat_fairseq.networks.hierarchical_transformer import HierarchicalTransformerConfig
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


def preprocess_options(name: str) -> Options:
    parser = argparse.ArgumentParser()
    preprocess.add_arguments(parser)
    given = vars(parser.parse_args(recipes.build_commands("preprocess", name)[0][5:]))
    own_data = given["reader"].startswith("raw/")
    reader = Reader("own data", kind=given["kind"] or "text", read=None) if own_data else find_reader(given["reader"])
    return preprocess.resolve_options(given, reader)


@pytest.mark.parametrize("name", files.names())
def test_rows_fit_the_model(name: str) -> None:
    """So that no model refuses rows that took hours to make. `hat preprocess` and the model count alike."""
    given, options = parsed(name), preprocess_options(name)
    if given.arch.startswith("hierarchical_transformer"):
        model = Namespace(**{**vars(HierarchicalTransformerConfig()), **vars(given)})
        longest = model.max_segments * model.segment_length
        assert given.segment_by == "marker" and options.max_segments <= model.max_segments
        assert options.segment_length <= model.segment_length
    else:
        longest = given.max_source_positions if options.kind == "text" else given.max_positions
    assert max(options.max_source_tokens, options.max_chunk_tokens or 0) <= longest
    if options.kind == "text":
        assert max(options.max_target_tokens, options.max_chunk_tokens or 0) <= given.max_target_positions
        assert options.max_chunk_tokens or not (options.aligned and options.long_source == "chunk")
    assert not {"long-source", "long-target", "truncate-source"} & set(files.load(files.find(name))["train"])


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
