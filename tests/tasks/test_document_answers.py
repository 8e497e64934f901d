"""The task of questions on whole documents: scores of its three heads, gradients, damaged labels."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from encoder_tasks import dataset_of, task_of
from fairseq.criterions import CRITERION_REGISTRY
from helpers import assert_close

from hat_fairseq.data.binarize import binarize_text
from hat_fairseq.data.blocks import Blocks
from hat_fairseq.data.dictionary import Dictionary

Data = Callable[[str], Path]
ARCHITECTURES = pytest.mark.parametrize(
    ("arch", "flags"), [("hat_roberta_tiny", ""), ("hierarchical_transformer_tiny", "--segment-by marker")]
)


@pytest.mark.slow
@ARCHITECTURES
def test_scores_are_where_an_answer_may_be_whatever_the_batch(data_of: Data, arch: str, flags: str) -> None:
    task, model = task_of("document_qa", data_of("document_qa"), flags, arch)
    task.load_dataset("train")
    dataset = task.datasets["train"]
    text = (data_of("document_qa").parent / "text/train.source").read_text().splitlines()
    batch = dataset.collater([dataset[index] for index in range(7)])
    logits = task.logits(model, batch)
    for index in range(7):
        tokens = [*text[index].split(), "</s>"]
        alone = {n: scores[0] for n, scores in task.logits(model, dataset.collater([dataset[index]])).items()}
        markers = [place for place, token in enumerate(tokens) if token == "<s>"]
        possible = [place > markers[1] and token not in ("<s>", "</s>") for place, token in enumerate(tokens)]
        assert alone["span"].isfinite().all(1).tolist() == [True, *possible[1:]]
        assert len(alone["paragraph"]) == len(markers)
        assert alone["paragraph"].isfinite().all()
        assert alone["paragraph"][0] == 0
        assert alone["type"].shape == (5,)
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
def test_the_loss_reaches_every_parameter(data_of: Data, arch: str, flags: str) -> None:
    task, model = task_of("document_qa", data_of("document_qa"), flags, arch)
    task.load_dataset("train")
    dataset = task.datasets["train"]
    batch = dataset.collater([dataset[index] for index in range(9)])
    loss, rows, _ = CRITERION_REGISTRY["document_answers"](task)(model, batch)
    loss.backward()
    assert rows == 9
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []
    assert all(float(head.dense.weight.grad.abs().sum()) > 0 for head in model.classification_heads.values())


DAMAGED = {
    "0 0 0": "'0 0 0' is no answer in a document",
    "0 0 none none": "'0 0 none none' is no answer in a document",
    "0 0 3 9": "'0 0 3 9' is no answer in a document",
    "0 0 7 yes": "'0 0 7 yes' is not in a row of 6 paragraphs",
    "0 0 0 yes": "is not in a row of 6 paragraphs",
    "0 0 1 span": "is not in a row of 6 paragraphs",
    "0 0 1 none": "is not in a row of 6 paragraphs",
    "1 1 1 span": "tokens 1 to 1 of \\d+ are not in the text",
}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "message"), DAMAGED.items())
def test_damaged_labels_are_refused(words: str, message: str, data_of: Data, tmp_path: Path) -> None:
    data = shutil.copytree(data_of("document_qa"), tmp_path / "bin")
    dictionary = Dictionary.load(data / "label/dict.txt")
    (tmp_path / "labels").write_text(f"{words}\n" * 24)
    binarize_text(tmp_path / "labels", dictionary, data / "label/train", Blocks(tmp_path / "blocks"))
    with pytest.raises(ValueError, match=f"label row 1: .*{message}"):
        dataset_of("document_qa", data)[1][0]
