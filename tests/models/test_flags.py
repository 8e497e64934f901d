"""Flags and sizes of the models: roles, dictionaries, tables, positions, numbers of parameters; what is refused."""

from dataclasses import is_dataclass

import pytest
import torch
from building import PAD, SMALL_HIERARCHICAL, TINY, TINY_ENCODER, Vocabulary, build, documents, targets
from fairseq.data import Dictionary

from hat_fairseq import networks
from hat_fairseq.models.architectures import LRA
from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.pooling_attention import PoolingAttention, SecondLevel
from hat_fairseq.modules.sliding_window import SlidingWindowAttention
from hat_fairseq.options import options_of
from hat_fairseq.weights.bert import package_flags

LENGTHS = [17, 9, 2]


def test_roles_are_added_and_missing_or_surplus_ones_are_refused() -> None:
    """Padding of the source on the left moves the roles too."""
    source, target = documents(LENGTHS), targets(3, 8)
    roles = torch.where(source == PAD, PAD, 4 + torch.arange(17) % 2)
    with_roles = build("hat_transformer_tiny", task=Vocabulary(roles=2)).eval()
    without = build("hat_transformer_tiny").eval()
    assert "encoder.embed_segments.weight" not in without.state_dict()
    first = with_roles(source, None, target, roles=roles)[0]
    left = [torch.stack([row.roll(17 - n) for row, n in zip(x, LENGTHS, strict=True)]) for x in (source, roles)]
    torch.testing.assert_close(with_roles(left[0], None, target, roles=left[1])[0], first)
    assert not torch.allclose(first, with_roles(source, None, target, roles=roles.where(roles == PAD, 5))[0])
    with pytest.raises(ValueError, match="--role-stream"):
        with_roles(source, None, target)
    with pytest.raises(ValueError, match="--role-stream"):
        without(source, None, target, roles=roles)


@pytest.mark.parametrize(("longest", "windows"), [(None, False), (512, False), (513, True)])
def test_a_package_has_windows_beyond_the_positions_of_its_weights(longest: int | None, windows: bool) -> None:
    assert ("--attention-window" in package_flags([], 512, longest)) == windows


def test_tables_are_shared_only_on_request() -> None:
    task = Vocabulary()
    task.target_dictionary = Vocabulary(33).target_dictionary
    model = build("hat_transformer", TINY, task)
    assert model(documents(LENGTHS), None, targets(3, 8, vocabulary=33))[0].size(-1) == 33
    task.target_dictionary = Dictionary()
    with pytest.raises(ValueError, match="--joined-dictionary"):
        build("hat_transformer_tiny", task=task)
    shared = build("hat_bart_base")
    assert shared.encoder.embed_tokens.weight is shared.decoder.output_projection.weight


@pytest.mark.parametrize(("flags", "tied"), [("", True), (" --untie-weights-roberta", False)])
def test_the_table_of_an_encoder_is_that_of_its_head_unless_it_is_untied(flags: str, tied: bool) -> None:
    encoder = build("hat_roberta_base", TINY_ENCODER + flags).encoder
    assert (encoder.lm_head.weight is encoder.sentence_encoder.embed_tokens.weight) == tied


def test_the_longest_document_is_max_positions_or_that_of_the_task() -> None:
    assert build("hat_roberta_base", TINY_ENCODER, max_positions=64).max_positions() == 64
    assert build("hat_roberta_base", TINY_ENCODER, tokens_per_sample=40).max_positions() == 40
    assert build("hat_roberta_base", TINY_ENCODER).max_positions() == 512


