"""Texts that a validation generates: the tokenizer of BLEU, unknown words, and what is known before the training."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options, tasks

from hat_fairseq import cli
from hat_fairseq.data.word_tokenizer import word_tokenizer
from hat_fairseq.tasks import validation


def built(data: Path) -> tuple[Any, Any]:
    """A task that has built its model, and the model."""
    given = f"{data} --task document_to_text --arch hat_transformer_tiny --cpu --eval-bleu"
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=given.split())
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


@pytest.mark.parametrize(("language", "tokenizer"), [("zh", "zh"), ("de", "13a")])
def test_the_tokenizer_follows_the_language_of_the_data(
    ami: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, tokenizer: str
) -> None:
    task, model = built(changed(ami, tmp_path, '"target_language": "en"', f'"target_language": "{language}"'))
    task.load_dataset("valid")
    target = task.datasets["valid"].tgt[0]
    assert bleu(task, model, monkeypatch, [target], target[None]).score > 50  # <unk> of the reference never matches
    assert task.bleu.tokenizer_signature == tokenizer


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


def test_a_validation_that_generates_nothing_logs_nothing() -> None:
    from fairseq.logging import metrics

    with metrics.aggregate(new_root=True) as aggregator:
        validation.reduce([{"loss": 1.0}])
    assert not aggregator.get_smoothed_values()
