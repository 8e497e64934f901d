"""`hat export` of encoders: from the same texts transformers computes our logits; and back."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import labelled
import pytest
import torch
from commands import USER_DIR, hat, read_lines, refusal, run_command
from fine_tuned import spread, write_meetings

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.dictionary import read_labels
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.modules.heads import LEVELS
from hat_fairseq.register import register
from hat_fairseq.weights.export import purpose_of
from hat_fairseq.weights.hugging_face import read_weights
from hat_fairseq.weights.trained import Trained

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq import hf  # noqa: E402

register()  # checkpoints hold types that it lets torch load
TINY = "--arch hat_roberta_tiny --max-positions 200 "
SPARSE = "--arch ernie_sparse_tiny --max-positions 200 "
MODELS = {  # of documents; tests/hf compares the other attentions
    "hat": TINY + "--sentence-queries bos --encoder-normalize-before --pooler-inner-dim 24 --encoder-layers 2",
    "roberta": TINY + "--no-hierarchy",
    "poolingformer": "--arch poolingformer_tiny --max-positions 200",
    "ernie-own": SPARSE + "--representative-weights separate --representative-update residual --document-pooling min "
    "--representative-positions sequence --max-positions 240 --encoder-normalize-before",
}
WORDS = {"words-ernie": SPARSE + "--untie-weights-roberta", "words-roberta": TINY + "--no-hierarchy"}
HEAD = "sentence_classification_head"
HEADS: dict[str, Any] = {  # of the kinds of `fine_tuned`
    "segments": {HEAD: {"level": "segment", "classes": 4, "inner_dim": 64, "labels": ["ID", "ME", "PM", "UI"]}},
    "choice": {HEAD: {"level": "document", "classes": 1, "inner_dim": 64}},
    "document_qa": {
        "answer_span": {"level": "token", "classes": 2, "inner_dim": 64},
        "answer_paragraph": {"level": "paragraph", "classes": 1, "inner_dim": 64},
        "answer_type": {"level": "paragraphs", "classes": 5, "inner_dim": 64},
    },
}
NAMED = {"segments": "HatForSegmentClassification", "choice": "HatForMultipleChoice", "document_qa": "HatModel"}
PLAIN = {"roberta": "RobertaForSequenceClassification", "words-roberta": "RobertaForMaskedLM"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, run: Any) -> dict[str, Path]:
    """Of `classification` and `mlm`: the bin directory, made of AMI meetings; beside it `test.jsonl`."""
    folder, folders = tmp_path_factory.mktemp("data"), {}
    write_meetings(folder)
    for kind, flags in (("classification", "--max-source-tokens 180 --long-source truncate"), ("mlm", "")):
        raw = folder / kind
        for split in ("train", "valid", "test"):
            labelled.write("classification", folder / f"{split}.jsonl", raw / f"{split}.jsonl")
            if kind == "mlm":
                records = map(json.loads, (raw / f"{split}.jsonl").read_text().splitlines())
                lines = [json.dumps({"id": r["id"], "segments": r["segments"]}) + "\n" for r in records]
                (raw / f"{split}.jsonl").write_text("".join(lines))
        words = f"--bpe learned --num-codes 200 --kind {kind} {flags}".split()
        run("hat", "preprocess", raw, "--out", folder / f"{kind}-data", *words)
        folders[kind] = folder / f"{kind}-data/bin"
    return folders


@pytest.fixture(scope="module", params=[*MODELS, "words-roberta", pytest.param("words-ernie", marks=pytest.mark.slow)])
def exported(
    request: Any, data: dict[str, Path], run: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, Path, Path]]:
    """The name of a model, its checkpoint, its data, and the exported folder."""
    name, folder = request.param, tmp_path_factory.mktemp("model")
    kind, task = ("mlm", "masked_document_lm") if name in WORDS else ("classification", "document_classification")
    flags = f"--user-dir {USER_DIR} --task {task} --save-dir {folder} --optimizer adam --lr 1e-3 --cpu --max-update 1 "
    flags += "--batch-size 2 --num-workers 0 --no-epoch-checkpoints --disable-validation --seed 3 "
    flags += f"{(MODELS | WORDS)[name]} {'--tokens-per-sample 200' if kind == 'mlm' else ''}"
    run("fairseq-train", data[kind], *flags.split())
    checkpoint, out = folder / "checkpoint_last.pt", folder / "hf"
    spread(checkpoint)
    words = ["export", checkpoint, "--data", data[kind], "--out", out]
    assert cli.main([*map(str, words)]) == 0
    yield name, checkpoint, data[kind], out


@torch.no_grad()
def test_logits_are_those_of_fairseq(exported: tuple[str, Path, Path, Path]) -> None:
    """In fp64, where no processor's order of operations matters."""
    name, checkpoint, data, out = exported
    about_words = name in WORDS
    auto = transformers.AutoModelForMaskedLM if about_words else transformers.AutoModelForSequenceClassification
    peer, info = auto.from_pretrained(out, trust_remote_code=True, output_loading_info=True)
    assert not any(info.values()), info
    assert type(peer).__name__ == PLAIN.get(name, f"HatFor{'MaskedLM' if about_words else 'SequenceClassification'}")
    trained = Trained.load(checkpoint, data)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out, trust_remote_code=True)
    if name == "ernie-own":  # representatives take some of the positions
        assert tokenizer.limit == trained.model.max_positions() < 240
    lines = (data.parents[1] / data.parent.name.removesuffix("-data") / "test.jsonl").read_text().splitlines()
    records = [{name: value for name, value in json.loads(line).items() if name != "label"} for line in lines]
    records[0]["segments"] = ["No ."] if about_words else records[0]["segments"] * 3  # is truncated
    encoded = tokenizer([record["segments"] for record in records], return_tensors="pt")
    words = encoded["attention_mask"].bool() if about_words else ...
    heads = {} if about_words else {"classification_head_name": HEAD}
    logits = trained.model.double().eval()(encoded["input_ids"], **heads)[0]
    peer_logits = peer.double()(**encoded).logits
    assert torch.allclose(logits[words], peer_logits[words], atol=1e-10, rtol=0)
    assert logits.flatten(0, -2).std(dim=0).min() > 1e-3
    if not about_words:
        answers = hat_fairseq.load(str(checkpoint), data=data, device="cpu").predict(records)
        assert [answer.label for answer in answers] == [peer.config.id2label[int(i)] for i in peer_logits.argmax(dim=1)]


