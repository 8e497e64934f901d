"""A `--best-checkpoint-metric` that no validation logs is refused at the start, not after the first validation."""

from __future__ import annotations

from typing import Any

from fairseq.logging import metrics

DEFAULT = "loss"  # every criterion logs it


def check_metric(trainer: Any) -> None:
    """Validates one batch and looks for the metric in what it logs; with the default, `loss`, does nothing.

    Raises:
        ValueError: the metric is not there; with the metrics that are.
    """
    dataset, name = trainer.cfg.dataset, trainer.cfg.checkpoint.best_checkpoint_metric
    if name == DEFAULT or dataset.disable_validation:
        return
    iterator = trainer.get_valid_iterator(dataset.valid_subset.split(",")[0])
    batches = iterator.next_epoch_itr(shuffle=False, set_dataset_epoch=False)
    trainer.begin_valid_epoch(1)
    with metrics.aggregate(new_root=True) as aggregator:
        trainer.valid_step(next(iter(batches)))
    logged = aggregator.get_smoothed_values()
    if name not in logged:
        known = ", ".join(sorted(key for key in logged if not key.startswith("_")))
        raise ValueError(f"--best-checkpoint-metric {name}: a validation of this run logs {known}")
