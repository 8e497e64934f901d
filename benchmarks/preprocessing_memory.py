#!/usr/bin/env python3
"""How much memory does `hat preprocess` need for a corpus? Resident bytes of all its processes together.

    python benchmarks/preprocessing_memory.py 1000 --workers 2      # megabytes of JSON lines

The vocabulary is learned from a sample beforehand, as for shards.

The documents are turns of the AMI meetings in random order; every 50th word is one of a million other words, rare ones
included, because a large corpus has many rare words.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hat_fairseq.data.records_json import read_records

AMI = Path(__file__).resolve().parents[1] / "preprocess/ami_data/ami.train.jsonl.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=int)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        raw = Path(folder, "raw")
        raw.mkdir()
        documents = write_corpus(raw / "train.jsonl", args.megabytes)
        words = [sys.executable, "-m", "hat_fairseq.cli", "preprocess", str(raw), "--splitter", "punctuation"]
        sample = str(Path(folder, "sample"))
        subprocess.run([*words, "--limit", "1000", "--out", sample], stdout=subprocess.DEVNULL, check=True)
        begin = time.monotonic()
        words += ["--vocabulary", f"{sample}/bin", "--workers", str(args.workers)]
        peak = peak_of([*words, "--out", str(Path(folder, "out"))])
    figures = {"megabytes": args.megabytes, "documents": documents, "workers": args.workers}
    print(json.dumps(figures | {"peak_megabytes": peak // 10**6, "seconds": round(time.monotonic() - begin)}))


def write_corpus(path: Path, megabytes: int) -> int:
    """Write a drawn corpus; returns the number of its documents."""
    draw, number = random.Random(1), 0
    turns = [turn for record in read_records(AMI) for turn in record.sentences or ()]
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 10**6:
            words = " ".join(draw.choices(turns, k=100)).split()
            words[::50] = [f"w{int(10 ** (6 * draw.random()))}" for _ in words[::50]]
            file.write(json.dumps({"id": f"d{number}", "text": " ".join(words), "target": turns[number % 1000]}) + "\n")
            number += 1
    return number


def peak_of(command: list[str]) -> int:
    """The highest sum of the resident bytes of a command's processes, looked at five times a second.

    Raises:
        RuntimeError: the command failed.
    """
    process, peak = subprocess.Popen(command, stdout=subprocess.DEVNULL), 0
    while process.poll() is None:
        peak = max(peak, sum(map(resident, [process.pid, *children(process.pid)])))
        time.sleep(0.2)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}")
    return peak


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def resident(pid: int) -> int:
    """Bytes; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main()
