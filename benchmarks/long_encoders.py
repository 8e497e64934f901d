#!/usr/bin/env python3
"""What does a long document cost? Forward and backward of our encoders beside Longformer, BigBird and full attention.

    python benchmarks/long_encoders.py --threads 2

All contenders have the same width, heads, feed-forward width and number of token-level layers, no dropout, and the same
loss (a fixed linear function of the last states), one document a step, nothing padded. Steps of all contenders take
turns, so that whatever else the machine does hits all of them. Each contender and length is a process of its own, whose
peak memory is taken. With a GPU: bfloat16 on it; else fp32 on the CPU.

`hierarchical_transformer` has a cross-segment layer in every third layer, as the paper's base model has. The two of
`transformers` are as they are pre-trained: Longformer with a window of 512 and no global token, BigBird block sparse
with blocks of 64 and 3 random ones. The result goes to `benchmarks/results/`; `benchmarks/render.py` makes a table of
it. Few layers, since all of them are alike: a deeper model takes longer in proportion.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from machine import device, peak_memory
from torch import Tensor, nn

RESULTS = Path(__file__).resolve().parent / "results"
OURS = "hierarchical_transformer"
CONTENDERS = (OURS, "hat_roberta", "full attention", "longformer", "bigbird")
SENTENCE = 32  # tokens between two <s>; only hat_roberta sees them
SEGMENT = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096], help="tokens of a document")
    parser.add_argument("--rounds", type=int, default=5, help="timed steps of each contender and length")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=3, help="token-level layers; a multiple of 3")
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=50265)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--out", type=Path, default=RESULTS / "long_encoders.json")
    parser.add_argument("--child", nargs=2, metavar=("CONTENDER", "LENGTH"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.child:
        return child(args.child[0], int(args.child[1]), args)
    runs, processes = [], []
    for length in args.lengths:
        found = measure(length, args)
        runs += found[0]
        processes += found[1]
    record = {
        "question": "long_encoders",
        "command": " ".join(["python benchmarks/long_encoders.py", *sys.argv[1:]]),
        "device": device(),
        "threads": args.threads,
        "dtype": str(dtype())[6:],
        "versions": {name: version(name) for name in ("torch", "transformers", "fairseq-fixed")},
        "shapes": {name: getattr(args, name) for name in ("layers", "width", "heads", "vocabulary")},
        "layout": layout(args.layers),
        "runs": runs,
        "processes": processes,
        "summary": summary(runs),
    }
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {args.out}")


def dtype() -> torch.dtype:
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def layout(layers: int) -> str:
    return "|".join("SD" if number % 3 == 2 else "S" for number in range(layers))


def measure(length: int, args: Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Timed steps, and what each process says of itself; the contenders take turns."""
    children = {name: start(name, length) for name in args.contenders}
    for process in children.values():  # one after the other: a warm-up is a whole step
        ask(process, "step")
    runs = []
    for number in range(args.rounds):
        for name, process in children.items():
            answer = ask(process, "step")
            runs.append({"contender": name, "length": length, "round": number, **answer})
            print(f"{length} tokens, round {number + 1}: {name} {answer['seconds']:.3f} s", flush=True)
    processes = [{"contender": name, "length": length, **ask(child, "end")} for name, child in children.items()]
    for process in children.values():
        process.wait()
    return runs, processes


