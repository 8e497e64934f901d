"""The task of questions on whole documents: targets, scores of its three heads, truncation, loss, training."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from commands import USER_DIR
from fairseq import options, tasks
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.logging import metrics
from helpers import assert_close
from warm import WarmPython

from hat_fairseq.data.labels import ANSWER_TYPES

Data = Callable[[str], Path]
ARCHITECTURES = pytest.mark.parametrize(
    "arch", ["hat_roberta_tiny", "hierarchical_transformer_tiny", "hierarchical_transformer_tiny --segment-by marker"]
)
PLAIN = "--dropout 0 --attention-dropout 0 "


def task_of(data: Path, flags: str = "", arch: str = "hat_roberta_tiny") -> tuple[Any, Any, Any]:
    """The task, its model built the way fairseq-train builds it, and the training part."""
    words = f"{data} --task document_question_answering --arch {arch} --cpu {PLAIN} {flags}".split()
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
    task = tasks.setup_task(args)
    model = task.build_model(args).eval()
    task.load_dataset("train")
    return task, model, task.datasets["train"]


def text_rows(data: Path, split: str = "train") -> list[tuple[list[str], list[str]]]:
    """Tokens with their final `</s>`, and labels, as a person reads them."""
    source, label = ((data.parent / f"text/{split}.{name}").read_text().splitlines() for name in ("source", "label"))
    return [([*row.split(), "</s>"], words.split()) for row, words in zip(source, label, strict=True)]


def as_numbers(words: list[str]) -> list[int]:
    return [*map(int, words[:3]), ANSWER_TYPES.index(words[3])]


def test_samples_are_the_rows_of_the_text_files(data_of: Data) -> None:
    task, _, dataset = task_of(data_of("document_qa"))
    rows = text_rows(data_of("document_qa"))
    assert len(dataset) == len(rows) == 24 and task.labels == []
    for index, (tokens, words) in enumerate(rows):
        item = dataset[index]
        assert item["tokens"][0].tolist() == [task.source_dictionary.index(token) for token in tokens]
        assert item["target"] == as_numbers(words)
    assert {words[3] for _, words in rows} == set(ANSWER_TYPES) - {"no"}


@ARCHITECTURES
def test_scores_do_not_depend_on_batch_mates_and_exist_where_an_answer_may_be(data_of: Data, arch: str) -> None:
    task, model, dataset = task_of(data_of("document_qa"), arch=arch)
    rows, batch = text_rows(data_of("document_qa")), dataset.collater([dataset[index] for index in range(7)])
    logits = task.logits(model, batch)
    for index in range(7):
        tokens = rows[index][0]
        alone = {n: scores[0] for n, scores in task.logits(model, dataset.collater([dataset[index]])).items()}
        markers = [place for place, token in enumerate(tokens) if token == "<s>"]
        text = [place > markers[1] and token not in ("<s>", "</s>") for place, token in enumerate(tokens)]
        assert alone["span"].isfinite().all(1).tolist() == [True, *text[1:]]
        assert len(alone["paragraph"]) == len(markers) and alone["paragraph"].isfinite().all()
        assert alone["paragraph"][0] == 0 and alone["type"].shape == (5,)
        for name, scores in alone.items():
            padded = logits[name][index]
            assert_close(padded[: len(scores)].nan_to_num(neginf=-9), scores.nan_to_num(neginf=-9))
            assert padded[len(scores) :].eq(float("-inf")).all()
        states = model(torch.tensor([[task.source_dictionary.index(t) for t in tokens]]), features_only=True)[0][0]
        ends = [*markers[2:], len(tokens) - 1]
        means = torch.stack([states[a + 1 : b].mean(0) for a, b in zip(markers[1:], ends, strict=True)])
        assert_close(alone["paragraph"][1:], model.classification_head("answer_paragraph")(means).squeeze(-1))
        assert_close(alone["type"], model.classification_head("answer_type")(means.mean(0)))


@ARCHITECTURES
def test_the_loss_is_the_mean_over_the_heads_and_reaches_every_parameter(data_of: Data, arch: str) -> None:
    task, model, dataset = task_of(data_of("document_qa"), arch=arch)
    criterion = CRITERION_REGISTRY["document_answers"](task)
    batch = dataset.collater([dataset[index] for index in range(9)])
    loss, rows, log = criterion(model, batch)
    wanted, right = 0.0, dict.fromkeys(("paragraph", "type", "exact", "exact_answers"), 0)
    for index in range(9):
        logits = {n: scores[0] for n, scores in task.logits(model, dataset.collater([dataset[index]])).items()}
        start, end, number, kind = torch.tensor(dataset[index]["target"])
        logits = {name: scores.detach() for name, scores in logits.items()}
        each = [F.cross_entropy(logits["span"][:, side], (start, end)[side]) for side in (0, 1)]
        wanted += (
            sum(each) / 2 + F.cross_entropy(logits["paragraph"], number) + F.cross_entropy(logits["type"], kind)
        ) / 3
        right["paragraph"] += int(logits["paragraph"].argmax()) == number
        right["type"] += int(logits["type"].argmax()) == kind
        spans = [(0, 0)] + [(a, b) for a in range(1, len(logits["span"])) for b in range(a, len(logits["span"]))]
        best = max(spans, key=lambda span: float(logits["span"][span[0], 0] + logits["span"][span[1], 1]))
        right["exact"] += best == (start, end)
        right["exact_answers"] += best == (start, end) and start > 0
    assert rows == 9
    assert_close(loss, torch.as_tensor(wanted))
    loss.backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []
    assert all(float(head.dense.weight.grad.abs().sum()) > 0 for head in model.classification_heads.values())
    with metrics.aggregate(new_root=True) as found:
        type(criterion).reduce_metrics([log])
    values = found.get_smoothed_values()
    assert values["paragraph_accuracy"] == pytest.approx(100 * float(right["paragraph"]) / 9, abs=1e-3)
    assert values["type_accuracy"] == pytest.approx(100 * float(right["type"]) / 9, abs=1e-3)
    assert values["accuracy"] == pytest.approx(100 * float(right["exact"]) / 9, abs=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("0 0 0", "'0 0 0' is no answer in a document"),
        ("0 0 none none", "'0 0 none none' is no answer in a document"),
        ("0 0 3 9", "'0 0 3 9' is no answer in a document"),
        ("0 0 7 yes", "'0 0 7 yes' is not in a row of 6 paragraphs"),
        ("0 0 0 yes", "is not in a row of 6 paragraphs"),
        ("0 0 1 span", "is not in a row of 6 paragraphs"),
        ("0 0 1 none", "is not in a row of 6 paragraphs"),
        ("1 1 1 span", "tokens 1 to 1 of \\d+ are not in the text"),
    ],
)
def test_damaged_labels_are_refused(words: str, message: str, data_of: Data, tmp_path: Path) -> None:
    from hat_fairseq.data.binarize import binarize_text
    from hat_fairseq.data.blocks import Blocks
    from hat_fairseq.data.dictionary import Dictionary

    data = shutil.copytree(data_of("document_qa"), tmp_path / "bin")
    (tmp_path / "labels").write_text(f"{words}\n" * 24)
    dictionary = Dictionary.load(data / "label/dict.txt")
    binarize_text(tmp_path / "labels", dictionary, data / "label/train", Blocks(tmp_path / "blocks"))
    with pytest.raises(ValueError, match=f"label row 1: .*{message}"):
        task_of(data)[2][0]


def test_criterions_of_other_tasks_are_refused(data_of: Data) -> None:
    task, _, _ = task_of(data_of("document_qa"))
    for name, message in (
        ("answer_spans", "answer_spans is not for this task: give --criterion document_answers"),
        ("document_labels", "document_labels is not for this task: give --criterion document_answers"),
    ):
        with pytest.raises(ValueError, match=message):
            CRITERION_REGISTRY[name](task)
    words = [str(data_of("qa")), "--task", "question_answering", "--arch", "hat_roberta_tiny", "--cpu"]
    other = tasks.setup_task(options.parse_args_and_arch(options.get_training_parser(), input_args=words))
    with pytest.raises(ValueError, match="document_answers is not for this task: give --criterion answer_spans"):
        CRITERION_REGISTRY["document_answers"](other)


@pytest.mark.parametrize("arch", ["hat_roberta_tiny", "hierarchical_transformer_tiny --segment-by marker"])
def test_it_learns(data_of: Data, tmp_path: Path, warm: WarmPython, arch: str) -> None:
    """24 examples; the last figures are of the training set seen a dozen times, the first of a guess."""
    words = f"fairseq_cli.train {data_of('document_qa')} --user-dir {USER_DIR} --task document_question_answering "
    words += f"--criterion document_answers --arch {arch} {PLAIN} --pooler-dropout 0 --optimizer adam --lr 3e-3 --cpu "
    words += "--batch-size 8 --max-epoch 25 --disable-validation --no-save --log-format json --seed 1 --num-workers 0"
    text = warm.run(words.split(), tmp_path, tmp_path / "log")
    epochs = [json.loads(line) for line in re.findall(r"\| train \| (\{.*?\})", text)]
    first, last = ({name: float(value) for name, value in epochs[i].items()} for i in (0, -1))
    assert len(epochs) == 25 and last["train_loss"] < 0.6 * first["train_loss"]
    for name in ("accuracy", "paragraph_accuracy", "type_accuracy"):
        assert last[f"train_{name}"] > max(55, first[f"train_{name}"]), name
