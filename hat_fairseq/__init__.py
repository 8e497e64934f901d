"""hat_fairseq: hierarchical transformers for long documents, as a fairseq plugin.

With `--user-dir hat_fairseq`, fairseq imports this package, which registers its models, tasks and criterions. In Python
call `hat_fairseq.register.register()`. If fairseq is not imported yet, the package registers nothing, so that commands
without fairseq, such as `hat preprocess`, start fast.
"""

import logging
import sys
from pathlib import Path

__version__ = "0.3.0"

# fairseq's import advises to install tensorboardX, which nothing here uses.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

if __name__ != "hat_fairseq":
    sys.exit(f"hat_fairseq: error: --user-dir {Path(__file__).parent}: the folder must be named hat_fairseq")


def __getattr__(name: str) -> type:
    """Imports `hat_fairseq.load` (docs/using.md) at its first use."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .inference.python import Model

    return Model


if sys.modules.get("fairseq"):
    from . import register

    register.register()
