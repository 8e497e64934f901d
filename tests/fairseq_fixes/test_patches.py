"""Corrections that need at most one training run; the others are tested in tests/tasks/test_training.py."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import run_command, training_words
from fairseq import options
from fairseq.data import ListDataset, TokenBlockDataset

from hat_fairseq.fairseq_fixes import REPLACED
from hat_fairseq.register import register

register()  # applies the corrections


def test_no_function_is_replaced_twice() -> None:
    """Else the order of two corrections would depend on the order in which they are installed."""
    assert len({(owner, name) for owner, name, _ in REPLACED}) == len(REPLACED) > 20


def test_rows_as_samples_work_with_numpy_2() -> None:
    """--sample-break-mode eos asks for np.compat.long, which numpy 2 does not have; numpy itself stays as it is."""
    rows = [torch.tensor([5] * length + [2]) for length in (1, 2, 5)]
    sizes = [len(row) for row in rows]
    dataset = TokenBlockDataset(ListDataset(rows, sizes), sizes, 512, pad=1, eos=2, break_mode="eos")
    assert [len(dataset[index]) for index in range(3)] == sizes
    assert hasattr(np, "compat") == (np.lib.NumpyVersion(np.__version__) < "2.0.0")


@pytest.mark.parametrize(
    ("flags", "criterion"),
    [
        ("--task document_to_text --arch hat_transformer_tiny", "chunked_label_smoothed_cross_entropy"),
        ("--task document_to_text --arch hat_transformer_tiny --criterion=cross_entropy", "cross_entropy"),
        ("--task masked_document_lm --arch hat_roberta_tiny", "masked_lm"),
        ("--task segment_classification --arch hat_roberta_tiny", "document_labels"),
        ("--task question_answering --arch hat_roberta_tiny", "answer_spans"),
        ("--task document_question_answering --arch hat_roberta_tiny", "document_answers"),
        ("--task translation --arch transformer", "cross_entropy"),
    ],
)
def test_training_has_the_criterion_of_its_task(flags: str, criterion: str) -> None:
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", *flags.split()])
    assert args.criterion == criterion
    assert not criterion.startswith("chunked") or args.label_smoothing == 0  # the flags of the criterion are there


def test_generation_has_a_criterion_of_fairseq() -> None:
    args = options.parse_args_and_arch(options.get_generation_parser(), ["data", "--task", "document_to_text"])
    assert args.criterion == "cross_entropy"


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


@pytest.mark.slow
@pytest.mark.fault(
    "Training",
    "an error while batches are prepared in the background",
    "the message and status 1; the process does not abort",
)
@pytest.mark.parametrize(("buffer", "workers"), [(100_000, 0), (2, 1)])
def test_a_thread_that_prepares_batches_does_not_abort_the_process(buffer: int, workers: int) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(buffer), str(workers)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 3, result.stderr


@pytest.mark.slow
def test_the_log_is_short(ami: Path, tmp_path: Path) -> None:
    flags = ["--log-format", "simple", "--max-update", 5, "--no-save", "--disable-validation", "--weight-decay", 0.125]
    result = run_command("fairseq-train", *training_words(ami / "bin", tmp_path, *flags))
    lines = result.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if "| train_inner |" in line)
    assert first < 24
    assert max(map(len, lines)) < 1000
    assert result.stderr == ""
    assert any("settings: " in line and "--weight-decay 0.125" in line for line in lines)
