"""hat_fairseq: hierarchical, long-document transformers as a fairseq plugin.

`--user-dir hat_fairseq` registers the models, tasks, criterions and output decoders with fairseq, because fairseq then
imports this package. In Python `from hat_fairseq.register import register; register()` does. Imported before fairseq,
the package registers nothing: commands that need no fairseq, such as `hat preprocess`, do not wait for its import.
"""

import logging
import sys
from pathlib import Path

__version__ = "0.3.0"

# On import fairseq advises to install tensorboardX, which nothing here uses.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

if __name__ != "hat_fairseq":
    sys.exit(f"hat_fairseq: error: --user-dir {Path(__file__).parent}: the folder must be named hat_fairseq")


def __getattr__(name: str) -> type:
    """`hat_fairseq.load` (docs/using.md), which is imported when it is used first."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .inference.python import Model

    return Model


if sys.modules.get("fairseq"):
    from . import register

    register.register()
