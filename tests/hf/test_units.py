"""Labels over units in transformers: labels, numbers, labels of segments, adapters, precisions."""

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import assert_close
from torch import Tensor

from hat_fairseq.kernels import cpu_precisions
from hat_fairseq.units.fit_words import fit_words

transformers = pytest.importorskip("transformers", reason="make setup")
peft = pytest.importorskip("peft", reason="make setup")
from hat_fairseq import hf  # noqa: E402

SIZES = {"encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_layers": 2, "encoder_attention_heads": 4}
SIZES |= {"max_positions": 20, "segment_length": 9, "unit_dropout": 0.0}
BOS, PAD, EOS = 0, 1, 2
ROWS = [[BOS, 5, 6, BOS, 7, 8, 9, EOS], [BOS, 5, 7, BOS, 8, BOS, 9, 5, EOS], [BOS, 7, 8, EOS]]
TOKENS = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, ROWS)), batch_first=True, padding_value=PAD)


def model_of(kind: Any = None, **settings: Any) -> Any:
    torch.manual_seed(1)
    config = hf.HatConfig("hat_units", SIZES, vocab_size=60, **settings)
    return (kind or hf.HatForSequenceClassification)(config).eval()


def head_of(model: Any) -> Any:
    (head,) = model.classification_heads.values()
    return head


def test_words_and_network_come_back_from_a_folder(tmp_path: Path) -> None:
    model = model_of(num_labels=3)
    fit_words(head_of(model).words, [*TOKENS, *TOKENS], [0, 1, 2] * 2)
    expected = model(TOKENS).logits
    assert_close(expected.exp().sum(dim=1), torch.ones(3))  # logarithms of probabilities
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert_close(loaded(TOKENS).logits, expected)


@pytest.mark.parametrize(
    "settings, labels",
    [
        ({"num_labels": 3}, torch.tensor([0, 2, 1])),
        ({"num_labels": 3, "problem_type": "multi_label_classification"}, torch.tensor([[1.0, 0, 1]] * 3)),
        ({"num_labels": 1, "problem_type": "regression"}, torch.tensor([0.5, 2.0, 1.0])),
    ],
)
def test_one_label_several_labels_or_a_number_are_trained(settings: dict[str, Any], labels: Tensor) -> None:
    model = model_of(**settings).train()
    optimizer, losses = torch.optim.Adam(head_of(model).parameters(), lr=0.01), []
    for _ in range(30):
        loss = model(TOKENS, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(("problem", "number"), [("multi_label_classification", 3), ("regression", 1), (None, 2)])
def test_words_of_other_labels_are_left_out(problem: str | None, number: int, tmp_path: Path) -> None:
    """The folder has a regression for three labels of which one is right."""
    model = model_of(num_labels=3)
    fit_words(head_of(model).words, [*TOKENS, *TOKENS], [0, 1, 2] * 2)
    model.save_pretrained(tmp_path)
    options = {"num_labels": number, "problem_type": problem, "ignore_mismatched_sizes": True}
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path, **options).eval()
    encoded = loaded.core(TOKENS)
    assert_close(loaded(TOKENS).logits, head_of(loaded).network(encoded.spans, encoded.spans_padding))


def test_labels_of_segments(tmp_path: Path) -> None:
    model = model_of(hf.HatForSegmentClassification, num_labels=2)
    labels = torch.tensor([[0, 1, -100], [1, 0, 1], [1, -100, -100]])
    out = model(TOKENS, labels=labels)
    assert out.logits.shape == (3, 3, 2)
    assert_close(out.loss, torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), labels.flatten()))
    model.save_pretrained(tmp_path)
    assert_close(hf.HatForSegmentClassification.from_pretrained(tmp_path)(TOKENS).logits, out.logits)


def test_adapters_are_saved_with_the_head(tmp_path: Path) -> None:
    model_of(num_labels=3).save_pretrained(tmp_path / "base")
    base = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base")
    adapted = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data += 0.1
    expected = adapted.eval()(TOKENS).logits
    adapted.save_pretrained(tmp_path / "adapter")
    base = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base")
    assert_close(peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()(TOKENS).logits, expected)


@pytest.mark.parametrize("precision", cpu_precisions())
def test_precisions(precision: str) -> None:
    model = model_of(num_labels=3)
    fit_words(head_of(model).words, [*TOKENS, *TOKENS], [0, 1, 2] * 2)
    expected = model(TOKENS).logits
    model.prepare_for_inference(precision)
    torch.testing.assert_close(model(TOKENS).logits.float(), expected, atol=0.05, rtol=0.05)


def test_states_of_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="output_hidden_states, output_attentions: hat_units"):
        model_of()(TOKENS, output_hidden_states=True)
