"""Parallel documents to scored translations through the real commands, small, on real text.

English-German: help pages that a tiny model learns by heart, so that BLEU is far from 0.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import sacrebleu
from commands import TWO_PROCESSES, USER_DIR, write_lines
from libreoffice_help_en_de import page_paths, read_page
from releases import write_release

from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import record_from_json, record_to_json
from hat_fairseq.inference.checkpoints import loaded_of
from hat_fairseq.inference.rows import encode_documents
from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask

TASK = "--task document_to_text --max-source-positions 256 --max-target-positions 256 --cpu --num-workers 0"
TRAIN = (
    "--arch hat_transformer_tiny --criterion label_smoothed_cross_entropy --optimizer adam --clip-norm 1 --dropout 0 "
)
TRAIN += "--attention-dropout 0 --log-format json --no-epoch-checkpoints --seed 3 --eval-bleu "
TRAIN += "--best-checkpoint-metric bleu --maximize-best-checkpoint-metric"


def train(run, data: Path, *flags: object, launcher: Sequence[object] = ("fairseq-train",)) -> dict[str, list[float]]:
    """BLEU of each validation on each split."""
    common = ["--user-dir", USER_DIR, *TASK.split(), *TRAIN.split(), "--eval-bleu-args", '{"beam": 2, "max_len_b": 60}']
    result = run(*launcher, data / "bin", *common, *flags)
    logs = {
        split: re.findall(rf"\| {split} \| (\{{.*?\}})", result.stdout + result.stderr) for split in ("valid", "test")
    }
    return {split: [float(json.loads(log)[f"{split}_bleu"]) for log in texts] for split, texts in logs.items()}


PAGES = "--source-tokenizer moses --target-tokenizer moses --target-language de --aligned --target-separator"
PAGES += " --long-source chunk --max-source-tokens 41 --max-target-tokens 41 --num-codes 1000"


@pytest.fixture(scope="module")
def help_pages(run, tmp_path_factory) -> Path:
    """The five shortest pages, the same in every part, in chunks of 40 tokens."""
    folder = tmp_path_factory.mktemp("help")
    root, uncounted = write_release("libreoffice_help_en_de", folder / "release"), Counter()
    pages = [read_page(root, page, uncounted) for page in page_paths(root, uncounted)]
    pages = sorted(pages, key=lambda page: sum(map(len, page.elements)))[:5]
    for split in ("train", "valid", "test"):
        write_lines(folder / f"{split}.jsonl", map(record_to_json, pages))
    run("hat", "preprocess", folder, *PAGES.split(), "--out", folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def trained(run, help_pages: Path, tmp_path_factory) -> tuple[Path, list[float]]:
    """Half learned by heart; the directory of its checkpoints, and BLEU of each validation."""
    directory = tmp_path_factory.mktemp("trained")
    flags = ["--lr", "4e-3", "--adam-betas", "(0.9, 0.98)", "--batch-size", 9, "--max-update", 48]
    often = ["--validate-interval", 12, "--valid-subset", "valid,test", "--save-dir", directory]
    bleu = train(run, help_pages, *flags, *often)
    assert len(bleu["valid"]) == len(bleu["test"])
    return directory, bleu["valid"]


@pytest.mark.slow
def test_bleu_of_training_is_that_of_the_generated_rows(run, help_pages: Path, trained, tmp_path: Path) -> None:
    directory, logged = trained
    assert len(logged) == 2
    assert logged[0] < logged[1]
    assert logged[1] > 10
    assert (directory / "checkpoint_best.pt").exists()
    flags = ["--user-dir", USER_DIR, *TASK.split(), "--bpe", "document", "--document-pipeline", help_pages / "bin"]
    flags += ["--beam", 2, "--max-len-b", 60, "--gen-subset", "valid", "--batch-size", 8]
    log = run("fairseq-generate", help_pages / "bin", *flags, "--path", directory / "checkpoint_last.pt").stdout
    generated = {int(i): text for i, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", log, flags=re.MULTILINE)}
    decode = TextPipeline.load(help_pages / "bin").decode
    targets = (help_pages / "text/valid.target").read_text(encoding="utf-8").splitlines()
    texts = [" ".join(text.split()) for _, text in sorted(generated.items())]
    rows = sacrebleu.corpus_bleu(texts, [[" ".join(decode(target).split()) for target in targets]], force=True)
    assert rows.score == pytest.approx(logged[1], abs=0.006)


@pytest.mark.slow
def test_bleu_does_not_depend_on_the_number_of_processes(run, help_pages: Path, trained, tmp_path: Path) -> None:
    """17 samples in five batches: one process has two, then a stand-in; chunks of a page are in both."""
    reset = "--reset-optimizer --reset-lr-scheduler --reset-dataloader --reset-meters --max-update 1 --lr 0 --no-save"
    flags = ["--restore-file", trained[0] / "checkpoint_last.pt", *reset.split(), "--save-dir", tmp_path]
    bleu = train(run, help_pages, *flags, "--batch-size", 4, launcher=TWO_PROCESSES)
    assert bleu["valid"] == [trained[1][-1]]


def test_raw_pages_become_the_binarised_samples(help_pages: Path) -> None:
    """Raw documents are cut into the same chunks as test documents, with or without a reference."""
    fixed = {"dataset_impl": "mmap", "train_subset": "train", "required_seq_len_multiple": 1}
    task = DocumentToTextTask.setup_task(DocumentToTextConfig(data=str(help_pages / "bin"), **fixed))
    task.load_dataset("test")
    lines = (help_pages / "text/test.jsonl").read_text(encoding="utf-8").splitlines()
    blind = [json.dumps({key: value for key, value in json.loads(line).items() if key != "target"}) for line in lines]
    for part in (lines, blind):
        encoded = encode_documents([record_from_json(json.loads(line), "here") for line in part], loaded_of([], task))
        rows = [row.tokens.tolist() for each in encoded for row in each]
        assert rows == [example["source"].tolist() for example in task.dataset("test")]
    assert len(encoded) == 5