def start(name: str, length: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *sys.argv[1:], "--child", name, str(length)]
    root = str(RESULTS.parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask(process: subprocess.Popen[str], what: str) -> dict[str, Any]:
    """The answer of a child; its own error is on stderr if it has ended."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(what + "\n")
    process.stdin.flush()
    while line := process.stdout.readline():
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit(f"a contender has ended with status {process.wait()}")


def child(name: str, length: int, args: Namespace) -> None:
    """Answers on stdout what stdin asks for: `step` or `end`."""
    where = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    model, states = build(name, args, max(args.lengths))
    model.to(where, dtype()).train()
    tokens = torch.randint(4, args.vocabulary - 1, (1, length), device=where)
    tokens[:, ::SENTENCE] = 0
    weights = torch.randn(1, length, args.width, device=where, dtype=dtype())
    before = peak_memory()
    for line in sys.stdin:
        if line.strip() == "end":
            parameters = sum(parameter.numel() for parameter in model.parameters())
            tables = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Embedding))
            answer = {"parameters": parameters, "tables": tables, "peak_bytes": peak_memory(), "built_bytes": before}
            print(json.dumps(answer), flush=True)
            return
        print(json.dumps(step(model, lambda: states(tokens), weights)), flush=True)


def step(model: nn.Module, states: Callable[[], Tensor], weights: Tensor) -> dict[str, float]:
    """Seconds of one forward and backward, by the clock and of all threads together."""
    model.zero_grad(set_to_none=True)
    synchronise()
    begin, of_threads = time.perf_counter(), time.process_time()
    (states() * weights).sum().backward()
    synchronise()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - of_threads}


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def build(name: str, args: Namespace, positions: int) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """A contender, and the function from (1, T) token ids to its (1, T, C) last states."""
    if name in ("longformer", "bigbird"):
        model = peer(name, args, positions)
        return model, lambda tokens: model(input_ids=tokens).last_hidden_state
    ours = our_model(name, args, positions)
    return ours, lambda tokens: ours(src_tokens=tokens, features_only=True)[0]


def our_model(name: str, args: Namespace, positions: int) -> nn.Module:
    """A model of this package without its masked-LM head."""
    from fairseq.data import Dictionary
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

    import hat_fairseq  # noqa: F401  registers the architectures

    arch = OURS if name == OURS else "hat_roberta_base"
    flags = Namespace(arch=arch, dropout=0.0, attention_dropout=0.0, encoder_layers=args.layers)
    flags.encoder_embed_dim, flags.encoder_ffn_embed_dim = args.width, 4 * args.width
    flags.encoder_attention_heads, flags.max_positions = args.heads, positions
    flags.layout, flags.segment_length, flags.max_segments = layout(args.layers), SEGMENT, -(-positions // SEGMENT)
    if name == "full attention":
        flags.no_hierarchy = True
    ARCH_CONFIG_REGISTRY[arch](flags)
    dictionary = Dictionary()
    for number in range(args.vocabulary - len(dictionary)):
        dictionary.add_symbol(str(number))
    model = ARCH_MODEL_REGISTRY[arch].build_model(flags, Namespace(source_dictionary=dictionary))
    model.encoder.lm_head = None  # the others have none
    return model


def peer(name: str, args: Namespace, positions: int) -> nn.Module:
    """A model of `transformers` without pooler and heads."""
    import transformers

    sizes = {"hidden_size": args.width, "num_attention_heads": args.heads, "num_hidden_layers": args.layers}
    sizes |= {"intermediate_size": 4 * args.width, "vocab_size": args.vocabulary}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": positions + 2}
    if name == "longformer":
        config = transformers.LongformerConfig(attention_window=512, pad_token_id=1, **sizes)
        return transformers.LongformerModel(config, add_pooling_layer=False)
    sparse = {"attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3}
    return transformers.BigBirdModel(transformers.BigBirdConfig(**sparse, **sizes), add_pooling_layer=False)


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """For each length and contender: median, least and most seconds, and how many times ours it takes.

    The last is the median over the rounds of the quotient within a round, and its least and most.
    """
    result: dict[str, dict[str, dict[str, float]]] = {}
    for length in sorted({run["length"] for run in runs}):
        found = {(run["contender"], run["round"]): run for run in runs if run["length"] == length}
        rows = result.setdefault(str(length), {})
        for name in dict.fromkeys(name for name, _ in found):
            steps = [run for (other, _), run in found.items() if other == name]
            row = spread([run["seconds"] for run in steps], "")
            row["cpu_median"] = round(statistics.median(run["cpu_seconds"] for run in steps), 4)
            if (OURS, steps[0]["round"]) in found:
                row |= spread([run["seconds"] / found[OURS, run["round"]]["seconds"] for run in steps], "times_")
            rows[name] = row
    return result


def spread(values: Sequence[float], prefix: str) -> dict[str, float]:
    """Median, least and most."""
    figures = {"median": statistics.median(values), "least": min(values), "most": max(values)}
    return {prefix + name: round(value, 4) for name, value in figures.items()}


if __name__ == "__main__":
    main()
