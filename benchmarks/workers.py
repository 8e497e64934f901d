#!/usr/bin/env python3
"""Are two workers of one thread faster than one of two? `hat generate` on 64 documents of the lengths of abstracts.

    python benchmarks/workers.py

The documents have as many tokens as the abstracts of `generation.py`, in drawn words. The model is HAT-BART in the size
of BART-base (6 + 6 layers) after one update, so its texts mean nothing. Each text has 32 tokens, by a beam of 4. The
seconds are those of the whole command: each worker imports torch and loads the model. Data and model are made once, in
`bench-runs/workers`.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from generation import ABSTRACTS
from harness import Facts, Job, Setting, run

HAT = [sys.executable, "-P", "-m", "hat_fairseq.cli"]
FOLDER = Path("bench-runs/workers")
TRAINING = (
    "--task document_to_text --arch hat_bart_base --share-all-embeddings --criterion label_smoothed_cross_entropy"
)
TRAINING += " --cpu --optimizer adam --lr 1e-5 --batch-size 1 --max-update 1 --disable-validation --seed 1"
WORDS = 30_000
WORKERS = {"one process": 1, "two processes": 2}
NAME = "{documents} documents, {precision}"
SETTINGS: list[Setting] = [{"name": NAME, "documents": number, "precision": "fp32"} for number in (16, 64)]


def command(*words: Any, **variables: str) -> str:
    """Runs `hat` with these words and environment; returns what it prints as errors; SystemExit if it fails."""
    arguments = [*HAT, *map(str, words)]
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, **variables}, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return done.stderr


def prepare() -> None:
    """Makes the documents and the model, unless they exist."""
    if (FOLDER / "model").is_dir():
        return
    chance = random.Random(7)
    words = ["".join(chance.choices("bdfgklmnprst", k=3) + chance.choices("aeiou", k=3)) for _ in range(WORDS)]
    raw = FOLDER / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    lengths = [*map(int, ABSTRACTS.split())]
    for split, times in (("train", 8), ("valid", 1), ("test", 1)):
        rows = []
        for number, length in enumerate(lengths * times):
            sentences = [" ".join(chance.choices(words, k=20)) + "." for _ in range(length // 22)]
            rows.append({"id": str(number), "text": " ".join(sentences), "target": sentences[0]})
        (raw / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command("preprocess", raw, "--out", FOLDER / "data", "--splitter", "punctuation", "--overwrite")
    command("train", FOLDER / "data/bin", "--save-dir", FOLDER / "checkpoints", *TRAINING.split())
    command(
        "export", FOLDER / "checkpoints/checkpoint_last.pt", "--data", FOLDER / "data/bin", "--out", FOLDER / "model"
    )
    shutil.rmtree(FOLDER / "checkpoints")


def build(name: str, setting: Setting) -> Job:
    prepare()
    documents = (FOLDER / "raw/test.jsonl").read_text().splitlines(keepends=True)[: setting["documents"]]
    source, out = FOLDER / f"{setting['documents']}.jsonl", FOLDER / f"out.{WORKERS[name]}.jsonl"
    source.write_text("".join(documents))
    words = ["generate", FOLDER / "model", source, "--out", out, "--overwrite"]
    words += ["--beam", 4, "--min-len", 32, "--max-len-b", 32, "--precision", setting["precision"]]
    words += ["--device", "cpu", "--workers", WORKERS[name]]
    threads = str((os.cpu_count() or 1) // WORKERS[name])

    def step() -> Facts:
        command(*words, OMP_NUM_THREADS=threads)
        return {"documents": len(out.read_text().splitlines())}

    return Job(step, {"peak_bytes": None}, lambda: {"_texts": out.read_text()})


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """Checks that all texts are the same; SystemExit if not."""
    if len({end["_texts"] for end in ends.values()}) > 1:
        raise SystemExit(f"{setting['name']}: the texts differ")
    return [f"{', '.join(ends)}: the same {setting['documents']} texts"]


if __name__ == "__main__":
    run(build, check, contenders=list(WORKERS), settings=SETTINGS, reference="one process", rounds=3)
