"""Predicting masked words from their sentence's BOS state: its definition, and off by default."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from building import BOS, PAD, TINY_ENCODER, Vocabulary, build, documents
from fairseq.criterions.masked_lm import MaskedLmConfig, MaskedLmLoss
from hat_fairseq.criterions.masked_lm_from_sentences import MaskedLMFromSentences, MaskedLMFromSentencesConfig
from helpers import assert_close
from references import sentence_starts
from torch import Tensor

MASK = 59
VARIANTS = pytest.mark.parametrize("variant", ["", " --sentence-queries bos", " --no-hierarchy"])


def model_of(variant: str = "") -> Any:
    return build("hat_roberta_base", TINY_ENCODER + variant, Vocabulary(mask=True), max_positions=64)


def sample() -> dict[str, Any]:
    tokens = documents([17, 13, 5], vocabulary=MASK)
    masked = (tokens > 3) & (torch.arange(tokens.size(1)) % 3 == 1)
    net_input = {"src_tokens": tokens.masked_fill(masked, MASK), "src_lengths": (tokens != PAD).sum(1)}
    return {
        "net_input": net_input,
        "target": tokens.masked_fill(~masked, PAD),
        "ntokens": int((tokens != PAD).sum()),
        "nsentences": 3,
    }


def criterion(weight: float) -> MaskedLMFromSentences:
    task = SimpleNamespace(target_dictionary=Vocabulary(mask=True).target_dictionary)
    return MaskedLMFromSentences(MaskedLMFromSentencesConfig(tpu=False, sentence_weight=weight), task)


def losses_by_hand(model: Any, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Word by word, from its own state and from that of its sentence."""
    tokens = batch["net_input"]["src_tokens"]
    states, own, of_sentence = model(tokens, features_only=True)[0], [], []
    for row, targets in enumerate(batch["target"].tolist()):
        starts = sentence_starts(tokens[row].tolist(), BOS, PAD)
        for i, target in enumerate(targets):
            if target != PAD:
                own.append(-model.encoder.lm_head(states[row, i]).log_softmax(-1)[target])
                start = max(s for s in starts if s <= i)
                of_sentence.append(-model.encoder.lm_head(states[row, start]).log_softmax(-1)[target])
    return torch.stack(own).sum(), torch.stack(of_sentence).sum()


@VARIANTS
def test_loss_is_its_definition(variant: str) -> None:
    model, batch = model_of(variant), sample()
    loss, sample_size, log = criterion(0.3)(model, batch)
    own, of_sentence = losses_by_hand(model, batch)
    assert sample_size == (batch["target"] != PAD).sum() > 5
    assert_close(loss, own + 0.3 * of_sentence)
    assert_close(log["word_loss"], own.detach())
    assert_close(log["sentence_loss"], of_sentence.detach())


def test_off_by_default() -> None:
    assert MaskedLMFromSentencesConfig().sentence_weight == 0
    model, batch = model_of(), sample()
    fairseqs = MaskedLmLoss(MaskedLmConfig(tpu=False), criterion(0).task)(model, batch)
    ours = criterion(0)(model, batch)
    assert torch.equal(ours[0], fairseqs[0]) and ours[2].keys() == fairseqs[2].keys()


@VARIANTS
def test_only_the_states_of_bos_tokens_are_asked(variant: str) -> None:
    model, batch = model_of(variant), sample()
    states: list[Tensor] = []
    model.encoder.register_forward_hook(lambda _, __, out: (out.tokens.retain_grad(), states.append(out.tokens))[0])
    tokens, masked = batch["net_input"]["src_tokens"], batch["target"] != PAD
    extra = model(tokens, masked_tokens=masked, from_sentences=True)[1]
    F.cross_entropy(extra["sentence_logits"], tokens[masked]).backward()
    reached = states[0].grad.abs().sum(-1) > 0
    assert reached.any() and not reached[tokens != BOS].any()


def test_the_last_layer_learns_with_bos_queries_too() -> None:
    """Under the masked-LM loss alone nothing would reach it: see docs/hat.md."""
    for weight in (0.0, 0.5):
        model = model_of(" --sentence-queries bos")
        criterion(weight)(model, sample())[0].backward()
        gradient = model.encoder.sentence_encoder.layers[-1].sentence_attn.out_proj.weight.grad
        assert bool(gradient.any()) == bool(weight)


def test_a_batch_without_masked_words_is_harmless() -> None:
    model, batch = model_of(), sample()
    batch["target"].fill_(PAD)
    loss, sample_size, _ = criterion(0.5)(model, batch)
    loss.backward()
    assert loss == sample_size == 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="--sentence-weight -1"):
        criterion(-1)
