"""The labelled tasks, one for each kind with labels: predictions for each document, segment or token.

Reads what `hat preprocess --kind KIND` writes, in the layout of fairseq's `sentence_prediction`: tokens in `input0/`,
labels in `label/`. A batch of R rows of at most T tokens, as criterions and `hat predict` get it:

    id (B,)  nsentences B  ntokens  net_input.src_tokens (R, T), padded on the right  net_input.src_lengths (R,)
    target   by kind, -100 where there is no label; None for a split without labels
    num_rows (B,) how many of the R rows, in order, belong to each sample

A sample is a row, R = B, or all rows of a record (`LabelledKind.joins_rows`). `id` is its number, from 0; that of a row
is its line in `{split}.ids`.
"""

import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Optional

import numpy as np
from fairseq.data import Dictionary, data_utils
from fairseq.tasks import TASK_REGISTRY, FairseqTask, register_task
from omegaconf import MISSING

from ..data.dictionary import LABELS_FINGERPRINT, label_of
from ..data.files import at
from ..data.ids import read_ids
from ..data.kinds import KINDS, ChoiceKind, LabelledKind
from ..data.manifest import check_files, truncation
from ..models.adapting import fingerprint
from ..models.encoder_model import EncoderModel
from ..networks.encoder import UNLIMITED
from .plugin_task import PluginTask, PluginTaskConfig, check_rows, load_pipeline, too_long
from .row_dataset import DATASETS, RowDataset

logger = logging.getLogger(__name__)


@dataclass
class EncoderTaskConfig(PluginTaskConfig):
    data: str = field(default=MISSING, metadata={"help": "the bin directory that hat preprocess wrote"})
    max_positions: Optional[int] = field(
        default=None,
        metadata={"help": "the maximum number of tokens of a row, with </s> (default: what the model takes)"},
    )


