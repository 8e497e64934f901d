"""Corrections of fairseq, installed once per process by `apply()`. They act on every task of the process.

checkpoints.py             what a file of a checkpoint may be: plain data, whole, copied in one step; no archives
settings_of_checkpoint.py  what its settings may build; fairseq runs some of them as Python
restoring.py               a training that is restored is the one that was saved, and its best metric exists
datasets.py                damaged binary data is named
training.py                the batches of an update; NaN is one message
processes.py               another number of processes than the run was meant for; bf16 on GPUs without it; torchrun on
                           CPUs
patches.py                 small corrections of options, generation and numpy

`docs/troubleshooting.md` lists the symptoms. Three more are settings of our tasks: batches that differ after a resume
(`rebuild_batches`), masks that repeat in every epoch (`reuse_dataloader`) and a last batch that is dropped
(`get_batch_iterator`). One cannot happen in our attention: a beam size that sticks to the model.
"""

from . import checkpoints, datasets, patches, processes, restoring, settings_of_checkpoint, training  # noqa: F401
from .replace import apply_all


def apply() -> None:
    """Installs all corrections; `register` calls it once."""
    checkpoints.show_own_errors_in_one_line()
    checkpoints.allow_checkpoint_types()
    patches.give_numpy_compat()
    apply_all()
