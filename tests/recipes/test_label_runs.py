"""Every recipe of the encoders from the raw release to predictions and a score: its own commands on a tiny release of
real text, with a small model.

Recipes that start from RoBERTa or from released weights start from a small random RoBERTa here, with a byte-level BPE
learned here; that of multiple choice starts from what the recipe for pre-training has left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from building import Vocabulary, build, released_roberta
from byte_level_bpe import write_byte_level_bpe
from releases import write_release
from sentencepiece_model import write_model
from warm import WarmPython

from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe
from hat_fairseq.package_files import bare_checkpoint
from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files
from hat_fairseq.scoring.official import FILES
from preprocess import question_containers

pytestmark = pytest.mark.slow
SIZES = "--encoder-embed-dim 32 --encoder-ffn-embed-dim 48 --encoder-attention-heads 4"
LAYERS = {"hat_roberta_base": "--encoder-layers 2"}
LAYERS |= {"poolingformer_large": "--encoder-layers 2 --encoder-attention-layers 1 --attention-window 32"}
LAYERS |= {"hierarchical_transformer_base_4096": "--layout S|SD"}
TRAIN = f"{SIZES} --max-update 2 --cpu --gpus 1 --num-workers 0"
LAYERS |= {"ernie_sparse_base": "--encoder-layers 2"}
SHORT = ["--max-source-tokens", "256"]
LONGER = {"tydi_qa": ["--max-source-tokens", "1024", "--window-overlap", "100"]}  # whole articles
SECTIONS = {name: files.load(files.find(name)) for name in files.names()}
SECTIONS = {name: sections for name, sections in SECTIONS.items() if not sections["generate"]}
PRETRAINING = {name for name in SECTIONS if name.endswith("_pretraining")}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which all commands run, with bpe/, roberta.base/ and converted weights in it."""
    folder = tmp_path_factory.mktemp("encoder_recipes")
    vocabulary = Vocabulary(write_byte_level_bpe(folder / "bpe") + 5, mask=True)
    roberta = build("hat_roberta_base", f"{SIZES} --encoder-layers 2 --no-hierarchy", vocabulary, max_positions=512)
    for name in ("roberta.base", "roberta.large"):
        save(released_roberta(weights(roberta)), folder / name)
    pieces = SentencePieceBpe(write_model(folder / "pieces")).pieces()
    many = Vocabulary(len(pieces) + 5, mask=True)  # four special tokens before them, <mask> after them
    xlmr = build("hat_roberta_base", f"{SIZES} --encoder-layers 2 --no-hierarchy", many, max_positions=512)
    save(weights(xlmr), folder / "xlmr.large")
    flags = f"{SIZES} {LAYERS['hierarchical_transformer_base_4096']} --segment-positions none"
    hierarchical = build("hierarchical_transformer_base_4096", flags, vocabulary)
    save(weights(hierarchical), folder / "hierarchical-transformer-base-4096")
    return folder


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython() as process:
        yield process


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("_fingerprint")}


def save(state: dict[str, torch.Tensor], folder: Path) -> None:
    folder.mkdir()
    torch.save(bare_checkpoint(state), folder / "model.pt")


@cache
def run_recipe(name: str, workspace: Path, python: WarmPython) -> dict[str, str]:
    """Preprocess, train, predict and score; the output of each, everything in it."""
    sections = SECTIONS[name]
    reader = str(sections["preprocess"]["reader"])
    if reader == "raw/{recipe}":
        write_release(name, workspace / "raw" / name)
        source = []
    else:
        if not (workspace / "release" / reader).exists():
            write = question_containers.WRITERS.get(reader, partial(write_release, reader))
            write(workspace / "release" / reader)
        source = ["--partial", "--root", f"release/{reader}"]
    folders = {"sentencepiece": ["--bpe-dir", "pieces"], "learned": ["--num-codes", "300"]}
    bpe = folders.get(str(sections["preprocess"].get("bpe")), ["--bpe-dir", "bpe"])
    sequences = reader.startswith("lra_")
    layers = LAYERS.get(str(sections["train"]["arch"]), "--encoder-layers 1").split()
    layers += ["--bf16=null"] if "bf16" in sections["train"] else []
    flags = {
        "preprocess": [*source, *([] if sequences else [*bpe, *LONGER.get(name, SHORT)])],
        "train": [*TRAIN.split(), *layers],
        "predict": ["--device", "cpu"],
    }
    outputs = {}
    for verb in ("preprocess", "train", *(["predict"] if sections["predict"] else [])):
        flags[verb] += ["--overwrite"] if sequences and verb == "preprocess" else []  # a folder of two recipes
        for command in recipes.build_commands(verb, name, flags[verb]):
            what = command[4] if command[4] == "score" else verb
            outputs[what] = python.run(command[3:], workspace, workspace / f"{name}.{what}.log")
    return outputs


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_from_the_raw_release_to_a_score(name: str, workspace: Path, python: WarmPython) -> None:
    outputs = run_recipe(name, workspace, python)
    assert re.search(r"num_updates[\"']?:? [\"']?2\b|done training", outputs["train"])
    if name in PRETRAINING:
        assert "predict" not in outputs and (workspace / f"checkpoints/{name}/checkpoint_best.pt").exists()
        return
    split = SECTIONS[name]["predict"]["split"]
    examples = json_lines(workspace / f"data-bin/{name}/text/{split}.jsonl")
    predictions = json_lines(workspace / f"results/{name}/{split}.jsonl")
    assert [row["id"] for row in predictions] == [example["id"] for example in examples] and len(examples) >= 1
    assert json.loads((workspace / f"results/{name}/{split}.score.json").read_text())
    figures = {"squad2": "exact", "natural_questions": "long", "tydi_qa": "passage F1"}
    assert (figures | {"ernie_sparse_triviaqa": "exact_match"}).get(name, "accuracy") in outputs["score"]
    if name in FILES:  # the file that the authors' script scores
        path = workspace / f"results/{name}/{FILES[name]}"
        official = json.loads(path.read_text())["predictions"] if path.suffix == ".json" else json_lines(path)
        assert [str(row["example_id"]) for row in official] == [row["id"] for row in predictions]
        table = outputs["preprocess"]
        assert re.search(r"gold answers that no window has +\d+ of \d+", table) and "windows without answer" in table


def test_the_pretrained_encoder_is_what_fine_tuning_starts_from(workspace: Path, python: WarmPython) -> None:
    """All of it, hierarchical attention included; only the head is new."""
    run_recipe("roberta_pretraining", workspace, python)
    run_recipe("race", workspace, python)
    start = [
        "--finetune-from-model",
        "checkpoints/roberta_pretraining/checkpoint_best.pt",
        "--save-dir",
        "checkpoints/x",
    ]
    flags = [*TRAIN.split(), *LAYERS["hat_roberta_base"].split(), *start]
    (command,) = recipes.build_commands("train", "race", flags)
    log = python.run(command[3:], workspace, workspace / "from_pretraining.log")
    new = set(re.findall(r"^  ([a-z_]+\.\S+)$", log, re.MULTILINE))
    assert new and all(tensor.startswith("classification_heads.") for tensor in new), new
    assert "sentence_attn" in (workspace / "race.train.log").read_text()  # from RoBERTa it is new
