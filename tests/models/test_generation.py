"""Decoding step by step and by beam search equals decoding at once, one by one, and without sharing."""

from __future__ import annotations

import pytest
import torch
from building import EOS, PAD, TINY, Vocabulary, build, documents, targets
from fairseq.sequence_generator import SequenceGenerator
from helpers import assert_close

from hat_fairseq.kernels import set_precision, torch_private

TWINS = pytest.mark.parametrize("twin", ["", " --no-hierarchy", " --decoder-kv-heads 2"], ids=["hat", "plain", "kv"])
NO_BF16 = pytest.mark.skipif(not torch_private.BF16, reason="this CPU cannot multiply bf16")
NO_INT8 = pytest.mark.skipif(not torch_private.INT8, reason="this torch has no oneDNN")
LOW = [pytest.param("bf16", marks=NO_BF16), pytest.param("int8", marks=NO_INT8)]
LENGTHS = [17, 9, 2, 17, 5]


def generate(models: list, source: torch.Tensor, beam: int, **options) -> list[list[dict]]:
    dictionary = models[0].decoder.dictionary
    generator = SequenceGenerator(models, dictionary, beam_size=beam, max_len_b=15, min_len=3, **options)
    return generator.generate(models, {"net_input": {"src_tokens": source, "src_lengths": (source != PAD).sum(1)}})


def confident(twin: str = "", seed: int = 2):
    """A random model whose hypotheses differ clearly in score and end at different lengths."""
    model = build("hat_transformer", TINY + twin, seed=seed).eval()  # output table of its own: no copying of the input
    with torch.no_grad():
        model.decoder.output_projection.weight.mul_(4)
        model.decoder.output_projection.weight[EOS].mul_(3)
    return model


def assert_same_hypotheses(actual: list[list[dict]], expected: list[list[dict]]) -> None:
    assert len(actual) == len(expected)
    for hypotheses, references in zip(actual, expected, strict=True):
        assert [h["tokens"].tolist() for h in hypotheses] == [h["tokens"].tolist() for h in references]
        assert_close(torch.stack([h["score"] for h in hypotheses]), torch.stack([h["score"] for h in references]))


@TWINS
def test_incremental_equals_full(twin: str) -> None:
    model = confident(twin)
    source, target = documents(LENGTHS), targets(10, 9)  # two hypotheses a document
    encoder_out, state = model.encoder(source), {}
    full = model.decoder(target, encoder_out)[0]
    steps = [model.decoder(target[:, : i + 1], encoder_out, state)[0] for i in range(9)]
    assert all(step.size(1) == 1 for step in steps)
    assert_close(torch.cat(steps, 1), full)


@TWINS
def test_documents_that_are_finished_leave_the_cache(twin: str) -> None:
    """As our own beam search reorders: hypotheses go on, and the documents of others are dropped."""
    model, source, target = confident(twin), documents(LENGTHS), targets(5, 9)
    encoder_out, state, rows = model.encoder(source), {}, torch.tensor([0, 3, 4])
    full = model.decoder(target, encoder_out)[0]
    model.decoder(target[:, :4], encoder_out, state)
    model.decoder.reorder_beams(state, rows, rows)
    rest = [model.decoder(target[rows, : i + 1], encoder_out.select(rows), state)[0] for i in range(4, 9)]
    assert_close(torch.cat(rest, 1), full[rows, 4:])


@TWINS
def test_batched_beam_search_equals_one_by_one(twin: str) -> None:
    """And changes nothing that training computes afterwards."""
    model, source, target = confident(twin), documents(LENGTHS), targets(5, 6)
    before = model(source, None, target)[0]
    alone = [generate([model], source[i : i + 1, :n], 3)[0] for i, n in enumerate(LENGTHS)]
    lengths = {len(hypotheses[0]["tokens"]) for hypotheses in alone}
    assert len(lengths) > 1, "all documents end at once: finishing early would go untested"
    assert_same_hypotheses(generate([model], source, 3), alone)
    assert torch.equal(model(source, None, target)[0], before)


@TWINS
@pytest.mark.parametrize("precision", LOW)
def test_a_document_alone_and_in_a_batch_in_reduced_precision(twin: str, precision: str) -> None:
    """The encoder's states are equal to the last bit, the decoder's logits up to the rounding of one scale a row."""
    model, lengths = confident(twin), [64, 41, 17, 9, 2]
    source, previous = documents(lengths), targets(5, 8)
    expected = model(source, None, previous)[0]
    set_precision(model, precision)
    with torch.no_grad():
        together = model.encoder(source)
        logits = model.decoder(previous, together)[0]
        for row, length in enumerate(lengths):
            alone = model.encoder(source[row : row + 1, :length])
            assert_close(logits[row], model.decoder(previous[row : row + 1], alone)[0][0], torch.bfloat16, 0.02)
            assert torch.equal(together.tokens[row, :length], alone.tokens[0])
            if alone.spans is not None:
                assert torch.equal(together.spans[row, : alone.spans.size(1)], alone.spans[0])
        assert_close(logits, expected, torch.bfloat16, 0.05)


def test_generation_from_nothing_but_padding_is_finite() -> None:
    model = confident()
    source = torch.cat([documents([5]), torch.full((1, 5), PAD)])
    hypotheses = generate([model], source, 2)
    assert all(h["score"].isfinite() for beams in hypotheses for h in beams)


def test_segments_reach_the_encoder() -> None:
    model = build("hat_transformer_tiny", task=Vocabulary(roles=3)).eval()
    source = documents([9, 9])
    generator = SequenceGenerator([model], model.decoder.dictionary, beam_size=2, max_len_b=6)
    outputs = []
    for role in (4, 5):
        sample = {"net_input": {"src_tokens": source, "roles": torch.full_like(source, role)}}
        outputs.append(generator.generate([model], sample)[0][0]["positional_scores"])
    assert not torch.equal(outputs[0], outputs[1])
