#!/usr/bin/env python3
"""Preprocess a large corpus in shards, which are datatrove's tasks; run again, it makes the shards that are missing.

    python examples/datatrove_preprocess.py OUT SHARDS AT_ONCE READER --vocabulary BIN [options of hat preprocess]

On a cluster import SlurmPipelineExecutor (which also needs `time` and `partition`) or RayPipelineExecutor instead.
"""

import subprocess
import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor as Executor

HAT = [sys.executable, "-m", "hat_fairseq.cli"]


def main(out: str, number: str, at_once: str, *words: str) -> None:
    shards = [Path(f"{out}.shards", str(shard + 1)).absolute() for shard in range(int(number))]

    def make_shard(data: object, rank: int, world_size: int) -> None:
        if not shards[rank].exists():  # it appears when it is complete
            share = ["--shard", str(rank + 1), "--of", str(world_size), "--out", str(shards[rank])]
            subprocess.run([*HAT, "preprocess", *words, *share], check=True)

    def merge(data: object, rank: int, world_size: int) -> None:
        subprocess.run([*HAT, "merge", *shards, "--out", out], check=True)

    logs = f"{out}.shards/logs"
    tasks = Executor([make_shard], tasks=len(shards), workers=int(at_once), logging_dir=f"{logs}/shards")
    Executor([merge], tasks=1, workers=1, depends=tasks, logging_dir=f"{logs}/merge").run()


if __name__ == "__main__":
    main(*sys.argv[1:])
