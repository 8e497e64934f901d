"""What a result says about the machine that it comes from."""

from __future__ import annotations

import os
import re
from pathlib import Path

import torch


def device() -> str:
    """Name of the GPU, or of the CPU with its number of cores."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.is_file() else None
    return f"CPU: {found.group(1).strip() if found else 'unknown'}, {os.cpu_count()} cores"


def peak_memory() -> int:
    """Most bytes that this process has had in memory, or on the GPU."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    # Not getrusage: its figure begins with that of the process which started this one.
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) * 1024
