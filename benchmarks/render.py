#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`.

python benchmarks/render.py
"""

from __future__ import annotations

import ast
import json
from functools import partial
from pathlib import Path

import tables

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

Each question has one script. Every result is a JSON file in `results/` with its command, versions and device;
`python benchmarks/render.py` renders this page from the results. `make bench` runs the timed benchmarks and renders the
page; `make bench BENCH="preprocessing start_up"` runs only these two.
"""
INTERLEAVED = """
In the questions below, the contenders run in turns, each in its own process. Seconds are the median [least, most] over
the rounds; *times* is the median [least, most] of the ratio, within a round, to the contender whose times are 1.00
(more than 1: slower); peak memory is that of the process, weights included.
"""

HAT = {"hat": "`hat_bart_base`, our generator", "plain": "baseline without hierarchy, our generator"}
ENCODERS = {
    "hierarchical_transformer": "`hierarchical_transformer`, {layout}",
    "poolingformer": "`hat_roberta`, `--encoder-attention pooling --encoder-attention-layers 2`",
    "modernbert": "ModernBERT (`transformers`), SDPA",
    "ernie_sparse": "`ernie_sparse_base`",
}
# Question, in the order of the page: labels that replace names of contenders. A label may refer to entries of the
# setting, as in "layout {layout}".
LABELS: dict[str, dict[str, str]] = {
    "hierarchy": {},
    "classification": {},
    "whole_meetings": {},
    "plan": {},
    "load": {},
    "needle": {
        "full": "full attention (`hat_roberta --no-hierarchy`)",
        "window": "window alone (`--encoder-attention window`)",
        "pooling": "two levels (`--pooling-cells document`)",
        "pooling, token": "two levels (`--pooling-cells token`)",
        "hat": "HAT on the window (`hat_roberta`)",
        "segments": "`hierarchical_transformer`",
        "window, global": "window and global questions",
        "blocks": "blocks (`--encoder-attention block-sparse`)",
        "representatives": "representatives (`ernie_sparse`)",
        "blocks, global": "blocks, global and random ones",
    },
    "needle_look": {},
    "pointers": {
        "window": "baseline (`--no-hierarchy`, window)",
        "hat 0": "HAT on the window, 0 hierarchical layers",
        "hat 1": "HAT on the window, `--hierarchical-encoder-layers 1`",
        "hat 2": "HAT on the window, `--hierarchical-encoder-layers 2`",
        "full": "full attention (`--no-hierarchy`)",
    },
    "lra": {},
    "gpu": {
        **HAT,
        "hat fp16": "`hat_bart_base`, our generator, fp16",
        "fairseq": "fairseq's `bart_base`",
        "transformers": "`transformers`, dynamic cache",
        "ctranslate2 fp16": "CTranslate2, fp16",
        **ENCODERS,
    },
    "long_encoders": {
        **ENCODERS,
        "hat_roberta": "`hat_roberta`, a sentence every {sentence} tokens",
        "full attention": "`hat_roberta` with `--no-hierarchy`: full attention",
        "longformer": "Longformer (`transformers`), window 512",
        "bigbird": "BigBird (`transformers`), block sparse 64, 3 random",
        "block-sparse": "`hat_roberta`, `--encoder-attention block-sparse`",
        "lsg": "LSG's local blocks of 128 in the layers of `hat_roberta`",
    },
    "ablation": {
        "as it is": "the package",
        "query blocks": "full attention in blocks of queries -> SDPA",
        "attention dropout": "the same with attention dropout -> SDPA for chunks of queries under `checkpoint`",
        "chunked loss": "chunked loss -> logits of a chunk under `checkpoint`",
        "packed maps": "weights in oneDNN's layout -> `Linear`",
        "oneDNN": "weights in oneDNN's layout and oneDNN's product -> `nn.Linear`",
        "step": "attention of a step in two products -> SDPA",
        "mask of hypotheses": "cache that does not move -> `index_select` at each step",
        "top-k": "top-k by blocks -> `topk`",
        "search": "our search -> fairseq's loop",
        "search, one memory": "our search -> fairseq's loop, a row of the encoder's output for each document",
        "windows": "windows with a backward pass of our own -> chunks under `checkpoint`",
        "blocks": "blocks with a backward pass of our own -> chunks under `checkpoint`",
        "waiting": "OpenMP's waiting -> `GOMP_SPINCOUNT=3000`",
    },
    "long_attention": {
        "two levels": "`--encoder-attention pooling`: windows of 128 and 512",
        "window": "`--encoder-attention window`: 128 on either side",
        "full": "full attention on SDPA",
        "block-sparse": "`--encoder-attention block-sparse`",
        "bigbird": "BigBird (`transformers`), blocks of 64",
        "led": "LED (`transformers`), 512 on either side",
        "lsg": "LSG, local blocks of 128",
        "flex": "FlexAttention (compiled), 128 on either side",
    },
    "regularization": {
        "regularized": "`--criterion self_attention_regularization --sar-alpha 10 --sar-roll 8`",
        "two passes": "`--criterion document_labels`, two passes",
    },
    "training_hierarchy": {"hat": "`hat_bart_base`", "plain": "`hat_bart_base --no-hierarchy`"},
    "training_fairseq": {
        "ours": "`hat_bart_base`, `--criterion chunked_label_smoothed_cross_entropy`",
        "ours, checkpointed": "the same with `--checkpoint-activations`",
        "fairseq": "fairseq's `bart_base`, `--criterion label_smoothed_cross_entropy`",
    },
    "generation_fairseq": {
        **HAT,
        "fairseq transformer": "fairseq's `transformer`",
        "fairseq bart": "fairseq's `bart`",
    },
    "generation_transformers": {
        **HAT,
        "transformers": "`transformers`, dynamic cache",
        "transformers, static cache": "`transformers`, static cache",
    },
    "generation_ctranslate2": {
        **HAT,
        "hat int8": "`hat_bart_base` with `--cpu-precision int8`",
        "ctranslate2": "CTranslate2, fp32",
        "ctranslate2 int8": "CTranslate2, int8",
        "ctranslate2 split": "CTranslate2, fp32, batch divided among threads",
        "ctranslate2 int8 split": "CTranslate2, int8, batch divided among threads",
    },
    "precision": {},
    "kv_heads": {
        "12": "`hat_bart_base`",
        "4": "`--decoder-kv-heads 4`",
        "1": "`--decoder-kv-heads 1`",
    },
    "source_length": {"ours": "`hat_bart_base`", "fairseq": "fairseq's `bart_base`"},
    "preprocessing": {},
    "start_up": {},
    "waiting": {"default": "as OpenMP waits", "hat": "`GOMP_SPINCOUNT=3000`", "passive": "`OMP_WAIT_POLICY=PASSIVE`"},
}
OWN_TABLES = {
    "hierarchy": tables.hierarchy,
    "classification": tables.classification,
    "plan": tables.plan,
    "whole_meetings": tables.whole_meetings,
    "needle": partial(tables.needle, labels=LABELS["needle"]),
    "needle_look": tables.needle_look,
    "pointers": partial(tables.pointers, labels=LABELS["pointers"]),
    "lra": tables.lra,
    "load": tables.load,
}


