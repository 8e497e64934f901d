"""Arguments of the models and the tokenizer of transformers: each has an effect, or is refused by its name."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hat_tokenizers import SENTENCES, bpe_of, exported

from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq import hf  # noqa: E402

IDS = torch.tensor([[0, 5, 6, 2]])
SIZES = {"encoder_embed_dim": 8, "encoder_ffn_embed_dim": 8, "encoder_attention_heads": 2}
DECODER = {name.replace("encoder", "decoder"): value for name, value in SIZES.items()}
HEAD = {"level": "document", "classes": 2, "inner_dim": None}


def config(**more: Any) -> Any:
    return hf.HatConfig("hierarchical_transformer", SIZES, vocab_size=20, **more)


def models() -> list[Any]:
    sizes = dict.fromkeys(("encoder_embed_dim", "encoder_ffn_embed_dim"), 8) | {"encoder_attention_heads": 2}
    sizes |= {name.replace("encoder", "decoder"): value for name, value in sizes.items()}
    seq2seq = hf.HatConfig("hat_transformer", sizes, vocab_size=20)
    classes = (hf.HatModel, hf.HatForSequenceClassification, hf.HatForMaskedLM)
    return [*(each(config()).eval() for each in classes), hf.HatForConditionalGeneration(seq2seq).eval()]


@pytest.mark.parametrize("name", ["inputs_embed", "position_ids", "head_mask", "token_type_ids"])
def test_what_a_forward_does_not_take_is_refused(name: str) -> None:
    for model in models():
        more = {"decoder_input_ids": IDS} if model.config.is_encoder_decoder else {}
        model(IDS, **more, **{name: None})
        with pytest.raises(ValueError, match=name):
            model(IDS, **more, **{name: IDS})


@pytest.mark.parametrize("option", [{"stop_strings": ["."]}, {"prompt_lookup_num_tokens": 2}])
def test_what_generate_does_not_have_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(option))}: the decoders of hat_fairseq do not have this"):
        models()[3].generate(IDS, max_length=5, **option)


def test_another_way_to_recompute_layers_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """`use_reentrant=True` of older scripts changes no result: a warning says that it has no effect."""
    for model in models():
        if not hasattr(model, "activation_checkpointing_enable"):  # of earlier versions of transformers
            enable = model.gradient_checkpointing_enable
        else:
            enable = model.activation_checkpointing_enable
        enable()
        enable({"use_reentrant": False})
        assert not caplog.records
        enable({"use_reentrant": True})
        assert "use_reentrant=True has no effect" in caplog.text
        caplog.clear()
        with pytest.raises(ValueError, match="determinism_check: hat_fairseq recomputes layers without this option"):
            enable({"use_reentrant": False, "determinism_check": "none"})
        with pytest.raises(ValueError, match="every_n_layers=2: the layers of hat_fairseq are recomputed all or none"):
            model._set_gradient_checkpointing(True, every_n_layers=2)
        with pytest.raises(ValueError, match="offload: hat_fairseq keeps the activations"):
            model._set_gradient_checkpointing(True, lambda function, *args: function(*args))


def test_a_multiple_of_rows_is_an_integer() -> None:
    for model in models():
        with pytest.raises(ValueError, match="pad_to_multiple_of=1.5: give an integer"):
            model.resize_token_embeddings(30, pad_to_multiple_of=1.5)


def test_a_configuration_without_arguments_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """transformers makes one whenever it writes or prints a configuration."""
    transformers.logging.enable_propagation()
    try:
        hf.HatConfig().to_json_string()
    finally:
        transformers.logging.disable_propagation()
    assert not caplog.records


def test_attention_that_is_no_matrix_is_refused() -> None:
    for model in models()[:3]:
        with pytest.raises(ValueError, match="output_attentions=True: SegmentLayer has no weights between all tokens"):
            model(IDS, output_attentions=True)


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"settings": SIZES | {"embedding_dim": 8}}, "embedding_dim"),
        ({"settings": SIZES, "heads": {"a": HEAD | {"dropout": 0.1}}}, "dropout"),
    ],
)
def test_a_setting_without_effect_is_refused(more: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}'"):
        hf.HatConfig("hierarchical_transformer", vocab_size=20, **more)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("network", "hat_roberta", "a model of the network hierarchical_transformer cannot become one"),
        ("source_vocab_size", 30, "this is for encoder-decoders"),
        ("max_target_positions", 30, "this is for encoder-decoders"),
        ("num_roles", 3, "this is for encoder-decoders"),
        ("encoder_layers", 7, "other settings of hierarchical_transformer make it"),
        ("num_hidden_layers", 7, "other settings of hierarchical_transformer make it"),
    ],
)
def test_a_change_without_effect_is_refused(name: str, value: Any, message: str) -> None:
    made = config()
    with pytest.raises(ValueError, match=f"^{name}=.*: .*{message}"):
        setattr(made, name, value)
    setattr(made, name, getattr(made, name))  # which changes nothing


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"settings": SIZES | {"dropout": "much"}}, "^dropout must be a number, not 'much'"),
        ({"settings": SIZES | {"dropout": math.nan}}, "^dropout must be a number, not nan"),
        ({"settings": SIZES | {"dropout": -0.5}}, "^dropout must be from 0 to 1, not -0.5"),
        ({"settings": SIZES | {"layer_norm_eps": math.inf}}, "^layer_norm_eps must be a finite number, not inf"),
        ({"settings": SIZES | {"max_segments": True}}, "^max_segments must be a whole number, not True"),
        ({"settings": SIZES | {"max_segments": "4"}}, "^max_segments must be a whole number, not '4'"),
        ({"settings": SIZES | {"pooling": "sum"}}, "^pooling must be one of max, attentive, .*, not 'sum'"),
        ({"settings": SIZES | {"encoder_family": "gte:kv_heads=3"}}, "kv_heads does not divide encoder_att"),
        ({"settings": SIZES | {"encoder_family": "plain:rotary_factor=2"}}, "factor=2.0 has no effect without rotary"),
        ({"settings": SIZES | {"layout": 3}}, "^layout must be a string, not 3"),
        ({"settings": SIZES | {"max_segments": 2.5}}, "^max_segments must be a whole number, not 2.5"),
        ({"settings": SIZES | {"pool_padded_segments": 1}}, "^pool_padded_segments must be true or false, not 1"),
        ({"settings": SIZES, "max_source_positions": "many"}, "^max_source_positions must be a whole number, not"),
        ({"settings": SIZES, "heads": {"topic": 3}}, "the head 'topic': expected a JSON object, found 3"),
        ({"settings": SIZES, "heads": {"topic": {"level": "token", "inner_dim": 4}}}, "'topic' lacks 'classes'"),
        (
            {"settings": SIZES, "heads": {"topic": HEAD | {"classes": "2"}}},
            "head 'topic': classes must be a whole number, not '2'",
        ),
        ({"settings": SIZES, "heads": {"topic": HEAD | {"classes": 0}}}, "'topic': classes must be at least 1, not 0"),
        ({"settings": SIZES, "heads": {"topic": HEAD | {"inner_dim": -2}}}, "'topic': inner_dim must be at least 1"),
        ({"settings": SIZES, "heads": {"values": HEAD}}, "a head cannot be called 'values'"),
        ({"settings": SIZES, "heads": {"a.b": HEAD}}, "a head cannot be called 'a.b'"),
        ({"settings": SIZES, "num_roles": -1}, "^num_roles must be at least 0, not -1"),
        ({"settings": SIZES, "max_source_positions": -3}, "^max_source_positions must be at least 1, not -3"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_name(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hf.HatModel(hf.HatConfig("hierarchical_transformer", vocab_size=20, **more))


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [
        ("pad_token_id", 7, 1),
        ("decoder_start_token_id", 0, 2),
        ("tie_word_embeddings", False, True),
        ("is_encoder_decoder", False, True),
        ("max_position_embeddings", 77, 1024),
    ],
)
def test_what_a_network_decides_is_no_choice(option: str, value: Any, right: Any, tmp_path: Path) -> None:
    """Neither as an argument nor as an attribute; the value that it has, or none, is taken."""
    settings = SIZES | DECODER
    config = hf.HatConfig("hat_transformer", settings, vocab_size=20, **{option: right})
    assert getattr(config, option) == right
    assert getattr(hf.HatConfig("hat_transformer", settings, vocab_size=20, pad_token_id=None), option) == right
    with pytest.raises(ValueError, match=f"{option}={value}: "):
        hf.HatConfig("hat_transformer", settings, vocab_size=20, **{option: value})
    if option != "tie_word_embeddings":  # peft sets it
        with pytest.raises(ValueError, match=f"{option}={value}: "):
            setattr(config, option, value)
    models()[3].save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"{option}={value}: "):
        transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, **{option: value})


def test_an_encoder_decoder_has_no_classification_heads() -> None:
    with pytest.raises(ValueError, match="heads: the network hat_transformer has no classification heads"):
        hf.HatConfig("hat_transformer", SIZES | DECODER, vocab_size=20, heads={"a": HEAD})


def test_weights_that_are_not_there_are_not_saved(tmp_path: Path) -> None:
    """After `prepare_for_inference`, and where two names of a table have different values."""
    large = dict.fromkeys(("encoder_embed_dim", "encoder_ffn_embed_dim"), 256) | {"encoder_attention_heads": 2}
    model = hf.HatModel(hf.HatConfig("hierarchical_transformer", large | {"layout": "S"}, vocab_size=20))
    model.prepare_for_inference()
    with pytest.raises(ValueError, match="cannot be saved after prepare_for_inference"):
        model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="cannot be trained after prepare_for_inference"):
        model.train()
    assert not list(tmp_path.iterdir())
    tied = hf.HatForConditionalGeneration(
        hf.HatConfig("hat_transformer", SIZES | DECODER | {"share_all_embeddings": True}, vocab_size=20)
    )
    tied.save_pretrained(tmp_path / "one")
    tied.decoder.output_projection.weight = torch.nn.Parameter(tied.decoder.output_projection.weight + 1)
    with pytest.raises(ValueError, match="are one table in this model, and have different values now"):
        tied.save_pretrained(tmp_path / "two")


def test_padding_of_a_tokenizer(tmp_path: Path) -> None:
    tokenizer, _ = exported(tmp_path, TextPipeline(Settings(), bpe_of("learned", tmp_path)), limit=200)
    short, long = ["Good ."], SENTENCES
    lengths = {}
    for padding in (True, "longest", False, "do_not_pad", "max_length"):
        ids = tokenizer([short, long], padding=padding)["input_ids"]
        lengths[padding] = [len(row) for row in ids]
    natural = lengths[False]
    assert lengths["do_not_pad"] == natural
    assert natural[0] < natural[1] < 200
    assert lengths[True] == lengths["longest"] == [natural[1]] * 2
    assert lengths["max_length"] == [200, 200]
    with pytest.raises(ValueError, match="padding='max_len'"):
        tokenizer([short], padding="max_len")
    (tmp_path / "unlimited").mkdir()
    unlimited, _ = exported(tmp_path / "unlimited", TextPipeline(Settings(), bpe_of("learned", tmp_path)))
    with pytest.raises(ValueError, match="no limit"):
        unlimited([short], padding="max_length")
