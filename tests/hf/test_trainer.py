"""transformers' Trainer trains the models on real articles."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from building import EOS, PAD
from commands import hat, read_lines, refusal, write_lines
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline

transformers = pytest.importorskip("transformers", reason="make setup")
pytest.importorskip("accelerate", reason="make setup")
from hat_fairseq import hf  # noqa: E402

SIZES = {"encoder_embed_dim": 32, "encoder_ffn_embed_dim": 48, "encoder_layers": 2, "dropout": 0.0}
DECODER = {name.replace("encoder", "decoder"): size for name, size in SIZES.items()}
SIZES |= {"encoder_attention": "window", "attention_window": 16}
TEXTS = [["Metal Man is the easiest second easiest third easiest Robot Master ."], ["The president said .", "Yes ."]]
# As `hat export` writes them, so that transformers finds the hypotheses of fairseq.
GENERATION = {"num_beams": 4, "min_length": 5, "max_length": 20, "early_stopping": True, "forced_eos_token_id": EOS}
GENERATION |= {"suppress_tokens": [PAD]}
RUNS: list[dict[str, Any]] = [
    {},
    {"activation_checkpointing": True, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
]


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[dict[str, Any]]]:
    """A tokenizer; and of each article its ids, those of its title, and whether it is hyperpartisan."""
    with gzip.open(Path(__file__).parents[1] / "samples/hyperpartisan.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    texts = [text for record in records for text in (record["title"], *record["paragraphs"])]
    bpe, folder = LearnedBpe.learn(texts, 300), tmp_path_factory.mktemp("tokenizer")
    TextPipeline(Settings(max_source_tokens=100, long_source="truncate"), bpe).save(folder)
    Dictionary(Counter(t for text in texts for t in bpe.encode(text)).most_common()).save(folder / "dict.source.txt")
    tokenizer = hf.HatTokenizer(str(folder / "pipeline.json"))
    ids = tokenizer([record["paragraphs"] for record in records], padding=False)["input_ids"]
    titles = [[*map(tokenizer.target.ids.__getitem__, bpe.encode(r["title"])), EOS] for r in records]
    labels = [int(record["hyperpartisan"] == "true") for record in records]
    return tokenizer, [
        {"input_ids": row, "title": torch.tensor(title), "label": label}
        for row, title, label in zip(ids, titles, labels, strict=True)
    ]


def losses(model: Any, examples: list[dict[str, Any]], target: str, folder: Path, **options: Any) -> list[float]:
    """The loss of each of 20 updates; the Trainer then saves the model into the folder."""

    def collate(batch: list[dict[str, Any]]) -> dict[str, Tensor]:
        ids = pad_sequence([torch.tensor(e["input_ids"]) for e in batch], batch_first=True, padding_value=PAD)
        right = [example[target] for example in batch]
        if target == "title":
            return {"input_ids": ids, "labels": pad_sequence(right, batch_first=True, padding_value=-100)}
        return {"input_ids": ids, "labels": torch.tensor(right)}

    options = {"per_device_train_batch_size": 8, "learning_rate": 5e-3, "lr_scheduler_type": "constant"} | options
    options |= {"logging_steps": 1, "report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    options |= {"remove_unused_columns": False, "use_cpu": True, "seed": 1, "max_steps": 20}
    arguments = transformers.TrainingArguments(str(folder), **options)
    trainer = transformers.Trainer(model, arguments, train_dataset=examples, data_collator=collate)
    trainer.train()
    trainer.save_model()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["title", "label"])
def test_the_loss_falls(target: str, articles: tuple[Any, list[dict[str, Any]]], tmp_path: Path) -> None:
    """Equally when layers are recomputed, and when the gradients of two batches are added; commands take the folder."""
    tokenizer, examples = articles
    kind: Any = hf.HatForSequenceClassification
    config = hf.HatConfig("hat_roberta", SIZES | {"max_positions": 128, "init": "xavier"}, len(tokenizer))
    if target == "title":
        kind = hf.HatForConditionalGeneration
        config = hf.HatConfig("hat_transformer", SIZES | DECODER | {"share_all_embeddings": True}, len(tokenizer))
    runs = []
    for options in RUNS:
        torch.manual_seed(1)
        model = kind(config)
        runs.append(losses(model, examples[:24], target, tmp_path, **options))
        assert model.is_activation_checkpointing == ("activation_checkpointing" in options)
    assert sum(runs[0][-3:]) < 0.85 * sum(runs[0][:3])
    assert runs[1] == pytest.approx(runs[0], abs=2e-3)
    loaded = kind.from_pretrained(tmp_path)
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in model.state_dict().items())
    for name, value in GENERATION.items() if target == "title" else ():
        setattr(loaded.generation_config, name, value)
    loaded.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ids, out = tokenizer(TEXTS, return_tensors="pt"), tmp_path / "out.jsonl"
    key = "sentences" if target == "title" else "segments"
    write_lines(tmp_path / "in.jsonl", [{"id": str(number), key: text} for number, text in enumerate(TEXTS)])
    if target == "title":
        words = ["generate", tmp_path, tmp_path / "in.jsonl", "--out", out, "--device", "cpu"]
        assert hat(*words) == 0
        texts = tokenizer.batch_decode(loaded.generate(**ids))
        assert [line["text"] for line in read_lines(out)] == texts
        assert all(texts)
        return
    assert hat("predict", tmp_path, tmp_path / "in.jsonl", "--out", out, "--device", "cpu") == 0
    with torch.no_grad():
        scores = loaded(**ids).logits.softmax(dim=-1)
    for line, row in zip(read_lines(out), scores.tolist(), strict=True):
        assert line["probabilities"] == pytest.approx({f"LABEL_{number}": x for number, x in enumerate(row)}, abs=1e-5)
    assert hat("embed", tmp_path, tmp_path / "in.jsonl", "--out", tmp_path / "vectors.npz", "--device", "cpu") == 0
    assert hat("look", tmp_path, tmp_path / "in.jsonl", "--out", tmp_path / "look.json") == 0
    assert "was trained by transformers" in refusal("export", tmp_path, "--out", tmp_path / "again")
