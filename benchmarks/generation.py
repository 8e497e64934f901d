#!/usr/bin/env python3
"""Is generation faster than elsewhere? Beam search beside fairseq, transformers and CTranslate2 with the same weights.

    python benchmarks/generation.py --threads 2

Every side searches with a beam of 4 for hypotheses of exactly `new` tokens, so all take the same number of steps.
fairseq's generator and ours take one more step, for `</s>`, which is not counted as a token. Weights are random, in
fp32 (bfloat16 on a GPU), in the sizes of BART-base (width 768, 6 + 6 layers) and BART-large (width 1024, 12 + 12
layers, fewer new tokens). All but HAT have the weights of the baseline without hierarchy. Seconds are those of a whole
batch. Short inputs are measured, too: they should not be slower.

fairseq's `transformer` keeps the states of a document once per hypothesis, its `bart` once per document (fairseq's
`set_beam_size`). Both use fairseq's generator as fairseq-generate prepares it. The BART of transformers has attention
by SDPA, and repeats every document for its hypotheses. The static cache takes part for short sources only; it brings
nothing there. CTranslate2 searches by its `Translator`, on the CPU, with weights that its own converter makes of
fairseq's BART. One batch uses all threads, or is divided among translators of one thread each, which share the weights.
Its peak memory includes torch and fairseq (about 0.4 GB), which are needed for the conversion only. CTranslate2
truncates sources at 1,024 tokens by default; this is switched off.

LED and LongT5 are configured as they are pre-trained, in the same sizes; T5Gemma 2 has the sizes of its smallest model,
270M in encoder and decoder each, of which they share the table of 168M. Their weights are random.
"""

import itertools
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from harness import Facts, Job, Setting, dtype, forget_peak, run, where
from peers import (
    BART,
    BOS,
    EOS,
    PAD,
    UNK,
    copy_weights,
    decisive,
    documents,
    long_document_model,
    model_of,
    parameters_of,
    save_ctranslate2,
    transformers_bart,
)
from torch import Tensor

from hat_fairseq.generation.search import SearchOptions, beam_search
from hat_fairseq.kernels import cpu_precisions

BEAM = 4
POSITIONS = 3072  # at least, on both sides: transformers' BART has one number
SIZES = {"width": 768, "heads": 12, "layers": 6, "vocabulary": 50265}
LARGE = {"width": 1024, "heads": 16, "layers": 12}
WARM_UP = 8  # tokens
ABSTRACTS = (  # GPT-2 tokens of the first 64 abstracts of SumPubmed's test part, with a marker for each sentence
    "438 370 298 373 387 481 386 364 279 416 450 415 494 422 306 559 429 587 313 229 494 392 366 329 588 286 396 508 "
    "410 292 507 524 319 560 713 369 438 475 280 384 349 467 566 409 317 387 518 495 471 346 313 368 365 506 572 294 "
    "468 369 314 216 518 474 531 565"
)
TOLERANCE = 1e-4  # of a score, which is the mean log-probability of a token
FAIRSEQ = ("fairseq transformer", "fairseq bart")
CACHES = {"transformers": None, "transformers, static cache": "static"}
WHOLE, SPLIT = ("ctranslate2", "ctranslate2 int8"), ("ctranslate2 split", "ctranslate2 int8 split")
LONG = ("led", "longt5", "t5gemma2")  # of transformers, with weights of their own
PACKED = {f"hat {precision}": precision for precision in cpu_precisions() if precision != "fp32"}
PACKAGE = ("hat", *PACKED, "plain")
# The best of 4, 8, 16 and 32 documents in a batch for fairseq and CTranslate2; transformers has that of fairseq.
GROUPS = {**dict.fromkeys(PACKAGE, 16), "fairseq bart": 8, "transformers": 8, **dict.fromkeys(WHOLE, 16)}
CONTENDERS = (*PACKAGE, *FAIRSEQ, *CACHES, *WHOLE, *SPLIT, *LONG)


def setting(source: int, batch: int, new: int = 64, **more: Any) -> Setting:
    """A setting of `harness.py`; `new` tokens are generated, `more` replaces sizes or adds entries.

    Without `lengths` each document has `source` tokens. `groups`: documents in a batch, by contender; else all.
    """
    name = "{source:,} tokens x {batch}, {new} new, {layers} + {layers} layers"
    return {"name": name, "source": source, "batch": batch, "new": new, **SIZES, **more}