BART = f"hat_bart_base {TINY}"
ATTENTION = f"{BART} --encoder-attention"
ROBERTA = f"hat_roberta_base {TINY_ENCODER}"
FAMILY = f"{BART} --encoder-family"
ERNIE = f"ernie_sparse_base {TINY_ENCODER} --sparse-block 4 --sparse-random 1 --max-positions 140"
REFUSED = [
    (f"{BART} --decoder-embed-dim 48", "--encoder-embed-dim 24 and --decoder-embed-dim 48 must be equal"),
    (f"{BART} --decoder-layers 0", "--decoder-layers must be at least 1, not 0"),
    (f"{BART} --decoder-kv-heads 3", "--decoder-kv-heads 3 .*heads 4: give one of 1, 2, 4$"),
    (f"{BART} --decoder-kv-heads 0", "--decoder-kv-heads must be at least 1, not 0"),
    (f"hierarchical_transformer {SMALL_HIERARCHICAL}S|S --layer-norm-eps -1", "--layer-norm-eps must be at least 0"),
    (f"{ERNIE} --layer-norm-eps nan", "--layer-norm-eps must be a number, not nan"),
    (f"{BART} --layer-norm-eps inf", "--layer-norm-eps must be a finite number, not inf"),
    (f"hat_roberta_base {TINY_ENCODER} --max-positions -3", "--max-positions must be at least 1, not -3"),
    (f"hat_roberta_base {TINY_ENCODER} --max-positions 0", "--max-positions must be at least 1, not 0"),
    (f"{ERNIE} --pooler-inner-dim -2", "--pooler-inner-dim must be at least 1, not -2"),
    (f"{ERNIE} --pooler-inner-dim 0", "--pooler-inner-dim must be at least 1, not 0"),
    (f"{ATTENTION} sliding", "--encoder-attention must be one of full, segments, .*, not 'sliding'"),
    (f"{ATTENTION} window --pooling-window 8", "--pooling-window 8 has no effect with --encoder-attention w"),
    (f"{ATTENTION} window --attention-window 0", "--attention-window must be at least 1, not 0"),
    (f"{ATTENTION} pooling --pooling-window 3", "--pooling-window 3: with --pooling-kernel 5 and --pooling-stride 4"),
    (f"{ATTENTION} segments --encoder-attention-layers 2", "has layers 0 to 1"),
    (f"{ATTENTION} segments --encoder-attention-layers 1-", "write layers as 0,6-8"),
    (f"{ATTENTION} segments --encoder-attention-layers 1-0", "1-0 ends before it begins; write 0-1"),
    (f"{BART} --segment-length 8", "--segment-length 8 has no effect with --encoder-attention full: remove it"),
    (f"{ERNIE} --encoder-attention full", "representative tokens need --encoder-attention block-sparse"),
    (f"{ERNIE} --sparse-block 1", "--sparse-block 1 has room for a representative only"),
    (f"{ERNIE} --sparse-window 2", "--sparse-window 2: it must be odd"),
    (f"{ERNIE} --encoder-qkv-dim 25", "the width of all heads .25. must be a multiple of their number"),
    (f"{ERNIE} --sparse-first 35", "--sparse-first 35 blocks of 4 tokens leave none of --max-positions 140 for rep"),
    (f"{ERNIE} --sparse-random 36", "--sparse-random 36: --max-positions 140 is only 35 blocks of 4 tokens"),
    (f"{ERNIE} --sparse-window 37 --no-hierarchy", "--sparse-window 37: --max-positions 140 is only 35 blocks of 4"),
    (f"{ERNIE} --no-hierarchy --document-pooling max", "--document-pooling max has no effect with --no-hierarchy"),
    (f"{ERNIE} --attention-dropout nan", "--attention-dropout must be a number, not nan"),
    (f"hierarchical_transformer {SMALL_HIERARCHICAL}S|X", "unknown layer 'X'"),
    (f"{FAMILY} bert", "--encoder-family must be one of plain, modernbert, .*; it is 'bert'"),
    (f"{FAMILY} gte:rope=100", "as in gte:rotary=80000: rotary, rotary_factor, .*; it is 'gte:rope=100'"),
    (f"{FAMILY} gte:rotary=0", "--encoder-family: rotary must be at least 1, not 0.0"),
    (f"{FAMILY} gte:rotary", "--encoder-family: rotary must be a number, not ''"),
    (f"{FAMILY} gte:kv_heads=1.5", "--encoder-family: kv_heads must be a whole number, not '1.5'"),
    (f"{FAMILY} gte:rms_norm=1", "--encoder-family: rms_norm must be true or false, not '1'"),
    (f"{FAMILY} plain:rotary_local=9:local_layers=1", "rotary_local=9.0 has no effect without rotary"),
    (f"{FAMILY} plain:rotary_factor=2", "rotary_factor=2.0 has no effect without rotary"),
    (f"{FAMILY} plain:rotary=9:rotary_local=9", "rotary_local=9.0 has no effect without local_layers"),
    (f"{FAMILY} plain:rotary=9:local_layers=1", "local_layers has no effect without rotary_local or --segment-window"),
    (f"{FAMILY} gte:rotary_local=9:local_layers=2", "--encoder-family local_layers=2: the encoder has layers 0 to 1"),
    (f"{FAMILY} gte:rotary_local=9:local_layers=but-every-0", "local_layers=but-every-0: write layers as 0,6-8"),
    (f"{FAMILY} plain:rotary=100 --encoder-attention-heads 8", "a head has 3: give fewer heads"),
    (f"{FAMILY} plain:kv_heads=3", "plain:kv_heads=3: kv_heads does not divide .*heads 4: give one of 1, 2, 4$"),
    (f"{FAMILY} plain:rms_norm=true:norm_bias=false", "norm_bias=False has no effect with rms_norm"),
    (f"{FAMILY} plain:first_norm=false", "first_norm=false needs --encoder-normalize-before"),
    (
        f"hat_eurobert_210m {TINY_ENCODER} --encoder-family eurobert:first_norm=false",
        "first_norm=false needs --layernorm-embedding",
    ),
    (
        f"hierarchical_transformer {SMALL_HIERARCHICAL}D|S --encoder-normalize-before --encoder-family modernbert",
        "--encoder-family modernbert needs a norm of the embedding",
    ),
    (f"{BART} --segment-window 2", "--segment-window 2 has no effect with --encoder-attention full: remove it"),
    (
        f"hierarchical_transformer {SMALL_HIERARCHICAL}S|S --encoder-attention window --global-tokens first",
        "--global-tokens first has no effect",
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_wrong_flags_are_refused(words: str, message: str) -> None:
    arch, _, flags = words.partition(" ")
    with pytest.raises(ValueError, match=message):
        build(arch, flags)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("number", [0, -3])
def test_a_model_has_a_position(side: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"--max-{side}-positions must be at least 1, not {number}"):
        build("hat_transformer_tiny", **{f"max_{side}_positions": number})


@pytest.mark.parametrize("network", networks.NETWORKS)
def test_every_number_has_bounds(network: str) -> None:
    """Also where a config changes the default of another one; the same name has the same bounds in its bases."""
    config = networks.NETWORKS[network]
    numbers = {name: each for name, each in options_of(config).items() if each.type in (int, float)}
    assert len(numbers) > 10
    for name, each in numbers.items():
        assert each.least is not None, name
        for base in filter(is_dataclass, config.__mro__[1:]):
            inherited = options_of(base).get(name, each)
            if name not in config.own_options:  # an attention has it, too
                assert (inherited.least, inherited.most) == (each.least, each.most), name


@pytest.mark.parametrize(
    ("words", "logged"),
    [
        (f"{BART} --no-hierarchy --hierarchical-encoder-layers 2", "--hierarchical-encoder-layers 2"),
        (f"{BART} --no-hierarchy --span-pooling mean", "--span-pooling mean"),
        (f"{ROBERTA} --no-hierarchy --sentence-queries bos", "--sentence-queries bos"),
        (f"{ROBERTA} --sentence-queries bos --span-pooling mean", ""),
        (f"{BART} --no-hierarchy", ""),
        (f"{ATTENTION} full --encoder-attention-layers 1", "--encoder-attention-layers 1"),
        (f"{ATTENTION} window --encoder-attention-layers 1", ""),
    ],
)
def test_flags_without_effect_that_recipes_may_leave_are_logged(
    words: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They are not refused: a recipe's layers meet another attention, and checkpoints of older versions have them."""
    caplog.clear()
    arch, _, flags = words.partition(" ")
    build(arch, flags)
    other = "--no-hierarchy" if "--no-hierarchy" in flags else "--encoder-attention full"
    assert {record.getMessage() for record in caplog.records} == (
        {f"{logged} has no effect with {other}: remove it"} if logged else set()
    )


def test_documents_that_are_too_long_are_refused() -> None:
    ernie, (arch, _, flags) = Vocabulary(mask=True), ERNIE.partition(" ")
    with pytest.raises(ValueError, match="a row of 141 tokens, but only 140 positions: raise --max-positions"):
        build(arch, flags, ernie)(documents([141]))
    segments = build("hierarchical_transformer", f"{SMALL_HIERARCHICAL}S|SD")
    with pytest.raises(ValueError, match="a document has 6 segments of up to 6 tokens, but --max-segments is 5"):
        segments(documents([31]))
    without = build("hierarchical_transformer", f"{SMALL_HIERARCHICAL}S|SD --segment-positions none")
    assert without(documents([31]))[0].isfinite().all()


MEETINGS = {"max_source_positions": 3072, "max_target_positions": 1024}
BOOKS = {"max_source_positions": 16384, "max_target_positions": 1024}
HAT_ADDS_WMT, HAT_ADDS_TED = 37_798_912, 8_412_672


def count(arch: str, size: int = 50265, flags: str = "", **args: object) -> int:
    with torch.device("meta"):  # shapes only: half a billion parameters in no memory
        model = build(arch, flags, Vocabulary(size), **args)
    return sum(parameter.numel() for parameter in model.parameters())


PLAIN = {"no_hierarchy": True}
# the ad hoc model: another layout of 16 blocks, no other number
AD_HOC = "--layout S|S|S|S|S|S|S|S|S|S|S|SD|D|D|D"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "size", "flags", "args", "parameters"),
    [
        ("hat_bart_large", 50264, "", MEETINGS, 471_389_184),
        ("hat_bart_large", 50264, "", MEETINGS | PLAIN, 408_387_584),
        ("hat_roberta_base", 50265, "", {}, 153_063_513),
        ("hat_roberta_large", 50265, "", {}, 456_221_785),
        ("hat_roberta_base", 50265, "", PLAIN, 124_696_665),
        ("hat_roberta_large", 50265, "", PLAIN, 355_411_033),
        ("poolingformer_base", 50265, "", {}, 132_787_545),
        ("poolingformer_large", 50265, "", {}, 378_035_289),
        ("poolingformer_bart_base", 50264, "", BOOKS, 156_554_496),
        ("poolingformer_bart_large", 50264, "", BOOKS, 440_973_312),
        ("ernie_sparse_base", 50265, "", {}, 127_449_177),
        ("ernie_sparse_base", 50265, "--representative-weights separate", {}, 127_449_177 + 12 * 4 * (768 * 768 + 768)),
        ("hierarchical_transformer_base_4096", 50265, "", {}, 152_779_353),
        ("hierarchical_transformer_base_4096", 50265, AD_HOC, {}, 152_779_353),
    ],
)
def test_parameter_counts(arch: str, size: int, flags: str, args: dict[str, object], parameters: int) -> None:
    assert count(arch, size, flags, **args) == parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "size", "added", "baseline"),
    [
        ("hat_transformer_wmt_en_de", 44_600, HAT_ADDS_WMT, 222e6),
        ("hat_transformer_wmt_en_cs", 44_600, HAT_ADDS_WMT, 222e6),
        ("hat_transformer_ted_zh_en", 45_800, HAT_ADDS_TED, 55e6),
    ],
)
def test_parameters_that_the_hierarchy_adds(arch: str, size: int, added: int, baseline: float) -> None:
    twin = count(arch, size, **PLAIN)
    assert count(arch, size) - twin == added
    assert twin == pytest.approx(baseline, rel=0.01)


