#!/usr/bin/env python3
"""Does memory grow with the number of documents? Ten thousand short documents and one of 50,000 tokens.

    python benchmarks/load.py

It preprocesses, trains a tiny HAT and a tiny classifier, generates and predicts, by commands. While a command runs,
its resident memory with that of its children is read ten times a second. The growth is the slope of a line through the
second half of these samples: over 5,000 documents, or half of the updates. Then order and number of the outputs are
compared with the documents, and 20 documents are processed again, each alone in its batch.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, flags, write_result

HAT = [sys.executable, "-P", "-m", "hat_fairseq.cli"]
ALONE = 20  # documents that are done again
GENERATION = {"beam": 1, "max_len_b": 6, "min_len": 2}
COMMON = "--cpu --optimizer adam --lr 1e-3 --batch-size 8 --num-workers 0 --no-epoch-checkpoints --disable-validation"
MODELS = {
    "text": "--task document_to_text --arch hat_transformer_tiny --max-source-positions {longest} "
    "--criterion chunked_label_smoothed_cross_entropy",
    "classification": "--task document_classification --arch hierarchical_transformer_tiny --segment-by marker "
    "--max-segments {longest} --criterion document_labels",
}


def main() -> None:
    parser = flags(RESULTS / "load.json")
    parser.add_argument("--documents", type=int, default=10_000, help="short ones")
    parser.add_argument("--tokens", type=int, default=50_000, help="of the long one")
    parser.add_argument("--updates", type=int, default=500)
    args = parser.parse_args()
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in MODELS:
            rows |= one_kind(kind, Path(folder, kind), args)
    settings = {name: getattr(args, name) for name in ("documents", "tokens", "updates")}
    runs = [{"run": name, **row} for name, row in rows.items()]
    write_result(args.out, settings=settings, runs=runs)


def one_kind(kind: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Figures of each command; SystemExit if an output is missing, in another order or another than alone."""
    ids = write_documents(kind, folder / "raw", args.documents, args.tokens)
    data, model, longest = folder / "data", folder / "model/checkpoint_last.pt", args.tokens + 10_000
    words = [*HAT, "preprocess", folder / "raw", "--out", data, "--bpe", "learned", "--num-codes", 200]
    figures = {f"preprocess {kind}": watched([*words, "--kind", kind, "--splitter", "punctuation"], args.documents)}
    training = f"{MODELS[kind].format(longest=longest)} {COMMON} --max-update {args.updates} --seed 1".split()
    figures[f"train {kind}"] = watched(
        [*HAT, "train", data / "bin", "--save-dir", model.parent, *training], args.updates
    )
    sample = random.Random(1).sample(range(len(ids) - 1), ALONE - 1) + [len(ids) - 1]  # the long one is the last
    lines = (folder / "raw/test.jsonl").read_text().splitlines(keepends=True)
    rows = ({key: value for key, value in json.loads(lines[n]).items() if key in ("id", "text")} for n in sample)
    (folder / "alone.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if kind == "text":
        options = [f"--{name.replace('_', '-')}={value}" for name, value in GENERATION.items()]
        words = [*HAT, "generate", model, data, "--out", folder / "out/test.jsonl", "--device", "cpu"]
        words += ["--batch-size", 32, "--max-tokens", longest, *options]
        figures["generate"] = watched(words, args.documents)
        words, key, path = ["generate", model, folder / "alone.jsonl", *options], "text", folder / "out/test.jsonl"
    else:
        words = [*HAT, "predict", model, data, "--batch-size", 32, "--out", folder / "out.jsonl", "--device", "cpu"]
        figures["predict"] = watched(words, args.documents)
        words, key, path = ["predict", model, folder / "alone.jsonl"], "label", folder / "out.jsonl"
    outputs = [json.loads(line) for line in path.read_text().splitlines()]
    if [output["id"] for output in outputs] != ids:
        raise SystemExit(f"{path}: {len(outputs)} outputs of {len(ids)} documents, or in another order")
    words = [*HAT, *words, "--data", data / "bin", "--device", "cpu"]
    watched([*words, "--out", folder / "alone-out.jsonl"], ALONE)
    alone = [json.loads(line) for line in (folder / "alone-out.jsonl").read_text().splitlines()]
    if [row[key] for row in alone] != [outputs[number][key] for number in sample]:
        raise SystemExit(f"{kind}: a document has another output alone")
    return figures


def write_documents(kind: str, folder: Path, documents: int, tokens: int) -> list[str]:
    """Drawn sentences as raw data; the ids of the test part, whose last document is the long one."""
    chance = random.Random(7)
    vocabulary = ["".join(chance.choices("abcdefghij", k=4)) for _ in range(150)]

    def record(name: str, sentences: int) -> dict[str, str]:
        text = " ".join(" ".join(chance.choices(vocabulary, k=9)) + "." for _ in range(sentences))
        gold = {"target": text[:20]} if kind == "text" else {"label": chance.choice("abc")}
        return {"id": name, "text": text, **gold}

    folder.mkdir(parents=True)
    for split, number in (("train", 400), ("valid", 20), ("test", documents)):
        records = [record(f"{split}-{n}", chance.randrange(2, 7)) for n in range(number)]
        records += [record("long", tokens // 18)] * (split == "test")  # some 18 tokens in a sentence
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return [record["id"] for record in records]


def watched(words: list[object], amount: int) -> dict[str, float]:
    """Runs a command; seconds, CPU seconds, peak and growth of its resident memory in MB over half of the `amount`."""
    begin, before, samples = time.monotonic(), cpu_seconds(), []
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            samples.append((time.monotonic() - begin, resident(process.pid)))
            time.sleep(0.1)
        log.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}\n{log.read().decode(errors='replace')[-3000:]}")
    seconds, memory = np.array(samples[:-1] or samples).T
    late = (seconds >= seconds[-1] * 0.45) & (seconds <= seconds[-1] * 0.95)  # the long document may come last
    slope = np.polyfit(seconds[late], memory[late], 1)[0] if late.sum() > 2 else 0.0
    figures = {"seconds": round(time.monotonic() - begin, 1), "peak_mb": round(float(memory.max()), 1)}
    figures |= {
        "cpu_seconds": round(cpu_seconds() - before, 2),
        "amount": amount,
        "growth_mb": round(float(slope * seconds[-1] / 2), 1),
    }
    print(words[len(HAT)], figures, flush=True)
    return figures


def cpu_seconds() -> float:
    """User and system seconds of all processes that have ended below this one."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def resident(pid: int) -> float:
    """Resident memory of a process and its children, in MB; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20 + sum(resident(int(child)) for child in children)


if __name__ == "__main__":
    main()
