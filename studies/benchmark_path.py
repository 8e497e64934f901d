"""Lets a study import what it has in common with the benchmarks, such as `harness.py`; to be imported first."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
