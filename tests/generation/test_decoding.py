"""Every way of decoding finds the hypotheses of the eager one; the step of fixed shapes is one graph."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from building import documents
from fairseq.sequence_generator import SequenceGenerator
from test_beam_search import LENGTHS, OPTIONS, SEARCHES, TWINS, assert_same_hypotheses, confident, generate

from hat_fairseq.generation import beam_search
from hat_fairseq.generation.beam_search import BeamSearchGenerator

KINDS = pytest.mark.parametrize("name", ["defaults", "greedy", "wide", "long", "trigrams", "nothing but the end"])


@TWINS
@KINDS
def test_a_step_of_fixed_shapes_finds_what_fairseq_finds(name: str, twin: str) -> None:
    models, source = [confident(twin)], documents(LENGTHS)
    ours = generate(BeamSearchGenerator, models, source, decoding="graph", **OPTIONS[name])
    assert_same_hypotheses(ours, generate(SequenceGenerator, models, source, **OPTIONS[name]))


@pytest.mark.parametrize("way", ["eager", "graph"])
@KINDS
def test_finished_documents_may_be_noticed_late(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the search looks only every eighth step."""
    monkeypatch.setitem(beam_search.CHECK_INTERVALS, "cpu", 8)
    models, source = [confident()], documents(LENGTHS)
    ours = generate(BeamSearchGenerator, models, source, decoding=way, **OPTIONS[name])
    assert_same_hypotheses(ours, generate(SequenceGenerator, models, source, **OPTIONS[name]))


@pytest.mark.parametrize("sizes", [[5], [1 + n % 11 for n in range(33)]])
def test_batches_of_one_and_of_many(sizes: list[int]) -> None:
    models, source = [confident(), confident(" --no-hierarchy", seed=1)], documents(sizes)
    ours = generate(BeamSearchGenerator, models, source, decoding="graph")
    assert_same_hypotheses(ours, generate(SequenceGenerator, models, source))


def test_diverse_beams_and_reduced_precision() -> None:
    model, source, strategy = confident(), documents(LENGTHS), SEARCHES["diverse groups"]
    ours = generate(BeamSearchGenerator, [model], source, strategy=strategy, decoding="graph")
    assert_same_hypotheses(ours, generate(SequenceGenerator, [model], source, strategy=strategy))
    model.prepare_for_inference_(Namespace(generation=Namespace(), task=Namespace(cpu_precision="int8")))
    eager, graph = (generate(BeamSearchGenerator, [model], source, decoding=way) for way in ("eager", "graph"))
    assert_same_hypotheses(graph, eager)


def test_tensors_keep_their_addresses_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA graph reads and writes fixed addresses: new ones only with a new version of the mask."""
    model, seen = confident(), []
    step = model.decoder.step

    def watched(tokens: Any, position: Any, memory: Any, cache: Any) -> Any:
        buffers = [cache.fixed_mask.allowed, cache.fixed_mask.places, tokens, position]
        buffers += [x for layer in cache.layers for x in (layer.self_attn._keys, layer.self_attn._values)]
        buffers += [x for layer in cache.layers for x in (layer.encoder_attn.keys, layer.sentence_attn.values)]
        seen.append((cache.fixed_mask.version, [(x.data_ptr(), x.shape) for x in buffers]))
        return step(tokens, position, memory, cache)

    monkeypatch.setattr(model.decoder, "step", watched)
    generate(BeamSearchGenerator, [model], documents(LENGTHS), decoding="graph", max_len_b=90, min_len=70)
    # dead slots are dropped on the way, so that the first buffers are long enough
    versions = dict(seen)
    assert len(seen) > 70 and len(versions) < 4
    assert all(versions[version] == found for version, found in seen)


@pytest.mark.slow
def test_the_compiled_step_is_one_graph_for_all_batches() -> None:
    torch._dynamo.reset()
    model = confident()
    expected = [generate(SequenceGenerator, [model], documents(sizes)) for sizes in (LENGTHS, [3, 30])]
    task = Namespace(cpu_precision="fp32", decoding="compile")
    model.prepare_for_inference_(Namespace(generation=Namespace(), task=task))
    with torch._dynamo.config.patch(error_on_recompile=False):
        for wanted, sizes in zip(expected, (LENGTHS, [3, 30]), strict=True):
            found = generate(BeamSearchGenerator, [model], documents(sizes), decoding="compile")
            assert_same_hypotheses(found, wanted)
    with torch._dynamo.config.patch(error_on_recompile=True):
        source = documents([4, 4, 11, 8])
        found = generate(BeamSearchGenerator, [model], source, decoding="compile", max_len_b=90, min_len=70)
        assert_same_hypotheses(found, generate(SequenceGenerator, [model], source, max_len_b=90, min_len=70))


def test_what_cannot_be_combined_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown decoding 'fast'; choose one of eager, graph, compile"):
        generate(BeamSearchGenerator, [confident()], documents([5]), decoding="fast")
    task = Namespace(cpu_precision="int8", decoding="compile")
    with pytest.raises(ValueError, match="--decoding compile computes in fp32 on a CPU; leave out int8"):
        confident().prepare_for_inference_(Namespace(generation=Namespace(), task=task))