@pytest.mark.parametrize("task", LRA)
def test_long_range_arena(task: str) -> None:
    """The three models of a task differ in the attention alone, and the representatives' projections."""
    models = {kind: count(f"{kind}_lra_{task}", 60) for kind in ("transformer", "bigbird", "ernie_sparse")}
    sizes = LRA[task]
    width, inner = sizes["encoder_embed_dim"], sizes.get("encoder_qkv_dim", sizes["encoder_embed_dim"])
    attention = 4 * width * inner + 3 * inner + width
    assert models["transformer"] == models["bigbird"]
    assert models["ernie_sparse"] == models["bigbird"] + sizes["encoder_layers"] * attention


@pytest.mark.slow
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
            assert type(layer.self_attn) is kind
            assert layer.self_attn.window == 128
            assert number not in layers or layer.self_attn.level == SecondLevel(512, 5, 4, "ldconv")
        config = model.config
        assert config.global_tokens == rule
        assert config.no_hierarchy
        assert config.extend_positions == "tile"
    for arch, flags, kind in (
        ("poolingformer_tiny", "window", SlidingWindowAttention),
        ("poolingformer_bart_base", "window --attention-window 8", SlidingWindowAttention),
        ("poolingformer_base", "window --encoder-attention-layers 0-11", SlidingWindowAttention),
        ("poolingformer_tiny", "full", FullAttention),
        ("ernie_sparse_tiny", "full --no-hierarchy", FullAttention),
        ("ernie_sparse_lra_listops", "window --no-hierarchy", SlidingWindowAttention),
    ):
        with torch.device("meta"):
            model = build(arch, f"--encoder-attention {flags}", max_source_positions=1024)
        attentions = {type(layer.self_attn) for layer in (model.encoder if "bart" in arch else model.core).layers}
        assert attentions == {kind}, "what an architecture says is of its own attention"
    with torch.device("meta"):
        config = build("ernie_sparse_base", "").config
    pattern = config.block_pattern()
    numbers = pattern.first + pattern.last, pattern.window, pattern.random
    assert [pattern.block * number for number in numbers] == [128, 192, 192]
    assert (config.document_pooling, config.representative_weights, config.activation_fn) == ("mean", "shared", "gelu")
