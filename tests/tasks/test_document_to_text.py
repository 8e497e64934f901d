"""The task `document_to_text`: its batches, its options, and the scores of texts that a validation generates."""

import json
import shutil
import sys
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from building import TINY, build
from fairseq import options, tasks
from fairseq.logging import metrics

from hat_fairseq import cli
from hat_fairseq.data.binarize import binarize_text
from hat_fairseq.data.blocks import Blocks
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.word_tokenizer import word_tokenizer
from hat_fairseq.tasks import document_to_text
from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask

# Other sections of the settings of fairseq have them.
LOADED: dict[str, Any] = {"train_subset": "train", "dataset_impl": "mmap", "required_seq_len_multiple": 7}


def built(data: Path) -> tuple[Any, Any]:
    """A task that has built its model, and the model."""
    words = f"{data} --task document_to_text --arch hat_transformer_tiny --cpu --eval-bleu"
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=words.split())
    task = tasks.setup_task(args)
    return task, task.build_model(args)


def changed(ami: Path, folder: Path, setting: str, other: str) -> Path:
    """A copy of the data with another setting."""
    shutil.copytree(ami / "bin", folder / "bin")
    path = folder / "bin/pipeline.json"
    assert setting in path.read_text()
    path.write_text(path.read_text().replace(setting, other))
    return folder / "bin"


def bleu(task: Any, model: Any, monkeypatch: pytest.MonkeyPatch, generated: list[torch.Tensor], target: Any) -> Any:
    """What `--eval-bleu` says of a batch for which the model generates these tokens."""
    beams = [[{"tokens": tokens}] for tokens in generated]
    monkeypatch.setattr(task, "inference_step", lambda *_, **__: beams)
    return task._inference_with_bleu(None, {"target": target}, model)


@pytest.mark.fault("Training", "--eval-bleu without the package of the word tokenizer", "refused at the start")
def test_a_missing_word_tokenizer_is_known_before_training(
    ami: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)  # importing it fails as if it were not installed
    word_tokenizer.cache_clear()
    with pytest.raises(ValueError, match="the word tokenizer jieba needs the package jieba"):
        built(changed(ami, tmp_path, '"target_tokenizer": "none"', '"target_tokenizer": "jieba"'))


