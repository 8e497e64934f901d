"""Jobs and checks shared by the benchmarks of generation.

Every side searches with a beam of 4 for hypotheses of exactly `new` tokens, so all take the same number of steps.
fairseq's generator and ours take one more step, for `</s>`, which is not counted as a token.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from harness import Facts, Job, Setting, dtype, forget_peak, where
from peers import BART, copy_weights, decisive, documents, model_of
from torch import Tensor

from hat_fairseq.generation.beam_search import BeamSearchGenerator

BEAM = 4
POSITIONS = 3072  # at least, on both sides: transformers' BART has one number
SIZES = {"width": 768, "heads": 12, "layers": 6, "vocabulary": 50265}
LARGE = {"width": 1024, "heads": 16, "layers": 12}
WARM_UP = 8  # tokens
TOLERANCE = 1e-4  # of a score, which is the mean log-probability of a token


def setting(source: int, batch: int, new: int = 64, **more: Any) -> Setting:
    """A setting of `harness.py`; `new` tokens are generated, `more` replaces sizes or adds entries."""
    name = "{source:,} tokens x {batch}, {new} new, {layers} + {layers} layers"
    return {"name": name, "source": source, "batch": batch, "new": new, **SIZES, **more}


def hat(chosen: Setting) -> Any:
    """HAT-BART in the sizes of a setting, in eval mode."""
    return decisive(model_of("hat_bart_base", **sizes(chosen))).eval()


def plain(chosen: Setting) -> Any:
    """The baseline without hierarchy, whose weights every peer gets."""
    return decisive(model_of("hat_bart_base", no_hierarchy=True, **sizes(chosen))).eval()


def stock(chosen: Setting, arch: str = "bart_base", **flags: Any) -> Any:
    """A model of fairseq with the weights of the baseline."""
    return copy_weights(plain(chosen), model_of(arch, **sizes(chosen), **flags)).eval()


def sizes(chosen: Setting) -> dict[str, Any]:
    positions = {f"max_{side}_positions": max(POSITIONS, chosen["source"]) for side in ("source", "target")}
    return {name: chosen[name] for name in SIZES} | positions


def sources(chosen: Setting) -> Tensor:
    """(batch, source) token ids."""
    return documents(chosen["batch"], chosen["source"], chosen["vocabulary"])


def fairseq_job(name: str, chosen: Setting) -> Job:
    """Ours ("hat", "plain") with our generator, or fairseq's ("fairseq transformer", "fairseq bart") with its own."""
    if name == "fairseq bart":
        return job(stock(chosen), SequenceGenerator, chosen)
    if name == "fairseq transformer":
        return job(stock(chosen, "transformer", **BART), SequenceGenerator, chosen)
    return job((hat if name == "hat" else plain)(chosen), BeamSearchGenerator, chosen)


def job(
    model: Any, generator_class: Any, chosen: Setting, precision: str = "fp32", kind: torch.dtype | None = None
) -> Job:
    """One repetition is what fairseq-generate does with a batch: encode, then search.

    `precision`: of the linear maps of ours on the CPU. `kind`: of the weights, by default `dtype()`.
    """
    kind = kind or dtype()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    model.to(where(), kind)
    model.prepare_for_inference_(Namespace(generation=Namespace(beam=BEAM), task=Namespace(cpu_precision=precision)))
    tokens = sources(chosen).to(where())
    last: list[Any] = []

    def step(new: int = chosen["new"]) -> Facts:
        last[:] = generate(model, generator_class, tokens, new)
        return {"tokens": len(tokens) * new}

    def finish() -> Facts:
        # In bfloat16 every implementation rounds scores differently, so hypotheses are compared in fp32.
        exact = last if kind is torch.float32 else generate(model.float(), generator_class, tokens, chosen["new"])
        return hypotheses(exact)

    forget_peak()
    return Job(warmed_up(step), {"parameters": parameters}, finish)


def warmed_up(step: Callable[..., Facts]) -> Callable[[], Facts]:
    """`step` whose first call, the warm-up, generates only a few tokens, which touches all code and weights."""
    calls = itertools.count()
    return lambda: step(WARM_UP) if next(calls) == 0 else step()


def generate(model: Any, generator_class: Any, tokens: Tensor, new: int) -> list[list[dict[str, Tensor]]]:
    """All hypotheses of exactly `new` tokens and `</s>` for every row of `tokens`, the best first."""
    generator = generator_class(
        [model], model.decoder.dictionary, beam_size=BEAM, max_len_b=new, min_len=new, max_len=new + 1
    )
    lengths = torch.full((len(tokens),), tokens.size(1), device=tokens.device)
    return generator.generate([model], {"net_input": {"src_tokens": tokens, "src_lengths": lengths}})


def hypotheses(output: Sequence[Sequence[dict[str, Tensor]]]) -> Facts:
    """The facts for `same_hypotheses` from the output of a generator: tokens and scores without `</s>`."""
    return {
        "_hypotheses": [[h["tokens"][:-1].tolist() for h in beams] for beams in output],
        "_scores": [[float(h["positional_scores"][:-1].mean()) for h in beams] for beams in output],
    }


def same_hypotheses(ends: dict[str, Facts], names: Sequence[str]) -> str:
    """Checks that contenders found the same hypotheses with the same scores; SystemExit if not."""
    expected = [scored(*pair) for pair in zip(ends[names[0]]["_hypotheses"], ends[names[0]]["_scores"], strict=True)]
    for name in names[1:]:
        actual = [scored(*pair) for pair in zip(ends[name]["_hypotheses"], ends[name]["_scores"], strict=True)]
        for number, (first, second) in enumerate(zip(expected, actual, strict=True)):
            if first.keys() != second.keys():
                raise SystemExit(f"document {number}: {names[0]} and {name} found different hypotheses")
            worst = max(abs(first[tokens] - second[tokens]) for tokens in first)
            if worst > TOLERANCE:
                raise SystemExit(f"document {number}: scores of {names[0]} and {name} differ by {worst:.1e}")
    return f"{', '.join(names)}: the same {BEAM} hypotheses of every document, scores within {TOLERANCE:g}"


def scored(rows: Sequence[Sequence[int]], scores: Sequence[float]) -> dict[tuple[int, ...], float]:
    return {tuple(tokens): score for tokens, score in zip(rows, scores, strict=True)}


def same_search(chosen: Setting) -> str:
    """Checks that our generator and fairseq's find the same for HAT, in this process on a small model."""
    small = {**chosen, "width": 48, "heads": 4, "vocabulary": 500, "source": 100, "batch": 3, "new": 24}
    searches = (BeamSearchGenerator, SequenceGenerator)
    ends = {s.__name__: hypotheses(generate(hat(small), s, sources(small), small["new"])) for s in searches}
    same_hypotheses(ends, list(ends))
    return "HAT with our generator and with fairseq's: the same hypotheses (small model)"


def same_parameters(ends: dict[str, Facts], names: Sequence[str]) -> str:
    """Checks that contenders have equally many parameters; SystemExit if not."""
    counts = {name: ends[name]["parameters"] for name in names}
    if len(set(counts.values())) > 1:
        raise SystemExit(f"the contenders have different numbers of parameters: {counts}")
    return f"{', '.join(names)}: {counts[names[0]] / 1e6:.1f}M parameters, the same"
