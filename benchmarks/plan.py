#!/usr/bin/env python3
"""Does `hat plan` predict the memory? Its estimates beside the peak of real updates.

    python benchmarks/plan.py

Recipes with their own lengths, with fewer layers and smaller batches where the name says so, on the CPU in fp32. Each
runs two updates of fairseq's trainer in a process of its own, on the batches of the estimate. *Measured* is the peak of
the process. The estimate contains 0.54 GB for the interpreter and the libraries, and 14 % of the tensors for memory
that glibc's malloc does not return. Nothing has been measured on a GPU.
"""

import json
import multiprocessing
import time
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from harness import RESULTS, flags, peak_memory, write_result

from hat_fairseq.planning import command as plan

ON_CPU = ("--cpu", "--gpus", "1")
TWO_AND_TWO = "--bf16=null --encoder-layers 2 --decoder-layers 2"
#: Name -> recipe and flags that make it smaller.
CASES = {
    "ami_small": "ami_small",
    "pubmed, 2 + 2 layers of 768": f"pubmed {TWO_AND_TWO} --arch hat_bart_base --batch-size 1",
    "the same, checkpointed": f"pubmed {TWO_AND_TWO} --arch hat_bart_base --batch-size 1 --checkpoint-activations",
    "wmt20_en_de, 2 + 2 layers": f"wmt20_en_de {TWO_AND_TWO} --max-tokens 2048",
    "squad2, 4 layers": "squad2 --bf16=null --encoder-layers 4 --batch-size 8",
    "hyperpartisan, 3 layers": "hyperpartisan --bf16=null --layout S|S|SD --batch-size 1",
    "hierarchical_transformer, 3 layers": "hierarchical_transformer_pretraining --bf16=null --layout S|S|SD",
    "ernie_sparse_triviaqa, 3 layers": "ernie_sparse_triviaqa --bf16=null --encoder-layers 3 --batch-size 1",
    "lra_text": "lra_text --batch-size 8 --update-freq 1",
    "roberta_pretraining, 12 layers": "roberta_pretraining --bf16=null --batch-size 4 --update-freq 2",
    "pubmed, hat_bart_large": "pubmed --bf16=null --batch-size 1 --update-freq 1",
}


def main() -> None:
    args = flags(RESULTS / "plan_cpu.json").parse_args()
    write_result(args.out, runs=[compare(name, *case.split()) for name, case in CASES.items()])


def compare(name: str, recipe: str, *words: str) -> dict[str, Any]:
    """The estimate of a case, and the peak of its process."""
    begin = time.perf_counter()
    defaults = {"gpu_memory": None, "dictionary_size": None, "source_tokens": None, "target_tokens": None}
    planned = plan.make_plan(Namespace(recipe=recipe, others=[*words, *ON_CPU], **defaults))
    facts = {"parameters": planned["parameters"], "estimated": planned["peak"], "seconds": time.perf_counter() - begin}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        batch = planned["documents"], planned["document"]
        measured = process.submit(measure, recipe, [*words, *ON_CPU], *batch).result()
    run = {"case": name, **facts, "measured": measured}
    print(json.dumps(run), f"{run['estimated'] / run['measured'] - 1:+.1%}", flush=True)
    return run


def measure(recipe: str, words: list[str], documents: int, document: dict[str, int]) -> int:
    """Two updates of fairseq's trainer; returns the peak of this process."""
    from fairseq.trainer import Trainer

    cfg, task, kind = plan.set_up(recipe, words)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    samples = [plan.batch(task, kind, documents, **document)] * min(2, cfg.optimization.update_freq[0])
    trainer.begin_epoch(1)
    for _ in range(2):
        trainer.train_step(samples)
    return peak_memory()


if __name__ == "__main__":
    main()
