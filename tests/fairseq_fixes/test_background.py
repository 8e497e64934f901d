"""A command that ends while fairseq prepares batches keeps its exit status."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, torch
from fairseq.data.iterators import BufferedIterator
from torch.utils.data import DataLoader
import hat_fairseq

class Data(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return torch.arange(5)

def collate(rows):
    return [torch.randn(50, 50) @ torch.randn(50, 50) for _ in range(20)]

if __name__ == "__main__":
    size, workers = map(int, sys.argv[1:])
    loader = DataLoader(Data(), batch_sampler=[[number] for number in range(100_000)], collate_fn=collate,
                        num_workers=workers)
    next(BufferedIterator(size, loader))
    sys.exit(3)
"""


@pytest.mark.fault(
    "Training",
    "an error while batches are prepared in the background",
    "the message and status 1; the process does not abort",
)
@pytest.mark.parametrize(("buffer", "workers"), [pytest.param(100_000, 0, marks=pytest.mark.slow), (2, 1)])
def test_a_thread_that_prepares_batches_does_not_abort_the_process(buffer: int, workers: int) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(buffer), str(workers)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 3, result.stderr
