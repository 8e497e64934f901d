"""The device and the peak memory of a measurement."""

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
    """Peak bytes of this process in memory, or on the GPU."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    # Not getrusage, whose peak includes that of the parent process.
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) * 1024
