"""Pipelines, collators and Seq2SeqTrainer of transformers with the ids and labels that `HatTokenizer` makes."""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fine_tuned import FineTuned

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.dictionary import EOS, PAD, Dictionary
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import TextPipeline

transformers = pytest.importorskip("transformers", reason="make setup")
pytest.importorskip("accelerate", reason="make setup")
from hat_fairseq import hf  # noqa: E402

SIZES = {"encoder_embed_dim": 32, "encoder_ffn_embed_dim": 48, "encoder_layers": 2, "dropout": 0.0}
DECODER = {name.replace("encoder", "decoder"): size for name, size in SIZES.items()}
LIMIT = 120


@pytest.fixture(scope="module")
def articles() -> list[dict[str, Any]]:
    with gzip.open(Path(__file__).parents[1] / "samples/hyperpartisan.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][:16]


@pytest.fixture(scope="module")
def folders(articles: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each kind a folder with a tokenizer and a model with random weights."""
    texts = [text for article in articles for text in (article["title"], *article["paragraphs"])]
    bpe, folders = LearnedBpe.learn(texts, 300), {}
    for kind in ("text", "classification", "mlm", "tokens"):
        files, folder = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp(kind)
        TextPipeline(Settings(kind=kind, splitter="punctuation"), bpe).save(files)
        Dictionary(Counter(t for x in texts for t in bpe.encode(x)).most_common()).save(files / "dict.source.txt")
        tokenizer = hf.HatTokenizer(str(files / "pipeline.json"), LIMIT, has_mask=kind == "mlm")
        tokenizer.save_pretrained(folder)
        torch.manual_seed(1)
        encoder = hf.HatConfig(
            "hat_roberta", SIZES | {"max_positions": LIMIT}, len(tokenizer), id2label={0: "left", 1: "right"}
        )
        models = {"classification": hf.HatForSequenceClassification, "mlm": hf.HatForMaskedLM}
        model: Any = models.get(kind, hf.HatModel)(encoder)
        if kind == "text":
            sizes = SIZES | DECODER | {"share_all_embeddings": True}
            positions = {"max_source_positions": LIMIT, "max_target_positions": 40}
            config = hf.HatConfig("hat_transformer", sizes, len(tokenizer), **positions)
            model = hf.HatForConditionalGeneration(config)
        model.save_pretrained(folder)
        folders[kind] = folder
    return folders


def loaded(folder: Path, auto: Any = None) -> tuple[Any, Any]:
    return transformers.AutoTokenizer.from_pretrained(folder), auto and auto.from_pretrained(folder).eval()


def test_pipelines_take_strings(folders: dict[str, Path], articles: list[dict[str, Any]]) -> None:
    texts = [articles[0]["title"], " ".join(articles[1]["paragraphs"])]  # the second one is longer than the model takes
    classify = transformers.pipeline("text-classification", str(folders["classification"]))
    tokenizer, model = loaded(folders["classification"], transformers.AutoModelForSequenceClassification)
    for batch_size in (1, 2):
        results = classify(texts, truncation=True, batch_size=batch_size, top_k=None)
        for text, scores in zip(texts, results, strict=True):
            with torch.no_grad():
                right = model(**tokenizer(text, truncation=True, return_tensors="pt")).logits.softmax(-1)[0].tolist()
            assert {each["label"]: each["score"] for each in scores} == pytest.approx(
                {"left": right[0], "right": right[1]}, abs=1e-5
            )
    pair = classify({"text": texts[0], "text_pair": texts[0]})
    with torch.no_grad():
        right = model(**tokenizer(texts[0], texts[0], return_tensors="pt")).logits.softmax(-1)[0]
    assert pair["score"] == pytest.approx(float(right.max()), abs=1e-5)
    with pytest.raises(ValueError, match=f"tokens are more than the model takes, {LIMIT}"):
        classify(texts[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tokens", "classification", "text"])
def test_a_pipeline_gives_the_states_of_batches(kind: str, folders: dict[str, Path]) -> None:
    """Of an encoder without heads and with one, and of the encoder of an encoder-decoder."""
    texts = ["The president said so .", "No .", "Metal Man is the easiest of all eight ."]
    tokenizer, model = loaded(folders[kind], transformers.AutoModel)
    for batch_size in (1, 2, 3):
        features = transformers.pipeline("feature-extraction", str(folders[kind]))(texts, batch_size=batch_size)
        for text, rows in zip(texts, features, strict=True):
            with torch.no_grad():
                out = model(**tokenizer(text, return_tensors="pt"))
            assert np.allclose(rows[0][: out.last_hidden_state.size(1)], out.last_hidden_state[0], atol=1e-5)
            assert [*(out.logits or {})] == (["sentence_classification_head"] if kind == "classification" else [])


def test_a_pipeline_of_an_exported_folder_predicts_as_hat_predict(
    fine_tuned: Callable[[str], FineTuned], tmp_path: Path
) -> None:
    made, folder = fine_tuned("classification"), tmp_path / "folder"
    words = ["export", made.checkpoint, "--data", made.data / "bin", "--out", folder]
    assert cli.main(list(map(str, words))) == 0
    texts = ["Okay , shall we start ?", "I think the remote control should be yellow . Or should it ?"]
    right = hat_fairseq.load(made.checkpoint, made.data / "bin", "cpu").predict([{"segments": [t]} for t in texts])
    results = transformers.pipeline("text-classification", str(folder), top_k=None)(texts)
    for scores, prediction in zip(results, right, strict=True):
        assert {each["label"]: each["score"] for each in scores} == pytest.approx(prediction.probabilities, abs=1e-4)


def test_fill_mask_takes_a_string(folders: dict[str, Path], articles: list[dict[str, Any]]) -> None:
    fill = transformers.pipeline("fill-mask", str(folders["mlm"]))
    tokenizer, model = loaded(folders["mlm"], transformers.AutoModelForMaskedLM)
    words = articles[0]["title"].split()
    text = " ".join([*words[:2], tokenizer.mask_token, *words[3:]])
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        scores = model(ids).logits[0, ids[0].tolist().index(tokenizer.mask_token_id)].softmax(-1)
    best, (top, *_) = int(scores.argmax()), fill(text)
    assert (top["token"], top["token_str"]) == (best, tokenizer.decode([best]))
    assert top["score"] == pytest.approx(float(scores[best]), abs=1e-5)
    (chosen,) = fill(text, targets=["the"])
    assert chosen["token_str"] == "the"
    assert chosen["score"] == pytest.approx(float(scores[chosen["token"]]), abs=1e-6)


def test_what_token_classification_gives_a_model(folders: dict[str, Path]) -> None:
    tokenizer, model = loaded(folders["tokens"], transformers.AutoModel)
    pipeline = transformers.TokenClassificationPipeline(model=model, tokenizer=tokenizer)
    text = "The  president said so ."
    for given, options in ((text, {}), (text.split(), {"is_split_into_words": True, "delimiter": " "})):
        (inputs,) = pipeline.preprocess(given, **{"is_split_into_words": False} | options)
        assert inputs["input_ids"].tolist() == [tokenizer(text)["input_ids"]]
        columns = zip(inputs["special_tokens_mask"][0].tolist(), inputs["offset_mapping"][0].tolist(), strict=True)
        spans = [span for special, span in columns if not special]
        if given == text:
            assert "".join(text[begin:end] for begin, end in spans) == "".join(text.split())
        else:
            assert sorted({each for each in inputs["word_ids"] if each is not None})[::4] == [0, 4]


def test_token_classification_takes_a_string(folders: dict[str, Path]) -> None:
    tokenizer, _ = loaded(folders["tokens"])
    torch.manual_seed(2)
    config = hf.HatConfig("hat_roberta", SIZES | {"max_positions": LIMIT}, len(tokenizer), num_labels=5)
    model = hf.HatForTokenClassification(config).eval()
    text = "The  president said so ."
    inputs = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    with torch.no_grad():
        best = model(inputs["input_ids"]).logits[0].argmax(-1).tolist()
    found = transformers.pipeline("token-classification", model, tokenizer=tokenizer, ignore_labels=[])(text)
    right = [
        (begin, end, f"LABEL_{label}")
        for (begin, end), label in zip(inputs["offset_mapping"][0].tolist(), best, strict=True)
    ]
    assert [(each["start"], each["end"], each["entity"]) for each in found] == right[1:-1]


def test_labels_of_words_for_a_collator(folders: dict[str, Path]) -> None:
    """As scripts for named entities make them: the label of a word at its first piece."""
    tokenizer, _ = loaded(folders["tokens"])
    documents = [["The", "president", "said", "so", "."], ["So", "said", "the", "presidents"]]
    encoded = tokenizer(documents, is_split_into_words=True, truncation=True)
    examples = []
    for number, (row, words) in enumerate(zip(encoded["input_ids"], documents, strict=True)):
        ids, labels = encoded.word_ids(number), []
        for place, word in enumerate(ids):
            first = word is not None and word != ids[place - 1]
            labels.append(len(words[word]) if first else -100)
        assert [label for label in labels if label != -100] == [*map(len, words)]
        examples.append({"input_ids": row, "labels": labels})
    batch = transformers.DataCollatorForTokenClassification(tokenizer, pad_to_multiple_of=8)(examples)
    assert batch["input_ids"].shape == batch["labels"].shape
    assert batch["labels"].size(1) % 8 == 0
    assert batch["labels"][batch["input_ids"] == PAD].eq(-100).all()
    assert batch["attention_mask"].ne(1).any()
    masked = transformers.DataCollatorForLanguageModeling(loaded(folders["mlm"])[0], mlm_probability=0.5)(
        [{"input_ids": example["input_ids"]} for example in examples]
    )
    assert masked["labels"].ne(-100).any()
    assert masked["labels"][batch["input_ids"][:, : masked["labels"].size(1)] < 3].eq(-100).all()


def test_an_encoder_decoder_reads_rows_padded_on_the_left(folders: dict[str, Path]) -> None:
    tokenizer, model = loaded(folders["text"], transformers.AutoModelForSeq2SeqLM)
    texts, target = ["Short .", "A longer one . With two sentences ."], torch.tensor([[EOS, 7, 9]] * 2)
    logits = []
    with torch.no_grad():
        for side in ("right", "left"):
            inputs = tokenizer(texts, return_tensors="pt", padding_side=side)
            logits.append(model(**inputs, decoder_input_ids=target).logits)
            assert inputs["input_ids"][0, {"right": -1, "left": 0}[side]] == PAD
    assert torch.allclose(*logits, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["random", "group_by_length"])
def test_seq2seq_trainer_with_labels_of_the_tokenizer(
    sampling: str, folders: dict[str, Path], articles: list[dict[str, Any]], tmp_path: Path
) -> None:
    tokenizer, model = loaded(folders["text"], transformers.AutoModelForSeq2SeqLM)
    texts, titles = [" ".join(a["paragraphs"]) for a in articles], [a["title"] for a in articles]
    encoded = tokenizer(texts, text_target=titles, truncation=True, max_length=LIMIT, max_target_length=30)
    assert all(row[-1] == EOS and len(row) <= 30 for row in encoded["labels"])
    assert tokenizer.target_limit == 40 == len(tokenizer(text_target=texts[0], truncation=True)["input_ids"])
    with pytest.raises(ValueError, match="tokens are more than the model takes, 40; give truncation=True"):
        tokenizer(titles[0], text_target=texts[0])
    for row, title in zip(encoded["labels"], titles, strict=True):
        assert " ".join(title.split()).startswith(tokenizer.decode(row))
    examples = [{name: column[n] for name, column in encoded.items()} for n in range(len(texts))]
    seen: dict[str, list[str]] = {}

    def compute_metrics(prediction: Any) -> dict[str, float]:
        seen["predictions"] = tokenizer.batch_decode(prediction.predictions, skip_special_tokens=True)
        seen["labels"] = tokenizer.batch_decode(prediction.label_ids, skip_special_tokens=True)  # padded with -100
        return {"words": sum(len(text.split()) for text in seen["predictions"])}

    options: dict[str, Any] = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
    options |= {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 3, "learning_rate": 5e-3, "seed": 1}
    options |= {"max_steps": 12, "save_strategy": "steps", "save_steps": 12, "train_sampling_strategy": sampling}
    arguments = transformers.Seq2SeqTrainingArguments(
        str(tmp_path), predict_with_generate=True, generation_max_length=12, **options
    )
    trainer = transformers.Seq2SeqTrainer(
        model,
        arguments,
        train_dataset=examples,
        eval_dataset=examples[:5],
        processing_class=tokenizer,
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert sum(losses[-3:]) < 0.95 * sum(losses[:3])
    metrics = trainer.evaluate()
    assert metrics["eval_words"] > 0
    assert len(seen["predictions"]) == 5
    titles = tokenizer.batch_decode(encoded["labels"][:5], skip_special_tokens=True)
    assert sorted(seen["labels"]) == sorted(titles)  # evaluation, too, groups by length
    saved, _ = loaded(tmp_path / "checkpoint-12")
    assert saved(texts[0], truncation=True)["input_ids"] == encoded["input_ids"][0]


@pytest.mark.slow
def test_datasets_map_in_two_processes(
    folders: dict[str, Path], articles: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The same rows as in one, and a second script finds them in the cache of the first."""
    datasets = pytest.importorskip("datasets", reason="make setup")
    texts, titles = [" ".join(article["paragraphs"]) for article in articles], [each["title"] for each in articles]
    table = datasets.Dataset.from_dict({"text": texts, "title": titles})
    tokenizer, _ = loaded(folders["text"])
    options = {"batched": True, "batch_size": 3, "remove_columns": ["text", "title"]}

    def encode(rows: dict[str, list[str]]) -> Any:
        return tokenizer(rows["text"], text_target=rows["title"], truncation=True)

    one, two = (
        table.map(encode, num_proc=number, cache_file_name=str(tmp_path / f"{number}.arrow"), **options)
        for number in (None, 2)
    )
    expected = tokenizer(texts, text_target=titles, truncation=True)
    for rows in (one, two):
        assert {name: rows[name][:] for name in rows.column_names} == expected.data
    again, _ = loaded(folders["text"])
    hashes = [datasets.fingerprint.Hasher.hash(each) for each in (tokenizer, again)]
    assert tokenizer.pipeline.counts
    assert hashes[0] == hashes[1]