class EncoderTask(PluginTask, FairseqTask):
    """A subclass names the kind that it reads if the data do not say which of its kinds they are of."""

    cfg: EncoderTaskConfig
    default_kind: ClassVar[LabelledKind]
    default_criterion: ClassVar[str] = "document_labels"

    def __init__(self, cfg: EncoderTaskConfig) -> None:
        super().__init__(cfg)
        self.pipeline = load_pipeline(cfg.data, self.default_kind.task)
        self.kind: LabelledKind = self.pipeline.kind if self.pipeline else self.default_kind
        self.streams = self.kind.files
        self.dictionary = self._load_dictionary("source")
        self.dictionary.add_symbol("<mask>")  # pre-trained tables have it
        has_labels = self.kind.names_labels or Path(cfg.data, self.streams["label"][1]).exists()
        self.label_dictionary = self._load_dictionary("label") if has_labels else None
        self._model: EncoderModel | None = None
        self._split: str | None = None  # of the last iterator

    @classmethod
    def setup_task(cls, cfg: EncoderTaskConfig, **kwargs: Any) -> "EncoderTask":
        return cls(cfg)  # fairseq also says whether it is loading a checkpoint

    def _load_dictionary(self, stream: str) -> Dictionary:
        path = Path(self.cfg.data, self.streams[stream][1])
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: run `hat preprocess --kind {self.kind.name}`")
        return Dictionary.load(str(path))

    @property
    def labels(self) -> list[str]:
        """Returns the classes by name, in order; empty for the kinds whose heads do not name labels."""
        if not self.kind.names_labels or self.label_dictionary is None:
            return []
        tokens = self.label_dictionary.symbols[self.label_dictionary.nspecial :]
        if self.pipeline is None:  # fairseq-preprocess fills its own dictionaries up to a multiple of 8
            tokens = [token for token in tokens if not re.fullmatch(r"madeupword\d{4}", token)]
        return [label_of(token) for token in tokens]

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    target_dictionary = source_dictionary

    def max_positions(self) -> int | None:
        return self.cfg.max_positions

    # Model

    def heads(self) -> dict[str, tuple[str, int]]:
        """Returns for each head by name what its states represent, one of `LEVELS`, and its number of logits."""
        return self.kind.heads(len(self.labels))

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Builds the model and its heads; ValueError for a model without such heads."""
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, EncoderModel):
            raise ValueError(
                f"the task {self.cfg._name} needs an encoder with classification heads (--arch hat_roberta_base, "
                f"hierarchical_transformer_base_4096, ...), not {type(model).__name__}"
            )
        if model.core.no_choices and isinstance(self.kind, ChoiceKind):
            raise ValueError(f"--kind choice: {model.core.no_choices}")
        for name, (level, num_classes) in self.heads().items():
            model.register_classification_head(name, num_classes=num_classes, level=level)
        if self.labels:
            assert self.label_dictionary is not None
            (head,) = model.classification_heads.values()
            head.register_buffer(LABELS_FINGERPRINT, fingerprint(self.label_dictionary))
        if model.core.max_tokens == UNLIMITED:  # --max-positions is that of a segment alone
            self.cfg.max_positions = None
        if not from_checkpoint:
            model.core.open_store()
        model.heads_must_load = from_checkpoint
        self._model = model
        return model

    def logits(self, model: Any, sample: dict[str, Any]) -> Any:
        """Returns the logits of a batch; see `LabelledKind.logits`."""
        outputs = model(**sample["net_input"], classification_head_name=list(self.heads()))[0]
        return self.kind.logits(outputs, sample["net_input"]["src_tokens"], sample["num_rows"])

    # Training and validation

    def begin_epoch(self, epoch: int, model: Any) -> None:
        """Begins an epoch, as fairseq's hook; vectors that are new since then are saved."""
        super().begin_epoch(epoch, model)
        model.core.save_vectors()

    def begin_valid_epoch(self, epoch: int, model: Any) -> None:
        """Begins a validation, as fairseq's hook; vectors that are new since then are saved."""
        super().begin_valid_epoch(epoch, model)
        model.core.save_vectors()

    def post_validate(self, model: Any, stats: dict[str, Any], aggregator: Any) -> None:
        """Lets the model keep, as fairseq's hook after each subset, what it learns from figures of `valid`."""
        model.core.save_vectors()
        if self._split == "valid":
            model.core.after_validation(model.classification_heads.values(), aggregator)

    # Data

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split, with labels if it has them.

        Raises:
            FileNotFoundError: there is no such split.
            ValueError: labels that do not belong to the rows, or rows that are longer than the model takes.
        """
        data = Path(self.cfg.data)
        check_files(data, split)
        path = data / self.streams["source"][0].format(split=split)
        rows = data_utils.load_indexed_dataset(str(path), self.dictionary, combine=combine)
        if rows is None:
            raise FileNotFoundError(f"{path}.idx is missing: {data} has no split {split!r}")
        check_rows(rows, f"{data}, {split}")
        if split == "train" and (note := truncation(data.resolve().parent, split)):
            logger.warning("%s, %s: %s", data, split, note)
        self._check_lengths(rows, f"{data}, {split}")
        labels = self._load_labels(split, len(rows), combine)
        chunks = read_ids(data / f"{split}.ids") if self.kind.joins_rows else None
        dataset = DATASETS.get(self.kind.name, RowDataset)
        self.datasets[split] = dataset(
            self.kind, rows, self.dictionary.pad(), labels, self.label_dictionary, split, chunks
        )
        if split == "train" and self._model is not None:
            self._model.core.read_training_data(self._model.classification_heads.values(), self.datasets[split])

    def _check_lengths(self, rows: Any, what: str) -> None:
        """Raises ValueError for indexed rows of token ids that are longer than the model takes."""
        core = None if self._model is None else self._model.core
        sizes, limit = np.asarray(rows.sizes), float(self.cfg.max_positions or np.inf)
        longest = limit if core is None else min(limit, core.max_tokens)
        long = [i for i, size in enumerate(sizes) if size > longest]
        if core is not None and getattr(core.config, "segment_by", None) == "marker":  # a short row may not fit
            long = [i for i in range(len(rows)) if sizes[i] > longest or not core.fits(rows[i])]
        if long:
            way_out = f"{self._limit(limit)} and --long-source truncate"
            with at(what):
                raise too_long("rows", len(long), len(rows), "", sizes[long].max(), way_out)

    def _limit(self, tokens: float) -> str:
        """Says how much the model takes, and which options change that; `tokens`: of `--max-positions`."""
        config: Any = None if self._model is None else self._model.config
        if getattr(config, "segment_by", None) == "marker":
            options = f"--max-segments {config.max_segments} --segment-length {config.segment_length}"
            return (
                f"It takes {config.max_segments} segments (--max-segments) of up to {config.segment_length} tokens "
                "(--segment-length); a longer sentence counts as several. Train with greater values, or preprocess "
                f"with {options}"
            )
        most = tokens if self._model is None else min(tokens, self._model.core.max_tokens)
        is_of_segments = hasattr(config, "max_segments")
        name = "--max-segments x --segment-length" if is_of_segments else "--max-positions"
        return (
            f"It takes {most:g} ({name}). Train with a greater number, or preprocess with --max-source-tokens {most:g}"
        )

    def _load_labels(self, split: str, num_rows: int, combine: bool) -> Any:
        path = Path(self.cfg.data) / self.streams["label"][0].format(split=split)
        labels = data_utils.load_indexed_dataset(str(path), self.label_dictionary, combine=combine)
        if labels is not None and self.label_dictionary is None:
            raise ValueError(f"{self.cfg.data}/{self.streams['label'][1]} is missing, but {split} has labels")
        if labels is not None and len(labels) != num_rows:
            raise ValueError(f"{path}: {len(labels)} rows of labels for {num_rows} rows; preprocess the data again")
        return labels

    def get_batch_iterator(self, dataset: Any, max_tokens: int | None = None, **kwargs: Any) -> Any:
        """Makes the batches, as fairseq's hook."""
        self._split = getattr(dataset, "split", None)
        return super().get_batch_iterator(dataset, max_tokens, **kwargs)

    def filter_indices_by_size(self, indices: np.ndarray, *unused: Any) -> np.ndarray:
        return indices  # rows were checked when they were loaded, and samples of several rows are longer


def register_tasks() -> None:
    """Registers a task for each kind that has none yet, also for those that other packages have added."""
    for kind in KINDS.values():
        if isinstance(kind, LabelledKind) and kind.task not in TASK_REGISTRY:
            name = "".join(word.capitalize() for word in kind.task.split("_")) + "Task"
            members = {"__doc__": type(kind).__doc__, "default_kind": kind, "default_criterion": kind.criterion}
            register_task(kind.task, dataclass=EncoderTaskConfig)(type(name, (EncoderTask,), members))


register_tasks()
