"""Samples that are to be skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask
from hat_fairseq.tasks.loading import read_sample_numbers


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


@pytest.mark.parametrize(
    ("content", "message"),
    [("0\n6\n", ":2: expected the number of a sample, 0 to 5, found '6'"), ("-1\n", ":1: .*'-1'"), ("\n", ":1: .*''")],
)
def test_what_is_no_sample_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "done").write_text(content)
    with pytest.raises(ValueError, match=f"done{message}"):
        read_sample_numbers(tmp_path / "done", 6)
