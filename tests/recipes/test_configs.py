"""The recipes of the repository: nothing of one is missing, every value arrives in its command, and rows fit models."""

import argparse
import math
from argparse import Namespace
from functools import cache
from typing import Any

import pytest
import torch
import yaml
from commands import recipe_sections
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler

from hat_fairseq import cli
from hat_fairseq.data import preprocess
from hat_fairseq.data.options import Options
from hat_fairseq.data.readers import Reader, find_reader
from hat_fairseq.data.readers import names as reader_names
from hat_fairseq.networks.hierarchical_transformer import HierarchicalTransformerConfig
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from hat_fairseq.recipes.update import split
from hat_fairseq.register import register
from hat_fairseq.scoring.official import FILES

register()  # the tasks and architectures that the recipes name
SECTIONS = recipe_sections()
WITH = {verb: [name for name in SECTIONS if SECTIONS[name][verb]] for verb in recipes.COMMANDS}
WARMUP = {"lra_listops": 1000, "lra_text": 8000, "lra_retrieval": 8000, "lra_image": 175, "lra_pathfinder": 312}


def reader_of(name: str) -> str:
    return SECTIONS[name]["preprocess"]["reader"].replace("{examples}", str(files.EXAMPLES))


def takes_a_folder(name: str) -> bool:
    """Data of the user's own: raw/NAME in the current directory."""
    return reader_of(name) == "raw/{recipe}"


@cache
def trained(name: str) -> Namespace:
    """What fairseq-train reads of a recipe."""
    words = recipes.build_commands("train", name)[0][5:]
    return options.parse_args_and_arch(options.get_training_parser(), input_args=words)


def preprocessed(name: str) -> Namespace:
    parser = argparse.ArgumentParser()
    preprocess.add_arguments(parser)
    return parser.parse_args(recipes.build_commands("preprocess", name)[0][5:])


def options_of(name: str) -> Options:
    """The options of `hat preprocess`, with the defaults of the reader."""
    flags = vars(preprocessed(name))
    own = Reader("own data", kind=flags["kind"] or "text", read=None) if takes_a_folder(name) else None
    return preprocess.resolve_options(flags, own or find_reader(flags["reader"]))


def as_number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def assert_arrived(words, arrived):
    """Every flag's value is found under its name, as the type that the parser gives it."""
    for flag in split(words):
        if flag.name:
            value = getattr(arrived, flag.name.replace("-", "_"))
            expected = [yaml.safe_load(text) for text in flag.values] or [True]
            value = value if isinstance(value, list) and flag.values else [value]
            assert [as_number(item) for item in value] == [as_number(item) for item in expected], (words[0], flag)


def test_matrix_is_complete() -> None:
    """Every recipe has a reader and its commands, and there is no reader without a recipe."""
    readers = {reader_of(name) for name in SECTIONS if not takes_a_folder(name)}
    assert set(reader_names()) == {name for name in readers if not name.endswith(".py")}
    for name, sections in SECTIONS.items():
        goals = [verb for verb in ("generate", "predict") if sections[verb]]
        assert len(goals) == (0 if name.endswith("_pretraining") else 1), name
        assert all(sections[section] for section in ("preprocess", "task", "train", "update")), name
        assert all("score" in sections[verb] for verb in goals), name
        assert not {"long-source", "long-target", "truncate-source"} & set(sections["train"]), name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sections"), SECTIONS.items())
def test_train_recipes_arrive_in_fairseq(name: str, sections: Any) -> None:
    arrived = trained(name)
    assert_arrived(recipes.build_commands("train", name)[0][5:], arrived)
    # Of the first all is hierarchical, the second have no hierarchy.
    has_plain_twin = not sections["train"]["arch"].startswith(("hierarchical_transformer", "poolingformer"))
    plain = recipes.build_commands("train", name, ["--no-hierarchy"])[0][5:]
    assert not has_plain_twin or plain == [*recipes.build_commands("train", name)[0][5:], "--no-hierarchy"]
    assert getattr(arrived, "no_hierarchy", False) is arrived.arch.startswith("poolingformer"), name


