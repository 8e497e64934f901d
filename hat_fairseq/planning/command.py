"""Estimate the memory that training a recipe needs, and the largest batch that fits into a given memory.

    hat plan RECIPE [--gpu-memory 24G] [flags of fairseq-train, such as --checkpoint-activations]

One forward and backward pass runs with the recipe's flags on tensors without memory, on the longest documents that the
recipe allows. Neither data nor a GPU is needed. Other flags win over the recipe's; with --cpu the device is a CPU.
"""

import argparse
import bisect
import logging
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from ..data import kinds, readers
from ..data.files import json_text
from ..data.kinds import KINDS, LabelledKind, kind_of
from ..data.kinds.sequences import BYTES
from ..data.options import Options
from ..data.tokenizer_bpe import KIND, TokenizerBpe, find_tokenizer
from ..networks.encoder import UNLIMITED
from ..printed import aligned
from ..recipes import build, files
from ..register import register
from .memory import Updates

PASSES_FLAGS_ON = True
GIB = 1 << 30
#: Symbols of a dictionary, without <mask>: of GPT-2, XLM-RoBERTa and BERT.
SYMBOLS = {"gpt2": 50_264, "sentencepiece": 250_001, "tokenizer": 30_521}
MASKED = 7  # of so many tokens one is masked, about 15 %
NAMES, SPECIAL = 4, 4  # roles or labels; symbols that fairseq adds to every dictionary
ROWS_OF_SAMPLE = {kinds.ChoiceKind: 4, kinds.BytePairKind: 2}  # of all others 1; a question of RACE has four choices
SENTENCE = 32  # tokens from one marker to the next, where segments are not packed
PARTS = ("weights", "gradients", "optimizer", "activations", "process", "peak")
#: Libraries, and what the allocator keeps besides tensors: measured on a CPU (0.3.0), assumed on a GPU.
LIBRARIES, ALLOCATOR = {"CPU": GIB // 2, "GPU": GIB}, {"CPU": 0.14, "GPU": 0.0}


def memory_size(text: str) -> int:
    """Maps `24G` -> bytes; G and M are powers of 1024, as for the memory of GPUs."""
    if not (match := re.fullmatch(r"(\d+(?:\.\d+)?)([GM])i?B?", text)):
        raise argparse.ArgumentTypeError(f"{text}: write it as 24G or 16000M")
    return int(float(match[1]) * (GIB if match[2] == "G" else 1 << 20))


def whole_number(text: str) -> int:
    """Reads a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: it must be a whole number from 1 on")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe of hat recipe list, or a YAML file")
    text = "print the largest batch that fits into this memory"
    parser.add_argument("--gpu-memory", metavar="24G", type=memory_size, help=text)
    text = "the number of symbols of the dictionary (default: the data's; where there are none yet, that of the "
    text += "recipe's BPE: the number of codes, or that of GPT-2, XLM-RoBERTa or the tokenizer)"
    parser.add_argument("--dictionary-size", type=whole_number, metavar="N", help=text)
    for side in ("source", "target"):
        text = f"the number of tokens of the longest {side} (default: the recipe's --max-{side}-tokens, else what "
        text += "the model takes, if it has a limit)"
        parser.add_argument(f"--{side}-tokens", type=whole_number, metavar="N", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON, with memory in bytes")


def main(args: argparse.Namespace) -> int:
    logging.disable(logging.INFO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hydra's, about fairseq
        plan = make_plan(args)
    print(json_text(plan, indent=2) if args.json else table(plan))
    return 0


def make_plan(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the estimate, and what it is about."""
    cfg, task, kind = set_up(args.recipe, args.others, args.dictionary_size)
    preprocess = files.load(files.find(args.recipe))["preprocess"]
    stated = kind_of_recipe(preprocess)
    if getattr(stated, "joins_rows", False) and stated is not kind and stated.task == kind.task:
        text = f"only the data say that a sample is a {stated.name}"
        raise ValueError(f"{text}: run `hat recipe preprocess {args.recipe}` first")
    unit = next((name for name in ("batch_size", "max_tokens") if cfg.dataset[name]), None)
    if unit is None:
        raise ValueError("the recipe has no size of a batch: give --batch-size or --max-tokens")
    size, update_freq, updates = cfg.dataset[unit], cfg.optimization.update_freq[0], Updates(cfg, task)
    document = longest_document(args, preprocess, updates.model, partial(batch, task, kind, 1))
    device, longest = "CPU" if cfg.common.cpu else "GPU", max(document["source"], document["target"])

    def estimate(size: int, update_freq: int) -> dict[str, Any]:
        documents = size if unit == "batch_size" else max(1, size // longest)  # fairseq counts the longer side of each
        tensors = updates.peak(batch(task, kind, documents, **document), update_freq)
        process = LIBRARIES[device] + int(ALLOCATOR[device] * tensors)
        sizes = updates.sizes | {"activations": tensors - sum(updates.sizes.values()), "process": process}
        return {"documents": documents, **sizes, "peak": tensors + process}

    def flags(size: int, update_freq: int) -> dict[str, int]:
        return {unit.replace("_", "-"): size, "update-freq": update_freq}

    plan = {
        "recipe": args.recipe,
        "arch": cfg.model.arch,
        "parameters": updates.parameters,
        "dictionary_size": len(task.source_dictionary),
        "device": "cpu" if cfg.common.cpu else "cuda",
        "precision": next((name for name in ("fp16", "bf16") if cfg.common[name]), "fp32"),
        "processes": cfg.distributed_training.distributed_world_size,
        "batch": flags(size, update_freq),
        "document": document,
        **estimate(size, update_freq),
    }
    if args.gpu_memory is not None:  # of updates of the same size
        update = size * update_freq
        sizes = [n for n in range(1, update + 1) if update % n == 0]
        fitting = sizes[: bisect.bisect(sizes, args.gpu_memory, key=lambda n: estimate(n, update // n)["peak"])]
        plan |= {"memory": args.gpu_memory, "largest": flags(fitting[-1], update // fitting[-1]) if fitting else None}
    return plan


def kind_of_recipe(preprocess: Mapping[str, Any]) -> Any:
    """Returns the kind of data that a recipe says, or its reader if that is there already; else documents."""
    reader = str(preprocess.get("reader", ""))
    if "kind" not in preprocess and (reader in readers.names() or Path(reader).is_file()):
        return kind_of(readers.find_reader(reader).kind)
    return kind_of(str(preprocess.get("kind", "text")))


def expected_symbols(preprocess: Mapping[str, Any]) -> int:
    """Returns the number of symbols that the dictionary of a recipe will have, about; see docs/recipes.md."""
    bpe, folder = preprocess.get("bpe", Options.bpe), Path(str(preprocess.get("bpe-dir", ""))).expanduser()
    if isinstance(kind_of_recipe(preprocess), kinds.SequenceKind):
        return SPECIAL + len(BYTES)
    if bpe == KIND and "bpe-dir" in preprocess and folder.is_dir():
        return SPECIAL + len(TokenizerBpe.load(find_tokenizer(folder)).symbols)
    return SYMBOLS.get(bpe) or int(str(preprocess.get("num-codes", Options.num_codes)))


def set_up(recipe: str, flags: Sequence[str], dictionary_size: int | None = None) -> tuple[Any, Any, Any]:
    """Makes configuration, task and kind of data of fairseq-train.

    Without a size the dictionaries of the data are read.
    """
    register()
    words = build.build_commands("train", recipe, flags)[0]
    words = words[words.index("train") + 1 :]
    if dictionary_size is None and not any(Path(words[0]).rglob("dict*.txt")):
        dictionary_size = expected_symbols(files.load(files.find(recipe))["preprocess"])
    with tempfile.TemporaryDirectory() as folder:
        args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
        if dictionary_size is not None:
            args.data = folder
            source, target, role = (getattr(args, name, None) for name in ("source_lang", "target_lang", "role_stream"))
            texts = ["dict.txt", "input0/dict.txt", f"dict.{source}.txt", f"dict.{target}.txt"]
            names = ["label/dict.txt", f"dict.{role}.txt"]
            sizes = dict.fromkeys(texts, dictionary_size - SPECIAL) | dict.fromkeys(names, NAMES)
            for path, size in sizes.items():
                Path(folder, path).parent.mkdir(exist_ok=True)
                Path(folder, path).write_text("".join(f"{number} 1\n" for number in range(size)), encoding="utf-8")
        cfg = convert_namespace_to_omegaconf(args)
        task: Any = tasks.setup_task(cfg.task)
    return cfg, task, getattr(task, "kind", None) or next(k for k in KINDS.values() if k.task == cfg.task._name)


def batch(task: Any, kind: Any, documents: int, source: int, target: int, marker_every: int) -> dict[str, Any]:
    """Returns a batch as the task collates it, without padding, of documents (or questions with all their choices).

    Each has `source` tokens, a marker of a sentence or segment before every `marker_every` of them, and `target` tokens
    if texts are the targets.
    """
    dictionary = task.source_dictionary
    rows_of_sample = next((rows for each, rows in ROWS_OF_SAMPLE.items() if isinstance(kind, each)), 1)
    rows = documents * rows_of_sample
    tokens = torch.full((rows, source), dictionary.nspecial)
    tokens[:, ::marker_every], tokens[:, -1] = dictionary.bos(), dictionary.eos()
    inputs = {"src_tokens": tokens, "src_lengths": torch.full((rows,), source)}
    if isinstance(kind, LabelledKind):
        tokens[:, 1] = dictionary.eos()  # after a question
        size = kind.target_size(source, int(tokens[0].eq(dictionary.bos()).sum()))
        gold = torch.zeros((documents, size) if size else documents, dtype=torch.long)
    elif kind.has_target:
        gold = inputs["prev_output_tokens"] = torch.full((rows, target), dictionary.nspecial)
        if task.role_dictionary is not None:
            inputs["roles"] = torch.full_like(tokens, task.role_dictionary.nspecial)
    else:
        gold = tokens.masked_fill(torch.arange(source) % MASKED != 1, dictionary.pad())
    counts = {"nsentences": documents, "ntokens": gold.numel() if kind.has_target else tokens.numel()}
    return {"net_input": inputs, "target": gold, "num_rows": torch.full((documents,), rows_of_sample), **counts}


def longest_document(
    args: argparse.Namespace, preprocess: Mapping[str, Any], model: Any, sample: Any
) -> dict[str, int]:
    """Returns the arguments of `batch` besides the number of documents."""
    limits, tokens = model.max_positions(), {}
    if args.target_tokens and not isinstance(limits, tuple):
        raise ValueError("--target-tokens has no effect: the model writes no texts; remove it")
    for side, limit in zip(("source", "target"), limits if isinstance(limits, tuple) else (limits, 0), strict=True):
        stated = getattr(args, f"{side}_tokens") or preprocess.get(f"max-{side}-tokens")
        if stated is None and limit == UNLIMITED:
            raise ValueError(f"the model takes documents of any length: give --{side}-tokens")
        tokens[side] = getattr(args, f"{side}_tokens") or min(int(stated or limit), limit)
    packed = preprocess.get("segments") == "packed"
    every = int(preprocess.get("segment-length", Options.segment_length)) if packed else SENTENCE
    fits = (model.core if hasattr(model, "core") else model.encoder).fits  # at most as many segments as it takes
    while every < tokens["source"] and not fits(sample(**tokens, marker_every=every)["net_input"]["src_tokens"][0]):
        every *= 2
    return {**tokens, "marker_every": every}


def table(plan: Mapping[str, Any]) -> str:
    """Returns the plan as text, in GiB."""
    document, device = plan["document"], "CPU" if plan["device"] == "cpu" else "GPU"
    target = f" and {document['target']:,} target" * bool(document["target"])
    lines = [
        f"{plan['recipe']}: {plan['arch']}, {plan['parameters']:,} parameters",
        f"dictionary of {plan['dictionary_size']:,}; {plan['processes']} x {device}, {plan['precision']}; "
        f"on each {_flags(plan['batch'])}",
        f"documents of {document['source']:,} source{target} tokens, a marker every {document['marker_every']} tokens",
        "\nGiB on each device",
        *aligned([[part, f"{plan[part] / GIB:.2f}"] for part in PARTS], str.rjust),
    ]
    if "memory" in plan:
        fitting = _flags(plan["largest"] or {}) or "not even the smallest batch fits"
        lines += ["", f"{plan['memory'] / GIB:.3g} GiB: {fitting}"]
    return "\n".join(lines)


def _flags(values: Mapping[str, int]) -> str:
    return " ".join(f"--{name} {value}" for name, value in values.items())
