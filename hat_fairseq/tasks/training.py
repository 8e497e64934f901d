"""`PluginTask`: the base of all our tasks, with `--dropout-schedule`; it drops no batch.

Rohde et al. 2021, section 7: on RACE the encoder-only model converged only without dropout in the first epoch. The
schedule has a factor for each epoch; the last one also holds for later epochs. The factors multiply the rates of the
flags, so a resumed run has the same rates.
"""

import logging
import math
from typing import Any

import numpy as np
from fairseq.modules import FairseqDropout
from torch import nn

from ..data.options import settings_of_tokens

logger = logging.getLogger(__name__)

HELP = "factors on all dropout rates in epochs 1, 2, ..., the last one from then on; 0,1: none in the first epoch"
PIPELINE = "pipeline"  # in the task's state
DROPOUT = (nn.Dropout, FairseqDropout)


def parse_factors(text: str) -> list[float]:
    """Parses `0,1` as [0.0, 1.0].

    Raises:
        ValueError: no list of numbers of at least 0.
    """
    try:
        factors = [float(part) for part in text.split(",")]
    except ValueError:
        factors = []
    if not factors or not all(math.isfinite(factor) and factor >= 0 for factor in factors):
        raise ValueError(
            f"--dropout-schedule {text!r}: give factors of at least 0 with commas between them, one for each epoch, "
            "for example 0,1"
        )
    return factors


class PluginTask:
    """Mixin of tasks: applies `cfg.dropout_schedule`, drops no batch, records the text pipeline in checkpoints."""

    cfg: Any

    def __init__(self, cfg: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(cfg, *args, **kwargs)  # type: ignore[call-arg]
        schedule = getattr(cfg, "dropout_schedule", None)  # checkpoints of earlier versions do not have it
        self._factors = [] if schedule is None else parse_factors(schedule)
        self._rates: dict[nn.Module, float] = {}  # as the model was built

    def state_dict(self) -> dict[str, Any]:
        """fairseq's hook: what a checkpoint records of the task, here the settings of the text pipeline."""
        pipeline = getattr(self, "pipeline", None)
        known = {} if pipeline is None else {PIPELINE: settings_of_tokens(pipeline.settings)}
        return {**super().state_dict(), **known}  # type: ignore[misc]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """fairseq's hook when a model is loaded for generation, validation or prediction.

        Raises:
            ValueError: a setting that decides the tokens differs between the data and the training data.
        """
        pipeline, others = getattr(self, "pipeline", None), dict(state_dict)
        for name, trained in others.pop(PIPELINE, {}).items():
            if pipeline is not None and (own := getattr(pipeline.settings, name)) != trained:
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"trained on data preprocessed with {flag} {trained}, and {self.cfg.data} was with {flag} {own}: "
                    "preprocess with --vocabulary BIN, the bin directory of the training data"
                )
        super().load_state_dict(others)  # type: ignore[misc]

    def begin_epoch(self, epoch: int, model: nn.Module) -> None:
        """fairseq's hook, also called when a run is resumed in the middle of an epoch.

        Raises:
            ValueError: a rate above 1.
        """
        super().begin_epoch(epoch, model)  # type: ignore[misc]
        if not self._factors:
            return
        if not self._rates:
            self._rates = {module: module.p for module in model.modules() if isinstance(module, DROPOUT)}
        factor = self._factors[min(epoch, len(self._factors)) - 1]
        for module, rate in self._rates.items():
            if rate * factor > 1:
                raise ValueError(f"--dropout-schedule: {factor:g} times a dropout rate of {rate:g} is more than 1")
            module.p = rate * factor  # type: ignore[assignment]
        logger.info("epoch %d: dropout rates times %g", epoch, factor)

    def filter_indices_by_size(self, indices: Any, dataset: Any, max_positions: Any, ignore: bool = False) -> Any:
        """fairseq's hook; ValueError for samples that are longer than the model allows, unless they may be ignored."""
        remaining, ignored = (indices, []) if ignore else dataset.filter_indices_by_size(indices, max_positions)
        if len(ignored):
            raise ValueError(
                f"{len(ignored)} of {len(indices)} samples are longer than the model takes, {max_positions}; the "
                f"longest has {max(np.max(dataset.size(index)) for index in ignored)} tokens: build a larger "
                "model (--max-source-positions, --max-target-positions), or preprocess with --max-source-tokens and "
                "--max-target-tokens"
            )
        return super().filter_indices_by_size(indices, dataset, max_positions, ignore) if ignore else remaining  # type: ignore[misc]

    def get_batch_iterator(self, *args: Any, **kwargs: Any) -> Any:
        # With a multiple (fairseq's default is 8) fairseq drops the last batch whenever it does not fill up.
        settings = {**kwargs, "required_batch_size_multiple": 1}
        return super().get_batch_iterator(*args, **settings)  # type: ignore[misc]