@pytest.mark.slow
def test_other_recipes_arrive() -> None:
    for name in SECTIONS:
        assert_arrived(recipes.build_commands("preprocess", name)[0][5:], preprocessed(name))
    for verb, name in [(each, name) for each in ("generate", "predict") for name in WITH[each]]:
        command, *scores = recipes.build_commands(verb, name)
        arrived, part = cli.build_parser(verb).parse_args(command[4:]), SECTIONS[name][verb]["split"]
        assert_arrived(command[6:], arrived)
        assert (str(arrived.input), arrived.model) == (
            f"data-bin/{name}",
            SECTIONS[name][verb]["model"].format(recipe=name),
        )
        assert str(arrived.out) == f"results/{name}/{part}.jsonl"
        assert arrived.split == part
        assert bool(scores) != (reader_of(name) in FILES)  # which their authors' scripts score
        for score in scores:
            files_of_score = cli.build_parser("score").parse_args(score[4:])
            assert files_of_score.references == [f"data-bin/{name}/text/{part}.jsonl"]
            assert files_of_score.hypotheses == [str(arrived.out)]
            assert files_of_score.out == f"results/{name}/{part}.score.json"
        assert takes_a_folder(name) or part in find_reader(reader_of(name)).splits


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_rows_fit_the_models(name: str) -> None:
    """So that no model refuses rows that took hours to make. `hat preprocess` and the model count alike."""
    arrived, options = trained(name), options_of(name)
    if options.kind == "evidence" or arrived.arch.startswith("hat_units"):  # rows of any length
        return
    if arrived.arch.startswith("hierarchical_transformer"):
        model = Namespace(**{**vars(HierarchicalTransformerConfig()), **vars(arrived)})
        longest = model.max_segments * model.segment_length
        assert arrived.segment_by == "marker", name
        assert options.max_segments <= model.max_segments, name
        assert options.segment_length <= model.segment_length, name
    else:
        longest = arrived.max_source_positions if options.kind == "text" else arrived.max_positions
    assert max(options.max_source_tokens, options.max_chunk_tokens or 0) <= longest, name
    if options.kind == "text":
        assert max(options.max_target_tokens, options.max_chunk_tokens or 0) <= arrived.max_target_positions, name
        assert options.max_chunk_tokens or not (options.aligned and options.long_source == "chunk"), name


def test_pretraining_reads_the_same_folder_and_model() -> None:
    names = [name for name in SECTIONS if f"{name}_pretraining" in SECTIONS]
    for name in names:
        own, pretraining = SECTIONS[name], SECTIONS[f"{name}_pretraining"]
        assert pretraining["preprocess"] == own["preprocess"] | {"out": f"data-bin/{name}"}
        arrived = trained(f"{name}_pretraining")
        assert arrived.data == f"data-bin/{name}/bin/input0"
        assert arrived.arch == own["train"]["arch"]
        assert arrived.tokens_per_sample == arrived.max_positions == trained(name).max_positions
    assert len(names) > 5


SMALL = "encoder-layers encoder-embed-dim encoder-ffn-embed-dim encoder-attention-heads sparse-block"
LENGTH = "max-source-tokens max-source-positions"
STEPS = "lr max-update warmup-updates"
SIBLINGS = {  # recipes that agree in all flags but these
    "pubmed arxiv": "reader",
    "cnn_dm xsum": "reader",
    "ami icsi": "reader",
    "samsum ami": f"reader roles {LENGTH} max-target-tokens batch-size max-update warmup-updates validate-interval "
    "save-interval beam min-len max-len-b",
    "wmt20_en_de wmt20_en_cs": f"reader arch dropout label-smoothing weight-decay {STEPS}",
    "wmt20_en_de ted17_zh_en": f"reader source-tokenizer arch dropout label-smoothing weight-decay {STEPS} max-tokens "
    "gpus",
    "natural_questions natural_questions_base": "arch finetune-from-model",
    "natural_questions tydi_qa": "reader bpe bpe-dir finetune-from-model max-update warmup-updates",
    "poolingformer_arxiv_4k poolingformer_arxiv_16k": LENGTH,
    "hat_pooling_arxiv_8k hat_pooling_arxiv_16k hat_pooling_pubmed_8k hat_pooling_pubmed_16k": f"reader {LENGTH}",
    "arxiv hat_pooling_arxiv_16k": f"{LENGTH} batch-size checkpoint-activations encoder-attention "
    "encoder-attention-layers global-tokens extend-positions extend-positions-from",
    "arxiv poolingformer_arxiv_16k": f"{LENGTH} arch batch-size checkpoint-activations extend-positions-from {STEPS} "
    "gpus beam lenpen",
    "ernie_sparse_imdb ernie_sparse_arxiv_categories": f"reader max-source-tokens sar-alpha batch-size {STEPS}",
    "ernie_sparse_wikihop ernie_sparse_triviaqa": "reader segments task sar-alpha base-criterion "
    "best-checkpoint-metric maximize-best-checkpoint-metric batch-size max-update warmup-updates threshold score",
    "ernie_sparse_imdb ernie_sparse_hyperpartisan": f"reader max-source-tokens criterion base-criterion sar-alpha "
    f"sar-roll batch-size {STEPS}",
    "lra_listops lra_text lra_retrieval": f"reader max-source-tokens arch max-positions {STEPS} save-interval-updates",
    "lra_image lra_pathfinder": f"reader arch dropout attention-dropout batch-size {STEPS}",
    "lra_listops_pretraining lra_text_pretraining lra_retrieval_pretraining lra_image_pretraining "
    "lra_pathfinder_pretraining": "reader out data max-source-tokens long-source arch max-positions mask-prob lr",
    "lra_listops lra_listops_small": f"partial max-source-tokens max-positions {SMALL} {STEPS}",
    "lra_text lra_text_small": f"{SMALL} {STEPS} save-interval-updates",
    "hyperpartisan imdb": "reader max-update warmup-updates",
    "multiple_choice sequential_sentences": "kind splitter segments long-source task batch-size",
    "labels sentence_labels": "kind splitter task batch-size max-epoch score",
    "ami_questions qmsum": "reader max-update",
    "ami_small ami_small_long": f"{LENGTH} long-source encoder-attention encoder-attention-layers attention-window "
    "pooling-window batch-size max-update",
}


