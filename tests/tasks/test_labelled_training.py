"""fairseq-train and fairseq-validate on labelled data: every task learns, figures are right, runs can be stopped."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from commands import TWO_PROCESSES, USER_DIR, environment, run_command
from fairseq import checkpoint_utils
from sklearn.metrics import accuracy_score, f1_score
from trainings import assert_same_result, checkpoint
from warm import WarmPython

from hat_fairseq.data.kinds import KINDS

Data = Callable[[str], Path]
ROBERTA, MARKERS = "hat_roberta_tiny", "hierarchical_transformer_tiny --segment-by marker"
LENGTHS = "hierarchical_transformer_tiny --pooling attentive"
COMMON = f"--user-dir {USER_DIR} --optimizer adam --cpu --batch-size 8 --log-format json --log-interval 1 --seed 1 "
COMMON += "--num-workers 0 --data-buffer-size 0 --no-epoch-checkpoints "
CRITERIONS = {"qa": "answer_spans", "document_qa": "document_answers"}
PLAIN = "--dropout 0 --attention-dropout 0 --pooler-dropout 0 "


@pytest.fixture
def run(warm: WarmPython, tmp_path: Path) -> Callable[[str], str]:
    """What a command of fairseq prints."""
    return lambda words: warm.run(f"fairseq_cli.{words}".split(), tmp_path, tmp_path / "log")


def train(kind: str, data: Path, save: Path, flags: str, lr: float = 3e-3) -> str:
    task = (
        f"--task {KINDS[kind].task} --criterion {CRITERIONS.get(kind, 'document_labels')} --lr {lr} --save-dir {save} "
    )
    return f"train {data} {task}{COMMON}{flags}"


def logs(text: str, which: str) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in re.findall(rf"\| {which} \| (\{{.*?\}})", text)]
    return [{name.removeprefix(f"{which}_"): float(value) for name, value in line.items()} for line in lines]


def curve(*texts: str) -> list[tuple[float, float]]:
    return [(step["loss"], step["accuracy"]) for text in texts for step in logs(text, "train_inner")]


@pytest.mark.parametrize(
    ("kind", "arch"),
    [
        pytest.param("classification", MARKERS, marks=pytest.mark.slow),
        pytest.param("segments", LENGTHS, marks=pytest.mark.slow),
        ("tokens", ROBERTA),
        pytest.param("choice", LENGTHS, marks=pytest.mark.slow),
        pytest.param("qa", MARKERS, marks=pytest.mark.slow),
        pytest.param("document_qa", ROBERTA, marks=pytest.mark.slow),
    ],
)
def test_every_task_learns(run, data_of: Data, tmp_path: Path, kind: str, arch: str) -> None:
    """24 examples; the last loss is of the training set seen a dozen times, the first of a guess."""
    flags = f"--arch {arch} {PLAIN} --max-epoch 18 --disable-validation --no-save"
    epochs = logs(run(train(kind, data_of(kind), tmp_path, flags)), "train")
    assert len(epochs) == 18
    assert epochs[-1]["loss"] < 0.6 * epochs[0]["loss"]
    assert epochs[-1]["accuracy"] > max(60, epochs[0]["accuracy"])
    for name in ("paragraph_accuracy", "type_accuracy") if kind == "document_qa" else ():
        assert epochs[-1][name] > max(50, epochs[0][name]), name
    if kind in ("classification", "segments", "tokens"):
        assert epochs[-1]["f1_macro"] > epochs[0]["f1_macro"]
        assert epochs[-1]["f1_micro"] == epochs[-1]["accuracy"]


def predictions(checkpoint: Path, data: Path) -> tuple[list[int], list[int]]:
    """Labels and predictions of the validation split, example by example."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    task.load_dataset("valid")
    dataset, true, guess = task.datasets["valid"], [], []
    for index in range(len(dataset)):
        batch = dataset.collater([dataset[index]])
        labelled = batch["target"].flatten() >= 0
        true += batch["target"].flatten()[labelled].tolist()
        guess += task.logits(model.eval(), batch).argmax(-1).flatten()[labelled].tolist()
    return true, guess


@pytest.mark.slow
def test_figures_are_scikit_learns_and_choose_the_best_checkpoint(run, data_of: Data, tmp_path: Path) -> None:
    """Validation in batches of 5, of very unequal numbers of labels; then again by fairseq-validate."""
    kind, data = "segments", data_of("segments")
    flags = f"--arch {MARKERS} --max-epoch 3 --batch-size-valid 5 --best-checkpoint-metric accuracy "
    text = run(train(kind, data, tmp_path / "model", flags + "--maximize-best-checkpoint-metric", lr=1e-3))
    valid, best = logs(text, "valid"), tmp_path / "model/checkpoint_best.pt"
    figures = max(valid, key=lambda epoch: epoch["accuracy"])
    true, guess = predictions(best, data)
    assert figures["accuracy"] == pytest.approx(100 * accuracy_score(true, guess), abs=1e-3)
    assert valid[-1]["best_accuracy"] == figures["accuracy"]
    assert figures["f1_micro"] == pytest.approx(100 * f1_score(true, guess, average="micro"), abs=1e-3)
    assert figures["f1_macro"] == pytest.approx(100 * f1_score(true, guess, average="macro"), abs=1e-3)
    again = run(f"validate {data} --user-dir {USER_DIR} --task {KINDS[kind].task} --path {best} --batch-size 7 --cpu")
    assert re.search(rf"accuracy {figures['accuracy']:g} ", again), again


