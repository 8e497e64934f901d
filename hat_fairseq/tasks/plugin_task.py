"""`PluginTask`, the base of all tasks of this package: it checks the data and has a dropout schedule.

Rohde et al. 2021, section 7: on RACE the encoder-only model converged only without dropout in the first epoch. The
schedule has a factor for each epoch; the last one also holds for later epochs. The factors multiply the rates of the
flags, so a resumed run has the same rates.
"""

import logging
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np
from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from fairseq.modules import FairseqDropout
from torch import nn

from ..data.dictionary import check_known
from ..data.options import settings_of_tokens
from ..data.pipeline import FILE_NAME, TextPipeline

logger = logging.getLogger(__name__)

HELP = "multiply the dropout rates of epochs 1, 2, ... by these factors, the last from then on; 0,1: none in epoch 1"
PIPELINE = "pipeline"  # in the task's state
DROPOUT = (nn.Dropout, FairseqDropout)


@dataclass
class PluginTaskConfig(FairseqDataclass):
    dropout_schedule: Optional[str] = field(default=None, metadata={"help": HELP})
    # Batches are drawn with (seed, epoch): built anew in every epoch they are the same after a resume.
    rebuild_batches: bool = field(default=True, metadata={"help": "build new batches for each epoch"})
    # Workers that live on keep the dataset of the first epoch, and with it its random choices.
    reuse_dataloader: bool = field(default=False, metadata={"help": "keep the data workers from epoch to epoch"})


def parse_factors(text: str) -> list[float]:
    """Parses `0,1` as [0.0, 1.0]; ValueError for other than numbers of at least 0."""
    try:
        factors = [float(part) for part in text.split(",")]
    except ValueError:
        factors = [-1.0]
    if not all(math.isfinite(factor) and factor >= 0 for factor in factors):
        raise ValueError(
            f"--dropout-schedule {text!r}: give factors of at least 0 with commas between them, one for each epoch, "
            "for example 0,1"
        )
    return factors


class PluginTask:
    """Mixin of tasks: applies `cfg.dropout_schedule`, refuses long samples, records the text pipeline."""

    cfg: Any
    pipeline: Any = None

    def __init__(self, cfg: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(cfg, *args, **kwargs)  # type: ignore[call-arg]
        schedule = getattr(cfg, "dropout_schedule", None)  # checkpoints of earlier versions do not have it
        self._factors = [] if schedule is None else parse_factors(schedule)
        self._rates: dict[nn.Module, float] = {}  # as the model was built

    def state_dict(self) -> dict[str, Any]:
        """Returns, as fairseq's hook, what a checkpoint records of the task, here the settings of the text pipeline."""
        own = {} if self.pipeline is None else {PIPELINE: settings_of_tokens(self.pipeline.settings)}
        return {**super().state_dict(), **own}  # type: ignore[misc]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Follows, as fairseq's hook, the loading of a model for generation, validation or prediction.

        Raises:
            ValueError: a setting that decides the tokens differs between the data and the training data.
        """
        others = dict(state_dict)
        for name, trained in others.pop(PIPELINE, {}).items():
            if self.pipeline is not None and (own := getattr(self.pipeline.settings, name)) != trained:
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"trained on data preprocessed with {flag} {trained}, and {self.cfg.data} was with {flag} {own}: "
                    "preprocess with --vocabulary BIN, the bin directory of the training data"
                )
        super().load_state_dict(others)  # type: ignore[misc]

    def begin_epoch(self, epoch: int, model: nn.Module) -> None:
        """Begins an epoch, as fairseq's hook, also called when a run is resumed in the middle of an epoch."""
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
        """Filters samples, as fairseq's hook.

        Raises ValueError for samples that are too long, which fairseq leaves out of a training.
        """
        indices, long = dataset.filter_indices_by_size(indices, max_positions)
        if len(long):
            way_out = "build a larger model (--max-source-positions, --max-target-positions), or preprocess with "
            way_out += "--max-source-tokens and --max-target-tokens"
            longest = max(np.max(dataset.size(index)) for index in long)
            limit = f"{max_positions}, or than --max-tokens"
            raise too_long("samples", len(long), len(indices) + len(long), limit, longest, way_out)
        return indices


def too_long(samples: str, long: int, of: int, limit: str, longest: int, way_out: str) -> ValueError:
    """Returns the error of `long` samples `of` so many; `limit`: what the model takes, empty if `way_out` says so."""
    takes = f", {limit}" if limit else ""
    return ValueError(
        f"{long} of {of} {samples} are longer than the model takes{takes}; the longest has {longest} tokens: {way_out}"
    )


def load_pipeline(data: str, task: str) -> TextPipeline | None:
    """Returns the text pipeline of the first `bin` directory of fairseq's list; None for data of fairseq-preprocess.

    Raises:
        FileNotFoundError: the directory is missing, or has no dictionary.
        ValueError: the data are for another task, or the files of the pipeline cannot be read.
    """
    folder = Path(utils.split_paths(data)[0])
    if not [*folder.glob("dict*.txt"), *folder.glob("*/dict.txt")]:
        raise FileNotFoundError(
            f"{folder} has no dictionary (dict*.txt): run `hat preprocess`, or `hat recipe preprocess NAME`, and give "
            "its `bin` directory"
        )
    if not (folder / FILE_NAME).exists():
        return None
    pipeline = TextPipeline.load(folder)
    if pipeline.kind.task != task:
        raise ValueError(
            f"{folder} holds data of the kind {pipeline.kind.name!r}, which the task {task} does not read: use the "
            f"task {pipeline.kind.task}, or other data"
        )
    return pipeline


def check_rows(rows: Any, what: str) -> None:
    """Raises ValueError for indexed rows of ids of which one is empty, or most tokens are not in the dictionary."""
    empty = np.flatnonzero(np.asarray(rows.sizes) < 2)
    if len(empty):
        raise ValueError(f"{what}: row {empty[0] + 1} is empty; preprocess the data again")
    check_known(map(rows.__getitem__, range(len(rows))), what)