def of_lengths(lengths: list[int], **more: Any) -> Setting:
    """A setting for documents of these lengths."""
    name = f"{len(lengths)} documents of {min(lengths)} to {max(lengths)} tokens, {{new}} new"
    return setting(max(lengths), len(lengths), name=name, lengths=lengths, **more)


SETTINGS = [
    setting(3072, 1, contenders=(*PACKAGE, *FAIRSEQ)),
    setting(3072, 4, contenders=(*PACKAGE, "fairseq bart"), rounds=2),
    setting(512, 4, contenders=(*PACKAGE, *FAIRSEQ)),
    setting(64, 8, new=32, contenders=("hat", "plain", *FAIRSEQ)),
    setting(3072, 1, new=16, **LARGE, contenders=("hat", "plain", "fairseq bart"), rounds=2),
    setting(3072, 4, contenders=("hat", "plain", "transformers"), rounds=2),
    setting(512, 4, contenders=("hat", "plain", *CACHES), rounds=2),
    setting(3072, 1, new=128, contenders=(*PACKAGE, *WHOLE)),
    setting(3072, 4, contenders=(*PACKAGE, *WHOLE, *SPLIT), rounds=2),
    setting(512, 4, new=128, contenders=(*PACKAGE, *WHOLE, *SPLIT)),
    setting(3072, 1, contenders=("hat", *LONG), rounds=2),
    of_lengths([*map(int, ABSTRACTS.split())], new=32, contenders=tuple(GROUPS), groups=GROUPS, rounds=1),
]


def build(name: str, chosen: Setting) -> Job:
    """The search of a contender; of ours, `PACKED` is of the linear maps on the CPU, "fp16" of all weights on a GPU."""
    chosen = {**chosen, "group": chosen.get("groups", {}).get(name, chosen["batch"])}
    if name in CACHES:
        return transformers_job(transformers_bart(plain(chosen)), CACHES[name], chosen)
    if name in LONG:
        positions = max(POSITIONS, chosen["source"])
        model = long_document_model(name, **{key: chosen[key] for key in SIZES}, positions=positions)
        return Job(transformers_job(model, None, chosen).step, {"parameters": parameters_of(model)})
    if name.startswith("ctranslate2"):
        return ctranslate2_job(name, chosen)
    if name in FAIRSEQ:
        model = stock(chosen, "transformer", **BART) if name == "fairseq transformer" else stock(chosen)
        return job(model, fairseqs_search, chosen)
    model = plain(chosen) if name == "plain" else hat(chosen)
    return job(model, our_search, chosen, PACKED.get(name, "fp32"), torch.float16 if name == "hat fp16" else dtype())


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
    """(batch, source) token ids, the longest document first, with padding after its `</s>`."""
    tokens = documents(chosen["batch"], chosen["source"], chosen["vocabulary"])
    for row, length in zip(tokens, sorted(chosen.get("lengths", []), reverse=True), strict=False):
        row[length - 1], row[length:] = EOS, PAD
    return tokens


def batches(chosen: Setting) -> list[Tensor]:
    """The batches of a contender, each without columns of padding."""
    groups = sources(chosen).split(chosen.get("group", chosen["batch"]))
    return [tokens[:, : int(tokens.ne(PAD).sum(1).max())].to(where()) for tokens in groups]


def job(
    model: Any, search: Callable[..., Any], chosen: Setting, precision: str = "fp32", kind: torch.dtype | None = None
) -> Job:
    """One repetition is what a command does with a batch: encode, then search.

    `search`: `our_search` or `fairseqs_search`. `precision`: of the linear maps of ours on the CPU. `kind`: of the
    weights, by default `dtype()`.
    """
    kind, parameters = kind or dtype(), parameters_of(model)
    model.to(where(), kind)
    model.prepare_for_inference_(Namespace(generation=Namespace(beam=BEAM), task=Namespace(cpu_precision=precision)))
    rows = batches(chosen)
    last: list[Any] = []

    def step(new: int = chosen["new"]) -> Facts:
        last[:] = [beams for tokens in rows for beams in search(model, tokens, new)]
        return {"tokens": len(last) * new}

    def finish() -> Facts:
        if kind is not torch.float32:  # in bfloat16 every implementation rounds scores differently
            model.float()
            step()
        return hypotheses(last)

    forget_peak()
    return Job(warmed_up(step), {"parameters": parameters}, finish)


