"""Corrections of fairseq, installed once per process by `apply()`. They act on every task of the process.

checkpoints.py
  allow_checkpoint_types   `torch.load` refuses fairseq's own checkpoints (Namespace, omegaconf, numpy in meters)
  load_checkpoint_to_cpu   a refused or unreadable checkpoint ends in pages of advice
  load_checkpoint          a mismatch ends in "please ensure that the architectures match"; a `--restore-file` that does
                           not exist trains from scratch
  atomic_copy              `checkpoint_last.pt` is copied in place: a kill leaves half a file
  upgrade_state_dict       settings of a checkpoint are run as Python (settings_of_checkpoint.py)
  load_archive_file        `from_pretrained` unpacks an archive outside of its folder and deletes it
checkpoint_file.py         a damaged checkpoint loads
same_function.py           a checkpoint goes on with another number of attention heads
validation_metric.py       an unknown `--best-checkpoint-metric` is a KeyError after the first validation
divergence.py              NaN in training ends in an error of the `NanDetector`
processes.py
  call_main                another number of processes than the run was meant for; bf16 on GPUs without it; torchrun on
                           CPUs
patches.py
  parse_args_and_arch      `--bf16` means TPU
  train_step               several processes with `--update-freq`: a process that runs out of batches within an update
                           does not count those that it had. Every task that is trained with the plugin gets the
                           corrected gradients, fairseq's own tasks too
  no_repeat_ngram          `--no-repeat-ngram-size` has no effect without the CUDA extension: it compares with padding
  get_buckets              `--num-batch-buckets` calls `np.percentile` with an argument that numpy 2 does not have
  give_numpy_compat        two modules of fairseq use `np.compat`, which numpy 2 does not have; only they get it

Three more are settings of our tasks: batches that differ after a resume (`rebuild_batches`), masks that repeat in every
epoch (`reuse_dataloader`) and a last batch that is dropped (`get_batch_iterator`). One cannot happen in our attention:
a beam size that sticks to the model.
"""

from __future__ import annotations

from . import checkpoints, divergence, patches, processes


def apply() -> None:
    """Installs all corrections; a second call does nothing."""
    for part in (checkpoints, divergence, processes, patches):
        part.apply()
