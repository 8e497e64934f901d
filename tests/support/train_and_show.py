"""fairseq-train that prints at its end whether it still is in a process group."""

import atexit
import runpy

import torch

if __name__ == "__main__":
    atexit.register(lambda: print(f"process group at the end: {torch.distributed.is_initialized()}"))
    runpy.run_module("fairseq_cli.train", run_name="__main__", alter_sys=True)
