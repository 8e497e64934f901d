"""Masks are made once a decoding step, not once a layer."""

from __future__ import annotations

import pytest
import torch
from building import TINY, build, documents, targets

from hat_fairseq import kernels
from hat_fairseq.models import hat_decoder
from hat_fairseq.modules import attention, beam_cache_mask


@torch.no_grad()
def test_a_step_makes_three_masks_whatever_the_number_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for self-attention among the hypotheses, one over the tokens, one over the sentences."""
    made = []

    def counted(allowed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        made.append(allowed.shape)
        return kernels.prepare_mask(allowed, dtype)

    for module in (attention, beam_cache_mask):
        monkeypatch.setattr(module, "prepare_mask", counted)
    assert hat_decoder.mask_of_keys is attention.mask_of_keys
    for layers in (1, 4):
        model = build("hat_bart_base", TINY.replace("--decoder-layers 2", f"--decoder-layers {layers}")).eval()
        encoder_out, target, state = model.encoder(documents([17, 9])), targets(6, 5), {}
        made.clear()
        for step in range(1, 4):
            model.decoder(target[:, :step], encoder_out, incremental_state=state)
            assert len(made) == 3 * step
