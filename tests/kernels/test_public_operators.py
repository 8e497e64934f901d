"""Every kernel computes the same on torch's public operators alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from commands import run_command

from hat_fairseq.kernels import torch_private


@pytest.mark.slow
def test_the_kernel_tests_pass_on_public_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("HAT_PUBLIC_OPERATORS") == "1":  # the inner run
        assert not (torch_private.ONEDNN or torch_private.INT8 or torch_private.BF16)
        assert not torch_private.FLASH
        return
    monkeypatch.setenv("HAT_PUBLIC_OPERATORS", "1")
    run_command(sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", Path(__file__).parent)
