"""Models that start from a BERT with its tokenizer, by the real commands: train, predict, package, export, look."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from commands import USER_DIR, hat, read_lines, write_lines
from small_peers import ENCODER_SIZES, small_peer
from tokenizers_on_the_spot import write_tokenizer
from warm import WarmPython

import hat_fairseq
from hat_fairseq.kernels import cpu_precisions
from hat_fairseq.model_folder import MANIFEST

TEXTS = ["Zürich is a city. It rains.", "The remote is yellow! Who wants a button?", "Good morning. We begin now."]
FAIRSEQ_TRAIN = ["fairseq_cli.train", "--user-dir", str(USER_DIR)]
TRAIN = "--optimizer adam --lr 1e-3 --batch-size 2 --max-update 2 --cpu --num-workers 0 --no-epoch-checkpoints"
PRECISIONS = [name for name in cpu_precisions() if name != "int8"]  # fp32, and bf16 where the CPU has it


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported small BERT: model.pt, dict.txt and tokenizer.json."""
    folder = tmp_path_factory.mktemp("bert")
    write_tokenizer(folder / "hf", "uncased WordPiece")
    config = transformers.BertConfig(vocab_size=1200, max_position_embeddings=60, **ENCODER_SIZES)
    small_peer(transformers.BertModel, config).save_pretrained(folder / "hf")
    assert hat("import", "bert", folder / "hf", "--out", folder / "own/model.pt") == 0
    return folder / "own"