@pytest.mark.parametrize(("names", "own"), SIBLINGS.items())
def test_siblings_agree(names: str, own: str) -> None:
    pairs = [
        {
            (section, *flag)
            for section, flags in SECTIONS[name].items()
            for flag in files.flags_with_value(flags).items()
        }
        for name in names.split()
    ]
    assert {flag for _, flag, _ in set.union(*pairs) - set.intersection(*pairs)} == {*own.split()}


@pytest.mark.parametrize("name", SECTIONS)
def test_what_a_recipe_says_that_it_needs_is_what_its_flags_need(name: str) -> None:
    """Weights, GPUs, and the folder of a release, which the package has of two corpora of meetings."""
    what, where, needs = files.head(files.find(name))[:3]
    assert what[-1] in ".?"
    assert where.startswith(("paper: ", "for: "))
    assert needs.startswith("needs: ")
    train, reader = SECTIONS[name]["train"], SECTIONS[name]["preprocess"]["reader"]
    weights = train.get("finetune-from-model", train.get("encoder-from", ""))
    assert ("--root DIR" in needs) == (reader not in ("ami", "icsi", "ami_questions")) or reader.startswith("raw/")
    assert weights.removeprefix("checkpoints/").rpartition("/")[0] in needs
    gpus = int(SECTIONS[name]["update"]["gpus"])
    assert f"{gpus} GPU{'s' * (gpus > 1)}" in needs or (gpus == 1 and "GPU" not in needs and where.startswith("for: "))


HARDWARE = {  # the GPUs that a paper prints, apart from "we use one"
    **dict.fromkeys(["pubmed", "arxiv"], 2),  # A100
    **dict.fromkeys(["wmt20_en_de", "wmt20_en_cs"], 8),  # V100, as the next ones
    **dict.fromkeys(
        ["natural_questions", "natural_questions_base", "tydi_qa", "poolingformer_arxiv_4k", "poolingformer_arxiv_16k"],
        8,
    ),
    "hierarchical_transformer_pretraining": 8,  # TPU
}


@pytest.mark.slow
def test_hardware_seed_and_choice_of_a_checkpoint_are_the_papers() -> None:
    for name, number in HARDWARE.items():
        assert trained(name).distributed_world_size == number, name
    for name in SECTIONS:
        assert trained(name).seed == (42 if name == "hierarchical_transformer_pretraining" else 1), name
        if SECTIONS[name]["generate"]:  # Rohde et al. 2021: "choose the best model by label smoothing loss"
            assert trained(name).best_checkpoint_metric == "loss"
            assert not trained(name).maximize_best_checkpoint_metric


class Optimizer(FairseqOptimizer):
    """Plain SGD whose learning rate the schedulers of fairseq set."""

    def __init__(self) -> None:
        super().__init__(None)
        self._optimizer = torch.optim.SGD([torch.zeros(1)], lr=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", WARMUP)
def test_learning_rates_of_long_range_arena_are_those_of_the_authors(name: str) -> None:
    """As `create_learning_rate_scheduler` of lra_benchmarks computes them."""
    config = convert_namespace_to_omegaconf(trained(name))
    warmup, updates, scheduler = WARMUP[name], config.optimization.max_update, config.lr_scheduler
    scheduled = build_lr_scheduler(scheduler, Optimizer())
    for t in (0, 1, warmup // 2, warmup - 1, warmup, warmup + 1, 3 * warmup, updates // 2, updates):
        if scheduler._name == "inverse_sqrt":
            rate = 0.05 * min(1, t / warmup) / math.sqrt(max(t, warmup))
        else:
            rate = scheduler.lr[0] * min(1, t / warmup)
            rate *= 0.5 * (1 + math.cos(math.pi * max(0.0, (t - warmup) / updates)))
        assert scheduled.step_update(int(t)) == pytest.approx(rate, rel=1e-9, abs=1e-15), t
