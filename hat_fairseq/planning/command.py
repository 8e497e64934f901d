"""Estimate the memory that training a recipe needs, and the largest batch that fits into a given memory.

    hat plan RECIPE [--gpu-memory 24G] [flags of fairseq-train]

One update runs with the recipe's flags on tensors without memory, on the longest documents that the recipe allows,
with and without --checkpoint-activations. Neither data nor a GPU is needed. Other flags win over the recipe's; with
--cpu the device is a CPU.
"""

import argparse
import json
import logging
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..data.kinds import kind_of
from ..data.options import Options
from ..data.readers import find_reader
from ..recipes import command as recipes
from ..recipes import files
from .training import Training, batch, build
from .update import Estimate, Simulation

PASSES_FLAGS_ON = True
GIB = 1 << 30
GPT2_SIZE = 50_264  # symbols of its dictionary
LABELS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer, with fp32 copies",
    "activations": "activations kept for the backward pass",
    "loss": "loss, for a moment",
    "process": "process, besides tensors",
}
SENTENCE = 32  # tokens from one marker to the next, where segments are not packed
CHECKPOINT = "--checkpoint-activations"
VARIANTS: dict[str, list[str]] = {"stored": [], "recomputed": [CHECKPOINT]}
#: Memory besides tensors: on a CPU about the peak of a process that trains a tiny model; on a GPU an assumption.
RESERVED = {"cpu": GIB // 2, "cuda": GIB}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help=f"one of {', '.join(files.names())}")
    parser.add_argument("--gpu-memory", metavar="24G", help="memory of the device: print the largest batch for it")
    text = f"symbols of the dictionary (default: the data's, else {GPT2_SIZE} for GPT-2's BPE or the number of codes)"
    parser.add_argument("--dictionary-size", type=int, metavar="N", help=text)
    for side in ("source", "target"):
        text = f"of the longest {side} (default: the recipe's --max-{side}-tokens, else what the model takes)"
        parser.add_argument(f"--{side}-tokens", type=int, metavar="N", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON, in bytes")


def main(args: argparse.Namespace) -> int:
    logging.disable(logging.INFO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hydra's, about fairseq
        plan = make_plan(args)
    print(json.dumps(plan, indent=2) if args.json else table(plan))
    return 0


def make_plan(args: argparse.Namespace) -> dict[str, Any]:
    """The estimates with and without --checkpoint-activations, and what they are about."""
    memory = None if args.gpu_memory is None else parse_memory(args.gpu_memory)
    for name in ("dictionary_size", "source_tokens", "target_tokens"):
        if (number := getattr(args, name)) is not None and number < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {number}")
    words, size = arguments(args.recipe, args.others, args.dictionary_size)
    preprocess = files.load(files.find(args.recipe))["preprocess"]
    trainings = {name: build([*words, *flags], size) for name, flags in VARIANTS.items()}
    training = trainings["stored"]
    reader = str(preprocess["reader"])
    kind = kind_of("text" if "/" in reader else find_reader(reader).kind)
    if getattr(kind, "joins_rows", False) and kind.name != training.kind.name and kind.task == training.kind.task:
        raise ValueError(
            f"only the data say that a sample is a {kind.name}: run `hat recipe preprocess {args.recipe}` first"
        )
    document = longest_document(args, preprocess, training)
    (unit, batch_size, update_freq), cfg = batch_of(training.cfg), training.cfg
    return {
        "recipe": args.recipe,
        "arch": cfg.model.arch,
        "dictionary_size": len(training.task.source_dictionary),
        "device": "cpu" if cfg.common.cpu else "cuda",
        "precision": next((name for name in ("fp16", "bf16") if cfg.common[name]), "fp32"),
        "processes": cfg.distributed_training.distributed_world_size,
        "batch": {unit: batch_size, "update-freq": update_freq},
        "document": document,
        "memory": memory,
        **{name: estimates(training, document, memory) for name, training in trainings.items()},
    }


def arguments(recipe: str, flags: Sequence[str], dictionary_size: int | None = None) -> tuple[list[str], int | None]:
    """The arguments of `build`, without --checkpoint-activations."""
    words = recipes.build_commands("train", recipe, flags)[0]
    words = [word for word in words[words.index("fairseq_cli.train") + 1 :] if word != CHECKPOINT]
    if dictionary_size is None and not any(Path(words[0]).rglob("dict*.txt")):
        preprocess = files.load(files.find(recipe))["preprocess"]
        codes = int(str(preprocess.get("num-codes", Options.num_codes)))
        dictionary_size = GPT2_SIZE if preprocess.get("bpe") == "gpt2" else codes
    return words, dictionary_size


def estimates(training: Training, document: dict[str, int], memory: int | None) -> dict[str, Any]:
    """The estimate of the recipe's batch; with `memory` also the largest batch of an update of the same size."""
    simulation, (unit, batch_size, update_freq) = Simulation(training), batch_of(training.cfg)
    update = batch_size * update_freq
    sizes = {documents_of({unit: n}, document): n for n in range(1, update + 1) if update % n == 0}

    def estimate(documents: int, update_freq: int) -> Estimate:
        return simulation.estimate(batch(training, documents, **document), update_freq)

    documents, process = documents_of({unit: batch_size}, document), RESERVED[simulation.device]
    first = estimate(documents, update_freq)
    result = {**asdict(first), "process": process}
    if memory is not None:
        peaks = {0: first.weights + first.gradients + first.optimizer, documents: first.peak}
        found = largest(list(sizes), memory - process, peaks, lambda n: estimate(n, update // sizes[n]).peak)
        result["largest"] = {unit: sizes[found], "update-freq": update // sizes[found]} if found else None
    return result


def parse_memory(text: str) -> int:
    """`24G` -> bytes; G and M are powers of 1024, as for the memory of GPUs."""
    if not (match := re.fullmatch(r"(\d+(?:\.\d+)?)([GM])i?B?", text)):
        raise ValueError(f"--gpu-memory {text}: write it as 24G or 16000M")
    return int(float(match[1]) * (GIB if match[2] == "G" else 1 << 20))


def longest_document(args: argparse.Namespace, preprocess: Mapping[str, Any], training: Training) -> dict[str, int]:
    """The arguments of `batch` besides the number of documents."""
    model, tokens = training.model, {}
    limits = model.max_positions()
    for side, limit in zip(("source", "target"), limits if isinstance(limits, tuple) else (limits, 0), strict=True):
        tokens[side] = getattr(args, f"{side}_tokens") or min(int(preprocess.get(f"max-{side}-tokens", limit)), limit)
    packed = preprocess.get("segments") == "packed"
    every = int(preprocess.get("segment-length", Options.segment_length)) if packed else SENTENCE
    fits = getattr(model, "fits", lambda row: True)  # at most as many segments as the model takes
    while every < tokens["source"] and not fits(
        batch(training, 1, **tokens, marker_every=every)["net_input"]["src_tokens"][0]
    ):
        every *= 2
    return {**tokens, "marker_every": every}


def batch_of(cfg: Any) -> tuple[str, int, int]:
    """The unit in which batches are counted, the size of a batch in it, and --update-freq."""
    for unit, size in (("batch-size", cfg.dataset.batch_size), ("max-tokens", cfg.dataset.max_tokens)):
        if size:
            return unit, size, cfg.optimization.update_freq[0]
    raise ValueError("the recipe has no size of a batch: give --batch-size or --max-tokens")


def documents_of(size: Mapping[str, int], document: Mapping[str, int]) -> int:
    """Number of the longest documents in a batch of this size; fairseq counts the longer side of each."""
    return size.get("batch-size") or max(1, size["max-tokens"] // max(document["source"], document["target"]))


def largest(sizes: Sequence[int], memory: int, peaks: dict[int, int], peak: Callable[[int], int]) -> int:
    """The largest of these sizes (ascending) that fits, 0 if none does; `peak` simulates one.

    `peaks` are known: of the size 0 and of another one. They are nearly linear, so that few sizes are simulated.
    """
    while (low := max((n for n in peaks if peaks[n] <= memory), default=-1)) >= 0:
        high = min((n for n in peaks if n > low), default=None)
        between = [n for n in sizes if low < n and (high is None or n < high)]
        below, above = sorted(peaks)[-2:] if high is None else (low, high)
        slope = (peaks[above] - peaks[below]) / (above - below)
        fitting = [n for n in between if peaks[low] + slope * (n - low) <= memory]
        if not between or (below and not fitting):
            return low
        size = fitting[-1] if fitting else between[0]
        peaks[size] = peak(size)
    return 0


def table(plan: Mapping[str, Any]) -> str:
    """The plan as text, in GiB."""
    variants, document = [plan[name] for name in VARIANTS], plan["document"]
    stacks, target = variants[0]["layers"], f" and {document['target']:,} target" * bool(document["target"])
    device = f"{plan['processes']} x {'CPU' if plan['device'] == 'cpu' else 'GPU'}, {plan['precision']}"
    rows = [(label, [each[key] for each in variants]) for key, label in LABELS.items()]
    layers = [(f"  in {n} {name}", [each["layers"][name][1] for each in variants]) for name, (n, _) in stacks.items()]
    rows = [*rows[:4], *layers, *rows[4:], ("peak", [each["peak"] + each["process"] for each in variants])]
    lines = [
        f"{plan['recipe']}: {plan['arch']}, {plan['stored']['parameters']:,} parameters",
        f"dictionary of {plan['dictionary_size']:,}; {device}; on each {_flags(plan['batch'])}",
        f"documents of {document['source']:,} source{target} tokens, a marker every {document['marker_every']} tokens",
        f"\nGiB on each device{'as given':>32}{CHECKPOINT:>27}",
        *(f"{label:42}{one / GIB:8.2f}{other / GIB:27.2f}" for label, (one, other) in rows),
        f"{'peak in the':22}{variants[0]['peak_in']:>28}{variants[1]['peak_in']:>27}",
    ]
    if plan["memory"] is not None:
        fitting = (_flags(each["largest"] or {}) or "not even the smallest batch fits" for each in variants)
        pairs = zip(fitting, VARIANTS.values(), strict=True)
        lines += ["", *(f"{plan['memory'] / GIB:g} GiB: {' '.join([text, *flags])}" for text, flags in pairs)]
    return "\n".join(lines)


def _flags(values: Mapping[str, int]) -> str:
    return " ".join(f"--{name} {value}" for name, value in values.items())
