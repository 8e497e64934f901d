"""Corrections of fairseq, installed once per process by `apply()`. They act on every task of the process.

checkpoints.py             what a file of a checkpoint may be: plain data, whole, copied in one step; no archives
packages.py                a folder of `hat package` is a checkpoint
settings_of_checkpoint.py  what its settings may build; fairseq runs some of them as Python
save_dir.py                the folder of the checkpoints: one training at a time, which checkpoint is restored
restoring.py               a training that is restored is the one that was saved, and its best metric exists
position.py                a training that goes on with other batches, data or processes goes on where it was
history.py                 the figures of a training, in a file beside its checkpoints
trackers.py                a tracker that is not installed is one line
signals.py                 a training that is interrupted finishes its update and saves
datasets.py                damaged binary data is named
training.py                the batches of an update; NaN and a lack of memory are one message
processes.py               another number of processes than the run was meant for; bf16 on GPUs without it; torchrun on
                           CPUs
background.py              threads that prepare batches end before Python does
patches.py                 small corrections of options, generation and numpy

`docs/troubleshooting.md` lists the symptoms. Three more are settings of our tasks: batches that differ after a resume
(`rebuild_batches`), masks that repeat in every epoch (`reuse_dataloader`) and a last batch that is dropped
(`get_batch_iterator`). One cannot happen in our attention: a beam size that sticks to the model.
"""

from . import (  # noqa: F401
    background,
    checkpoints,
    datasets,
    history,
    packages,
    patches,
    position,
    processes,
    restoring,
    settings_of_checkpoint,
    trackers,
    training,
)
from .replace import apply_all


def apply() -> None:
    """Installs all corrections; `register` calls it once."""
    checkpoints.show_own_errors_in_one_line()
    checkpoints.allow_checkpoint_types()
    patches.give_numpy_compat()
    background.end_threads_at_exit()
    apply_all()