def start_of(bert: Path, arch: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The printed flags of a start, with a copy of it made."""
    assert hat("import", "bert", bert.parent / "hf", "--out", bert / "model.pt", "--overwrite") == 0
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if "--arch" in line]
    return next(words for words in lines if words[:1] == ["--arch"] and words[1].startswith(arch))


@pytest.mark.slow
def test_labels_from_a_package(
    bert: Path, warm: WarmPython, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed flags of `--package`: its vocabulary for the data, and its weights for the start."""
    assert hat("import", "bert", bert.parent / "hf", "--package", tmp_path / "P") == 0
    lines = capsys.readouterr().out.splitlines()
    printed = [shlex.split(line) for line in lines if line.lstrip().startswith(("preprocess with:", "--arch"))]
    vocabulary = next(words[2:] for words in printed if words[:2] == ["preprocess", "with:"])
    start = next(words for words in printed if words[:2] == ["--arch", "hierarchical_transformer_minilm"])
    write_lines(tmp_path / "raw/train.jsonl", [{"text": text, "label": "ab"[n % 2]} for n, text in enumerate(TEXTS)])
    flags = ["--kind", "classification", "--splitter", "punctuation", "--segments", "sentences", *vocabulary]
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", "--number-ids", *flags) == 0
    task = f"--task document_classification --segment-by marker --disable-validation --save-dir {tmp_path}/save"
    words = [f"{tmp_path}/data/bin", *start, *TRAIN.split(), *task.split()]
    log = warm.run([*FAIRSEQ_TRAIN, *words], tmp_path, tmp_path / "log")
    assert "started from RoBERTa: both kinds of layer i from its layer i" in log
    assert "done training" in log


def prepared(bert: Path, folder: Path, key: str, *flags: str) -> Path:
    for split in ("train", "valid", "test"):
        rows = [{"id": f"{split}{n}", "text": text, key: "ab"[n % 2]} for n, text in enumerate(TEXTS)]
        if key == "target":
            rows = [{**row, "target": row["text"][:12]} for row in rows]
        write_lines(folder / f"raw/{split}.jsonl", rows)
    tokenizer = ["--bpe", "tokenizer", "--bpe-dir", bert, "--splitter", "punctuation"]
    assert hat("preprocess", folder / "raw", "--out", folder / "data", *tokenizer, *flags) == 0
    return folder / "data"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch,more",
    [
        ("hierarchical_transformer", "--segment-by marker --span-pooling mean --pooling mean"),
        ("hat_roberta", "--span-pooling mean"),
        ("poolingformer", "--attention-window 8 --pooling-window 16"),
        ("ernie_sparse", "--sparse-block 8 --sparse-random 1"),
    ],
)
def test_labels(
    arch: str, more: str, bert: Path, warm: WarmPython, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = start_of(bert, arch, capsys)
    data = prepared(bert, tmp_path, "label", "--kind", "classification")
    task = ["--task", "document_classification", "--criterion", "document_labels", "--save-dir", tmp_path / "save"]
    words = [*start, *more.split(), *TRAIN.split(), "--disable-validation", *task]
    printed = warm.run([*FAIRSEQ_TRAIN, f"{data}/bin", *map(str, words)], tmp_path, tmp_path / "log")
    assert "newly initialised" in printed, "what is new is listed"
    checkpoint, common = tmp_path / "save/checkpoint_last.pt", ["--device", "cpu"]
    rows = {}
    for name in PRECISIONS:
        out = tmp_path / f"{name}.jsonl"
        assert hat("predict", checkpoint, data, "--out", out, *common, "--precision", name) == 0
        rows[name] = read_lines(out)
    assert hat("export", checkpoint, "--data", data / "bin", "--out", tmp_path / "P") == 0
    assert (tmp_path / "P" / MANIFEST).is_file()
    assert (tmp_path / "P/bin/bpe.json").is_file()
    assert hat("predict", tmp_path / "P", tmp_path / "raw/test.jsonl", "--out", tmp_path / "p.jsonl", *common) == 0
    for row, half, packed in zip(rows["fp32"], rows[PRECISIONS[-1]], read_lines(tmp_path / "p.jsonl"), strict=True):
        assert row["probabilities"] == pytest.approx(packed["probabilities"], abs=1e-5)
        assert row["probabilities"] == pytest.approx(half["probabilities"], abs=0.05)
    words = ["look", tmp_path / "P", tmp_path / "raw/test.jsonl", "--html", tmp_path / "look.html", *common]
    assert hat(*words) == 0
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert re.search(r'"document": ?"test0"', page)
    assert arch == "ernie_sparse" or r"Z\u00fcrich is a city" in page, "the text as it was given"
    vectors = tmp_path / "v.npz"
    assert hat("embed", tmp_path / "P", tmp_path / "raw/test.jsonl", "--out", vectors, *common) == 0
    assert np.load(vectors)["vectors"].shape == (6, ENCODER_SIZES["hidden_size"])
    words = ["export", checkpoint, "--data", data / "bin", "--out", tmp_path / "hf"]
    assert hat(*words) == 0
    exported = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf", trust_remote_code=True)
    model = hat_fairseq.load(tmp_path / "P", device="cpu")
    tokens = torch.tensor([[0, 9, 30, 0, 7, 8, 2]])
    with torch.no_grad():
        own = model.models[0].head_logits("sentence_classification_head", model.models[0].encode(tokens), tokens)
        assert (exported.eval()(input_ids=tokens).logits - own).abs().max() < 1e-5


@pytest.mark.slow
@pytest.mark.fault(
    "Checkpoints",
    "an imported BERT, and data that were prepared with another vocabulary of its size",
    "names both dictionaries and the way out",
)
@pytest.mark.parametrize("arch", ["hierarchical_transformer", "hat_roberta", "hat_bart"])
def test_another_vocabulary(
    arch: str, bert: Path, warm: WarmPython, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = start_of(bert, arch, capsys)
    record = json.loads((bert / "tokenizer.json").read_text())
    entries = record["model"]["vocab"]
    first, second, *_ = (entry for entry in entries if entry.isalpha() and len(entry) > 2)
    entries |= {first: entries[second], second: entries[first]}
    (other := tmp_path / "other").mkdir()
    (other / "tokenizer.json").write_text(json.dumps(record))
    labels = arch != "hat_bart"
    data = prepared(
        other, tmp_path, *(("label", "--kind", "classification") if labels else ("target", "--kind", "text"))
    )
    task = (
        "--task document_classification --criterion document_labels"
        if labels
        else ("--task document_to_text --criterion chunked_label_smoothed_cross_entropy --max-target-positions 30")
    )
    words = [f"{data}/bin", *start, *TRAIN.split(), *task.split(), "--save-dir", str(tmp_path / "save")]
    done = warm.completed([*FAIRSEQ_TRAIN, *words], tmp_path, check=False)
    error = done.stderr.splitlines()[-1]
    assert done.returncode, error
    assert "the checkpoint was trained with another dictionary" in error, error
    assert not [*(tmp_path / "save").glob("*.pt")]


@pytest.mark.slow
def test_texts(bert: Path, warm: WarmPython, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The encoder of a HAT is the BERT at the start: after an update with rate 0 too."""
    start = start_of(bert, "hat_bart", capsys)
    data = prepared(bert, tmp_path, "target", "--kind", "text")
    task = "--task document_to_text --criterion chunked_label_smoothed_cross_entropy --max-target-positions 30"
    words = [*start, *TRAIN.replace("1e-3", "0").split(), "--disable-validation", *task.split(), "--save-dir"]
    printed = warm.run([*FAIRSEQ_TRAIN, f"{data}/bin", *words, str(tmp_path / "save")], tmp_path, tmp_path / "log")
    assert start[-2] == "--encoder-from"
    assert "the encoder is started from RoBERTa; newly initialised" in printed
    checkpoint = tmp_path / "save/checkpoint_last.pt"
    state = torch.load(checkpoint, weights_only=False)["model"]
    for name, tensor in torch.load(bert / "model.pt", weights_only=True)["model"].items():
        if ".lm_head." not in name and not name.endswith("_fingerprint"):
            own = state[name.replace("sentence_encoder.", "")]
            assert torch.equal(own, tensor[: len(own)]), name
    more = [*words, str(tmp_path / "save"), "--max-update", "3"]
    log = warm.run([*FAIRSEQ_TRAIN, f"{data}/bin", *more], tmp_path, tmp_path / "log")
    assert f"Loaded checkpoint {tmp_path / 'save/checkpoint_last.pt'} (epoch 2 @ 2 updates)" in log, "it goes on"
    assert hat("export", checkpoint, "--data", data / "bin", "--out", tmp_path / "P") == 0
    without, other = start[:-2], [str(tmp_path / "other")]
    for flags, problem in (
        (["--finetune-from-model", bert / "model.pt"], "which has no decoder: start from it with --encoder-from"),
        (["--encoder-from", checkpoint], f"--encoder-from {checkpoint} is no BERT or RoBERTa; to start from all its"),
        (start[-2:] + ["--finetune-from-model", checkpoint], "give --encoder-from or --finetune-from-model, not both"),
    ):
        words = [f"{data}/bin", *without, *map(str, flags), *TRAIN.split(), *task.split(), "--save-dir", *other]
        done = warm.completed([*FAIRSEQ_TRAIN, *words], tmp_path, check=False)
        assert done.returncode
        assert problem in done.stderr.splitlines()[-1]
        assert not [*Path(*other).glob("*.pt")]
    for name in PRECISIONS:
        words = ["generate", tmp_path / "P", tmp_path / "raw/test.jsonl", "--device", "cpu"]
        precision = ["--overwrite", "--precision", name]
        assert hat(*words, "--beam", 2, "--max-len-b", 8, "--out", tmp_path / "out.jsonl", *precision) == 0
        assert len(read_lines(tmp_path / "out.jsonl")) == 3
    words = ["export", checkpoint, "--data", data / "bin", "--out", tmp_path / "hf"]
    assert hat(*words) == 0
