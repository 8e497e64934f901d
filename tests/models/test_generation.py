"""Decoding step by step and by beam search equals decoding at once, one by one, and without sharing."""

from __future__ import annotations

import pytest
import torch
from building import EOS, PAD, TINY, Vocabulary, build, documents, targets
from fairseq.sequence_generator import SequenceGenerator
from helpers import assert_close

from hat_fairseq.kernels import set_precision, torch_private

TWINS = pytest.mark.parametrize("twin", ["", " --no-hierarchy"], ids=["hat", "plain"])
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
    source, target = documents(LENGTHS), targets(5, 9)
    full = model(source, None, target)[0]
    encoder_out, state = model.encoder(source), {}
    steps = [model.decoder(target[:, : i + 1], encoder_out, state)[0] for i in range(9)]
    assert all(step.size(1) == 1 for step in steps)
    assert_close(torch.cat(steps, 1), full)


@TWINS
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_batched_beam_search_equals_one_by_one(twin: str, beam: int) -> None:
    model, source = confident(twin), documents(LENGTHS)
    alone = [generate([model], source[i : i + 1, :n], beam)[0] for i, n in enumerate(LENGTHS)]
    lengths = {len(hypotheses[0]["tokens"]) for hypotheses in alone}
    assert len(lengths) > 1, "all documents end at once: finishing early would go untested"
    assert_same_hypotheses(generate([model], source, beam), alone)


@TWINS
@pytest.mark.parametrize("precision", LOW)
def test_a_document_alone_and_in_a_batch_in_reduced_precision(twin: str, precision: str) -> None:
    """The encoder's states are equal to the last bit, the decoder's logits up to the rounding of one scale a row."""
    model, lengths = confident(twin), [64, 41, 17, 9, 2]
    set_precision(model, precision)
    source = documents(lengths)
    previous = targets(5, 8)
    with torch.no_grad():
        together = model.encoder(source)
        logits = model.decoder(previous, together)[0]
        for row, length in enumerate(lengths):
            alone = model.encoder(source[row : row + 1, :length])
            assert_close(logits[row], model.decoder(previous[row : row + 1], alone)[0][0], torch.bfloat16, 0.02)
            assert torch.equal(together.tokens[row, :length], alone.tokens[0])
            if alone.spans is not None:
                assert torch.equal(together.spans[row, : alone.spans.size(1)], alone.spans[0])


def test_beam_size_is_never_remembered() -> None:
    """Generating must not change what training computes afterwards (batch and beam divide each other on purpose)."""
    model, source, target = confident(), documents([9] * 8), targets(8, 6)
    before = model(source, None, target)[0]
    generate([model], source[:2], 4)
    assert torch.equal(model(source, None, target)[0], before)


def test_ensemble_of_a_model_with_itself_and_with_another() -> None:
    first, second, source = confident(seed=0), confident(seed=1), documents(LENGTHS)
    assert_same_hypotheses(generate([first, first], source, 3), generate([first], source, 3))
    both = generate([first, second], source, 3)
    alone = [generate([first, second], source[i : i + 1, :n], 3)[0] for i, n in enumerate(LENGTHS)]
    assert_same_hypotheses(both, alone)


def ngrams_repeated(hypotheses: list[list[dict]], n: int) -> bool:
    rows = [h["tokens"].tolist() for beams in hypotheses for h in beams]
    return any(
        len(grams) > len(set(grams))
        for row in rows
        for grams in [list(zip(*(row[i:] for i in range(n)), strict=False))]
    )


def test_blocked_ngrams_do_not_repeat() -> None:
    """fairseq alone blocks nothing where its CUDA extension is missing."""
    model, source = confident(), documents(LENGTHS)
    assert ngrams_repeated(generate([model], source, 4), 2)
    options = {"no_repeat_ngram_size": 2, "len_penalty": 2.0}
    assert not ngrams_repeated(generate([model], source, 4, **options), 2)
    alone = [generate([model], source[i : i + 1, :n], 4, **options)[0] for i, n in enumerate(LENGTHS)]
    assert_same_hypotheses(generate([model], source, 4, **options), alone)


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
