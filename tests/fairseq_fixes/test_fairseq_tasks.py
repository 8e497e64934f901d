"""fairseq's own tasks with this plugin: the ordinary commands use every sample, whatever the size of a batch is."""

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import USER_DIR
from fairseq.data import data_utils

from hat_fairseq.register import register

register()  # applies the corrections

SAMPLES = {"train": 21, "valid": 13, "test": 11}  # none is a multiple of the sizes below, nor of fairseq's 8
SIZES = ["--max-tokens 40"]
MORE_SIZES = [
    "--batch-size 3",
    "--batch-size 8",
    "--batch-size 1",
    "--batch-size 4",
    "--max-tokens 4000",
    "--max-tokens 100 --num-batch-buckets 3",
]
ALL_IN_ONE = "--batch-size 64 --max-epoch 1"
COMMON = "--optimizer adam --lr 0 --dropout 0 --cpu --log-format json --log-interval 1 --no-epoch-checkpoints"
ENCODER = "--arch hat_roberta_tiny --max-positions 64"
TASKS = {
    "translation": "--task translation -s en -t de --arch hat_transformer_tiny",
    "masked_lm": f"--task masked_lm {ENCODER} --sample-break-mode eos --tokens-per-sample 60 --criterion masked_lm",
    "denoising": "--task denoising --arch hat_transformer_tiny --sample-break-mode eos --tokens-per-sample 60 "
    "--mask 0.3 --mask-length span-poisson --replace-length 1",
    "sentence_prediction": f"--task sentence_prediction {ENCODER} --num-classes 2 --criterion sentence_prediction "
    "--classification-head-name sentence_classification_head",
}


def generation(data: Callable[[str], Path], *flags: object) -> list[object]:
    """What follows fairseq-generate and fairseq-interactive for the model of `translation`."""
    task = TASKS["translation"].partition(" --arch")[0]
    words = [data("translation"), "--user-dir", USER_DIR, "--path", data("translation-model/checkpoint_last.pt")]
    return [*words, *task.split(), "--beam", 2, "--max-len-b", 9, "--cpu", *flags]


def write_sentences(folder: Path) -> None:
    """Parallel sentences of 2 to 12 words for each split, and a label for each."""
    draw, words = random.Random(5), [f"word{number}" for number in range(60)]
    folder.mkdir()
    for split, number in SAMPLES.items():
        rows = [draw.choices(words, k=draw.randint(2, 12)) for _ in range(number)]
        (folder / f"{split}.en").write_text("".join(" ".join(row) + "\n" for row in rows))
        (folder / f"{split}.de").write_text("".join(" ".join(reversed(row)) + "\n" for row in rows))
        (folder / f"{split}.label").write_text("".join(draw.choice("ab") + "\n" for _ in rows))


