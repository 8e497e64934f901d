"""Take the encoder you have and make it read whole documents, with the attention of four papers, from fairseq's
commands or transformers.

With `--user-dir hat_fairseq`, fairseq imports this package, which registers its models, tasks and criterions. In Python
call `hat_fairseq.register.register()`. If fairseq is not imported yet, the package registers nothing, so that commands
without fairseq, such as `hat preprocess`, start fast.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .inference.python import Model

__version__ = "0.7.0"

# fairseq's import advises to install tensorboardX, which nothing here uses, and torch 2.14 warns of its decorators.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated")

if __name__ != "hat_fairseq":
    sys.exit(f"hat_fairseq: error: --user-dir {Path(__file__).parent}: the folder must be named hat_fairseq")


def load(path: str | Path, data: str | Path | None = None, device: str | None = None, precision: str = "fp32") -> Model:
    """Loads a trained model, for documents in Python (docs/using.md).

    Args:
        path: a folder of `hat export`, its name on the Hugging Face Hub (`user/name`), or a checkpoint; several with
            colons between them are an ensemble. "demo" is a small model of AMI meetings, of the recipe `ami_small`.
        data: the bin directory of the training, for a checkpoint; a folder has its own.
        device: such as "cuda" or "cpu"; default: a GPU if there is one.
        precision: fp32, fp16 (GPU), bf16 (GPU, CPUs that multiply it), int8 (CPUs with VNNI), or auto: bf16 where the
            device multiplies it fast, else fp32.

    Returns:
        A `Model` with the methods `generate`, `predict` or `ask`, `embed` and `look`. They take documents, each a
        string or a dictionary as in docs/data.md.

    Raises:
        ValueError: a file is missing or has changed, the model does not fit the data, or the device does not support
            the precision.
    """
    from .inference.python import Model

    return Model(path, data, device, precision)


if sys.modules.get("fairseq"):
    from . import register

    register.register()
