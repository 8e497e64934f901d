"""Arguments of the models and the tokenizer of transformers: each has an effect, or is refused by its name."""

from pathlib import Path
from typing import Any

import pytest
import torch
from test_tokenizer import SENTENCES, bpe_of, exported

from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline

transformers = pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")
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
    ("more", "message"),
    [
        ({"settings": SIZES | {"dropout": "much"}}, "dropout is 'much': it must be a number"),
        ({"settings": SIZES | {"layout": 3}}, "layout is 3: it must be a string"),
        ({"settings": SIZES | {"max_segments": 2.5}}, "max_segments is 2.5: it must be an integer"),
        ({"settings": SIZES | {"pool_padded_segments": 1}}, "pool_padded_segments is 1: it must be true or false"),
        ({"settings": SIZES, "max_source_positions": "many"}, "max_source_positions is 'many': it must be an integer"),
        ({"settings": SIZES, "heads": {"topic": 3}}, "the head 'topic' is no object with classes"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_name(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hf.HatModel(hf.HatConfig("hierarchical_transformer", vocab_size=20, **more))


def test_padding_of_a_tokenizer(tmp_path: Path) -> None:
    tokenizer, _ = exported(tmp_path, TextPipeline(Settings(), bpe_of("learned", tmp_path)), limit=200)
    short, long = ["Good ."], SENTENCES
    lengths = {}
    for padding in (True, "longest", False, "do_not_pad", "max_length"):
        ids = tokenizer([short, long], padding=padding)["input_ids"]
        lengths[padding] = [len(row) for row in ids]
    natural = lengths[False]
    assert lengths["do_not_pad"] == natural and natural[0] < natural[1] < 200
    assert lengths[True] == lengths["longest"] == [natural[1]] * 2 and lengths["max_length"] == [200, 200]
    with pytest.raises(ValueError, match="padding='max_len'"):
        tokenizer([short], padding="max_len")
    (tmp_path / "unlimited").mkdir()
    unlimited, _ = exported(tmp_path / "unlimited", TextPipeline(Settings(), bpe_of("learned", tmp_path)))
    with pytest.raises(ValueError, match="no limit"):
        unlimited([short], padding="max_length")