def warmed_up(step: Callable[..., Facts]) -> Callable[[], Facts]:
    """`step` whose first call, the warm-up, generates only a few tokens, which touches all code and weights."""
    calls = itertools.count()
    return lambda: step(WARM_UP) if next(calls) == 0 else step()


@torch.no_grad()
def our_search(model: Any, tokens: Tensor, new: int) -> list[list[dict[str, Tensor]]]:
    """All hypotheses of exactly `new` tokens and `</s>` for every row of `tokens`, the best first."""
    options = SearchOptions(start=EOS, end=EOS, pad=PAD, unk=UNK, max_len=new, min_len=new, beam=BEAM)
    texts = beam_search([model.decoder], [model.encoder(tokens)], len(tokens), tokens.device, options)
    return [[hypothesis._asdict() for hypothesis in beams] for beams in texts]


def fairseqs_search(model: Any, tokens: Tensor, new: int) -> list[list[dict[str, Tensor]]]:
    """The same by fairseq's generator."""
    limits = {"max_len_b": new, "min_len": new, "max_len": new + 1}
    generator = SequenceGenerator([model], model.decoder.dictionary, beam_size=BEAM, **limits)
    return generator.generate([model], {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}})


def hypotheses(output: Sequence[Sequence[dict[str, Tensor]]]) -> Facts:
    """The facts for `same_hypotheses` from the output of a generator: tokens and scores without `</s>`."""
    return {
        "_hypotheses": [[h["tokens"][:-1].tolist() for h in beams] for beams in output],
        "_scores": [[float(h["positional_scores"][:-1].mean()) for h in beams] for beams in output],
    }


def transformers_job(model: Any, cache: str | None, chosen: Setting) -> Job:
    parameters = parameters_of(model)
    model.to(where(), dtype())
    rows = batches(chosen)
    masks = [tokens.ne(PAD).long() if bool(tokens.eq(PAD).any()) else None for tokens in rows]  # None is faster
    last: list[Tensor] = []

    def step(new: int = chosen["new"]) -> Facts:
        options = transformers_search(new, cache)
        pairs = zip(rows, masks, strict=True)
        outputs = [model.generate(ids, attention_mask=mask, generation_config=options) for ids, mask in pairs]
        last[:] = [beams for output in outputs for beams in output.split(BEAM)]
        return {"tokens": len(last) * new}

    @torch.no_grad()
    def finish() -> Facts:
        """Scores by the model itself, all tokens at once, a document after the other."""
        if dtype() is not torch.float32:
            model.float()
            step()
        scores = []
        for source, beams in zip((row for tokens in rows for row in tokens), last, strict=True):
            ids = source[source.ne(PAD)].expand(BEAM, -1)
            logits = model(input_ids=ids, decoder_input_ids=beams[:, :-1]).logits
            each = logits.log_softmax(-1).gather(-1, beams[:, 1:, None])
            scores.append(each.mean((1, 2)).tolist())
        return {"_hypotheses": [beams[:, 1:].tolist() for beams in last], "_scores": scores}

    forget_peak()
    return Job(warmed_up(step), {"parameters": parameters}, finish)


