"""Corrections of fairseq's faults. `apply()` installs them once, and they hold for every task of the process.

checkpoints.py             loads tensors and plain data only, compares checksums, replaces files atomically
packages.py                loads a folder of `hat package` as a checkpoint
settings_of_checkpoint.py  refuses settings in a checkpoint that would run code
save_dir.py                locks --save-dir for one training; chooses the checkpoint to restore
restoring.py               refuses to resume with another model, and an unknown --best-checkpoint-metric
position.py                resumes at the right sample with other batches, data or processes
training_log.py            a short log of a training, with the time that is left
signals.py                 on SIGTERM and its like, finishes the update and saves
datasets.py                names damaged binary data
training.py                the batches of an update; reports NaN and a lack of memory in one message
processes.py               refuses a number of processes other than --gpus; fp16 on GPUs without bf16; torchrun on CPUs
background.py              ends the threads that prepare batches before Python exits
patches.py                 small corrections of options, generation and numpy

`docs/troubleshooting.md` lists the symptoms. Our tasks correct three more: `rebuild_batches` (other batches after a
resume), `reuse_dataloader` (the same masks in every epoch) and `get_batch_iterator` (the last batch is dropped).
"""

from . import (  # noqa: F401
    background,
    checkpoints,
    datasets,
    packages,
    patches,
    position,
    processes,
    restoring,
    settings_of_checkpoint,
    training,
    training_log,
)
from .replace import apply_all


def apply() -> None:
    """Installs all corrections; `register` calls it once."""
    checkpoints.show_own_errors_in_one_line()
    checkpoints.allow_checkpoint_types()
    patches.give_numpy_compat()
    background.end_threads_at_exit()
    training_log.make_quiet()
    apply_all()