def test_the_tokenizer_follows_the_language_of_the_data(
    ami: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, model = built(changed(ami, tmp_path, '"target_language": "en"', '"target_language": "zh"'))
    task.load_dataset("valid")
    target = task.datasets["valid"].tgt[0]
    assert bleu(task, model, monkeypatch, [target], target[None]).score > 50  # <unk> of the reference never matches
    assert task.bleu.tokenizer_signature == "zh"


def test_the_tokenizer_follows_the_script_of_the_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data do not state that their target is Chinese."""
    row = {"id": "x", "sentences": ["Fine weather."], "target": ["今天天气很好。", "明天会下雨。"]}
    for split in ("train", "valid"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    assert cli.main(["preprocess", str(tmp_path), "--num-codes", "20", "--out", str(tmp_path / "data")]) == 0
    task, model = built(tmp_path / "data/bin")
    task.load_dataset("valid")
    target = task.datasets["valid"].tgt[0]
    score = bleu(task, model, monkeypatch, [torch.cat([target[:-2], target[-1:]])], target[None])
    assert score.ref_len == len("今天天气很好。明天会下雨。")


def test_an_unknown_word_is_no_match(ami: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, model = built(ami / "bin")
    tokens = torch.tensor([task.tgt_dict.unk()] * 5 + [task.tgt_dict.eos()])
    assert bleu(task, model, monkeypatch, [tokens], tokens[None]).counts[0] == 0


def test_rouge_is_the_mean_over_rows_of_all_batches(ami: Path) -> None:
    """A good text in a batch of its own, and two bad ones; nothing is logged where nothing was generated."""
    texts = [[("the remote control is yellow", "the remote control is yellow")], [("a", "b c"), ("d", "e f")]]
    logs = [document_to_text.rouge_sums(pairs) for pairs in texts]
    for logged, expected in ((logs, {"rouge1": 33.33, "rouge2": 33.33, "rougeL": 33.33}), ([{"loss": 1.0}], {})):
        with metrics.aggregate(new_root=True) as aggregator:
            document_to_text.reduce_scores(logged)
        assert aggregator.get_smoothed_values() == expected


def test_samples_longer_than_the_model_takes_are_refused(ami: Path) -> None:
    task = DocumentToTextTask.setup_task(DocumentToTextConfig(**LOADED, data=str(ami / "bin")))
    task.load_dataset("train")
    limits = {"max_positions": (60, 60), "ignore_invalid_inputs": True, "disable_iterator_cache": True}
    with pytest.raises(ValueError, match=r"\d of 6 samples are longer than the model takes, .* or than --max-tokens"):
        task.get_batch_iterator(task.dataset("train"), 60, **limits).next_epoch_itr()


@pytest.mark.parametrize("stream", [None, "role"])
def test_roles_that_nothing_reads_are_logged(ami: Path, stream: str | None, caplog: pytest.LogCaptureFixture) -> None:
    config = DocumentToTextConfig(**LOADED, data=str(ami / "bin"), role_stream=stream)
    DocumentToTextTask.setup_task(config).load_dataset("train")
    assert ("which only --role-stream role reads" in caplog.text) == (stream is None)


def test_roles_stay_with_their_documents(ami: Path, tmp_path: Path) -> None:
    """In a batch, which fairseq sorts by length; those of other documents are refused."""
    data = shutil.copytree(ami / "bin", tmp_path / "bin")
    config = DocumentToTextConfig(**LOADED, data=str(data), role_stream="role")
    task = DocumentToTextTask.setup_task(config)
    task.load_dataset("train")
    dataset = task.datasets["train"]
    samples = sorted((dataset[index] for index in range(6)), key=lambda sample: len(sample["source"]))
    samples[0] |= {name: samples[0][name][1:] for name in ("source", "roles")}  # so that one is shorter
    batch = dataset.collater(samples)
    assert batch["id"].tolist() != [sample["id"] for sample in samples]
    roles = {sample["id"]: sample["roles"] for sample in samples}
    for index, row in zip(batch["id"].tolist(), batch["net_input"]["roles"], strict=True):
        assert torch.equal(row[: len(roles[index])], roles[index])
    dictionary = Dictionary.load(data / "dict.role.txt")
    (tmp_path / "roles").write_text(f"{task.role_dictionary[4]}\n" * 6)
    binarize_text(tmp_path / "roles", dictionary, data / "train.role-None.role", Blocks(tmp_path / "blocks"))
    with pytest.raises(ValueError, match="not one id for each source token of each document"):
        task.load_dataset("train")
    for extension in ("bin", "idx"):
        shutil.copy(data / f"train.source-target.target.{extension}", data / f"train.role-None.role.{extension}")
    with pytest.raises(ValueError, match="damaged, or of another dictionary"):
        task.load_dataset("train")
    for path in data.glob("train.role-None.*"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match="the stream of --role-stream role is missing"):
        task.load_dataset("train")


def test_lengths_are_those_of_the_model(ami: Path) -> None:
    """To the token; the references of a test split may be longer than what is generated."""
    lengths = {}
    for source, target in ((1024, 1024), (121, 61), (120, 61), (121, 20)):
        limits = {"max_source_positions": source, "max_target_positions": target}
        task = DocumentToTextTask.setup_task(DocumentToTextConfig(**LOADED, **limits, data=str(ami / "bin")))
        for split in ("train", "test"):
            is_long = (source == 120, target == 20 and split == "train")
            message = (
                rf"{split}: \d of 6 \w+ are longer than the model takes, \d+; the longest has \d+ tokens.*-tokens \d+$"
            )
            with pytest.raises(ValueError, match=message) if any(is_long) else nullcontext():
                task.load_dataset(split)
                lengths[split, target] = task.datasets[split].src_sizes.max(), task.datasets[split].tgt_sizes.max()
    assert lengths["train", 61] == (121, 61)
    assert lengths["test", 20] == (121, 20)


def test_options_with_a_wrong_result_are_refused(ami: Path) -> None:
    with pytest.raises(ValueError, match="--left-pad-target is not supported"):
        DocumentToTextTask.setup_task(DocumentToTextConfig(data=str(ami / "bin"), left_pad_target=True))
    task = DocumentToTextTask.setup_task(DocumentToTextConfig(data=str(ami / "bin")))
    with pytest.raises(ValueError, match="use `hat generate MODEL FILE`"):  # fairseq-interactive
        task.get_interactive_tokens_and_lengths(["Hello ."], None)
    model = build("hat_transformer_tiny", TINY)
    with pytest.raises(ValueError, match="--retain-dropout is not supported"):  # reaches fairseq's own modules only
        model.prepare_for_inference_(Namespace(generation=Namespace(retain_dropout=True)))