def test_back_again_everything_is_the_same(exported: tuple[str, Path, Path, Path], tmp_path: Path) -> None:
    name, checkpoint, data, out = exported
    saved = tmp_path / "saved"
    auto = transformers.AutoModelForMaskedLM if name in WORDS else transformers.AutoModelForSequenceClassification
    for loaded in (auto, transformers.AutoTokenizer):  # saved by transformers, as after a training
        loaded.from_pretrained(out, trust_remote_code=True).save_pretrained(saved)
    before, after = torch.load(checkpoint, weights_only=True)["model"], ModelFolder.open(saved).tensors()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[n], after[n]) for n in before)
    files = {path.relative_to(saved / "bin") for path in (saved / "bin").rglob("*") if path.is_file()}
    assert all((data / path).read_bytes() == (saved / "bin" / path).read_bytes() for path in files)
    Trained.load(saved, saved / "bin")


@pytest.mark.parametrize("exported", ["poolingformer"], indirect=True)
def test_a_checkpoint_of_other_pooled_keys_is_refused(exported: tuple[str, Path, Path, Path], tmp_path: Path) -> None:
    """It is of an older version, and has those of the document."""
    _, new, data, _ = exported
    state, old = torch.load(new, weights_only=True), tmp_path / "old.pt"
    del state["cfg"]["model"].settings_version
    torch.save(state, old)
    with pytest.raises(ValueError, match=r"old\.pt: its pooled keys begin .* runs with hat_fairseq 0\.5"):
        Trained.load(old, data)
    state["cfg"]["model"].pooling_cells = "token"  # as from 0.6 on
    torch.save(state, old)
    Trained.load(old, data)


