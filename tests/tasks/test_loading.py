"""Samples that are to be skipped."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import pytest

from hat_fairseq.tasks.document_dataset import padding_share, read_sample_numbers
from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask


def test_skipped_samples_are_in_no_batch_and_others_keep_their_ids(ami: Path, tmp_path: Path) -> None:
    (tmp_path / "done").write_text("4\n0\n")
    config = {"data": str(ami / "bin"), "max_source_positions": 128, "train_subset": "train"}
    config |= {"dataset_impl": "mmap", "required_seq_len_multiple": 1}  # what fairseq takes from other options
    task = DocumentToTextTask.setup_task(DocumentToTextConfig(**config, skip_samples=str(tmp_path / "done")))
    task.load_dataset("test")
    whole = DocumentToTextTask.setup_task(DocumentToTextConfig(**config))
    whole.load_dataset("test")
    batches = task.get_batch_iterator(task.dataset("test"), max_sentences=2).next_epoch_itr(shuffle=False)
    found = {}
    for batch in batches:
        for row, index in enumerate(batch["id"].tolist()):
            length = int(batch["net_input"]["src_lengths"][row])
            found[index] = batch["net_input"]["src_tokens"][row, :length]
    assert sorted(found) == [1, 2, 3, 5]
    assert all(tokens.equal(whole.dataset("test")[index]["source"]) for index, tokens in found.items())
    with pytest.raises(ValueError, match="--skip-samples is for generation"):
        task.load_dataset("train", combine=True)


@pytest.mark.parametrize("multiple", [1, 8])
def test_padding_share(multiple: int) -> None:
    """Document by document; with and without a larger size of some documents."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 50, 40)
    larger = lengths + random.integers(0, 3, 40)
    batches = np.split(random.permutation(40), [1, 5, 6, 30])
    entries = sum(len(batch) * math.ceil(max(larger[batch]) / multiple) * multiple for batch in batches)
    assert padding_share(batches, lengths, larger, multiple) == pytest.approx(1 - sum(lengths) / entries)
    assert padding_share([np.array([3]), np.array([5])], lengths, lengths) == 0


@pytest.mark.parametrize("options", [{}, {"required_seq_len_multiple": 7}], ids=str)
def test_the_share_of_padding_is_that_of_the_batches(
    ami: Path, caplog: pytest.LogCaptureFixture, options: dict[str, int]
) -> None:
    """Counted by hand in the batches that are trained on; `<pad>` occurs in no document."""
    config = {"data": str(ami / "bin"), "max_source_positions": 128, "train_subset": "train"}
    config |= {"dataset_impl": "mmap", "required_seq_len_multiple": 1, **options}
    task = DocumentToTextTask.setup_task(DocumentToTextConfig(**config))
    task.load_dataset("train")
    with caplog.at_level(logging.INFO):
        iterator = task.get_batch_iterator(task.dataset("train"), max_tokens=400)
        batches = list(iterator.next_epoch_itr(shuffle=False))
    shares = []
    for rows in ([batch["net_input"]["src_tokens"] for batch in batches], [batch["target"] for batch in batches]):
        padding = sum(int(row.eq(task.src_dict.pad()).sum()) for row in rows)
        shares.append(padding / sum(row.numel() for row in rows))
    expected = (
        f"train: {len(batches)} batches, padding {shares[0]:.1%} of source tokens, {shares[1]:.1%} of target tokens"
    )
    assert len(batches) > 1
    assert [record.message for record in caplog.records if "padding" in record.message] == [expected]


@pytest.mark.parametrize(
    ("content", "message"),
    [("0\n6\n", ":2: expected the number of a sample, 0 to 5, found '6'"), ("-1\n", ":1: .*'-1'"), ("\n", ":1: .*''")],
)
def test_what_is_no_sample_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "done").write_text(content)
    with pytest.raises(ValueError, match=f"done{message}"):
        read_sample_numbers(tmp_path / "done", 6)