def main() -> None:
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    own = "".join(map(section, OWN_TABLES))
    return INTRODUCTION + own + INTERLEAVED + "".join(section(name) for name in LABELS if name not in OWN_TABLES)


def section(name: str) -> str:
    """One question with all its results, and its figure if it has one; empty if there is no result."""
    paths = sorted((FOLDER / "results").glob("*.json"))
    answers = [record for path in paths if (record := json.loads(path.read_text("utf-8")))["question"] == name]
    if not answers:
        return ""
    heading, introduction = caption(name)
    text = f"\n## {heading}\n\n{introduction}\n"
    text += "".join(map(OWN_TABLES.get(name) or partial(tables.interleaved, labels=LABELS[name]), answers))
    for figure in sorted((FOLDER / "results").glob(f"{name}*.png")):
        text += f"\n![{heading}](results/{figure.name})\n"
    return text


def caption(question: str) -> tuple[str, str]:
    """Heading and introduction of a question: the docstring of its script, without the lines that show commands."""
    script = (FOLDER / f"{question}.py").read_text(encoding="utf-8")
    heading, mark, rest = (ast.get_docstring(ast.parse(script)) or "").partition("?")
    paragraphs = [part.strip() for part in rest.split("\n\n") if not part.startswith("    ")]
    return heading + mark, "\n\n".join(paragraphs)


if __name__ == "__main__":
    main()