@pytest.mark.parametrize("exported", ["hat"], indirect=True)
def test_other_options_are_refused(
    exported: tuple[str, Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, checkpoint, data, _ = exported
    words = ["export", str(checkpoint), "--out", str(tmp_path / "out")]
    for flags, message in (
        (["--data", str(data), "--lenpen", "2"], "--lenpen is for models that write texts"),
        ([], "is no folder of a model: give --data"),
    ):
        assert cli.main([*words, *flags]) == 2
        assert message in capsys.readouterr().err
    words[1] += os.pathsep + words[1]
    assert cli.main(words) == 2
    assert "hat export writes one model" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", HEADS)
def test_every_head_is_exported(kind: str, tmp_path: Path, fine_tuned: Any) -> None:
    """The tensors of the checkpoint under their names, all numbers of its heads, and rows for the kind of the data."""
    tuned, out = fine_tuned(kind), tmp_path / "hf"
    words = ["export", tuned.checkpoint, "--data", tuned.data / "bin", "--out", out]
    assert cli.main([*map(str, words)]) == 0
    config, before = json.loads((out / "config.json").read_text()), torch.load(tuned.checkpoint, weights_only=True)
    assert config["architectures"] == [NAMED[kind]]
    assert config["network"] == before["cfg"]["model"]._name.removesuffix("_tiny")
    assert config["heads"] == HEADS[kind]
    tensors = {name: t for name, t in before["model"].items() if not name.endswith("_fingerprint")}
    assert read_weights(out).keys() <= tensors.keys()
    after = ModelFolder.open(out).tensors()
    assert before["model"].keys() == after.keys()
    assert all(torch.equal(t, after[n]) for n, t in before["model"].items())
    tokenizer = transformers.AutoTokenizer.from_pretrained(out, trust_remote_code=True)
    records = [json.loads(line) for line in (tuned.raw / "test.jsonl").read_text().splitlines()]
    assert len(tokenizer(records, return_overflowing_tokens=True)["input_ids"]) >= len(records)


@pytest.mark.parametrize("level", [*LEVELS, "evidence"])
@pytest.mark.parametrize(("classes", "more"), [(1, {}), (2, {}), (2, {"labels": ["a", "b"]}), (3, {})])
def test_the_class_of_a_head_takes_its_level(classes: int, more: dict[str, Any], level: str) -> None:
    purpose = purpose_of({"level": level, "classes": classes} | more)
    assert purpose == "Model" or level in getattr(hf, f"Hat{purpose}").levels


CLASSES = {"classification": "Sequence", "segments": "Segment", "tokens": "Token"}  # of a kind, in a class of `hf`


def saved_with(folder: Path, kind: str, out: Path, **options: Any) -> Any:
    """Saves a model and its tokenizer by transformers, with other options of the configuration; returns the model."""
    model_class = getattr(hf, f"HatFor{CLASSES[kind]}Classification")
    model = model_class.from_pretrained(folder, ignore_mismatched_sizes=True, **options).eval()
    for each in (model, transformers.AutoTokenizer.from_pretrained(folder)):
        each.save_pretrained(out)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
def test_labels_are_those_that_transformers_saved(kind: str, tmp_path: Path, fine_tuned: Any) -> None:
    """Also of another number; without names of their own those of the training, if there are as many."""
    tuned, folder = fine_tuned(kind), tmp_path / "hf"
    assert hat("export", tuned.checkpoint, "--data", tuned.data / "bin", "--out", folder) == 0
    before, config = read_labels(tuned.data / "bin/label/dict.txt"), json.loads((folder / "config.json").read_text())
    assert [*config["id2label"].values()] == before == sorted(config["label2id"], key=config["label2id"].get)
    records = read_lines(tuned.raw / "test.jsonl")[:3]
    texts = [{name: value for name, value in record.items() if not name.startswith("label")} for record in records]
    default = {number: f"LABEL_{number}" for number in range(len(before))}
    for number, names in enumerate(([f"new {name}" for name in before], list("vwxyz"), default)):
        out = tmp_path / str(number)
        peer = saved_with(folder, kind, out, id2label=dict(enumerate(names)) if names is not default else default)
        names = before if names is default else names
        tokenizer = transformers.AutoTokenizer.from_pretrained(out)
        with torch.no_grad():
            scores = [peer(**tokenizer([text], return_tensors="pt")).logits[0].softmax(dim=-1) for text in texts]
        models = [hat_fairseq.load(out, device="cpu")]
        if len(names) == len(before):
            assert hat("export", out, "--out", tmp_path / "again", "--overwrite") == 0
            models += [hat_fairseq.load(tmp_path / "again", device="cpu")]
            models += [hat_fairseq.load(out, data=tuned.data / "bin", device="cpu")]  # with fairseq
        elif kind == "classification":
            message = f"transformers has given it 5 classes, and its training data had {len(before)}; hat export cannot"
            assert message in refusal("export", out, "--out", tmp_path / "again", "--overwrite")
        for answers in [model.predict(texts) for model in models]:
            for answer, right in zip(answers, scores, strict=True):
                if kind == "classification":
                    expected = dict(zip(names, right.tolist(), strict=True))
                    assert answer.probabilities == pytest.approx(expected, abs=1e-5)
                    assert answer.label == max(expected, key=expected.__getitem__)
                else:
                    best = [names[int(each)] for each in right.argmax(dim=-1)]
                    assert set(answer.labels) <= {*best}
                    assert kind == "tokens" or answer.labels == best[: len(answer.labels)]
        if number == 1 and kind == "classification":  # a trainer may have sorted the names in another way
            saved_with(folder, kind, tmp_path / "other", id2label=dict(enumerate(before[::-1])))
            words = ["--path", tmp_path / "other", "--valid-subset", "test", "--batch-size", "2", "--cpu"]
            words += ["--user-dir", Path(hat_fairseq.__file__).parent]
            wrong = run_command("fairseq-validate", tuned.data / "bin", *words, check=False)
            assert wrong.returncode
            assert "other labels in the checkpoint, or in another order" in wrong.stderr
        if number == 0:  # whose classes have other names than those of the folder that it was made of
            with pytest.raises(ValueError, match="has other labels than"):
                hat_fairseq.load(f"{folder}:{out}", device="cpu")


@pytest.mark.parametrize("exported", ["roberta"], indirect=True)
def test_a_roberta_may_have_other_labels(exported: tuple[str, Path, Path, Path], tmp_path: Path) -> None:
    """transformers' own class does not know the description of the network beside its configuration."""
    text = {"segments": ["The remote control is yellow .", "Okay ."]}
    for names in (["agree", "contradict", "neither"], ["LABEL_0", "LABEL_1"]):
        peer = transformers.AutoModelForSequenceClassification.from_pretrained(
            exported[3], id2label=dict(enumerate(names)), ignore_mismatched_sizes=True
        ).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(exported[3])
        for each in (peer, tokenizer):
            each.save_pretrained(tmp_path)
        with torch.no_grad():
            (scores,) = peer(**tokenizer([text], return_tensors="pt")).logits.softmax(dim=-1).tolist()
        (answer,) = hat_fairseq.load(tmp_path, device="cpu").predict([text])
        names = names if len(names) == 3 else ["no", "yes"]
        assert answer.probabilities == pytest.approx(dict(zip(names, scores, strict=True)), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, message",
    [
        ({"problem_type": "multi_label_classification"}, "its problem_type is multi_label_classification"),
        ({"problem_type": "regression", "num_labels": 1}, "its problem_type is regression"),
        ({"num_labels": 1}, "its problem_type is regression"),
        ({"id2label": {0: "same", 1: "same"}}, "id2label has 'same' twice"),
    ],
)
def test_numbers_that_are_no_probabilities_of_labels_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path, fine_tuned: Any
) -> None:
    tuned, folder, out = fine_tuned("classification"), tmp_path / "hf", tmp_path / "saved"
    assert hat("export", tuned.checkpoint, "--data", tuned.data / "bin", "--out", folder) == 0
    saved_with(folder, "classification", out, **options)
    model, lines = hat_fairseq.load(out, device="cpu"), read_lines(tuned.raw / "test.jsonl")[:1]
    with pytest.raises(ValueError, match=message):
        model.predict(lines)
    assert len(model.embed(lines)) == 1  # states are what they are
    for words in (["predict", out, tuned.raw, "--out", tmp_path / "p.jsonl"], ["export", out, "--out", tmp_path / "x"]):
        assert message in refusal(*words)
