"""The contenders of the benchmarks are the same network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from peers import (
    EOS,
    copy_weights,
    decisive,
    documents,
    fairseq_bart,
    fairseq_transformer,
    ours,
    save_ctranslate2,
    transformers_bart,
)
from torch.testing import assert_close as torch_close

SIZES = {"width": 48, "heads": 4, "layers": 2, "vocabulary": 300}
POSITIONS = {"max_source_positions": 96, "max_target_positions": 96}
NEW = 12


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch_close(actual, expected, atol=1e-4, rtol=1e-4)


def plain(**flags: Any) -> Any:
    return decisive(ours("hat_bart_base", no_hierarchy=True, **SIZES, **POSITIONS, **flags)).eval()


def logits(model: Any) -> torch.Tensor:
    source, target = documents(3, 70, 300), documents(3, 9, 300, seed=1)
    with torch.no_grad():
        return model(source, torch.full((3,), 70), target)[0]


@pytest.mark.parametrize("stock", [fairseq_transformer, fairseq_bart])
def test_stock_models_with_the_weights_of_the_plain_twin(stock: Any) -> None:
    twin = plain()
    peer = copy_weights(twin, stock(**SIZES, **POSITIONS, seed=2)).eval()
    close(logits(peer), logits(twin))
    assert sum(p.numel() for p in peer.parameters()) == sum(p.numel() for p in twin.parameters())


def test_transformers_bart_with_the_weights_of_the_plain_twin() -> None:
    pytest.importorskip("transformers")
    twin = plain()
    peer = transformers_bart(twin)
    source, target = documents(3, 70, 300), documents(3, 9, 300, seed=1)
    with torch.no_grad():
        actual = peer(input_ids=source, decoder_input_ids=target).logits
    close(actual, logits(twin))
    assert sum(p.numel() for p in peer.parameters()) == sum(p.numel() for p in twin.parameters())


def generated(model: Any, beam: int) -> tuple[list[list[list[int]]], torch.Tensor]:
    """Tokens without `</s>` of all hypotheses, and the sums of their log-probabilities."""
    generator = SequenceGenerator(
        [model], model.decoder.dictionary, beam_size=beam, max_len_b=NEW, min_len=NEW, max_len=NEW + 1
    )
    found = generator.generate([model], {"net_input": {"src_tokens": documents(3, 70, 300)}})
    ranked = [
        sorted(((h["positional_scores"][:-1].sum().item(), h["tokens"]) for h in beams), key=lambda h: -h[0])
        for beams in found
    ]
    return [[tokens[:-1].tolist() for _, tokens in beams] for beams in ranked], torch.tensor(
        [[s for s, _ in beams] for beams in ranked]
    )


@pytest.mark.parametrize("beam", [1, 4])
def test_ctranslate2_generates_what_the_plain_twin_generates(beam: int, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    twin = plain()
    stock = copy_weights(twin, fairseq_bart(**SIZES, **POSITIONS))
    translator = ctranslate2.Translator(save_ctranslate2(stock, tmp_path / "model"), intra_threads=1)
    symbols = twin.decoder.dictionary.symbols
    found = translator.translate_batch(
        [[symbols[i] for i in row] for row in documents(3, 70, 300).tolist()],
        beam_size=beam,
        num_hypotheses=beam,
        max_input_length=0,
        min_decoding_length=NEW,
        max_decoding_length=NEW,
        length_penalty=0,
        return_scores=True,
    )
    tokens, scores = generated(twin, beam)
    assert [[[twin.decoder.dictionary.index(t) for t in h] for h in result.hypotheses] for result in found] == tokens
    close(torch.tensor([result.scores for result in found]), scores)


def test_decisive_weights_make_a_search() -> None:
    """Hypotheses depend on the source, differ within a beam and do not repeat one token."""
    tokens, scores = generated(plain(), 4)
    assert len({tuple(h) for beams in tokens for h in beams}) == 12
    assert all(len(set(h)) > NEW // 3 for beams in tokens for h in beams)
    assert bool((scores[:, 0] - scores[:, -1] > 1e-3).all())
    assert EOS not in {t for beams in tokens for h in beams for t in h}


def test_models_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="embed_positions"):
        copy_weights(plain(), fairseq_bart(**SIZES, max_source_positions=90, max_target_positions=96))
    with pytest.raises(ValueError, match="positions"):
        transformers_bart(ours("hat_bart_base", no_hierarchy=True, **SIZES, max_source_positions=90))


@pytest.mark.parametrize("arch", ["hat_transformer", "hat_bart_base"])
@pytest.mark.parametrize("no_hierarchy", [False, True])
def test_architectures_of_ours_at_any_size(arch: str, no_hierarchy: bool) -> None:
    model = ours(arch, **SIZES, no_hierarchy=no_hierarchy)
    assert len(model.encoder.layers) == len(model.decoder.layers) == 2
    assert model.encoder.embed_tokens.weight.shape == (300, 48)
    assert (model.encoder.hierarchical_encoder is None) == no_hierarchy


def test_encoders_of_ours() -> None:
    model = ours("hat_roberta_base", **SIZES, max_positions=96)
    assert model(src_tokens=documents(2, 70, 300))[0].shape == (2, 70, 300)
