"""Memory of oneDNN's kernels when every document has another length."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from commands import REPOSITORY

SCRIPT = """
import resource, torch
from hat_fairseq.kernels.precision import PackedLinear
layer = PackedLinear(torch.nn.Linear(256, 1024))
layer(torch.zeros(600, 256))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for length in range(100, 600):
    layer(torch.zeros(length, 256))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)  # KB
"""


@pytest.mark.fault("Generation and prediction", "documents of many lengths", "few of oneDNN's kernels are kept")
def test_few_kernels_are_kept() -> None:
    grown = []
    for limit in ({}, {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1024", "LRU_CACHE_CAPACITY": "1024"}):
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", **limit}
        words = [sys.executable, "-c", SCRIPT]
        grown.append(int(subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout))
    if grown[1] < 20_000:
        pytest.skip("oneDNN is not used on this processor")
    assert grown[0] < grown[1] / 2
