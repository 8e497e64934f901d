"""The dataset of `document_to_text`: sources and targets, with optional roles."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data import LanguagePairDataset, data_utils
from fairseq.tasks.translation import load_langpair_dataset

from ..data.files import at
from .plugin_task import check_rows, too_long

logger = logging.getLogger(__name__)


class DocumentPairDataset(LanguagePairDataset):
    """fairseq's pairs plus `roles`, the id of the role of each source token.

    Args:
        pair: the documents.
        target_sizes: tokens of each target, or None without targets.
        cfg: of the task; its options for padding.
        roles: the ids of each document, as many as it has tokens, or None.
        split: its name; the order of a test split (test, test1, ...) stays.
    """

    def __init__(
        self, pair: LanguagePairDataset, target_sizes: np.ndarray | None, cfg: Any, roles: Any, split: str
    ) -> None:
        options = {
            "left_pad_source": cfg.left_pad_source,
            "left_pad_target": False,
            "shuffle": not split.startswith("test"),
        }
        options |= {"num_buckets": cfg.num_batch_buckets, "pad_to_multiple": cfg.required_seq_len_multiple}
        source = pair.src, pair.src_sizes, pair.src_dict
        super().__init__(*source, pair.tgt, target_sizes, pair.tgt_dict, **options)
        self.roles = roles

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = super().__getitem__(index)
        return example if self.roles is None else {**example, "roles": self.roles[index]}

    def collater(self, samples: list[dict[str, Any]], pad_to_length: dict[str, int] | None = None) -> dict[str, Any]:
        batch = super().collater(samples, pad_to_length)
        if self.roles is not None and batch:
            roles = {sample["id"]: sample["roles"] for sample in samples}  # the batch is in another order
            batch["net_input"]["roles"] = data_utils.collate_tokens(
                [roles[index] for index in batch["id"].tolist()],
                self.src_dict.pad(),
                left_pad=self.left_pad_source,
                pad_to_length=batch["net_input"]["src_tokens"].size(1),
            )
        return batch


def load_documents(task: Any, folder: str, split: str, combine: bool) -> DocumentPairDataset:
    """Loads a split of a `document_to_text` task from a `bin` directory; see `FairseqTask.load_dataset`.

    Raises:
        ValueError: an empty or too long document; the stream of roles belongs to other documents.
        FileNotFoundError: there is no such split, or no stream of roles.
    """
    cfg = task.cfg
    pair = load_langpair_dataset(
        folder,
        split,
        cfg.source_lang,
        task.src_dict,
        cfg.target_lang,
        task.tgt_dict,
        combine=combine,
        dataset_impl=cfg.dataset_impl,
        upsample_primary=cfg.upsample_primary,
        left_pad_source=cfg.left_pad_source,
        left_pad_target=False,
        max_source_positions=cfg.max_source_positions,
        max_target_positions=cfg.max_target_positions,
    )
    check_rows(pair.src, f"{folder}, {split}")
    first = [pair.src[index] for index in range(min(100, len(pair.src)))]
    if first and not any(row.eq(task.src_dict.bos()).any() for row in first):
        logger.warning("%s, %s: no sentence has a marker <s>, so a hierarchy has one sentence only", folder, split)
    roles = _load_roles(task, f"{folder}/{split}", pair.src.sizes, combine) if cfg.role_stream else None
    if roles is None and Path(folder, f"{split}.role-None.role.idx").exists():
        logger.warning("%s, %s: has a stream of roles, which only --role-stream role reads", folder, split)
    check_lengths(pair.src_sizes, cfg.max_source_positions, "source", split)
    target_sizes = pair.tgt_sizes
    if target_sizes is not None and split.startswith("test"):  # a reference may be longer than what is generated
        target_sizes = np.minimum(target_sizes, cfg.max_target_positions)
    elif target_sizes is not None:
        check_lengths(target_sizes, cfg.max_target_positions, "target", split)
    return DocumentPairDataset(pair, target_sizes, cfg, roles, split)


def check_lengths(sizes: np.ndarray, limit: int, side: str, split: str) -> None:
    """Raises ValueError for sources or targets with more tokens than the model takes; training would drop them."""
    if long := int((sizes > limit).sum()):
        way_out = f"build a larger model with --max-{side}-positions, or preprocess again, with "
        way_out += f"hat preprocess --max-{side}-tokens {limit}"
        with at(split):
            raise too_long(f"{side}s", long, len(sizes), str(limit), sizes.max(), way_out)


def _load_roles(task: Any, split_prefix: str, sizes: np.ndarray, combine: bool) -> Any:
    name = task.cfg.role_stream
    prefix = f"{split_prefix}.{name}-None.{name}"
    roles = data_utils.load_indexed_dataset(prefix, task.role_dictionary, task.cfg.dataset_impl, combine)
    if roles is None:
        raise FileNotFoundError(f"{prefix}.idx: the stream of --role-stream {name} is missing; binarise it as well")
    if not np.array_equal(roles.sizes, sizes):
        raise ValueError(f"{prefix}: not one id for each source token of each document; preprocess the data again")
    return roles