@pytest.fixture(scope="module")
def data(run: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The binary data of a task, written by fairseq-preprocess."""
    folder = tmp_path_factory.mktemp("sentences")
    write_sentences(folder / "text")

    def preprocess(out: str, suffix: str, *flags: object) -> None:
        files = [word for split in SAMPLES for word in (f"--{split}pref", folder / f"text/{split}{suffix}")]
        run("fairseq-preprocess", *files, "--destdir", folder / out, "--workers", 1, *flags)

    preprocess("translation", "", "-s", "en", "-t", "de", "--joined-dictionary")
    preprocess("masked_lm", ".en", "--only-source")
    preprocess("sentence_prediction/input0", ".en", "--only-source")
    preprocess("sentence_prediction/label", ".label", "--only-source")
    (folder / "denoising").symlink_to("masked_lm")
    return folder.joinpath


@pytest.fixture(scope="module")
def trained(run: Callable[..., Any], data: Callable[[str], Path]) -> Callable[..., list[dict[str, str]]]:
    """Runs fairseq-train from the start with a task and flags; the checkpoint is saved once. Returns the log."""

    @cache
    def train(task: str, flags: str = ALL_IN_ONE) -> list[dict[str, str]]:
        words = [data(task), "--user-dir", USER_DIR, *TASKS[task].split(), *COMMON.split()]
        saved = ["--no-save"] if (folder := data(f"{task}-model")).exists() else ["--save-dir", folder]
        printed = run("fairseq-train", *words, *flags.split(), *saved).stdout
        return [json.loads(line[line.index("{") :]) for line in printed.splitlines() if line.endswith("}")]

    return train


def samples(log: list[dict[str, str]], epoch: int = 1) -> int:
    """The number of samples in the updates of an epoch."""
    return round(sum(float(line["bsz"]) for line in log if line["epoch"] == epoch and "bsz" in line))


def mean_loss(log: list[dict[str, str]]) -> float:
    """The loss of the last validation, a mean over all tokens or sentences."""
    return float([line["valid_loss"] for line in log if "valid_loss" in line][-1])


@pytest.mark.parametrize("size", [*SIZES, *(pytest.param(size, marks=pytest.mark.slow) for size in MORE_SIZES)])
def test_translation_uses_every_sample(run, data, trained, size: str) -> None:
    log = trained("translation", f"{size} --max-epoch 1")
    assert samples(log) == SAMPLES["train"]
    assert mean_loss(log) == pytest.approx(mean_loss(trained("translation")), abs=2e-3)
    generated = run("fairseq-generate", *generation(data, *size.split())).stdout
    assert sorted(map(int, re.findall(r"^H-(\d+)\t", generated, re.M))) == list(range(SAMPLES["test"]))


@pytest.mark.slow
@pytest.mark.parametrize("size", ["--batch-size 3", "--max-tokens 40"])
@pytest.mark.parametrize("task", ["masked_lm", "denoising", "sentence_prediction"])
def test_other_tasks_use_every_sample(trained, task: str, size: str) -> None:
    """Losses of denoising are drawn anew in each run, so its validation is that of its updates."""
    log = trained(task, f"{size} --max-epoch 1")
    assert samples(log) == SAMPLES["train"]
    if task != "denoising":
        assert mean_loss(log) == pytest.approx(mean_loss(trained(task)), abs=2e-3)


@pytest.mark.slow
def test_fairseq_validate_and_interactive_use_every_sample(run, data, trained) -> None:
    trained("translation")
    losses, model = set(), data("translation-model/checkpoint_last.pt")
    for size in ("--batch-size 1", *SIZES):
        words = [data("translation"), "--user-dir", USER_DIR, "--task", "translation", "--path", model, *size.split()]
        printed = run("fairseq-validate", *words, "--cpu", "--log-format", "json")
        losses.add(re.findall(r'"valid_loss": "([\d.]+)"', printed.stdout + printed.stderr)[-1])
    assert len(losses) == 1
    flags = generation(data, "--batch-size", 4, "--buffer-size", 4, "--input", data("text/test.en"))
    printed = run("fairseq-interactive", *flags).stdout
    assert len(re.findall(r"^H-\d+\t", printed, re.M)) == SAMPLES["test"]


@pytest.mark.slow
def test_a_multiple_that_was_asked_for_holds_for_full_batches(trained) -> None:
    log = trained("translation", "--max-tokens 60 --required-batch-size-multiple 2 --max-epoch 1")
    sizes = sorted(int(line["bsz"]) for line in log if "bsz" in line)
    assert sum(sizes) == SAMPLES["train"]
    assert sum(size % 2 for size in sizes) == 1
    assert max(sizes) > 2


def test_batches_of_no_samples() -> None:
    assert data_utils.batch_by_size(np.array([], np.int64), len, max_tokens=8, required_batch_size_multiple=8) == []


@pytest.mark.parametrize(
    ("task", "flags"),
    [
        ("translation", "--valid-subset valid,train"),
        ("translation", "--valid-subset train --validate-interval-updates 2"),
        ("translation", "--train-subset valid --num-workers 1"),
        ("masked_lm", "--valid-subset train,valid"),
        pytest.param("sentence_prediction", "--valid-subset valid,train", marks=pytest.mark.slow),
        pytest.param("denoising", "--valid-subset valid,train --validate-interval-updates 1", marks=pytest.mark.slow),
    ],
)
def test_a_split_for_both_uses_is_trained_on_in_each_epoch(trained, task: str, flags: str) -> None:
    log = trained(task, f"{flags} --batch-size 8 --max-epoch 3")
    number = SAMPLES["valid" if "--train-subset valid" in flags else "train"]
    assert [samples(log, epoch) for epoch in (1, 2, 3, 4)] == [number, number, number, 0]


def test_validation_on_the_training_split_changes_no_update(trained) -> None:
    """Nor the random masks of the training, which are those of the epoch; those of the validation stay the same."""
    size = "--batch-size 8 --max-epoch 3 --validate-interval-updates 1"
    log, alone = trained("masked_lm", f"{size} --valid-subset train"), trained("masked_lm", size)
    assert [line["loss"] for line in log if "bsz" in line] == [line["loss"] for line in alone if "bsz" in line]
    assert len({line["train_loss"] for line in log if "train_loss" in line}) > 1


@pytest.mark.slow
def test_random_masks_differ_from_epoch_to_epoch(trained) -> None:
    """The learning rate is 0, so an equal loss would mean equal masks; here with a process that loads the data."""
    log = trained("masked_lm", "--batch-size 64 --num-workers 1 --max-epoch 3")
    assert len({line["loss"] for line in log if "loss" in line and "bsz" in line}) == 3