def transformers_search(new: int, cache: str | None) -> Any:
    """The search that fairseq does: begins with `</s>`, no token forced, scores are means over the tokens."""
    from transformers import GenerationConfig

    tokens = {"decoder_start_token_id": EOS, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    lengths = {"min_new_tokens": new, "max_new_tokens": new, "length_penalty": 1.0, "early_stopping": False}
    beams = {"num_beams": BEAM, "num_return_sequences": BEAM, "do_sample": False}
    return GenerationConfig(**tokens, **lengths, **beams, use_cache=True, cache_implementation=cache)


def ctranslate2_job(name: str, chosen: Setting) -> Job:
    """In fp32, or in the type that the name ends in; hypotheses of fp16, which is for a GPU, are compared in fp32."""
    import ctranslate2

    kind = "int8" if "int8" in name else "float16" if "fp16" in name and where() == "cuda" else "float32"
    split, threads = name in SPLIT, torch.get_num_threads()
    each = -(-chosen["batch"] // threads) if split else 0  # documents of one translator; 0: all
    each = chosen.get("groups", {}).get(name, each)
    workers = {"inter_threads": threads, "intra_threads": 1} if split else {"intra_threads": threads}
    kinds = dict.fromkeys((kind, "float32" if kind == "float16" else kind))  # that of `step`, that of `finish`
    with tempfile.TemporaryDirectory() as folder:
        model = stock(chosen).to(dtype()).float()  # rounded as the weights of the other contenders
        facts, symbols = {"parameters": parameters_of(model)}, model.decoder.dictionary
        saved = save_ctranslate2(model, Path(folder) / "model", "int8" if kind == "int8" else "float32")
        del model
        translators = [ctranslate2.Translator(saved, where(), compute_type=k, **workers) for k in kinds]
    rows = [[symbols[i] for i in row if i != PAD] for row in sources(chosen).tolist()]
    options = {"beam_size": BEAM, "num_hypotheses": BEAM, "length_penalty": 1, "return_scores": True}
    options |= {"max_batch_size": each, "max_input_length": 0}  # 0: none is cut
    last: list[ctranslate2.TranslationResult] = []

    def step(new: int = chosen["new"], translator: ctranslate2.Translator = translators[0]) -> Facts:
        limits = {"min_decoding_length": new, "max_decoding_length": new}
        last[:] = translator.translate_batch(rows, **options, **limits)
        return {"tokens": len(rows) * new}

    def finish() -> Facts:
        if len(translators) > 1:
            step(translator=translators[1])
        output = [[[symbols.index(token) for token in tokens] for tokens in result.hypotheses] for result in last]
        return {"_hypotheses": output, "_scores": [result.scores for result in last]}

    forget_peak()
    if where() == "cuda":
        facts["peak_bytes"] = None  # torch does not see its memory
    return Job(warmed_up(step), facts, finish)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    peers = [name for name in ends if not name.startswith("hat") and "int8" not in name and name not in LONG]
    if not peers:
        return ["every contender has weights of its own"]
    return [same_parameters(ends, peers), same_hypotheses(ends, peers), same_search(chosen)]


def same_hypotheses(ends: dict[str, Facts], names: Sequence[str]) -> str:
    """Checks that contenders found the same hypotheses with the same scores; SystemExit if not."""
    expected, *others = (
        [
            {tuple(tokens): score for tokens, score in zip(*beams, strict=True)}
            for beams in zip(ends[name]["_hypotheses"], ends[name]["_scores"], strict=True)
        ]
        for name in names
    )
    for name, actual in zip(names[1:], others, strict=True):
        for number, (first, second) in enumerate(zip(expected, actual, strict=True)):
            if first.keys() != second.keys():
                raise SystemExit(f"document {number}: {names[0]} and {name} found different hypotheses")
            worst = max(abs(first[tokens] - second[tokens]) for tokens in first)
            if worst > TOLERANCE:
                raise SystemExit(f"document {number}: scores of {names[0]} and {name} differ by {worst:.1e}")
    return f"{', '.join(names)}: the same {BEAM} hypotheses of every document, scores within {TOLERANCE:g}"


def same_search(chosen: Setting) -> str:
    """Checks that our search and fairseq's find the same for HAT, in this process on a small model."""
    small = {**chosen, "width": 48, "heads": 4, "vocabulary": 500, "source": 100, "batch": 3, "new": 24, "lengths": []}
    searches = (our_search, fairseqs_search)
    ends = {search.__name__: hypotheses(search(hat(small), sources(small), small["new"])) for search in searches}
    same_hypotheses(ends, list(ends))
    return "HAT with our search and with fairseq's: the same hypotheses (small model)"


def same_parameters(ends: dict[str, Facts], names: Sequence[str]) -> str:
    """Checks that contenders have equally many parameters; SystemExit if not."""
    counts = {name: ends[name]["parameters"] for name in names}
    if len(set(counts.values())) > 1:
        raise SystemExit(f"the contenders have different numbers of parameters: {counts}")
    return f"{', '.join(names)}: {counts[names[0]] / 1e6:.1f}M parameters, the same"


if __name__ == "__main__":
    versions = ["transformers", "ctranslate2"]
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="hat", rounds=3, versions=versions)
