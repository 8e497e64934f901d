"""fairseq-train with `--distributed-world-size 2` and without GPUs: as it starts processes, but by forks."""

from functools import partial

import torch

if __name__ == "__main__":
    from fairseq_cli.train import cli_main

    torch.cuda.device_count = lambda: 2
    torch.multiprocessing.spawn = partial(torch.multiprocessing.start_processes, start_method="fork")
    cli_main()
