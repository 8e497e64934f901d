"""`EncoderTask`: the base of the labelled tasks, with one prediction for each document, segment or token.

Reads what `hat preprocess --kind KIND` writes, in the layout of fairseq's `sentence_prediction`: tokens in `input0/`,
labels in `label/`. A batch of R rows of at most T tokens, as criterions and `hat predict` get it:

    id (B,)  nsentences B  ntokens  net_input.src_tokens (R, T), padded on the right  net_input.src_lengths (R,)
    target   by kind, -100 where there is no label; None for a split without labels
    choices  (B,), `choice` only: how many of the R rows, in order, belong to each example

In `byte_pair` two rows belong to each example, R = 2B; in all other kinds but `choice` one, R = B. `id` is the number
of a row, from 0, which is its line in `{split}.ids`; in `choice` and `byte_pair` it is the number of an example.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from fairseq.data import Dictionary, data_utils
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..data.bin_layout import streams_of
from ..data.kinds import kind_of
from ..data.labels import label_of
from ..data.manifest import check_files
from ..data.rows import Chunk
from ..models.encoder_model import EncoderModel
from ..models.loading import LABELS, fingerprint
from .bin_folder import check_known, load_pipeline
from .config import EncoderTaskConfig
from .cut_rows import cut_rows, warn
from .row_dataset import RowDataset
from .row_targets import RowTargets
from .training import PluginTask


class EncoderTask(PluginTask, FairseqTask):
    """A subclass defines the kind of data, the classification heads, and how labels become targets."""

    cfg: EncoderTaskConfig
    default_criterion: ClassVar[str] = "document_labels"
    kind: str  # of data
    num_scores: ClassVar[int | None] = None  # of the head; None: one for each label
    head_level: str = "document"
    part_to_cut: ClassVar[str] = "longest"
    head_name = "sentence_classification_head"
    targets_class: ClassVar[type[RowTargets]] = RowTargets

    def __init__(self, cfg: EncoderTaskConfig) -> None:
        super().__init__(cfg)
        data = Path(cfg.data)
        self.pipeline = load_pipeline(data, self.kind)
        self.streams = streams_of(kind_of(self.kind))
        self.dictionary = _load_dictionary(data / self.streams["source"][1], self.kind)
        self.dictionary.add_symbol("<mask>")  # pre-trained tables have it
        path, needed = data / self.streams["label"][1], self.num_scores is None
        self.label_dictionary = _load_dictionary(path, self.kind) if path.exists() or needed else None
        self._model: EncoderModel | None = None

    @classmethod
    def setup_task(cls, cfg: EncoderTaskConfig, **kwargs: Any) -> "EncoderTask":
        return cls(cfg)  # fairseq also says whether it is loading a checkpoint

    @property
    def labels(self) -> list[str]:
        """The classes by name, in order; empty for the kinds that have none (`choice`, `qa`)."""
        if self.num_scores is not None or self.label_dictionary is None:
            return []
        tokens = self.label_dictionary.symbols[self.label_dictionary.nspecial :]
        if self.pipeline is None:  # fairseq-preprocess fills its own dictionaries up to a multiple of 8
            tokens = [token for token in tokens if not re.fullmatch(r"madeupword\d{4}", token)]
        return [label_of(token) for token in tokens]

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.dictionary

    def max_positions(self) -> int | None:
        return self.cfg.max_positions

    # Model

    def heads(self) -> dict[str, tuple[str, int]]:
        """For each head by name: what its states represent, one of `modules.heads.LEVELS`, and its number of logits."""
        return {self.head_name: (self.head_level, self.num_scores or len(self.labels))}

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Builds the model and its heads.

        Raises:
            ValueError: a model without such heads.
        """
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, EncoderModel):
            raise ValueError(
                f"the task {self.cfg._name} needs an encoder with classification heads (--arch hat_roberta_base, "
                f"hierarchical_transformer_base_4096, ...), not {type(model).__name__}"
            )
        for name, (level, num_classes) in self.heads().items():
            model.register_classification_head(name, num_classes=num_classes, level=level)
        if self.labels:
            assert self.label_dictionary is not None
            head = model.classification_head(self.head_name)
            head.register_buffer(LABELS, fingerprint(self.label_dictionary))
        model.heads_must_load = from_checkpoint
        self._model = model
        return model

    def logits(self, model: Any, sample: dict[str, Any]) -> Any:
        """The logits of the head: (B, K), (B, N, K) for up to N segments of a document, or (B, T, K)."""
        return model(**sample["net_input"], classification_head_name=self.head_name)[0]

    def scores(self, logits: Any) -> Any:
        """The scores that predictions are made from: here the probabilities."""
        return logits.softmax(dim=-1)

    # Data

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split, with labels if it has them; rows that are too long are truncated or refused.

        Raises:
            FileNotFoundError: there is no such split.
            ValueError: labels that do not belong to the rows, or a row that is too long.
        """
        data = Path(self.cfg.data)
        check_files(data, split)
        path = data / self.streams["source"][0].format(split=split)
        rows = data_utils.load_indexed_dataset(str(path), self.dictionary, combine=combine)
        if rows is None:
            raise FileNotFoundError(f"{path}.idx is missing: {data} has no split {split!r}")
        check_known(map(rows.__getitem__, range(len(rows))), self.dictionary, f"{data}, {split}")
        self.datasets[split] = self.build_dataset(rows, split, self._load_targets(split, len(rows), combine))

    def build_dataset(
        self, rows: Any, what: str, targets: RowTargets | None = None, chunks: Sequence[Chunk] | None = None
    ) -> RowDataset:
        """Rows as a dataset, truncated to the model's length by the task's policy; the loss is logged.

        Args:
            rows: indexed (T,) token ids, with `sizes`.
            what: the split, or the origin of the rows, for messages.
            targets: None for rows without labels.
            chunks: the line of the ids table for each row; None for those of the split.
        """
        return RowDataset(rows, targets, self._removed(rows, what), self.dictionary.pad())

    def _load_targets(self, split: str, num_rows: int, combine: bool) -> RowTargets | None:
        path = Path(self.cfg.data) / self.streams["label"][0].format(split=split)
        labels = data_utils.load_indexed_dataset(str(path), self.label_dictionary, combine=combine)
        if labels is None:
            return None
        if self.label_dictionary is None:
            raise ValueError(f"{self.cfg.data}/{self.streams['label'][1]} is missing, but {split} has labels")
        if len(labels) != num_rows:
            raise ValueError(f"{path}: {len(labels)} rows of labels for {num_rows} rows; preprocess the data again")
        return self.targets_class(labels, self.label_dictionary, self.dictionary)

    def _removed(self, rows: Any, what: str) -> dict[int, slice]:
        limit, model = self.cfg.max_positions or np.inf, self._model

        def fits(tokens: Tensor) -> bool:
            return len(tokens) <= limit and (model is None or model.core.fits(tokens))

        safe_length = limit if model is None else min(limit, model.core.safe_tokens)
        policy = str(self.cfg.long_source)
        removed, cost = cut_rows(rows, safe_length, fits, policy, self.part_to_cut, self.dictionary, what)
        warn(f"{what}: longer than the model, policy {policy}", cost)
        return removed

    def get_batch_iterator(self, dataset: Any, max_tokens: int | None = None, **kwargs: Any) -> Any:
        """fairseq's iterator without its filter, which would skip rows longer than --max-tokens.

        Raises:
            ValueError: --max-tokens is lower than one sample needs.
        """
        check_max_tokens(dataset, max_tokens, f"one {self.kind} sample")
        return super().get_batch_iterator(dataset, max_tokens, **{**kwargs, "max_positions": None})


def check_max_tokens(dataset: RowDataset, max_tokens: int | None, what: str = "one sample") -> None:
    """Raises ValueError if `max_tokens` is lower than one sample needs."""
    longest = int(dataset.sizes.max(initial=0))
    if max_tokens is not None and max_tokens < longest:
        raise ValueError(f"--max-tokens {max_tokens} is too low: {what} takes {longest} tokens")


def _load_dictionary(path: Path, kind: str) -> Dictionary:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: a task for data of the kind {kind!r} needs a directory made by "
            f"`hat preprocess --kind {kind}`"
        )
    return Dictionary.load(str(path))