@pytest.mark.slow
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(run, data_of: Data, tmp_path: Path) -> None:
    """Three updates an epoch, dropout on; stopped in the middle of the second."""
    flags = f"--arch {MARKERS} --dropout-schedule 0,1 --save-interval-updates 1 --keep-interval-updates 1 "
    flags += "--disable-validation --max-update "
    whole = run(train("choice", data_of("choice"), tmp_path / "whole", f"{flags} 5"))
    parts = [run(train("choice", data_of("choice"), tmp_path / "parts", f"{flags} {updates}")) for updates in (4, 5)]
    assert len(curve(whole)) == 5
    assert curve(*parts) == curve(whole)
    assert "epoch 2: dropout rates times 1" in parts[1]
    assert_same_result(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
def test_two_processes_equal_one_with_twice_the_batch(
    run, warm: WarmPython, data_of: Data, tmp_path: Path, monkeypatch
) -> None:
    """Three batches an update and an epoch: the second process has no second one, and fairseq fills up."""
    monkeypatch.setenv("LOGLEVEL", "DEBUG")  # all settings are in the log
    flags = f"--arch {MARKERS} {PLAIN} --max-epoch 2 --no-save "
    one = run(train("segments", data_of("segments"), tmp_path, flags + "--update-freq 4"))
    words = train("segments", data_of("segments"), tmp_path, flags + "--update-freq 2").split()[1:]
    done = run_command(*TWO_PROCESSES, *words, env=environment(PATH=warm.programs))
    two = done.stdout + done.stderr
    names = ("loss", "accuracy", "f1_micro", "f1_macro")
    for which in ("train", "valid"):
        epochs, expected = ([[epoch[name] for name in names] for epoch in logs(text, which)] for text in (two, one))
        assert len(epochs) == 2
        for values, reference in zip(epochs, expected, strict=True):
            assert values == pytest.approx(reference, abs=2e-3)
    assert "'distributed_world_size': 2" in two
    assert "find_unused_parameters': False" in two


@pytest.mark.slow
def test_fine_tuning_after_masked_lm_on_rows(run, data_of: Data, tmp_path: Path) -> None:
    """Pre-training reads the rows of the kind mlm one by one, and its dictionary is that of the labelled data."""
    arch = MARKERS
    flags = "--task masked_document_lm --criterion masked_lm --lr 1e-3 --sample-break-mode eos --tokens-per-sample 400 "
    flags += f"--arch {arch} --max-update 2 --disable-validation --save-dir {tmp_path}"
    steps = logs(run(f"train {data_of('mlm')} {COMMON}{flags}"), "train_inner")
    assert len(steps) == 2
    assert all(5 < step["loss"] < 15 for step in steps)
    flags = f"--arch {arch} --max-positions 400 --max-update 1 --disable-validation --reset-optimizer "
    flags += f"--reset-dataloader --reset-meters --restore-file {tmp_path / 'checkpoint_last.pt'}"
    text = run(train("qa", data_of("qa"), tmp_path / "next", flags, lr=0))
    assert "lm_head: not in the model; skipped 6 tensors" in text
    assert "newly initialised" in text
    before, after = (checkpoint(folder)["model"] for folder in (tmp_path, tmp_path / "next"))
    assert all(torch.equal(tensor, before[name]) for name, tensor in after.items() if "heads" not in name)


@pytest.mark.parametrize("kind", ["classification", "segments"])
def test_words_beside_the_network_are_fitted_to_the_training_data(
    run, data_of: Data, tmp_path: Path, kind: str
) -> None:
    data, flags = data_of(kind), "--arch hat_units_tiny --freeze-encoder --max-epoch 1 --disable-validation"
    for name, more in (("words", ""), ("none", " --no-words")):
        run(train(kind, data, tmp_path / name, flags + more))
    tensors = {name: checkpoint(tmp_path / name)["model"] for name in ("words", "none")}
    fitted = {name.split("_head.")[1]: int(x) for name, x in tensors["words"].items() if name.endswith(".fitted")}
    assert fitted.keys() == (
        {"words.fitted"} if kind == "classification" else {"words.own.fitted", "words.near.fitted"}
    )
    assert all(fitted.values())
    assert not [name for name in tensors["none"] if ".words." in name]
