"""Numbers of parameters, as the papers state them or as they follow from their sizes."""

from __future__ import annotations

import pytest
import torch
from building import Vocabulary, build

from hat_fairseq.models.architectures import LRA
from hat_fairseq.modules.pooling_attention import PoolingAttention, SecondLevel
from hat_fairseq.modules.sliding_window import SlidingWindowAttention
from hat_fairseq.weights.rename import parse_flags

MEETINGS = {"max_source_positions": 3072, "max_target_positions": 1024}
BOOKS = {"max_source_positions": 16384, "max_target_positions": 1024}
HAT_ADDS_WMT, HAT_ADDS_TED = 37_798_912, 8_412_672


def count(arch: str, size: int = 50265, flags: str = "", **args: object) -> int:
    with torch.device("meta"):  # shapes only: half a billion parameters in no memory
        model = build(arch, flags, Vocabulary(size), **args)
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameter_counts() -> None:
    plain = {"no_hierarchy": True}
    assert count("hat_bart_large", 50264, **MEETINGS) == 471_389_184
    assert count("hat_bart_large", 50264, **MEETINGS, **plain) == 408_387_584
    assert count("hat_roberta_base") == 153_063_513 and count("hat_roberta_large") == 456_221_785
    assert count("hat_roberta_base", **plain) == 124_696_665 and count("hat_roberta_large", **plain) == 355_411_033
    assert count("poolingformer_base") == 132_787_545 and count("poolingformer_large") == 378_035_289
    assert count("poolingformer_bart_base", 50264, **BOOKS) == 156_554_496
    assert count("poolingformer_bart_large", 50264, **BOOKS) == 440_973_312
    assert count("ernie_sparse_base") == 127_449_177
    separate = count("ernie_sparse_base", flags="--representative-weights separate")
    assert separate - count("ernie_sparse_base") == 12 * 4 * (768 * 768 + 768)
    assert count("hierarchical_transformer_base_4096") == 152_779_353
    # the ad hoc model: another layout of 16 blocks, no other number
    ad_hoc = "--layout S|S|S|S|S|S|S|S|S|S|S|SD|D|D|D"
    assert count("hierarchical_transformer_base_4096", flags=ad_hoc) == 152_779_353
    for arch, size, added, baseline in (
        ("hat_transformer_wmt_en_de", 44_600, HAT_ADDS_WMT, 222e6),
        ("hat_transformer_wmt_en_cs", 44_600, HAT_ADDS_WMT, 222e6),
        ("hat_transformer_ted_zh_en", 45_800, HAT_ADDS_TED, 55e6),
    ):
        twin = count(arch, size, **plain)
        assert count(arch, size) - twin == added and twin == pytest.approx(baseline, rel=0.01)


def test_long_range_arena() -> None:
    """The three models of a task differ in the attention alone, and the representatives' projections."""
    for task in LRA:
        models = {kind: count(f"{kind}_lra_{task}", 60) for kind in ("transformer", "bigbird", "ernie_sparse")}
        sizes = LRA[task]
        width, inner = sizes["encoder_embed_dim"], sizes.get("encoder_qkv_dim", sizes["encoder_embed_dim"])
        attention = 4 * width * inner + 3 * inner + width
        assert models["transformer"] == models["bigbird"]
        assert models["ernie_sparse"] == models["bigbird"] + sizes["encoder_layers"] * attention


def test_attentions_are_as_printed() -> None:
    """Zhang et al. 2021, section 3.2: windows and layers; Liu et al. 2022, Table 9: tokens of each kind."""
    for arch, layers, rule in [
        ("poolingformer_base", range(6, 9), "question"),
        ("poolingformer_large", range(15, 21), "question"),
        ("poolingformer_bart_large", range(6, 12), "first"),
    ]:
        with torch.device("meta"):
            model = build(arch, "", max_source_positions=4096)
        for number, layer in enumerate((model.encoder if "bart" in arch else model.core).layers):
            kind = PoolingAttention if number in layers else SlidingWindowAttention
            assert type(layer.self_attn) is kind and layer.self_attn.window == 128
            assert number not in layers or layer.self_attn.level == SecondLevel(512, 5, 4, "ldconv", cells="document")
        config = model.config
        assert config.global_tokens == rule and config.no_hierarchy and config.extend_positions == "tile"
    with torch.device("meta"):
        config = build("ernie_sparse_base", "").config
    pattern = config.attention_settings().pattern
    numbers = pattern.first + pattern.last, pattern.window, pattern.random
    assert [pattern.block * number for number in numbers] == [128, 192, 192]
    assert (config.document_pooling, config.representative_weights, config.activation_fn) == ("mean", "shared", "gelu")


def test_a_new_model_has_the_cells_of_the_paper() -> None:
    """`build` gives no setting, as older checkpoints: there the cells are those of the document."""
    words = ["--arch", "hat_bart_base", "--encoder-attention", "pooling"]
    assert parse_flags(words).pooling_cells == "token"
    assert parse_flags([*words, "--pooling-cells", "document"]).pooling_cells == "document"
