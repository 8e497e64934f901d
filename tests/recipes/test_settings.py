"""The recipes against a table of the paper's settings, read by fairseq's own parser."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from fairseq import options

from hat_fairseq.networks.hat import HatConfig
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from hat_fairseq.recipes.update import split, values_of

# The paper's settings, typed from its section 4; what it does not say is not here. Lengths are with </s>.

BART_START = {"label_smoothing": 0.1, "dropout": 0.1, "attention_dropout": 0.1, "adam_betas": "(0.9, 0.999)"}
BART_START |= {"adam_eps": 1e-8, "weight_decay": 0.01, "arch": "hat_bart_large", "lr": [3e-5]}
LONG = BART_START | {"max_source_positions": 3072, "max_update": 30_000, "warmup_updates": 900, "gpus": 2}
LONG |= {"update": (128, "batch_size"), "lengths": (3072, 512), "extend_positions_from": 512}
LONG |= {"finetune_from_model": "bart.large/model.pt"}
# Zhang et al. 2021, section 3.2
POOLING = {"update": (128, "batch_size"), "finetune_from_model": "bart.large/model.pt", "checkpoint_activations": True}
POOLING |= {"encoder_attention": "pooling", "encoder_attention_layers": "6-11", "global_tokens": "first"}
POOLING |= {"extend_positions": "tile", "max_update": 15_862, "warmup_updates": 1000, "lr": [2e-4], "gpus": 8}
POOLING |= {"arch": "poolingformer_bart_large", "no_hierarchy": True}
HAT_POOLING = LONG | {
    name: POOLING[name] for name in ("encoder_attention", "encoder_attention_layers", "global_tokens")
}
HAT_POOLING |= {"extend_positions": "tile", "extend_positions_from": None}
NEWS = BART_START | {"max_update": 20_000, "update": (64, "batch_size"), "lengths": (1024, 256)}
NEWS |= {"finetune_from_model": "bart.large/model.pt"}
CHAINED = BART_START | {"finetune_from_model": "checkpoints/cnn_dm/checkpoint_best.pt", "role_stream": "role"}
TRANSLATION = {"adam_betas": "(0.9, 0.98)", "adam_eps": 1e-6, "lengths": (512, 512), "share_all_embeddings": True}
WMT20 = TRANSLATION | {"encoder_embed_dim": 1024, "encoder_attention_heads": 16, "encoder_ffn_embed_dim": 4096}
WMT20 |= {"decoder_layers": 6, "encoder_layers": 6, "max_tokens": 1024, "update": (131_072, "max_tokens"), "gpus": 8}
PAPER = {
    "pubmed": LONG,
    "arxiv": LONG,
    **{
        f"poolingformer_arxiv_{name}": POOLING | {"max_source_positions": tokens, "lengths": (tokens, 512)}
        for name, tokens in (("4k", 4096), ("16k", 16384))
    },
    **{
        f"hat_pooling_{data}_{name}": HAT_POOLING | {"max_source_positions": tokens, "lengths": (tokens, 512)}
        for data in ("arxiv", "pubmed")
        for name, tokens in (("8k", 8192), ("16k", 16384))
    },
    "cnn_dm": NEWS,
    "xsum": NEWS,
    "samsum": CHAINED,
    "ami": CHAINED,
    "icsi": CHAINED,
    "wmt20_en_de": WMT20
    | {"max_update": 50_000, "warmup_updates": 1250, "lr": [1e-4], "label_smoothing": 0.1, "dropout": 0.1},
    "wmt20_en_cs": WMT20
    | {"max_update": 15_000, "warmup_updates": 500, "lr": [5e-4]}
    | {"label_smoothing": 0.2, "dropout": 0.2, "weight_decay": 0.1},
    "ted17_zh_en": TRANSLATION
    | {"encoder_embed_dim": 512, "encoder_attention_heads": 4, "encoder_ffn_embed_dim": 1024, "decoder_layers": 6}
    | {"max_tokens": 8192, "update": (16_384, "max_tokens"), "gpus": 1, "max_update": 8000, "warmup_updates": 100}
    | {"lr": [1e-3], "label_smoothing": 0.2, "dropout": 0.3, "weight_decay": 0.1},
}
LONG_GENERATION = {"beam": 2, "lenpen": 1, "min_len": 72, "max_len_b": 966}
NEWS_GENERATION = {"beam": 1, "lenpen": 0, "min_len": 40, "max_len_b": 120}
PAPER_GENERATION = {
    "pubmed": LONG_GENERATION,
    "arxiv": LONG_GENERATION,
    **{f"poolingformer_arxiv_{name}": {"beam": 5, "lenpen": 2} for name in ("4k", "16k")},
    **{f"hat_pooling_{data}_{name}": LONG_GENERATION for data in ("arxiv", "pubmed") for name in ("8k", "16k")},
    "cnn_dm": NEWS_GENERATION,
    "xsum": NEWS_GENERATION,
}
PAPER_GENERATION |= {name: {"beam": 4} for name in ("wmt20_en_de", "wmt20_en_cs", "ted17_zh_en")}
OURS = {"ami_small", "ami_small_long", "libreoffice_help_en_de"}
ENCODERS = {name for name in files.names() if not files.load(files.find(name))["generate"]}


@pytest.mark.parametrize("name", PAPER)
def test_training_is_the_papers(name):
    arrived = options.parse_args_and_arch(
        options.get_training_parser(), input_args=recipes.build_commands("train", name)[0][4:]
    )
    expected = dict(PAPER[name])
    total, unit = expected.pop("update", (None, None))
    if unit is not None:
        (freq,) = arrived.update_freq
        assert getattr(arrived, unit) * freq * arrived.distributed_world_size == total
    if gpus := expected.pop("gpus", None):
        assert arrived.distributed_world_size == gpus
    section = files.load(files.find(name))["preprocess"]
    lengths = int(str(section["max-source-tokens"])), int(str(section["max-target-tokens"]))
    assert lengths == expected.pop("lengths", lengths)
    assert lengths[0] <= arrived.max_source_positions and lengths[1] <= arrived.max_target_positions
    known = {**asdict(HatConfig.from_args(arrived)), **vars(arrived)}
    assert {key: known[key] for key in expected} == expected
    assert arrived.lr_scheduler == "polynomial_decay" and float(arrived.total_num_update) == arrived.max_update
    assert arrived.optimizer == "adam" and arrived.bf16
    assert known["no_hierarchy"] == PAPER[name].get("no_hierarchy", False)
    assert arrived.criterion == "chunked_label_smoothed_cross_entropy"


@pytest.mark.parametrize("name", PAPER_GENERATION)
def test_generation_is_the_papers(name):
    flags = values_of(split(recipes.build_commands("generate", name)[0]))
    for key, value in PAPER_GENERATION[name].items():
        assert float(flags[key.replace("_", "-")]) == value, key


def test_the_recipes_of_the_papers_are_there():
    """Ten of Rohde et al., two of Zhang et al., and four that combine both."""
    assert len(PAPER) == 10 + 2 + 4 and set(files.names()) - ENCODERS == set(PAPER) | OURS
