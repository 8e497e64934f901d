"""Running real commands of this environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
USER_DIR = REPOSITORY / "hat_fairseq"
TWO_PROCESSES = ("torchrun", "--standalone", "--nproc-per-node", 2, "-m", "fairseq_cli.train")
WITHOUT_LOCKS = (sys.executable, str(REPOSITORY / "tests/support/without_locks.py"))  # before a command
# Before a command that gets signals: nohup and a shell's background have their processes ignore some of them.
HEEDING = ("env", "--default-signal=INT,HUP")
TINY_TRAINING = (
    "--task document_to_text --arch hat_transformer_tiny --role-stream role --max-source-positions 128 "
    "--criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 1e-3 --cpu "
    "--batch-size 2 --log-format json --log-interval 1 --num-workers 1 --no-epoch-checkpoints --seed 3"
)


def training_words(data: Path, save_dir: Path, *flags: object) -> list[str]:
    """What follows fairseq-train for a tiny model on the AMI sample; flags given later win."""
    return [*map(str, [data, "--user-dir", USER_DIR, *TINY_TRAINING.split(), "--save-dir", save_dir, *flags])]


def environment() -> dict[str, str]:
    """The variables of a command of this environment, which takes one core."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}


def run_command(*command: object, check: bool = True, **options: object) -> subprocess.CompletedProcess:
    """Runs a command of this environment (`fairseq-train`, `hat`, ...); its whole output is shown when it fails."""
    program = Path(sys.executable).parent / str(command[0])
    words = [str(word) for word in (program if program.exists() else command[0], *command[1:])]
    result = subprocess.run(words, capture_output=True, text=True, env=environment(), timeout=300, **options)  # type: ignore[call-overload]
    if check and result.returncode:
        raise AssertionError(f"{' '.join(words)}\nexit {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result
