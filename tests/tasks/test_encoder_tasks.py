"""The tasks with labels, as objects: targets against the text files, batches, masks, limits, and wrong data."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from encoder_tasks import dataset_of, task_of
from fairseq import tasks
from fairseq.criterions import CRITERION_REGISTRY
from helpers import assert_close

from hat_fairseq.data.binarize import binarize_text
from hat_fairseq.data.blocks import Blocks
from hat_fairseq.data.dictionary import Dictionary as Words
from hat_fairseq.data.ids import read_ids
from hat_fairseq.data.kinds.windows import ANSWER_TYPES

Data = Callable[[str], Path]
KIND_NAMES = ["classification", "segments", "tokens", "choice", "candidates", "qa"]
KINDS = pytest.mark.parametrize("kind", KIND_NAMES)
ARCHITECTURES = ["hat_roberta_tiny", "hierarchical_transformer_tiny"]


def text_rows(data: Path, split: str = "train") -> tuple[list[list[str]], list[list[str]]]:
    """Tokens with their final `</s>`, and labels, as a person reads them."""
    folder = data.parent / "text"
    rows = [line.split() + ["</s>"] for line in (folder / f"{split}.source").read_text().splitlines()]
    labels = folder / f"{split}.label"
    return rows, [line.split() for line in labels.read_text().splitlines()] if labels.exists() else []


def expected(kind: str, tokens: list[str], labels: list[str], names: list[str]) -> list[int]:
    if kind == "document_qa":
        return [*map(int, labels[:3]), ANSWER_TYPES.index(labels[3])]
    if kind in ("qa", "candidates"):
        return [int(label) for label in labels]
    return [names.index(label) if label != "<pad>" else -100 for label in labels] + [-100] * (kind == "tokens")


@pytest.mark.parametrize("kind", ["classification", "segments", "tokens", "candidates", "qa", "document_qa"])
def test_samples_are_the_rows_of_the_text_files(data_of: Data, kind: str) -> None:
    task, dataset = dataset_of(kind, data_of(kind))
    rows, labels = text_rows(data_of(kind))
    assert len(dataset) == len(rows) == 24
    for index, (tokens, words) in enumerate(zip(rows, labels, strict=True)):
        item = dataset[index]
        assert item["tokens"][0].tolist() == [task.source_dictionary.index(token) for token in tokens]
        assert torch.tensor(item["target"]).flatten().tolist() == expected(kind, tokens, words, task.labels)
        assert dataset.size(index) == len(tokens)
    if kind in ("qa", "candidates", "document_qa"):
        assert task.labels == []
    else:
        assert task.labels == sorted({word for words in labels for word in words} - {"<pad>"})


def test_choices_are_grouped_by_example(data_of: Data) -> None:
    task, dataset = dataset_of("choice", data_of("choice"))
    rows, labels = text_rows(data_of("choice"))
    chunks = read_ids(data_of("choice") / "train.ids")
    assert len(dataset) == 24
    assert len(rows) == 60
    first = 0
    for index in range(len(dataset)):
        batch, count = dataset.collater([dataset[index]]), chunks[first].count
        assert batch["num_rows"].tolist() == [count]
        assert [chunk.document_id for chunk in chunks[first : first + count]] == [chunks[first].document_id] * count
        for row, length, tokens in zip(*batch["net_input"].values(), rows[first:], strict=False):
            assert row[:length].tolist() == [task.source_dictionary.index(token) for token in tokens]
        assert labels[first + int(batch["target"])] == ["right"]
        assert dataset.size(index) == batch["net_input"]["src_tokens"].numel()
        first += count


@KINDS
def test_every_sample_is_in_one_batch_and_the_last_one_stays(data_of: Data, kind: str) -> None:
    all_batches = []
    for size in (1, 33, 7):
        task, dataset = dataset_of(kind, data_of(kind))
        iterator = task.get_batch_iterator(dataset, max_sentences=size, required_batch_size_multiple=8, max_positions=9)
        batches = list(iterator.next_epoch_itr(shuffle=True))
        assert sorted(index for batch in batches for index in batch["id"].tolist()) == list(range(24))
        assert len(batches) == -(-24 // size)
        all_batches += batches
    for batch in all_batches:
        tokens, lengths = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
        assert batch["ntokens"] == int(lengths.sum()) == int(tokens.ne(1).sum())
        assert batch["nsentences"] == len(batch["id"]) == len(batch["target"])
        padding = torch.arange(tokens.size(1)) >= lengths[:, None]
        assert torch.equal(tokens.eq(task.source_dictionary.pad()), padding)  # on the right


@KINDS
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_logits_do_not_depend_on_batch_mates(arch: str, data_of: Data, kind: str) -> None:
    task, model = task_of(kind, data_of(kind), arch=arch)
    task.load_dataset("train")
    dataset = task.datasets["train"]
    batch = dataset.collater([dataset[index] for index in range(6)])
    logits = task.logits(model, batch)
    assert logits.shape[: batch["target"].dim() - (kind == "qa")] == batch["target"].shape[: 2 - (kind == "qa")]
    for index in range(6):
        alone = task.logits(model, dataset.collater([dataset[index]]))[0]
        scores = logits[index][: len(alone)]
        assert torch.equal(scores.isfinite(), alone.isfinite())
        assert_close(scores[alone.isfinite()], alone[alone.isfinite()])
        if kind in ("choice", "candidates", "qa"):
            assert logits[index][len(alone) :].eq(float("-inf")).all()


def test_an_answer_is_in_the_text_or_at_the_start(data_of: Data) -> None:
    task, model = task_of("qa", data_of("qa"))
    task.load_dataset("train")
    dataset, (rows, _) = task.datasets["train"], text_rows(data_of("qa"))
    batch = dataset.collater([dataset[index] for index in range(24)])
    possible = task.logits(model, batch).isfinite()
    for row, tokens in zip(possible, rows, strict=True):
        text = tokens.index("</s>") + 2
        wanted = [i == 0 or (i >= text and token not in ("<s>", "</s>")) for i, token in enumerate(tokens)]
        assert row[: len(tokens)].tolist() == [[value, value] for value in wanted]
        assert not row[len(tokens) :].any()


@pytest.mark.parametrize("kind", ["tokens", "choice", "qa"])
def test_a_split_without_labels_loads_and_can_be_predicted(data_of: Data, kind: str) -> None:
    task, model = task_of(kind, data_of(kind))
    task.load_dataset("test")
    dataset = task.datasets["test"]
    batch = dataset.collater([dataset[index] for index in range(5)])
    assert batch["target"] is None
    assert len(task.logits(model, batch)) == 5
    with pytest.raises(ValueError, match="the split has no labels"):
        CRITERION_REGISTRY["answer_spans" if kind == "qa" else "document_labels"](task)(model, batch)


def test_vectors_are_written_after_an_epoch_and_after_a_validation(data_of: Data, tmp_path: Path) -> None:
    """And not at each update; a file of something else is refused when the model is built."""
    path, written = tmp_path / "vectors.npz", []
    flags = f"--freeze-encoder --vectors {path}"
    task, model = task_of("classification", data_of("classification"), flags, "hat_units_tiny")
    task.load_dataset("train")
    dataset = task.datasets["train"]

    def vectors(*indices: int) -> int:
        task.logits(model, dataset.collater([dataset[index] for index in indices]))
        return len(np.load(path)["vectors"]) if path.exists() else 0

    task.begin_epoch(1, model)
    for hook in (lambda: task.begin_valid_epoch(1, model.eval()), lambda: task.post_validate(model, {}, {})):
        model.train()
        written += [vectors(len(written), len(written) + 1) for _ in range(2)]
        hook()
    task.begin_epoch(2, model)
    assert written[0] == written[1] == 0 < written[2] == written[3] < len(np.load(path)["vectors"])
    path.write_text("mine")
    with pytest.raises(ValueError, match="has no vectors that this version writes"):
        task_of("classification", data_of("classification"), flags, "hat_units_tiny")


@pytest.mark.parametrize(
    ("kind", "criterion", "right"),
    [
        ("tokens", "answer_spans", "document_labels"),
        ("qa", "document_answers", "answer_spans"),
        ("document_qa", "document_labels", "document_answers"),
    ],
)
def test_the_wrong_criterion_is_refused(kind: str, criterion: str, right: str, data_of: Data) -> None:
    with pytest.raises(ValueError, match=f"{criterion} is not for this task: give --criterion {right}"):
        CRITERION_REGISTRY[criterion](task_of(kind, data_of(kind))[0])


def test_data_of_another_kind_is_refused(data_of: Data, ami: Path) -> None:
    for kind, data, message in [
        ("segments", data_of("tokens"), "kind 'tokens', which the task segment_classification does not read"),
        ("qa", ami / "bin", "kind 'text', which the task question_answering does not read: use the task document_"),
    ]:
        with pytest.raises(ValueError, match=message):
            task_of(kind, data)
    with pytest.raises(FileNotFoundError, match="has no dictionary .*run `hat preprocess`"):
        task_of("qa", ami)


@pytest.mark.parametrize("name", ["masked_document_lm", "document_to_text"])
def test_data_of_a_kind_that_a_task_does_not_read_are_refused(name: str, data_of: Data) -> None:
    with pytest.raises(ValueError, match=f"kind 'qa', which the task {name} does not read"):
        tasks.TASK_REGISTRY[name].setup_task(tasks.TASK_DATACLASS_REGISTRY[name](data=str(data_of("qa"))))


def test_a_model_without_our_heads_is_refused(data_of: Data) -> None:
    with pytest.raises(ValueError, match="needs an encoder with classification heads"):
        task_of("tokens", data_of("tokens"), "--max-positions 64 --encoder-layers 1", arch="roberta")


@pytest.mark.parametrize("kind", ["tokens", "choice", "qa"])
def test_rows_that_are_longer_than_the_model_are_refused(data_of: Data, kind: str) -> None:
    """With their number; limits on the length are those of preprocessing."""
    rows, limit = text_rows(data_of(kind))[0], 70
    long = [len(tokens) for tokens in rows if len(tokens) > limit]
    wanted = f"train: {len(long)} of {len(rows)} rows are longer than the model takes; the longest has {max(long)} "
    with pytest.raises(
        ValueError, match=wanted + rf"tokens. It takes {limit} \(--max-positions\).*--max-source-tokens {limit}"
    ):
        dataset_of(kind, data_of(kind), flags=f"--max-positions {limit}")
    dataset_of(kind, data_of(kind), flags=f"--max-positions {max(map(len, rows))}")


def test_rows_of_more_segments_than_the_model_has_are_refused(data_of: Data) -> None:
    data, rows = data_of("segments"), text_rows(data_of("segments"))[0]
    flags = "--segment-by marker --max-segments 4 --segment-length 99"
    task, _ = task_of("segments", data, flags, "hierarchical_transformer_tiny")
    long = [tokens for tokens in rows if tokens.count("<s>") > 4]
    limit = r"It takes 4 segments \(--max-segments\) of up to 99 tokens \(--segment-length\).*--max-segments 4 "
    wanted = rf"{len(long)} of {len(rows)} rows are longer than the model takes; .*{limit}--segment-length 99"
    with pytest.raises(ValueError, match=wanted):
        task.load_dataset("train")


def test_max_tokens_below_a_sample_is_an_error(data_of: Data) -> None:
    """fairseq would leave the sample out of training."""
    task, dataset = dataset_of("choice", data_of("choice"))
    longest = max(dataset.size(index) for index in range(len(dataset)))
    message = rf"--max-tokens {longest - 1} \(.*\) is too low: one sample has {longest} tokens"
    with pytest.raises(ValueError, match=message):
        limits = {"max_tokens": longest - 1, "max_positions": longest - 1, "ignore_invalid_inputs": True}
        task.get_batch_iterator(dataset, **limits, disable_iterator_cache=True).next_epoch_itr()
    batches = list(task.get_batch_iterator(dataset, max_tokens=longest).next_epoch_itr())
    assert max(batch["net_input"]["src_tokens"].numel() for batch in batches) <= longest
    assert sum(batch["nsentences"] for batch in batches) == 24


@pytest.mark.parametrize(
    ("kind", "labels_from", "removed", "message"),
    [
        ("tokens", "valid", None, r"label row 1: \d+ labels where there should be \d+; preprocess"),
        ("qa", "valid", None, r"label row \d+: tokens \d+ to \d+ of \d+ are not in the text"),
        ("choice", None, "train.ids", r"train\.ids"),
        ("choice", None, "input0/train.idx", r"train\.idx is missing; run hat preprocess"),
        ("qa", None, "label/dict.txt", r"label/dict\.txt is missing, but train has labels"),
        ("classification", None, "label/dict.txt", r"label/dict\.txt is missing"),
    ],
)
def test_data_that_do_not_belong_together_are_an_error(
    data_of: Data, tmp_path: Path, kind: str, labels_from: str | None, removed: str | None, message: str
) -> None:
    """The labels of another split in the place of those of `train`, or a file that is missing."""
    data = shutil.copytree(data_of(kind), tmp_path / "bin")
    for end in ("bin", "idx") if labels_from else ():
        shutil.copy(data / f"label/{labels_from}.{end}", data / f"label/train.{end}")
    if removed:
        (data / removed).unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        dataset = dataset_of(kind, data)[1]
        [dataset[index] for index in range(len(dataset))]


def test_rows_that_the_ids_do_not_list_are_an_error(data_of: Data, tmp_path: Path) -> None:
    data = shutil.copytree(data_of("choice"), tmp_path / "bin")
    *lines, last = (data / "train.ids").read_text().splitlines(keepends=True)
    document = last.split("\t")[0]
    (data / "train.ids").write_text("".join(line for line in lines if line.split("\t")[0] != document))
    with pytest.raises(ValueError, match=r"the rows are not those of train\.ids"):
        dataset_of("choice", data)


def test_dictionaries_of_fairseq_preprocess_have_no_made_up_labels(data_of: Data, tmp_path: Path) -> None:
    data = shutil.copytree(data_of("classification"), tmp_path / "bin")
    labels = task_of("classification", data)[0].labels
    (data / "pipeline.json").unlink()
    with (data / "label/dict.txt").open("a") as file:
        file.write("madeupword0000 0\n")
    assert task_of("classification", data)[0].labels == labels


def test_labels_of_other_rows_or_of_another_dictionary_are_an_error(data_of: Data, tmp_path: Path) -> None:
    data = shutil.copytree(data_of("classification"), tmp_path / "bin")
    words = (data / "label/dict.txt").read_text()
    (data / "label/dict.txt").write_text(words.splitlines()[0] + "\n")
    with pytest.raises(ValueError, match=r"label/train.bin has the id 5, and the dictionary ends at 4: damaged, or of"):
        dataset_of("classification", data)
    (data / "label/dict.txt").write_text(words)
    (data.parent / "text").write_text(words.split()[0] + "\n")
    binarize_text(
        data.parent / "text", Words.load(data / "label/dict.txt"), data / "label/train", Blocks(tmp_path / "b")
    )
    with pytest.raises(ValueError, match="1 rows of labels for 24 rows; preprocess the data again"):
        dataset_of("classification", data)
