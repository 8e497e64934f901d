#!/usr/bin/env python3
"""How much slower is it beside two busy programs? By how long a thread of OpenMP spins before it sleeps.

    python benchmarks/busy.py --threads 2

Each contender is a process with another `GOMP_SPINCOUNT`, which libgomp reads when torch is imported; its default is
300,000, and the `hat` commands set 3,000. CTranslate2 has OpenMP threads of its own. In every round each contender
computes once alone and once beside two processes that do nothing but compute; on two cores a program of two threads can
expect to take about twice the quiet time; parts on one thread get more. Texts are drawn words. `generation` is the
packaged model of the demo on 16 documents of 120 words, `ask` a question on a meeting of 300 turns with the packaged
model on MiniLM, `prediction` a `hierarchical_transformer` of MiniLM's size on 8 documents of 1,024 tokens, `update`
four of the recipe ami_small, and `search` a BART of 4 + 4 layers of width 256 on 4 documents of 512 tokens.
"""

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import generation
import torch
import training
from harness import RESULTS, Facts, Job, Setting, flags, process_of, write_result
from peers import model_of

import hat_fairseq
from hat_fairseq.threads import SPINS

WAITS = ("default", "1000", SPINS, "10000", "30000")
PEER = "ctranslate2"
WORKS = ("generation", "prediction", "ask", "update", "search")
BURNERS = 2
UPDATES = 4  # of one repetition
MODELS = {"generation": "demo", "ask": "meeting"}
WORDS = [
    "we",
    "the",
    "remote",
    "control",
    "button",
    "should",
    "have",
    "a",
    "design",
    "market",
    "cost",
    "user",
    "project",
    "idea",
    "plan",
    "team",
    "yes",
    "okay",
    "red",
]


def build(name: str, chosen: Setting) -> Job:
    work = chosen["name"]
    if work == "search":
        sizes = generation.setting(512, 4, new=32, width=256, heads=4, layers=4, vocabulary=8000)
        return generation.build(PEER if name == PEER else "plain", sizes)
    if work == "update":
        job = training.build("hat", training.setting(3072, 768, 6, 0.0) | training.SMALL)
        return Job(lambda: [job.step() for _ in range(UPDATES)][-1], {})
    if work == "prediction":
        return prediction()
    model = hat_fairseq.load(MODELS[work])
    if work == "ask":
        turns = [{"speaker": f"S{number % 4}", "text": text} for number, text in enumerate(texts(300, 12))]
        return Job(lambda: facts(model.ask({"id": "drawn", "turns": turns}, "what should the remote control cost")), {})
    turns = [[{"role": "PM", "text": text} for text in texts(10, 12)] for _ in range(16)]
    documents = [{"id": str(number), "turns": each} for number, each in enumerate(turns)]
    return Job(lambda: facts(model.generate(documents)), {})


def prediction() -> Job:
    model = model_of(
        "hierarchical_transformer",
        **{"width": 384, "heads": 12, "layers": 6, "vocabulary": 30522, "max_positions": 1024},
        **{"layout": "S|S|SD|S|S|SD", "segment_length": 128, "max_segments": 8},
    ).eval()
    tokens = torch.randint(5, 30522, (8, 1024), generator=torch.Generator().manual_seed(1))

    @torch.no_grad()
    def step() -> Facts:
        return facts(model(src_tokens=tokens, features_only=True))

    return Job(step, {})


def texts(number: int, words: int) -> list[str]:
    """Drawn texts with a full stop after each dozen words."""
    chance = random.Random(1)
    sentences = [" ".join(chance.choices(WORDS, k=12)) + "." for _ in range(number * words // 12)]
    return [" ".join(sentences[first::number]) for first in range(number)]


def facts(result: Any) -> Facts:
    """Nothing: what is computed stays in the process."""
    return {}


@contextlib.contextmanager
def stopped_burners() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that compute as soon as they are continued."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BURNERS)]
    try:
        for each in burners:
            each.send_signal(signal.SIGSTOP)
        yield burners
    finally:
        for each in burners:
            each.kill()
            each.wait()


@contextlib.contextmanager
def computing(burners: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    for each in burners:
        each.send_signal(signal.SIGCONT)
    try:
        yield
    finally:
        for each in burners:
            each.send_signal(signal.SIGSTOP)


def measured(work: str, rounds: int) -> Iterator[Facts]:
    """The repetitions of all contenders, in turns, each alone and beside the burners."""
    with contextlib.ExitStack() as stack:
        burners = stack.enter_context(stopped_burners())
        processes = {}
        for name in (*WAITS, *[PEER] * (work == "search")):
            os.environ.pop("GOMP_SPINCOUNT", None)
            if name in WAITS[1:]:
                os.environ["GOMP_SPINCOUNT"] = name
            processes[name] = stack.enter_context(process_of(build, name, {"name": work}))
            processes[name]("step")  # warm-up
        for number in range(rounds):
            for name, ask in processes.items():
                quiet = ask("step")["seconds"]
                with computing(burners):
                    busy = ask("step")["seconds"]
                print(f"{work}, round {number + 1}: {name} {quiet:.2f} s, beside others {busy:.2f} s", flush=True)
                yield {"work": work, "contender": name, "round": number, "quiet": quiet, "busy": busy}


def main() -> None:
    parser = flags(RESULTS / "busy.json")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=WORKS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    runs = [run for work in args.works for run in measured(work, args.rounds)]
    for work in args.works:
        for name in dict.fromkeys(run["contender"] for run in runs if run["work"] == work):
            own = [run for run in runs if (run["work"], run["contender"]) == (work, name)]
            times = statistics.median(run["busy"] / run["quiet"] for run in own)
            quiet = statistics.median(run["quiet"] for run in own)
            print(f"{work}: {name} {quiet:.2f} s, beside others {times:.1f} times")
    write_result(args.out, "ctranslate2", runs=runs)


if __name__ == "__main__":
    main()
