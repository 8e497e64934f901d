"""Pre-training `hat_roberta` with fairseq-train on AMI: markers stay, and resuming is exact."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import USER_DIR, hat, write_lines
from fairseq.tasks import TASK_REGISTRY
from trainings import assert_same_result, losses

from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import read_records
from hat_fairseq.tasks.masked_document_lm import MaskedDocumentLMConfig

TINY = "--encoder-embed-dim 16 --encoder-ffn-embed-dim 24 --encoder-layers 2 --encoder-attention-heads 2 "
COMMON = "--optimizer adam --lr 1e-3 --cpu --batch-size 2 --log-format json --log-interval 1 --num-workers 1 --seed 3 "
COMMON += "--no-epoch-checkpoints --disable-validation"


@pytest.fixture(scope="module")
def corpus(run, ami: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The meetings' sources as fairseq's masked_lm reads them: `dict.txt` and `train.bin`."""
    out = tmp_path_factory.mktemp("masked_lm")
    prefixes = ["--trainpref", ami / "text/train.source", "--validpref", ami / "text/valid.source"]
    run("fairseq-preprocess", "--only-source", *prefixes, "--srcdict", ami / "bin/dict.source.txt", "--destdir", out)
    return out


@pytest.fixture(scope="module")
def pretrain(run, corpus: Path):
    def command(save_dir: Path, *flags: object) -> Any:
        model = f"--user-dir {USER_DIR} --task masked_document_lm --arch hat_roberta_base {TINY} {COMMON} "
        model += "--criterion masked_lm --tokens-per-sample 128 --sample-break-mode complete --mask-prob 0.3"
        return run("fairseq-train", corpus, *model.split(), "--save-dir", save_dir, *flags)

    return command


def test_markers_are_neither_masked_nor_predicted(corpus: Path, ami: Path) -> None:
    """In every training document, with masks of two epochs."""
    options = {"tokens_per_sample": 128, "sample_break_mode": "complete", "mask_prob": 0.5, "seed": 1}
    task = TASK_REGISTRY["masked_document_lm"].setup_task(MaskedDocumentLMConfig(data=str(corpus), **options))
    task.load_dataset("train")
    dataset, rows = task.datasets["train"], []
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        batches = [dataset.collater([dataset[index]]) for index in range(len(dataset))]
        rows += [(batch["net_input"]["src_tokens"][0], batch["target"][0]) for batch in batches]
    words = task.source_dictionary
    bos, pad, mask = words.bos(), words.pad(), words.index("<mask>")
    lines = (ami / "text/train.source").read_text(encoding="utf-8").splitlines()
    documents = {tuple(words.encode_line(line, add_if_not_exist=False).tolist()) for line in lines}
    assert len(rows) == 2 * len(documents)
    for source, target in rows:
        original = torch.where(target == pad, source, target)
        assert tuple(original.tolist()) in documents  # one marker at the start, and nothing else changed
        assert torch.equal(source == bos, original == bos)
        assert not (target == bos).any()
    assert max(int((source == bos).sum()) for source, _ in rows) > 5  # so there are markers to spare
    predicted = sum(int((target != pad).sum()) for _, target in rows)
    assert predicted / sum(int((source != bos).sum()) for source, _ in rows) == pytest.approx(0.5, abs=0.05)
    assert any((source == mask).any() for source, _ in rows)


def test_a_sample_is_a_row(tmp_path: Path) -> None:
    """As preprocessing has filled it; fairseq's default would join rows and cut them elsewhere."""
    rows = [{"id": str(n), "text": f"it rained . we went home . {n} of us came . it is late ."} for n in range(30)]
    for split in ("train", "valid"):
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)
    flags = "--kind mlm --splitter punctuation --segments packed --segment-length 8 --max-segments 2 --num-codes 40"
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", *flags.split()) == 0
    task = TASK_REGISTRY["masked_document_lm"].setup_task(
        MaskedDocumentLMConfig(data=str(tmp_path / "data/bin"), seed=1)
    )
    task.load_dataset("train")
    words, dataset = task.source_dictionary, task.datasets["train"]
    written = []
    for index in range(len(dataset)):
        batch = dataset.collater([dataset[index]])
        source, target = batch["net_input"]["src_tokens"][0], batch["target"][0]
        ids = torch.where(target == words.pad(), source, target).tolist()
        written.append([words[each] for each in ids if each != words.eos()])
    pipeline, records = TextPipeline.load(tmp_path / "data/bin"), read_records(tmp_path / "raw/train.jsonl", "mlm")
    expected = [list(row.tokens) for record in records for row in pipeline.rows(record)]
    assert written == expected
    assert len(expected) > 30


@pytest.mark.slow
def test_resume_is_exact_in_the_second_epoch(pretrain, tmp_path: Path) -> None:
    """Three updates an epoch, dropout on."""
    whole, save = pretrain(tmp_path / "whole", "--max-update", 5), ["--save-interval-updates", 1]
    first, second = (pretrain(tmp_path / "parts", "--max-update", updates, *save) for updates in (4, 5))
    log = whole.stdout + whole.stderr
    assert re.findall('"bpc": "(.*?)"', log) == re.findall('"loss": "(.*?)"', log) != []
    assert len(losses(whole)) == 5
    assert losses(first) + losses(second) == losses(whole)
    assert_same_result(tmp_path / "whole", tmp_path / "parts")
